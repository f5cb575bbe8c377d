"""Where tensors come from, noted by ``autograd.recording``."""

import gc

import pytest

import tensorkit as tk


def _line(function):
    return function.__code__.co_firstlineno


@pytest.fixture
def x():
    return tk.ones(2, 3, requires_grad=True)


def test_nothing_is_noted_while_recording_is_off(x):
    with tk.autograd.recording():
        pass
    assert (x * 2).origin is None
    assert x.origin is None


def test_an_origin_names_operation_inputs_and_line(x):
    def program():
        return x * other

    other = tk.ones(3)
    with tk.autograd.recording():
        origin = program().origin
    assert origin.operation == "mul"
    assert origin.inputs[0] is x
    assert origin.inputs[1] is other
    assert (origin.file, origin.line) == (__file__, _line(program) + 1)


PROGRAMS = {
    "x + x": "add",
    "x * 2": "mul",
    "2 / x": "div",
    "3 - x": "sub",
    "x ** 2": "pow",
    "2 ** x": "pow",
    "-x": "neg",
    "abs(x)": "abs",
    "x > 1": "gt",
    "x.exp()": "exp",
    "x @ x.t()": "matmul",
    "x.sum(0)": "sum",
    "x.mean()": "mean",
    "x[0]": "getitem",
    "x[0, 1:]": "getitem",
    "x.t().reshape(-1)": "reshape",
    "x.view(-1)": "view",
    "x.T": "T",
    "x.clone()": "clone",
    "x.detach()": "detach",
    "x.data": "data",
    "x.long()": "to",
    "tk.where(x > 1, x, 0.)": "where",
    "(x * 1).add_(1)": "add_",
    "tk.zeros(2)": "zeros",
    "tk.tensor([1, 2])": "tensor",
    "tk.rand(2)": "rand",
    "[*x][0]": "unbind",
    "(x * 1)[0].exp_()": "exp_",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_kind_of_result_has_an_origin(program, x):
    with tk.autograd.recording():
        result = eval(program)
    assert result.origin.operation == PROGRAMS[program]
    assert (result.origin.untracked is None) == result.requires_grad


REASONS = {
    "x * 2": None,
    "tk.ones(2) * 2": "no input requires grad",
    "tk.ones(2)": "made without requires_grad=True",
    "x.detach()": "detach leaves the history behind",
    "x > 1": "its dtype is torch.bool: only floating-point numbers have gradients",
}


@pytest.mark.parametrize("program", REASONS)
def test_an_untracked_result_says_why(program, x):
    with tk.autograd.recording():
        assert eval(program).origin.untracked == REASONS[program]


def test_no_grad_is_named_as_the_reason(x):
    with tk.autograd.recording(), tk.no_grad():
        assert (x * 2).origin.untracked == "made inside no_grad"


def test_a_write_keeps_the_values_before(x):
    with tk.autograd.recording():
        y = x * 3
        y.add_(1)
    (before,) = y.origin.inputs
    assert before.origin.operation == "mul"
    assert before.tolist() == [[3.0] * 3] * 2
    assert before.requires_grad


def test_an_assignment_is_the_origin_of_the_whole_tensor():
    with tk.autograd.recording():
        y = tk.zeros(3)
        y[0] = 1.0
    assert y.origin.operation == "setitem"


def test_an_input_that_is_gone_is_represented_by_its_values():
    with tk.autograd.recording():
        y = tk.zeros(2) + 1
    (zeros,) = y.origin.inputs
    assert zeros.tolist() == [0.0, 0.0]
    assert zeros.origin.operation == "zeros"
    assert y.origin.inputs[0] is zeros


def test_origins_make_no_cycles():
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        with tk.autograd.recording():
            w = tk.ones(3, requires_grad=True)
            for _ in range(3):
                ((w * 2 - 1).exp()).sum().backward()
                with tk.no_grad():
                    w -= w.grad
            w.grad = (w * 2).detach()
        del w
        gc.collect()
        garbage = [each for each in gc.garbage if type(each).__module__.startswith("tensorkit")]
        assert not garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_stale_saved_tensor_is_reported_with_the_line_that_saved_it(x):
    def program():
        y = x * 2
        z = y * y
        y.add_(1)
        return z.sum()

    with tk.autograd.recording():
        z = program()
    line = _line(program) + 2
    with pytest.raises(RuntimeError, match=f"It was recorded here: {__file__}, line {line}"):
        z.backward()
