"""Functions of the user's own, in PyTorch and in tensorkit: the same results, the same errors.

Each program has ``m`` (either library), a leaf ``x`` of three numbers, functions defined with
``make``, and ``run``, which applies one, sums, and gives the gradient of ``x``.
"""

import gc
import re
import warnings

import pytest
from other_words import same_words
from tk_oracle import torch

import tensorkit

PROGRAMS = """
    run(square(), x)
    square().apply(x)
    square().apply(x).grad_fn.name(), square().apply(x).grad_fn.next_functions[0][0].name()
    square().apply(x.detach()).requires_grad
    backward_twice(square().apply(x))
    second(square().apply(x))
    second(exponential().apply(x))
    run(exponential(), x)
    run(make(lambda c, a, b: a * b, lambda c, g: g), x, x)
    run(make(lambda c, a: a * 2, lambda c, g: (g, g)), x)
    run(make(lambda c, a: a * 2, lambda c, g: (g * 2, None, None)), x)
    run(make(lambda c, a: a * 2, lambda c, g: 3), x)
    run(make(lambda c, a: a * 2, lambda c, g: None), x)
    run(make(lambda c, a: a * 2, lambda c, g: None), x * 2)
    run(make(lambda c, a: a * 2, lambda c, g: m.ones(4)), x)
    run(make(lambda c, a: a * 2, lambda c, g: m.ones(2, 3)), x)
    run(make(lambda c, a: a * 2, lambda c, g: m.ones(())), x)
    run(make(lambda c, a: a * 2, lambda c, g: m.ones(3, dtype=m.float64)), x)
    run(make(lambda c, a, n: a * n, lambda c, g: (g, g)), x, 2)
    run(make(lambda c, a, n: a * n, lambda c, g: (g, g)), x, m.ones(3))
    make(lambda c, a: a.long(), lambda c, g: g).apply(x).requires_grad
    make(lambda c, a: a, lambda c, g: g * 5).apply(x) is x
    run(make(lambda c, a: a, lambda c, g: g * 5), x)
    make(lambda c, a: (c.save_for_backward(3), a)[1], lambda c, g: g).apply(x)
    run(make(lambda c, a: (c.save_for_backward(None, a), a * 1)[1], saved_second), x)
    (lambda y: (y.add_(1), y.sum().backward()))(exponential().apply(x))
    (lambda z: (square().apply(z), z.add_(1))[0].sum().backward())(x * 2)
    square()()(x)
    make(None, lambda c, g: g).apply(x)
    run(make(lambda c, a: a * 1, None), x)
    make(lambda c, a: 3, lambda c, g: g).apply(x)
    make(lambda c, a: [a * 2], lambda c, g: g).apply(x)[0].requires_grad
    run(power(), x, 3)
    modes()
    needs(x, 2, m.ones(3))
    m.autograd.gradcheck(square().apply, x.detach().double().requires_grad_())
"""


class _Scope:
    """The names that a program may use."""

    def __init__(self, m):
        self.m = m
        self.x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def make(self, forward, backward, **more):
        parts = {"forward": forward, "backward": backward, **more}
        methods = {name: staticmethod(each) for name, each in parts.items() if each is not None}
        return type("My", (self.m.autograd.Function,), methods)

    def run(self, function, *args):
        function.apply(*args).sum().backward()
        return self.x.grad

    def square(self, decorate=lambda backward: backward):
        def forward(c, a):
            c.save_for_backward(a)
            return a * a

        return self.make(forward, decorate(lambda c, g: g * 2 * c.saved_tensors[0]))

    def exponential(self):
        def forward(c, a):
            result = a.exp()
            c.save_for_backward(result)
            return result

        return self.make(forward, lambda c, g: g * c.saved_tensors[0])

    def power(self):
        def setup_context(c, inputs, output):
            c.x, c.n = inputs

        def backward(c, g):
            return g * c.n * c.x ** (c.n - 1), None

        return self.make(lambda a, n: a**n, backward, setup_context=setup_context)

    def saved_second(self, c, g):
        absent, a = c.saved_tensors
        return g * a if absent is None else None

    def second(self, y):
        (slope,) = self.m.autograd.grad(y.sum(), self.x, create_graph=True)
        return slope.detach(), self.m.autograd.grad(slope.sum(), self.x)

    def backward_twice(self, y):
        y.sum().backward()
        y.sum().backward()

    def modes(self):
        seen = []

        def note(value):
            seen.append(self.m.is_grad_enabled())
            return value

        self.run(self.make(lambda c, a: note(a * 1), lambda c, g: note(g)), self.x)
        return seen

    def needs(self, *args):
        noted = []
        forward = lambda c, a, *_: (noted.append(c.needs_input_grad), a * 1)[1]  # noqa: E731
        self.make(forward, id).apply(*args)
        return noted


def _scope(m):
    scope = _Scope(m)
    return {name: getattr(scope, name) for name in dir(scope) if not name.startswith("_")}


def _run(m, program):
    scope = _scope(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "value", re.sub(" object at 0x[0-9a-f]+", "", repr(eval(program, scope)))
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            return "error", kinds, str(error).split("\n")[0]


@pytest.mark.parametrize("program", PROGRAMS.strip().split("\n"))
def test_a_function_does_what_it_does_in_pytorch(program):
    expected, actual = _run(torch, program.strip()), _run(tensorkit, program.strip())
    assert actual[0] == expected[0], (expected, actual)
    if expected[0] == "error":
        assert expected[1][0] in actual[1]
        assert same_words(actual[-1], expected[-1])
    else:
        assert actual[-1] == expected[-1]


def test_applying_a_function_makes_no_cycle():
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for name in ("square", "exponential"):
            scope = _scope(tensorkit)
            scope[name]().apply(scope["x"]).sum().backward()
            del scope
        gc.collect()
        kinds = {type(found) for found in gc.garbage}
        assert not [kind for kind in kinds if kind.__module__.startswith("tensorkit")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_function_that_writes_is_refused():
    scope = _scope(tensorkit)
    for program in (
        "make(lambda c, a: a, lambda c, g: g).apply(x * 2).add_(1)",
        "make(lambda c, a: a.view(-1), lambda c, g: g).apply(x * 2).add_(1)",
    ):
        with pytest.raises(RuntimeError, match="Function returns new tensors"):
            eval(program, scope)


@pytest.mark.parametrize("name", ["mark_dirty", "mark_non_differentiable", "set_materialize_grads"])
def test_a_context_says_what_to_write_in_place_of_what_it_lacks(name):
    function = _scope(tensorkit)["make"](lambda c, a: getattr(c, name), id)
    with pytest.raises(AttributeError, match=f"{name} is not part of tensorkit; "):
        function.apply(tensorkit.ones(2))


def test_a_function_returns_one_tensor():
    scope = _scope(tensorkit)
    function = scope["make"](lambda c, a: (a * 2, a * 3), id)
    with pytest.raises(NotImplementedError, match=r"(?s)returned a tuple.*tk\.stack"):
        function.apply(scope["x"])


def test_a_function_is_an_origin():
    scope = _scope(tensorkit)
    with tensorkit.autograd.recording():
        origin = scope["square"]().apply(scope["x"]).origin
    assert (origin.operation, origin.inputs) == ("My", (scope["x"],))
