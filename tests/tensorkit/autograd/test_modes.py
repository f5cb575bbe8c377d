"""Modes as contexts and decorators: what they change, and that they change it back."""

import threading

import pytest

import tensorkit as tk


@pytest.fixture
def x():
    return tk.ones(2, requires_grad=True)


MODES = {
    "no_grad": lambda: tk.no_grad,
    "no_grad()": lambda: tk.no_grad(),
    "set_grad_enabled": lambda: tk.set_grad_enabled(False),
    "inference_mode": lambda: tk.inference_mode,
}


@pytest.mark.parametrize("name", MODES)
def test_a_mode_decorates_a_function(x, name):
    @MODES[name]()
    def double(x):
        """Twice."""
        return x * 2

    assert double.__doc__ == "Twice."
    assert not double(x).requires_grad
    assert (x * 2).requires_grad


def test_a_generator_is_refused():
    def values():
        yield tk.is_grad_enabled()

    with pytest.raises(NotImplementedError, match="inside the generator"):
        tk.no_grad()(values)


def test_an_error_restores_the_mode():
    with pytest.raises(ValueError, match="x"), tk.inference_mode():
        raise ValueError("x")
    assert tk.is_grad_enabled()
    assert not tk.is_inference_mode_enabled()
    assert not (tk.ones(2) + tk.ones(2)).is_inference()


def test_one_object_may_be_entered_twice():
    mode = tk.no_grad()
    with mode:
        with mode:
            pass
        assert not tk.is_grad_enabled()
    assert tk.is_grad_enabled()


def test_set_grad_enabled_works_at_once():
    tk.set_grad_enabled(False)
    assert not tk.is_grad_enabled()
    tk.set_grad_enabled(True)
    assert tk.is_grad_enabled()


def test_inference_mode_marks_all_results(x):
    a = tk.ones(2)
    with tk.inference_mode():
        results = [a + a, a * 2, -a, a.exp(), a.sum(), a @ a, a.clone(), a.double(), x * a]
        views = [a[0], a.view(2, 1)]
    assert all(result.is_inference() for result in results)
    assert not any(view.is_inference() for view in views)


def test_a_refused_write_changes_neither_values_nor_version(x):
    b = x * 2
    writes = [
        lambda: b.add_(tk.ones(3)),
        lambda: b.copy_(tk.ones(3)),
        lambda: b.fill_(tk.ones(2)),
        lambda: b.__setitem__(0, tk.ones(2)),
        lambda: b.__setitem__(5, 1.0),
        lambda: x.add_(1),
        lambda: x.__setitem__(0, 9.0),
        lambda: x.zero_(),
    ]
    for write in writes:
        with pytest.raises((RuntimeError, IndexError)):
            write()
    assert (b.tolist(), b._version, x.tolist(), x._version) == ([2, 2], 0, [1, 1], 0)


def test_inference_mode_of_one_thread_marks_nothing_in_another():
    x, found = tk.ones(2), []
    x + x  # planned: from now on the fast path could take it
    with tk.inference_mode():
        thread = threading.Thread(target=lambda: found.append(x + x))
        thread.start()
        thread.join()
    found.append(x + x)
    assert [y.is_inference() for y in found] == [False, False]
