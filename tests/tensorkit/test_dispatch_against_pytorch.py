"""Modes, kernels and custom operations mean what they mean in PyTorch."""

import pytest

import tensorkit as tk

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")
pytestmark = pytest.mark.rest
dispatch = pytest.importorskip(
    "torch.utils._python_dispatch", reason="needs PyTorch: pip install torch==2.13.0"
)


def _mode(m):
    return tk.utils.DispatchMode if m is tk else dispatch.TorchDispatchMode


def _logged(m, program, after=lambda func, result: result):
    """The operations that a mode sees, without overloads and underscores, and the result."""
    names = []

    class Log(_mode(m)):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = func.__name__.partition(".")[0]
            names.append(name.lstrip("_"))
            return after(name, func(*args, **(kwargs or {})))

    with Log():
        result = program()
    return names, result


def _both(make, **options):
    return [_logged(m, make(m), **options) for m in (tk, torch)]


# the shapes of what a program is given, and the program
PROGRAMS = {
    "forward": ([(2, 3)], lambda m, x: (x * 2).neg().sum()),
    "composed": ([(4, 3), (2, 3), (2,)], lambda m, *xs: m.nn.functional.linear(*xs)),
    "in place": ([(3,)], lambda m, x: x.mul_(2).add_(1)),
    "joined": ([(3,)], lambda m, x: m.cat([x, x]).clone()),
    "views": ([(2, 3)], lambda m, x: x.t().unsqueeze(0).expand(5, 3, 2)),
}


def _program(m, name):
    shapes, program = PROGRAMS[name]
    tensors = [m.ones(shape) for shape in shapes]
    return lambda: program(m, *tensors)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_the_same_operations(name):
    (calls, result), (reference_calls, expected) = _both(lambda m: _program(m, name))
    assert calls == reference_calls
    assert result.tolist() == expected.tolist()


def test_a_mode_sees_the_formulas_of_backward():
    def make(m):
        w = m.ones(2, 3, requires_grad=True)
        x = m.ones(4, 3)

        def program():
            m.mm(x, w.t()).sum().backward()
            return w.grad

        return program

    (calls, gradient), (reference_calls, expected) = _both(make)
    assert gradient.tolist() == expected.tolist()
    assert calls.count("mm") == reference_calls.count("mm") == 2
    # PyTorch turns the gradient back once more
    assert calls.count("t") <= reference_calls.count("t")


def test_what_a_mode_gives_back_gets_the_history():
    def make(m):
        x = m.zeros(2, requires_grad=True)

        def program():
            y = x.exp()
            return y, x

        return program

    def doubled(name, result):
        return result * 2 if name == "exp" else result

    found = []
    for _, (y, x) in _both(make, after=doubled):
        y.sum().backward()
        found.append((y.tolist(), y.grad_fn.name(), x.grad.tolist()))
    assert found[0] == found[1]


def test_inside_of_a_mode_nothing_is_recorded_and_the_arguments_are_the_callers():
    def seen(m):
        notes = []
        x = m.ones(2, requires_grad=True)

        class Look(_mode(m)):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                if func.__name__.startswith("exp"):  # PyTorch detaches what exp saves
                    notes.append((types, args[0] is x, result.requires_grad))
                return result

        with Look():
            y = x.exp()
        return notes, y.requires_grad

    assert seen(tk) == seen(torch)


def _custom(m, name, **options):
    def cube(x: m.Tensor, n: int = 3) -> m.Tensor:
        return x**n

    cube.__annotations__ = {"x": m.Tensor, "n": int, "return": m.Tensor}
    return m.library.custom_op(f"tensorkit_test::{name}", cube, mutates_args=(), **options)


def test_custom_operations_are_made_recorded_and_seen_alike():
    def results(m):
        cube = _custom(m, "cube")

        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.n = inputs[1]

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

        m.library.register_autograd(cube, backward, setup_context=setup_context)
        x = m.tensor([2.0, -1.0], requires_grad=True)
        names, y = _logged(m, lambda: cube(x, 2))
        y.sum().backward()
        return names, y.tolist(), x.grad.tolist()

    assert results(tk) == results(torch)


def test_a_custom_operation_without_a_formula_or_a_kernel_is_refused_in_pytorchs_words():
    def first_line(m, call):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            call(m)
        return type(caught.value), str(caught.value).splitlines()[0].split(". ")[0]

    def without_formula(m):
        _custom(m, "bare")(m.ones(2, requires_grad=True)).sum().backward()

    kinds = [first_line(m, without_formula)[0] for m in (tk, torch)]
    assert issubclass(kinds[0], RuntimeError) == issubclass(kinds[1], RuntimeError)
    words = [first_line(m, without_formula)[1] for m in (tk, torch)]
    assert "no autograd formula was registered" in words[0]
    assert "no autograd formula was registered" in words[1]


def test_a_kernel_for_one_kind_of_device_leaves_the_others():
    def result(m):
        cube = _custom(m, "devices", device_types="cpu")
        calls = []
        m.library.register_kernel(cube, "cuda", lambda x, n=3: calls.append(x) or x)
        return cube(m.tensor([2.0])).tolist(), len(calls)

    assert result(tk) == result(torch)
