"""The exercises of chapter 05, Autograd, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Data in words: a *graph* here is a dictionary from the name
of a node to the names of its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule

Graph = dict[str, list[str]]


def numeric_gradient(x: tk.Tensor, h: float) -> tk.Tensor:
    """The gradient of `f` at `x`, measured by small steps of size `h`."""

    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3 + 2 * x).sum()

    gradient = tk.zeros_like(x)
    for i in range(len(x)):
        step = tk.zeros_like(x)
        step[i] = h
        gradient[i] = (f(x + step) - f(x - step)) / (2 * h)
    return gradient


def _numeric_program(x: tk.Tensor, h: float) -> Any:
    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3 + 2 * x).sum()

    gradient = tk.zeros_like(x)
    for i in range(len(x)):
        step = ...  # a vector of zeros with h at place i
        gradient[i] = ...  # (f a step ahead - f a step back) / length of the way
    return gradient


def _cubes(x: tk.Tensor) -> tk.Tensor:
    return (x**3 + 2 * x).sum()


def _one_at_a_time(x: tk.Tensor, i: int, h: float) -> tk.Tensor:
    step = tk.zeros_like(x)
    step[i] = h
    return step


def _forward_difference(x: tk.Tensor, h: float) -> tk.Tensor:
    gradient = tk.zeros_like(x)
    for i in range(len(x)):
        gradient[i] = (_cubes(x + _one_at_a_time(x, i, h)) - _cubes(x)) / h
    return gradient


def _divided_by_h(x: tk.Tensor, h: float) -> tk.Tensor:
    return numeric_gradient(x, h) * 2


def _all_at_once(x: tk.Tensor, h: float) -> tk.Tensor:
    gradient = tk.zeros_like(x)
    for i in range(len(x)):
        gradient[i] = (_cubes(x + h) - _cubes(x - h)) / (2 * h)
    return gradient


def _exact_slopes(x: tk.Tensor, h: float) -> tk.Tensor:
    return 3 * x**2 + 2


def _not_divided(x: tk.Tensor, h: float) -> tk.Tensor:
    return numeric_gradient(x, h) * (2 * h)


def _without_brackets(x: tk.Tensor, h: float) -> tk.Tensor:
    return numeric_gradient(x, h) * (2 * h) / 2 * h


def _backwards_minus_forwards(x: tk.Tensor, h: float) -> tk.Tensor:
    return -numeric_gradient(x, h)


@exercise(
    "numeric-gradient",
    answer=numeric_gradient,
    stub=_numeric_program,
    kind="complete",
    points=3,
    difficulty=3,
    minutes=7,
)
class NumericGradient(Exercise):
    """Measure a gradient

    The function `f(x) = sum of x³ + 2x` turns a vector into one number. Measure, for each
    element of `x`, how much `f` changes when only that element changes a little: go a step `h`
    forward and a step `h` back, and divide the difference of `f` by the distance between the
    two points. Fill the gaps.

    **Input:** `x`, a float64 vector, and `h`, a small number.

    **Output:** a vector as long as `x` with the measured slopes.

    ```python
    numeric_gradient(tk.tensor([1.0, 2.0], dtype=tk.float64), 0.001)
    # tensor([ 5.0000, 14.0000], dtype=torch.float64)
    ```

    The exact slopes are `3x² + 2`: 5 and 14.
    """

    hints = (
        "`step` is a vector with a single number that is not 0. `tk.zeros_like(x)` and an "
        "assignment make it.",
        "From one step back to one step ahead it is `2 * h`, not `h`.",
        "Together: `(f(x + step) - f(x - step)) / (2 * h)`.",
    )
    usual_mistakes = {
        "only ahead": (
            _forward_difference,
            "You compare a step ahead with no step. That works, with an error as large as the "
            "step; go as far back as ahead and it becomes much smaller.",
        ),
        "divided by h": (
            _divided_by_h,
            "Your slopes are twice too large. From one step back to one step ahead it is `2 * h`.",
        ),
        "all at once": (
            _all_at_once,
            "You move all elements together, so each slope is the sum of all. Move only element "
            "`i`.",
        ),
        "by calculus": (
            _exact_slopes,
            "These are the exact slopes, from calculus. Asked for is what a measurement gives, "
            "with its small error: two values of `f` and the way between them.",
        ),
        "not divided": (
            _not_divided,
            "This is the difference itself. A slope is a difference divided by the way: `2 * h`.",
        ),
        "without brackets": (
            _without_brackets,
            "`/ 2 * h` divides by 2 and then multiplies by `h`. Put the length of the way into "
            "brackets: `/ (2 * h)`.",
        ),
        "the wrong way round": (
            _backwards_minus_forwards,
            "The sign is wrong: subtract the value a step back from the value a step ahead.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0], dtype=tk.float64), 0.001, label="two elements")
        yield case(
            tk.tensor(draw.floats(4, 1, 3), dtype=tk.float64), 0.01, label="any four elements"
        )
        three = [draw.number(0.5, 3), draw.number(-3, -0.5), draw.number(0.5, 3)]
        yield case(tk.tensor(three, dtype=tk.float64), 0.1, label="a large step")
        two = [draw.integer(1, 5), -draw.integer(1, 5)]
        yield case(tk.tensor(two, dtype=tk.float64), 0.5, label="a very large step")
        four = tk.tensor(draw.distinct(4, 1, 9)).double()
        yield case(four[::2], 0.01, label="every second element (non-contiguous)")
        one = tk.tensor([draw.integer(1, 19) / 2]).double()
        yield case(one, 0.1, label="a single element (size 1)")


def linear_gradients(
    x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor
) -> tuple[float, tk.Tensor, tk.Tensor]:
    """The loss of a linear model, and its gradients with respect to `w` and `b`."""
    w = w.clone().requires_grad_()
    b = b.clone().requires_grad_()
    prediction = x @ w + b
    loss = ((prediction - target) ** 2).mean()
    loss.backward()
    return loss.item(), w.grad, b.grad


@no_type_check
def _linear_program(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    b = b.clone().requires_grad_()
    prediction = ...  # x @ w + b
    loss = ...  # the mean of the squared differences between prediction and target
    ...  # let autograd compute the gradients
    return loss.item(), w.grad, b.grad


def _with_loss(
    x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor, loss_of: Any
) -> tuple[float, tk.Tensor, tk.Tensor]:
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    loss = loss_of(x, w, b, target)
    loss.backward()
    return loss.item(), w.grad, b.grad


def _sum_of_squares(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: ((x @ w + b - t) ** 2).sum())


def _not_squared(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).mean())


def _absolute(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).abs().mean())


def _squared_mean(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).mean() ** 2)


def _without_backward(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return ((x @ w + b - target) ** 2).mean().item(), None, None


@exercise(
    "linear-gradients",
    answer=linear_gradients,
    stub=_linear_program,
    kind="complete",
    points=2,
    difficulty=2,
    minutes=6,
)
class LinearGradients(Exercise):
    """A loss and its gradients

    The heart of every training program: predict, measure the error, let autograd find the
    gradients. Fill the three gaps.

    **Input:** `x` of shape `[samples, inputs]`, `target` of shape `[samples, 1]`, `w` of shape
    `[inputs, 1]`, `b` of shape `[1]`; all floats of the same dtype, at least one sample and input.

    **Output:** three things: the loss as a Python number, the gradient with respect to `w`, the
    gradient with respect to `b`. The loss is the mean of the squared differences.

    ```python
    x, target = tk.tensor([[1.0, 2.0]]), tk.tensor([[5.0]])
    linear_gradients(x, target, tk.tensor([[0.5], [1.5]]), tk.tensor([0.1]))
    # (1.96..., tensor([[-2.8000],
    #         [-5.6000]]), tensor([-2.8000]))
    ```

    The prediction is 0.5 + 3 + 0.1 = 3.6, the error -1.4, the loss 1.96.
    """

    hints = (
        "`(prediction - target) ** 2` are the squared differences, one for each sample.",
        "`backward` is called on the one number that everything led to.",
    )
    usual_mistakes = {
        "the sum": (
            _sum_of_squares,
            "You added the squares up. The mean divides by the number of samples, and so do its "
            "gradients.",
        ),
        "not squared": (
            _not_squared,
            "The differences are not squared, so errors in both directions cancel out. Square them "
            "before the mean.",
        ),
        "absolute values": (
            _absolute,
            "You took absolute values. That is another loss; here the differences are squared.",
        ),
        "the square of the mean": (
            _squared_mean,
            "You squared the mean of the differences. Square first, then take the mean.",
        ),
        "no backward": (
            _without_backward,
            "The loss is right, the gradients are None: nobody asked for them. Call "
            "`loss.backward()`.",
            r"^(?!(?s:.*)backward\()",
        ),
        "every pair": (
            lambda x, target, w, b: _with_loss(
                x, target, w, b, lambda x, w, b, t: (((x @ w + b).flatten() - t) ** 2).mean()
            ),
            "`[samples]` minus `[samples, 1]` compares every prediction with every target. Leave "
            "the prediction as it comes, `[samples, 1]`.",
        ),
        "the root": (
            lambda x, target, w, b: _with_loss(
                x, target, w, b, lambda x, w, b, t: ((x @ w + b - t) ** 2).mean().sqrt()
            ),
            "You took a root at the end. The loss is the mean of the squares itself.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[1.0, 2.0]]),
            tk.tensor([[5.0]]),
            tk.tensor([[0.5], [1.5]]),
            tk.tensor([0.1]),
            label="one sample (size 1)",
        )
        yield case(*_two_samples(draw), label="two samples")
        yield case(*_linear_problem(draw, 5, 3), label="any five samples")
        yield case(*_linear_problem(draw, 3, 1), label="one input (size 1)")
        halves = (tensor.half() for tensor in _two_samples(draw))
        yield case(*halves, label="half the memory (float16)")
        x, target, w, b = _linear_problem(draw, 4, 2)
        turned = x.T.contiguous().T
        yield case(turned, target, w, b, label="stored by columns (non-contiguous)")
        yield case(*(tensor.double() for tensor in _linear_problem(draw, 4, 2)), label="float64")


def _two_samples(draw: Draw) -> tuple[tk.Tensor, ...]:
    """Whole numbers, with unlike predictions, an error of 6 to 9 and one of 2 to 5."""
    low, high = draw.integers(2, 1, 2), draw.integers(2, 4, 5)
    x = tk.tensor([[high[0], low[0]], [low[1], high[1]]]).float()
    w, b = tk.tensor([[draw.integer(3, 4)], [draw.integer(-2, -1)]]).float(), tk.tensor([1.0])
    errors = tk.tensor([[draw.integer(6, 9)], [draw.integer(2, 5)]])
    return x, x @ w + b + errors, w, b


def _linear_problem(draw: Draw, samples: int, inputs: int) -> tuple[tk.Tensor, ...]:
    """Errors of both signs: some targets lie far above the predictions, some far below."""
    x = tk.tensor([draw.floats(inputs, 0, 3) for _ in range(samples)])
    target = tk.tensor([[30.0 if i % 2 else -40.0] for i in range(samples)])
    w = tk.tensor([[number] for number in draw.floats(inputs, -2, 2)])
    return x, target, w, tk.tensor([0.5])


@exercise("which-leaf", points=2, difficulty=2, minutes=5)
class WhichLeaf(Prediction):
    """Predict: leaf or not, tracked or not

    Every answer is True or False.

    One is done for you:

    ```python
    tk.ones(2, requires_grad=True).requires_grad      # True: you asked for it
    ```
    """

    name = "leaves"
    ask = "Replace each ... by True or False."
    questions = {
        "tk.ones(2).requires_grad": "A new tensor asks for no gradient unless you say so.",
        "tk.ones(2, requires_grad=True).is_leaf": "No operation made it: it is where a graph ends.",
        "(tk.ones(2, requires_grad=True) * 2).is_leaf": "A recorded operation made it.",
        "(tk.ones(2) * 2).is_leaf": (
            "Nothing asked for a gradient, so nothing was recorded: a tensor without a history is "
            "a leaf."
        ),
        "(tk.ones(2, requires_grad=True) + tk.ones(2)).requires_grad": (
            "One input that asks is enough."
        ),
        "tk.ones(2, requires_grad=True).double().is_leaf": "A cast is an operation too.",
        "(tk.ones(2, requires_grad=True) > 0).requires_grad": (
            "True and False do not change a little when the input does: they have no gradient."
        ),
        "tk.ones(2, requires_grad=True).long().requires_grad": (
            "Whole numbers cannot change a little: only floats have gradients."
        ),
        "tk.ones(2, requires_grad=True).sum().requires_grad": "A reduction is recorded as well.",
    }
    hints = (
        "Ask of each: which operation made this tensor, and did one of its inputs ask for a "
        "gradient?",
        "Recorded are operations on floats of which at least one input requires grad. What they "
        "make requires grad and is no leaf; everything else is a leaf.",
    )
    usual_mistakes = {
        "a leaf is what requires grad": (
            {
                "(tk.ones(2, requires_grad=True) * 2).is_leaf": True,
                "(tk.ones(2) * 2).is_leaf": False,
                "tk.ones(2, requires_grad=True).double().is_leaf": True,
            },
            "You took `is_leaf` for `requires_grad`. A leaf is a tensor that no recorded operation "
            "made, whether it asks for a gradient or not.",
        ),
        "everything is tracked": (
            {
                "tk.ones(2).requires_grad": True,
                "(tk.ones(2) * 2).is_leaf": False,
                "(tk.ones(2, requires_grad=True) > 0).requires_grad": True,
                "tk.ones(2, requires_grad=True).long().requires_grad": True,
            },
            "Not everything is recorded: an input must ask for a gradient, and the result must be "
            "a float.",
        ),
        "all inputs must ask": (
            {
                "(tk.ones(2, requires_grad=True) + tk.ones(2)).requires_grad": False,
                "tk.ones(2, requires_grad=True).sum().requires_grad": False,
            },
            "One input that requires grad is enough for the result to require it.",
        ),
    }


def slopes_of_cubes(values: list[float]) -> tk.Tensor:
    """The gradient of the sum of the cubes of these numbers, in float64."""
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True)
    (x**3).sum().backward()
    return x.grad


def _cast_after_asking(values: list[float]) -> Any:
    x = tk.tensor(values, requires_grad=True).double()
    (x**3).sum().backward()
    return x.grad


def _in_float32(values: list[float]) -> Any:
    x = tk.tensor(values, requires_grad=True)
    (x**3).sum().backward()
    return x.grad


def _of_the_mean(values: list[float]) -> Any:
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True)
    (x**3).mean().backward()
    return x.grad


def _the_cubes(values: list[float]) -> Any:
    return tk.tensor(values, dtype=tk.float64) ** 3


@exercise(
    "lost-gradient",
    answer=slopes_of_cubes,
    stub=_cast_after_asking,
    points=2,
    difficulty=2,
    minutes=5,
)
class LostGradient(Exercise):
    """The gradient that is None

    The code below should give the gradient of `x³ + y³ + ...`, and gives `None`. Nothing is
    wrong with the formula. Find out which tensor is the leaf, then repair it.

    **Input:** `values`, a list of Python numbers.

    **Output:** the gradient of the sum of their cubes at these values, a float64 vector.

    ```python
    slopes_of_cubes([1.0, 2.0])
    # tensor([ 3., 12.], dtype=torch.float64)
    ```
    """

    hints = (
        "Two tensors are made in the first line. Which of them is the leaf, and which one has the "
        "name `x`?",
        "`.double()` is an operation: its result has a history, and gradients are kept by leaves. "
        "Make the leaf float64 from the start.",
    )
    usual_mistakes = {
        "in float32": (
            _in_float32,
            "The gradient is there, in float32. Say the dtype where the tensor is made.",
        ),
        "of the mean": (
            _of_the_mean,
            "This is the gradient of the mean: every slope is divided by the number of elements. "
            "Take the sum.",
        ),
        "still cast": (
            _cast_after_asking,
            "The gradient is None: gradients are kept by leaves, and what a cast gives is none. "
            "Name float64 where the tensor is made.",
            r"\.(double|to)\(",
        ),
        "the cubes": (
            _the_cubes,
            "These are the cubes. Asked for is the gradient of their sum, which backward leaves in "
            "`.grad` of the leaf.",
        ),
        "of the squares": (
            lambda values: 2 * tk.tensor(values, dtype=tk.float64),
            "This is the slope of a square. Here the numbers are cubed.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case([1.0, 2.0], label="two numbers")
        yield case([number + 0.001 for number in draw.floats(4, 1, 9)], label="any four numbers")
        # no float32 is equal to these
        a, b, c, d, e = [round(number + 0.001, 3) for number in draw.floats(5, 0.1, 2)]
        yield case([a, -b, c], label="with fractions")
        yield case([d, 0.0, -e], label="with a zero")
        one = draw.number(4, 9)
        yield case([round(one + 0.001, 3)], label="a single number (size 1)")
        yield case([draw.integer(1, 9), -draw.integer(1, 9)], label="whole numbers (int)")
        yield case([], label="no numbers (empty)")


def tanh_gradient(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    """The gradient of the input of tanh, from that of its result `out`."""
    return upstream * (1 - out * out)


def _without_upstream(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return 1 - out * out


def _not_the_square(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out)


def _difference_squared(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out) ** 2


def _upstream_added(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream + (1 - out * out)


def _tanh_once_more(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - tk.tanh(out) ** 2)


def _of_the_sigmoid(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * out * (1 - out)


def _summed_up(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return (upstream * (1 - out * out)).sum()


@exercise("tanh-gradient", answer=tanh_gradient, points=3, difficulty=2, minutes=5)
class TanhGradient(Exercise):
    """One node's work

    A node receives the gradient of its result, the *upstream gradient*, and passes on the
    gradient of its input. For `out = tanh(x)` the derivative is `1 - tanh(x)²`, and `tanh(x)`
    is known already: it is `out`.

    **Input:** `upstream` and `out`, two float tensors of the same shape and dtype, with any number
    of dimensions.

    **Output:** the gradient of `x`: upstream gradient times derivative, element by element.

    ```python
    tanh_gradient(tk.tensor([1.0, 2.0]), tk.tensor([0.0, 0.5]))
    # tensor([1.0000, 1.5000])
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "The chain rule multiplies: what comes from above, times the node's own derivative.",
        "The derivative at each element is `1 - out * out`.",
    )
    usual_mistakes = {
        "without upstream": (
            _without_upstream,
            "This is the derivative of tanh alone. What comes from above must be multiplied in, or "
            "the chain ends here.",
        ),
        "not squared": (
            _not_the_square,
            "The derivative is 1 minus the *square* of the result: `1 - out * out`.",
        ),
        "the difference squared": (
            _difference_squared,
            "`(1 - out) ** 2` squares the difference. Square `out` alone, then subtract it from 1.",
        ),
        "added": (
            _upstream_added,
            "You added the upstream gradient. Along a chain derivatives are multiplied.",
        ),
        "tanh once more": (
            _tanh_once_more,
            "`out` is tanh of the input already. Do not apply tanh again.",
        ),
        "of the sigmoid": (
            _of_the_sigmoid,
            "`out * (1 - out)` is the derivative of the sigmoid. That of tanh is `1 - out * out`.",
        ),
        "summed up": (
            _summed_up,
            "The gradient of `x` has the shape of `x`: every element keeps its own. Leave out the "
            "sum.",
        ),
        "brackets missing": (
            lambda upstream, out: upstream - out * out,
            "`upstream * 1 - out ** 2` multiplies 1 alone. Put brackets around `1 - out * out`.",
        ),
        "exchanged": (
            lambda upstream, out: out * (1 - upstream * upstream),
            "You took the derivative of `upstream` and multiplied by `out`: exchange the two.",
        ),
        "a product of vectors": (
            lambda upstream, out: upstream @ (1 - out * out),
            "`@` adds the products up. Multiply element by element: `*`.",
            r"@|matmul|dot",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0]), tk.tensor([0.0, 0.5]), label="two elements")
        yield case(
            tk.tensor(draw.floats(4, 2, 9)),
            tk.tensor(draw.floats(4, 0.3, 0.8)),
            label="any four elements",
        )
        signs = tk.tensor([[-1.0, 1.0], [1.0, -1.0]])
        upstream, out = _passed_back(draw, 4)
        yield case(
            upstream.reshape(2, 2) * signs,
            out.reshape(2, 2) * signs.flip(1),
            label="a matrix with negative numbers",
        )
        flat = tk.tensor([draw.integer(2, 9), -draw.integer(2, 9), draw.integer(2, 9)]).float()
        yield case(flat, tk.ones(3), label="where tanh is flat")
        upstream, out = _passed_back(draw, 1)
        yield case(upstream[0], -out[0], label="a single number (0-d)")
        yield case(*_passed_back(draw, 1), label="a single element (size 1)")
        upstream, out = (tensor.double() for tensor in _passed_back(draw, 2))
        yield case(upstream, -out, label="float64")
        upstream, out = (tensor.half() for tensor in _passed_back(draw, 2))
        yield case(upstream, -out, label="half the memory (float16)")
        upstream, out = _passed_back(draw, 4)
        yield case(upstream[::2], out[::2], label="every second element (non-contiguous)")
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)


def _passed_back(draw: Draw, n: int) -> tuple[tk.Tensor, tk.Tensor]:
    """A gradient from above and a result of tanh that are not small; their product is not 1."""
    return tk.tensor(draw.integers(n, 2, 9)).float(), tk.tensor(draw.integers(n, 9, 15)) / 16


def sine_slope(value: float) -> tuple[float, float]:
    """The slope of sin(x²) at `value`, by autograd and by hand."""
    import math

    x = tk.tensor(value, requires_grad=True)
    tk.sin(x**2).backward()
    by_hand = 2 * value * math.cos(value**2)
    return x.grad.item(), by_hand


def _without_the_inner(value: float) -> tuple[float, float]:
    return sine_slope(value)[0], math.cos(value**2)


def _sine_left(value: float) -> tuple[float, float]:
    return sine_slope(value)[0], 2 * value * math.sin(value**2)


def _square_of_the_sine(value: float) -> tuple[float, float]:
    x = tk.tensor(value, requires_grad=True)
    (tk.sin(x) ** 2).backward()
    return x.grad.item(), 2 * math.sin(value) * math.cos(value)


def _cosine_of_x(value: float) -> tuple[float, float]:
    return sine_slope(value)[0], 2 * value * math.cos(value)


def _the_value(value: float) -> tuple[float, float]:
    return math.sin(value**2), 2 * value * math.cos(value**2)


@exercise("sine-slope", answer=sine_slope, points=0, difficulty=2, minutes=5, further=True)
class SineSlope(Exercise):
    """Autograd and your own hand

    **Input:** `value`, a Python float.

    **Output:** the slope of `sin(x²)` at `x = value`, twice, as two Python floats: once as autograd
    finds it, once by the chain rule on paper, computed with Python's `math` (`import math`).

    ```python
    sine_slope(1.0)
    # (1.0806046..., 1.0806046...)
    ```

    At π both are about -5.67. They differ in the last digits: autograd works in float32 here.
    """

    rules = (
        Rule(
            "once as autograd finds it",
            "Let autograd compute the first number: `backward()` on the sine, then `x.grad`.",
            needs=("backward", "grad"),
        ),
    )
    hints = (
        "A 0-d tensor that requires grad, `tk.sin(x ** 2)`, `backward`, `x.grad.item()`.",
        "By hand: the derivative of the outer function at the inner one, times the derivative of "
        "the inner one. `cos(x²)` times `2x`.",
    )
    usual_mistakes = {
        "the inner derivative": (
            _without_the_inner,
            "By hand you took only the outer derivative, cos(x²). The chain rule multiplies it by "
            "the inner one, 2x.",
        ),
        "sine instead of cosine": (
            _sine_left,
            "By hand: the derivative of the sine is the cosine.",
        ),
        "the square of the sine": (
            _square_of_the_sine,
            "You computed sin(x)², the square of the sine. Asked for is the sine of the square.",
        ),
        "the cosine of x": (
            _cosine_of_x,
            "By hand: the cosine is taken where the sine was taken, at x².",
        ),
        "the value": (
            _the_value,
            "Your first number is sin(x²) itself. The slope is in `x.grad` after `backward`.",
        ),
        "autograd twice": (
            lambda value: (sine_slope(value)[0],) * 2,
            "The second number has the digits of float32, as the first. Compute it with Python's "
            "`math`, from the formula on paper.",
        ),
        "minus cosine": (
            lambda value: (sine_slope(value)[0], -sine_slope(value)[1]),
            "By hand the sign is wrong: the derivative of the sine is the cosine, without a minus.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(draw.integer(60, 80) / 100, label="below 1")
        yield case(math.pi, label="at π")
        yield case(draw.integer(110, 140) / 100, label="anywhere")
        yield case(-draw.integer(55, 80) / 100, label="at a negative number")
        yield case(0.0, label="at 0")

    def run(self, answer: Any, *args: Any) -> Any:
        """Both slopes with the digits that float32 has, and whether the second has no more."""
        (value,) = args
        pair = answer(value)
        if not isinstance(pair, tuple) or len(pair) != 2:
            return pair
        exact = 2 * value * math.cos(value**2)
        slopes = tuple(round(one, 4) + 0.0 if isinstance(one, float) else one for one in pair)
        distances = [abs(one - exact) if isinstance(one, float) else 1.0 for one in pair]
        is_float32 = max(distances) < 1e-5 and pair[1] and tk.tensor(pair[1]).item() == pair[1]
        return Seen({"slopes": slopes, "the second has the digits of float32": bool(is_float32)})


def backward_order(graph: dict[str, list[str]], root: str) -> list[str]:
    """The nodes reached from `root`, each one after every node that uses it."""
    finished: list[str] = []
    seen = set()

    def visit(node: str) -> None:
        if node in seen:
            return
        seen.add(node)
        for source in graph[node]:
            visit(source)
        finished.append(node)

    visit(root)
    return finished[::-1]


def _as_they_are_met(graph: Graph, root: str) -> list[str]:
    order: list[str] = []

    def visit(node: str) -> None:
        if node not in order:
            order.append(node)
            for source in graph[node]:
                visit(source)

    visit(root)
    return order


def _level_by_level(graph: Graph, root: str) -> list[str]:
    order = [root]
    for node in order:  # grows while it is walked
        order += [source for source in graph[node] if source not in order]
    return order


def _inputs_first(graph: Graph, root: str) -> list[str]:
    return backward_order(graph, root)[::-1]


def _once_per_path(graph: Graph, root: str) -> list[str]:
    order = [root]
    for source in graph[root]:
        order += _once_per_path(graph, source)
    return order


def _all_nodes(graph: Graph, root: str) -> list[str]:
    return backward_order({**graph, "": list(graph)}, "")[1:]


def _names(draw: Draw, fewest: int, most: int) -> list[str]:
    """Different letters from a to w."""
    return [chr(ord("a") + number) for number in draw.distinct(draw.integer(fewest, most), 0, 22)]


def _chain(names: list[str], last: str) -> Graph:
    """Each of these nodes has the next one as its input, the last of them `last`."""
    return {name: [source] for name, source in zip(names, [*names[1:], last], strict=True)}


def _diamond(arms: list[str]) -> Graph:
    return {"loss": arms, **{arm: ["x"] for arm in arms}, "x": []}


def _long_and_short(names: list[str]) -> Graph:
    return {"loss": ["x", names[0]], **_chain(names, "x"), "x": []}


def _residual(names: list[str]) -> Graph:
    """Two blocks: one of all the names but the first, one of the first."""
    first, *others = names
    return {
        "loss": ["add2"],
        "add2": ["add1", others[0]],
        **_chain(others, "add1"),
        "add1": ["x", first],
        first: ["x"],
        "x": [],
    }


def _unreached_users(graph: Graph, root: str) -> list[str]:
    waiting = {name: sum(sources.count(name) for sources in graph.values()) for name in graph}
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            waiting[source] -= 1
            if waiting[source] == 0:
                ready.append(source)
    return order


@exercise("backward-order", answer=backward_order, points=4, difficulty=4, minutes=9)
class BackwardOrder(Exercise):
    """In which order

    A node may pass its gradient on only when all of it has arrived, that is, after every node that
    uses it has run. Find such an order.

    **Input:** `graph`, a dictionary from the name of each node to a list of its inputs, in which a
    name stands twice if it is used twice; `root`, the name of the node at which backward begins.

    **Output:** a list of the names of all nodes that can be reached from `root`, each once, each
    after all the nodes of the list that have it as an input. If several orders are right, any will
    do.

    ```python
    backward_order({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss")
    # ["loss", "b", "a"]: "a" must wait for "b"
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "Which node can be *last*? One that has no inputs left to serve.",
        "Visit the inputs of a node first, all of them, and write the node down afterwards. What "
        "does the list look like from its end?",
        "A recursive `visit(node)` with a set of nodes that were seen; it appends the node after "
        "its inputs. Return the list reversed.",
    )
    usual_mistakes = {
        "as they are met": (
            _as_they_are_met,
            "You write a node down when you first meet it. If a longer way leads to it as well, it "
            "comes too early. Write it down after its inputs were visited, and turn the list.",
        ),
        "level by level": (
            _level_by_level,
            "You go level by level. A node that is near along one way and far along another comes "
            "too early: it must wait for the longest way.",
        ),
        "inputs first": (
            _inputs_first,
            "This is the order of the forward pass, inputs first. Backward goes the other way.",
        ),
        "once per path": (
            _once_per_path,
            "A node stands in your list once for every way that leads to it. Remember what you "
            "have seen: each node belongs there once.",
        ),
        "nodes that are not reached": (
            _all_nodes,
            "Your list has nodes that cannot be reached from the root. Start at the root and "
            "follow the inputs.",
        ),
        "unreached users": (
            _unreached_users,
            "A node waits for users that are not reached from the root, and they never come. "
            "Count only the uses by nodes that are reached.",
        ),
        "without the root": (
            lambda graph, root: backward_order(graph, root)[1:],
            "The root is missing. It comes first.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss", label="a node that must wait")

        def mixed(graph: Graph) -> Graph:  # or `list(graph)` would be a right order
            names = list(graph)
            order = draw.distinct(len(names), 0, len(names) - 1)
            return {names[position]: graph[names[position]] for position in order}

        names = _names(draw, 3, 5)
        yield case(mixed({**_chain(names, "x"), "x": []}), names[0], label="a chain")
        yield case(mixed(_diamond(_names(draw, 2, 4))), "loss", label="a diamond")
        long = _long_and_short(_names(draw, 2, 5))
        yield case(mixed(long), "loss", label="a long way and a short way")
        yield case(mixed(_residual(_names(draw, 2, 4))), "loss", label="two shortcuts")
        names = _names(draw, 2, 4)
        more = {**_long_and_short(names), "other": [names[0]], "far": ["other"]}
        yield case(mixed(more), "loss", label="nodes that are not reached")
        arms = _names(draw, 2, 4)
        aside = {**_diamond(arms), "unused": ["x"]}
        yield case(mixed(aside), arms[0], label="a root in the middle")
        yield case({"alone": []}, "alone", label="a single node (size 1)")
        first, second, twice, other = _names(draw, 4, 4)
        used_twice = {first: [other, second], second: [twice, twice], other: [twice], twice: []}
        yield case(mixed(used_twice), first, label="an input that is named twice")
        ladder, root = _ladder(draw.distinct(draw.integer(10, 12), 10, 99))
        yield case(mixed(ladder), root, label="many diamonds on top of each other")

    def run(self, answer: Any, *args: Any) -> Any:
        """Whether the order is a right one, and if not why."""
        graph, root = args
        order = answer(graph, root)
        if order is None:
            return order
        if not isinstance(order, (list, tuple)) or not all(type(name) is str for name in order):
            return "no list of names"
        wrong = _wrong_order(list(order), graph, root)
        return f"{wrong}: {order}" if wrong else "a right order"


def _ladder(numbers: list[int]) -> tuple[Graph, str]:
    """A chain in which every node uses the next one twice and the one after it once; its root."""
    names = [str(number) for number in numbers]
    graph = {name: names[i : i + 1] * 2 + names[i + 1 : i + 2] for i, name in enumerate(names, 1)}
    return graph, names[0]


def _wrong_order(order: list[str], graph: Graph, root: str) -> str | None:
    reached = backward_order(graph, root)
    for name in reached:
        if order.count(name) != 1:
            return f"{name!r} stands there {order.count(name)} times"
    for name in order:
        if name not in reached:
            return f"{name!r} cannot be reached from {root!r}"
    for name in order:
        for source in graph[name]:
            if order.index(source) < order.index(name):
                return f"{source!r} comes before {name!r}, which uses it"
    return None


def visits(graph: dict[str, list[str]], root: str) -> dict[str, int]:
    """How often the simple recursion comes to each node."""
    counts: dict[str, int] = {}

    def visit(node: str) -> None:
        counts[node] = counts.get(node, 0) + 1
        for source in graph[node]:
            visit(source)

    visit(root)
    return counts


def _each_once(graph: Graph, root: str) -> dict[str, int]:
    return dict.fromkeys(backward_order(graph, root), 1)


def _uses(graph: Graph, root: str) -> dict[str, int]:
    reached = backward_order(graph, root)
    return {name: max(1, sum(graph[other].count(name) for other in reached)) for name in reached}


def _without_the_root(graph: Graph, root: str) -> dict[str, int]:
    counts = visits(graph, root)
    counts[root] -= 1
    return counts


def _all_together(graph: Graph, root: str) -> Any:
    return sum(visits(graph, root).values())


def _distances(graph: Graph, root: str) -> dict[str, int]:
    found = {root: 0}
    for node in list(backward_order(graph, root)):
        for source in graph[node]:
            found[source] = max(found.get(source, 0), found[node] + 1)
    return found


@exercise("visits", answer=visits, points=0, difficulty=3, minutes=6, further=True)
class Visits(Exercise):
    """What the simple recursion costs

    Why not let every node call its inputs at once, whenever a gradient arrives? Count how often
    such a recursion would visit each node.

    **Input:** `graph` and `root` as before.

    **Output:** a dictionary from each node that can be reached to the number of times that it
    is visited: once for every path that leads from the root to it. The root itself is visited
    once.

    ```python
    visits({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss")
    # {"loss": 1, "a": 2, "b": 1}
    ```

    Print it for `y1 = y0 + y0`, `y2 = y1 + y1`, and so on, twenty times.
    """

    hints = (
        "Write the simple recursion: `visit(node)` counts, then visits each input.",
        "An input that is named twice is visited twice. Do not remember what was seen: that is the "
        "point.",
    )
    usual_mistakes = {
        "each once": (
            _each_once,
            "You visit each node once. The simple recursion does not remember: it comes again "
            "along every way.",
        ),
        "uses": (
            _uses,
            "You counted how many nodes use each node. A visit of one of them happens several "
            "times too, and each brings a visit here.",
        ),
        "without the root": (
            _without_the_root,
            "The root is missing. It is visited as well, once: begin with 1 for it.",
        ),
        "all together": (
            _all_together,
            "This is the number of all visits. Give one number for each node, in a dictionary.",
        ),
        "distances": (
            _distances,
            "You measured how far each node is from the root. Count how often it is visited.",
        ),
        "each node once for each user": (
            lambda graph, root: visits(
                {node: list(dict.fromkeys(sources)) for node, sources in graph.items()}, root
            ),
            "An input that is named twice is visited twice: a `set` forgets the second time.",
        ),
        "root not counted": (
            lambda graph, root: {
                node: n for node, n in visits(graph, root).items() if node != root
            },
            "The root is missing. It is visited as well, once.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            {"loss": ["a", "b"], "b": ["a"], "a": []}, "loss", label="a node that is used twice"
        )
        yield case(_residual(_names(draw, 2, 4)), "loss", label="two shortcuts")
        yield case(*_doublings(_names(draw, 4, 4)), label="three doublings")
        yield case(*_doublings(_names(draw, 9, 11)), label="many doublings")
        unused = {**_diamond(_names(draw, 2, 4)), "unused": ["x"]}
        yield case(unused, "loss", label="a node that is not reached")
        yield case({"alone": []}, "alone", label="a single node (size 1)")


def _doublings(names: list[str]) -> tuple[Graph, str]:
    """A chain in which every node uses the next one twice; and its root."""
    return {name: names[i : i + 1] * 2 for i, name in enumerate(names, 1)}, names[0]


def unbroadcast(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    """The gradient of an operand of this shape, which was stretched."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim=dim, keepdim=True)
    return gradient


def _mean_instead(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.mean(dim=0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.mean(dim=dim, keepdim=True)
    return gradient


def _only_leading(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    return gradient


def _only_ones(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim=dim, keepdim=True)
    return gradient


def _dimension_lost(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    for dim in reversed(range(len(shape))):
        if shape[dim] == 1:
            gradient = gradient.sum(dim=dim)
    return gradient


def _first_of_each(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.narrow(dim, 0, 1)
    return gradient


def _everything(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    return gradient.sum() * tk.ones(shape, dtype=gradient.dtype)


def _from_the_right(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=-1)
    return unbroadcast(gradient, shape)


@exercise("unbroadcast", answer=unbroadcast, points=4, difficulty=4, minutes=8)
class Unbroadcast(Exercise):
    """The way back through broadcasting

    An element that was used several times receives several gradients, and they are added. So a
    gradient is summed over the dimensions that were stretched.

    **Input:** `gradient`, a tensor of any float dtype, of the shape that the operands agreed on;
    `shape`, the shape of one operand, a tuple: `()` for a 0-d tensor.

    **Output:** a tensor of that shape: `gradient` summed over the dimensions that the operand lacks
    (at the left), and over those in which it has size 1.

    ```python
    g = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    unbroadcast(g, (3,))
    # tensor([5., 7., 9.])
    unbroadcast(g, (2, 1))
    # tensor([[ 6.],
    #         [15.]])
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "Two things stretch: missing dimensions at the left, and dimensions of size 1. Undo the "
        "first before the second.",
        "While `gradient` has more dimensions than `shape`, sum over dimension 0.",
        "Then, for each dimension of size 1, sum with `keepdim=True`, so that it stays.",
    )
    usual_mistakes = {
        "the mean": (
            _mean_instead,
            "You take the mean. Every place that read the element changes the result, so their "
            "gradients add up: `sum`.",
        ),
        "only the missing dimensions": (
            _only_leading,
            "You sum over the dimensions that are missing at the left. Dimensions of size 1 were "
            "stretched too.",
        ),
        "only the ones": (
            _only_ones,
            "You sum over dimensions of size 1. The operand may also lack dimensions at the left: "
            "sum over these first.",
        ),
        "dimension lost": (
            _dimension_lost,
            "The sums are right and dimensions are missing: the gradient must have the shape of "
            "the operand. `keepdim=True` keeps the size of 1.",
        ),
        "the first of each": (
            _first_of_each,
            "You took one of the gradients that come back. All of them count: add them up.",
        ),
        "everything": (
            _everything,
            "You summed over everything. A dimension that was not stretched keeps its own entries.",
        ),
        "from the right": (
            _from_the_right,
            "You sum over the last dimensions. Those that the operand lacks are at the left: "
            "`dim=0`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        g = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        yield case(g, (3,), label="a row")
        yield case(g, (2, 1), label="a column (size 1)")
        yield case(_table(draw, 3), (1, 3), label="a row with two dimensions")
        columns = draw.integer(2, 4)
        yield case(_table(draw, columns), (), label="a single number (0-d)")
        columns = draw.integer(3, 4)  # not as many as rows: a sum over the other dimension is seen
        halves = _table(draw, columns).half()
        yield case(halves, (columns,), label="half the memory (float16)")
        columns = draw.integer(2, 4)
        yield case(_table(draw, columns), (2, columns), label="nothing was stretched")
        h = tk.tensor(draw.floats(24, 1, 9), dtype=tk.float64).reshape(2, 3, 4)
        yield case(h, (3, 1), label="a dimension missing, another of size 1")
        yield case(h, (2, 1, 4), label="the middle one")
        yield case(h, (1, 3, 1), label="the first and the last one")
        yield case(h, (2, 1, 1), label="the last two")
        yield case(h.permute(2, 1, 0), (3, 2), label="a permuted gradient (non-contiguous)")
        yield case(tk.zeros(0, 3), (1, 3), label="no rows (empty)")

    def advice(self, *args: Any) -> str | None:
        gradient, shape = args
        return f"The result must have the shape {shape}; the gradient has {tuple(gradient.shape)}."


def _table(draw: Draw, columns: int) -> tk.Tensor:
    return tk.tensor([draw.integers(columns, 1, 9) for _ in range(2)]).float()
