"""The exercises of chapter 07, Higher order, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import GRADIENT_IN_LOOP, TWO_GRADIENTS, Rule
from course.notebook.varied import Value, Varied


def second_derivative(coefficients: list[float], x: float) -> float:
    """The second derivative of a polynomial at `x`, by autograd."""
    t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
    y = t * 0
    for power, coefficient in enumerate(coefficients):
        y = y + coefficient * t**power
    (slope,) = tk.autograd.grad(y, t, create_graph=True)
    (curvature,) = tk.autograd.grad(slope, t)
    return curvature.item()


def _polynomial(coefficients: list[float], t: tk.Tensor) -> tk.Tensor:
    y = t * 0
    for power, coefficient in enumerate(coefficients):
        y = y + coefficient * t**power
    return y


def _derived(coefficients: list[float]) -> list[float]:
    return [power * number for power, number in enumerate(coefficients)][1:] or [0.0]


def _value(coefficients: list[float], x: float) -> float:
    return _polynomial(coefficients, tk.tensor(x, dtype=tk.float64)).item()


def _first_derivative(coefficients: list[float], x: float) -> float:
    return _value(_derived(coefficients), x)


def _both_added(coefficients: list[float], x: float) -> float:
    return _first_derivative(coefficients, x) + second_derivative(coefficients, x)


def _powers_from_one(coefficients: list[float], x: float) -> float:
    return second_derivative([0.0, *coefficients], x)


def _without_the_graph(coefficients: list[float], x: float) -> float:
    t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
    (slope,) = tk.autograd.grad(_polynomial(coefficients, t), t)
    (curvature,) = tk.autograd.grad(slope, t)
    return curvature.item()


@exercise(
    "second-derivative", answer=second_derivative, points=0, difficulty=3, minutes=8, further=True
)
class SecondDerivative(Exercise):
    """The second derivative of a polynomial

    **Input:** `coefficients`, a list of two or more floats `[c0, c1, c2, ...]` for the polynomial
    $c_0 + c_1 x + c_2 x^2 + \\dots$, and `x`, a float.

    **Output:** its second derivative at `x`, a Python float. Let autograd find it, in float64.

    ```python
    second_derivative([0.0, 0.0, 0.0, 1.0], 3.0)
    # 18.0: the polynomial is x³, its second derivative 6x
    ```
    """

    rules = (
        Rule(
            "let autograd find it",
            "Compute the polynomial with a tensor that requires grad, and ask autograd twice.",
            needs=(TWO_GRADIENTS, "hessian"),
            returns=(".grad", "grad", "hessian"),
        ),
    )
    hints = (
        "Make a float64 tensor that requires grad, compute the polynomial with it, and ask "
        "`tk.autograd.grad` for the slope.",
        "The slope must be recorded itself to be differentiated again: `create_graph=True`. "
        "`tk.autograd.grad` returns a tuple: `(slope,) = ...`.",
    )
    usual_mistakes = {
        "the first derivative": (
            _first_derivative,
            "This is the slope. Differentiate once more: the gradient of the slope.",
        ),
        "both added": (
            _both_added,
            "These are the first and the second derivative added up: backward accumulates in "
            "`.grad`. `tk.autograd.grad` returns a gradient and stores nothing.",
        ),
        "powers from 1": (
            _powers_from_one,
            "Your powers are one too high. `coefficients[0]` belongs to x to the power of 0.",
        ),
        "without the graph": (
            _without_the_graph,
            "The slope has no history, so it cannot be differentiated. `create_graph=True` belongs "
            "into the call that computes the slope.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        yield case([0.0, 0.0, 0.0, 1.0], 3.0, label="x³ at 3")
        yield case([1.0, 3.0, 1.0], 2.0, label="x² + 3x + 1 at 2")
        yield case(
            [float(number) for number in draw.integers(5, 1, 5)], 2.0, label="any polynomial"
        )
        constant, linear, square, cube = some(4)
        at = -draw.integer(1, 6) / 2
        yield case([constant, linear, -square, cube], at, label="at a negative number")
        yield case(some(2), 3.0, label="a straight line")
        # 6x and the rest nearly cancel, so that float32 keeps few digits
        at, rest = draw.integer(3, 9) / 7, draw.integer(1, 9) / 1000
        yield case([0.0, 0.0, rest - 3 * at, 1.0], at, label="nearly no curvature")
        yield case(draw.integers(4, 1, 9), draw.integer(2, 5), label="whole numbers (int)")


def penalty_gradient(x: tk.Tensor, w: tk.Tensor) -> tk.Tensor:
    """The gradient, with respect to `w`, of how steep the model is at `x`."""
    x = x.clone().requires_grad_()
    w = w.clone().requires_grad_()
    y = tk.tanh(x @ w).sum()
    (slope,) = tk.autograd.grad(y, x, create_graph=True)
    penalty = (slope**2).sum()
    penalty.backward()
    return w.grad


def _slope_without_history(x: tk.Tensor, w: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    w = w.clone().requires_grad_()
    y = tk.tanh(x @ w).sum()
    (slope,) = tk.autograd.grad(y, x)
    penalty = (slope**2).sum()
    penalty.backward()
    return w.grad


def _slope_asked_afterwards(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x)
    (slope.requires_grad_() ** 2).sum().backward()
    return w.grad


def _of_the_model(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    tk.tanh(x @ w).sum().backward()
    return w.grad


def _not_squared(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    slope.sum().backward()
    return w.grad


def _slope_of_w(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), w, create_graph=True)
    (slope**2).sum().backward()
    return w.grad


def _accumulated(x: tk.Tensor, w: tk.Tensor) -> Any:
    return penalty_gradient(x, w) + _of_the_model(x, w)


def _slope_of_the_input(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    (slope**2).sum().backward()
    return x.grad


@exercise(
    "gradient-penalty",
    answer=penalty_gradient,
    stub=_slope_without_history,
    points=6,
    difficulty=4,
    minutes=9,
)
class GradientPenalty(Exercise):
    """A penalty on a gradient

    A model should not change abruptly when its input changes a little. To prevent this, a
    penalty is added to the loss: the squared slope of the output with respect to the *input*.
    Training then needs the gradient of the penalty with respect to the *weights*. The code
    below ends with an error. Repair it.

    **Input:** `x` of shape `[samples, inputs]` and `w` of shape `[inputs]`, floats of the same
    dtype; at least one sample and one input.

    **Output:** the gradient of the penalty with respect to `w`. The penalty is the sum of the
    squared slopes of `tanh(x @ w).sum()` with respect to `x`.

    ```python
    penalty_gradient(tk.tensor([[0.0]]), tk.tensor([2.0]))
    # tensor([4.]): the slope is w, the penalty w², its gradient 2w
    ```
    """

    hints = (
        "Which tensor has no history although it has to be differentiated? Ask it for its "
        "`grad_fn`.",
        "`tk.autograd.grad` returns plain numbers unless you ask it to record its own work: "
        "`create_graph=True`.",
    )
    usual_mistakes = {
        "asked afterwards": (
            _slope_asked_afterwards,
            "`requires_grad_()` makes the slope a new leaf: backward ends there, and `w.grad` "
            "stays None. The slope must be recorded while it is computed: `create_graph=True`.",
            r"^(?!(?s:.*)create_graph=True)(?s:.*)(requires_grad_\((?s:.*)){3}|slope.requires_grad",
        ),
        "of the model": (
            _of_the_model,
            "This is the gradient of the model itself. Differentiate the penalty.",
        ),
        "not squared": (
            _not_squared,
            "The slopes are not squared: steep up and steep down would cancel out.",
        ),
        "slope of the weights": (
            _slope_of_w,
            "You take the slope with respect to `w`. Steepness is the slope with respect to the "
            "input `x`.",
        ),
        "accumulated": (
            _accumulated,
            "The gradient of the model has been added: backward accumulates in `w.grad`. Use "
            "`tk.autograd.grad` for the slope.",
        ),
        "of the input": (
            _slope_of_the_input,
            "This is the gradient with respect to `x`. Asked for is that with respect to `w`.",
            r"return x\.grad",
        ),
        "kept, not recorded": (
            _slope_without_history,
            "`retain_graph=True` keeps the graph and records nothing. `create_graph=True` records "
            "the slope.",
            r"retain_graph=True",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.3, 0.9))

        yield case(tk.tensor([[0.0]]), tk.tensor([2.0]), label="one input, at 0 (size 1)")
        yield case(
            tk.tensor([draw.floats(2, 0.2, 0.6) for _ in range(3)]), some(2), label="three samples"
        )
        signs = tk.tensor([1.0, -1.0, 1.0])
        yield case((some(3) * signs).unsqueeze(0), some(3) * 2, label="three inputs")
        yield case(some(2).unsqueeze(0).double(), -some(2).double(), label="float64")
        yield case(
            tk.tensor([[*draw.floats(2, 0.1, 0.7), number] for number in draw.floats(2, 0.2, 0.5)])[
                :, ::2
            ],
            some(2),
            label="every second column (non-contiguous)",
        )
        yield case(tk.zeros(0, 2), tk.tensor([0.5, 1.5]), label="no samples (empty)", weight=0.25)
        half = tk.tensor([[0.0, 0.0]], dtype=tk.float16)
        up, down = draw.integers(2, 3, 20)
        yield case(
            half,
            tk.tensor([up / 4, -down / 4], dtype=tk.float16),
            label="at 0, half the memory (float16)",
        )


def sigmoid_gradient(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    """The gradient of the input of a sigmoid, from that of its result `out`."""
    return upstream * out * (1 - out)


def _detached(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    out = out.detach()
    return upstream * out * (1 - out)


def _without_recording(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    with tk.no_grad():
        return upstream * out * (1 - out)


def _without_upstream(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return out * (1 - out)


def _of_tanh(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out * out)


def _half_of_it(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out)


@exercise("sigmoid-gradient", answer=sigmoid_gradient, points=3, difficulty=3, minutes=9)
class SigmoidGradient(Exercise):
    r"""A formula that can be differentiated

    The slope of the sigmoid is $\frac{e^{-x}}{(1 + e^{-x})^2}$. Its node has saved the result
    `out`, which is $\frac{1}{1 + e^{-x}}$, and not `x`. Find on paper how the slope is computed
    from `out` alone. Then write the gradient formula of this node so that its *result* has a
    history too: the second derivative goes back through it.

    **Input:** `upstream` and `out`, two float tensors of the same shape and dtype, with any number
    of dimensions, which may require grad.

    **Output:** upstream gradient times slope, element by element, computed with tensor operations
    that are recorded.

    ```python
    sigmoid_gradient(tk.tensor([1.0, 2.0]), tk.tensor([0.5, 0.25]))
    # tensor([0.2500, 0.3750])
    ```

    The check also differentiates your result once more, with respect to `out` and to `upstream`.
    Your function runs inside tensorkit below.
    """

    hints = (
        "The slope is a product of two fractions: $\\frac{1}{1 + e^{-x}}$, which is `out`, and "
        "$\\frac{e^{-x}}{1 + e^{-x}}$. The two fractions add up to 1.",
        "As with tanh: what comes from above, times the node's own slope, `out * (1 - out)`.",
        "Write one line with `*` and `-` and nothing that takes a tensor out of the graph: no "
        "`detach`, no `no_grad`, no `.data`, no `.item()`.",
    )
    usual_mistakes = {
        "detached": (
            _detached,
            "The gradient is right, and its slope with respect to `out` is lost, as after "
            "`detach`. Use `out` as it comes.",
        ),
        "not recorded": (
            _without_recording,
            "The numbers are right, and nothing was recorded, as inside `no_grad`: the result "
            "cannot be differentiated. Compute with the tensors as they come.",
        ),
        "without upstream": (
            _without_upstream,
            "This is the derivative alone. Multiply what comes from above into it.",
        ),
        "of tanh": (
            _of_tanh,
            "`1 - out * out` is the derivative of tanh. That of the sigmoid is `out * (1 - out)`.",
        ),
        "half of it": (
            _half_of_it,
            "A factor is missing: the derivative is `out * (1 - out)`.",
        ),
        "a product of vectors": (
            lambda upstream, out: upstream @ (out * (1 - out)),
            "`@` adds the products up. Multiply element by element: `*`.",
            r"@|matmul|dot",
        ),
        "sigmoid once more": (
            lambda upstream, out: upstream * tk.sigmoid(out) * (1 - tk.sigmoid(out)),
            "`out` is the sigmoid already. Do not apply it again.",
        ),
        "brackets missing": (
            lambda upstream, out: upstream * (out * 1 - out),
            "`out * 1 - out` is 0: put brackets around `1 - out`.",
        ),
        "added": (
            lambda upstream, out: upstream + out * (1 - out),
            "You added the upstream gradient. Along a chain derivatives are multiplied.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def upstream(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 2, 5))

        def out(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.1, 0.4))

        yield case(tk.tensor([1.0, 2.0]), tk.tensor([0.5, 0.25]), label="two elements")
        yield case(upstream(4), out(4), label="any four elements")
        yield case(
            tk.stack([-upstream(2), upstream(2)]), tk.stack([out(2), 1 - out(2)]), label="a matrix"
        )
        yield case(upstream(1)[0], out(1)[0], label="a single number (0-d)")
        yield case(-upstream(2).double(), 1 - out(2).double(), label="float64")
        yield case(upstream(4)[::2], out(4)[::2], label="every second element (non-contiguous)")
        yield case(
            upstream(1).unsqueeze(0),
            1 - out(1).unsqueeze(0),
            label="a matrix of one number (size 1)",
        )
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)
        up, down = draw.integers(2, 2, 9)
        half = tk.tensor([up, -down], dtype=tk.float16)
        eighths = tk.tensor([2 * number + 1 for number in draw.integers(2, 0, 3)], dtype=tk.float16)
        yield case(half, eighths / 8, label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradient, and the gradient of its sum with respect to `out`."""
        upstream, out = (argument.clone().requires_grad_() for argument in args)
        gradient = answer(upstream, out)
        if not isinstance(gradient, tk.Tensor):
            return gradient
        seen = Seen({"gradient": gradient.detach().clone()})
        seen["can be differentiated"] = gradient.requires_grad
        if gradient.requires_grad:
            again = tk.autograd.grad(gradient.sum(), (out, upstream), materialize_grads=True)
            seen["differentiated once more, by out"] = again[0]
            seen["differentiated once more, by upstream"] = again[1]
        return seen


@exercise("which-derivative", points=2, difficulty=2, minutes=5)
class WhichDerivative(Prediction):
    """Predict slopes and curvatures

    `jacobian` computes first derivatives, `hessian` second ones. Write each answer as a number.

    One is done for you:

    ```python
    from tensorkit.autograd.functional import hessian
    hessian(lambda x: x**2, tk.tensor(3.0))      # 2.0: the slope 2x grows by 2 for each 1
    ```
    """

    name = "derivatives"
    ask = "Replace each ... by a number."
    questions = {
        "tk.autograd.functional.jacobian(lambda x: x**3, tk.tensor(2.0))": (
            "The first derivative of x³ is 3x²."
        ),
        "tk.autograd.functional.hessian(lambda x: x**3, tk.tensor(2.0))": (
            "The second derivative of x³ is 6x."
        ),
        "tk.autograd.functional.hessian(lambda x: x**2 + 5 * x, tk.tensor(2.0))": (
            "The straight part has the same slope everywhere: it adds nothing to the curvature."
        ),
        "tk.autograd.functional.hessian(lambda x: tk.sin(x), tk.tensor(0.0))": (
            "The second derivative of the sine is minus the sine, and the sine of 0 is 0."
        ),
        "tk.autograd.functional.hessian(lambda x: tk.exp(x), tk.tensor(0.0))": (
            "The exponential function is its own derivative, again and again."
        ),
        "tk.autograd.functional.hessian(lambda x: (x**2).sum(), tk.ones(2))[0, 1]": (
            "No term has both elements in it: the slope of one does not depend on the other."
        ),
        "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 1]": (
            "The slope of element 0 is element 1: it grows by 1 when that grows by 1."
        ),
        "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 0]": (
            "The slope of element 0 does not depend on element 0."
        ),
    }
    varied = (Varied(("2.0", "5"), 4, 9, ("x**3, tk.tensor(2.0)", "5 * x, tk.tensor(2.0)")),)
    hints = (
        "Differentiate on paper: x³, 3x², 6x. `hessian` does it twice.",
        "Entry `[i, j]` of a Hessian says how much slope `i` changes when element `j` changes.",
    )
    usual_mistakes = {
        "one derivative too few": (
            {
                "tk.autograd.functional.jacobian(lambda x: x**3, tk.tensor(2.0))": Value(
                    "tk.tensor(2.0) ** 3"
                ),
                "tk.autograd.functional.hessian(lambda x: x**2 + 5 * x, tk.tensor(2.0))": Value(
                    "2 * tk.tensor(2.0) + 5"
                ),
            },
            "Count the derivatives: `jacobian` takes one, `hessian` takes two.",
        ),
        "slope for curvature": (
            {
                "tk.autograd.functional.hessian(lambda x: x**3, tk.tensor(2.0))": 6.0,
                "tk.autograd.functional.hessian(lambda x: tk.sin(x), tk.tensor(0.0))": 1.0,
            },
            "Differentiate once more, then put the number in: the second derivative of x³ is 6x, "
            "that of the sine is minus the sine.",
        ),
        "diagonal and rest exchanged": (
            {
                "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 1]": 0.0,
                "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 0]": 1.0,
            },
            "Entry `[0, 1]` asks how the slope of element 0 changes when element *1* moves. For a "
            "product of the two it does; for entry `[0, 0]` it does not.",
        ),
    }

    def observe(self, value: tk.Tensor) -> float:
        return float(value.item())


def hessian_rows(x: tk.Tensor) -> tk.Tensor:
    """The matrix of second derivatives of `f` at `x`."""

    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
    rows = []
    for slope in gradient:
        (row,) = tk.autograd.grad(slope, x, retain_graph=True)
        rows.append(row)
    return tk.stack(rows)


def _cubes_and_square(x: tk.Tensor) -> tk.Tensor:
    return (x**3).sum() + x.sum() ** 2


def _only_the_diagonal(x: tk.Tensor) -> tk.Tensor:
    full = hessian_rows(x)
    return full * tk.eye(len(x), dtype=x.dtype)


def _of_the_sum(x: tk.Tensor) -> tk.Tensor:
    return hessian_rows(x).sum(dim=0)


def _outer_product(x: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf)
    return gradient.unsqueeze(1) * gradient


def _a_list(x: tk.Tensor) -> Any:
    return list(hessian_rows(x))


def _graph_not_kept(x: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf, create_graph=True)
    return tk.stack([tk.autograd.grad(slope, leaf)[0] for slope in gradient])


@exercise("hessian-rows", answer=hessian_rows, points=0, difficulty=4, minutes=9, further=True)
class HessianRows(Exercise):
    """The Hessian, row by row

    Take `f(x) = (x**3).sum() + x.sum() ** 2`; write it down inside your function.

    **Input:** `x`, a float vector of any dtype with at least one element.

    **Output:** its Hessian at `x`: the matrix whose row `i` is the gradient of slope `i`.

    ```python
    hessian_rows(tk.tensor([1.0, 2.0]))
    # tensor([[ 8.,  2.],
    #         [ 2., 14.]])
    ```

    The entries on the diagonal are `6x + 2`, all others are 2.
    """

    hints = (
        "First the gradient, with `create_graph=True`. Then the gradient of each of its elements.",
        "All rows are computed from one graph: it must be kept for the next row with "
        "`retain_graph=True`. `tk.stack` makes a matrix of the rows.",
    )
    usual_mistakes = {
        "only the diagonal": (
            _only_the_diagonal,
            "Only the diagonal is there. The square of the sum couples all elements with each "
            "other.",
        ),
        "of the sum": (
            _of_the_sum,
            "You differentiated the sum of all slopes: that adds the rows up. Take each slope "
            "alone.",
        ),
        "outer product": (
            _outer_product,
            "You multiplied the gradient with itself. The Hessian holds the slopes of the slopes.",
        ),
        "a list": (_a_list, "The rows are right, in a list. `tk.stack` makes a matrix of them."),
        "the graph is gone": (
            _graph_not_kept,
            "After the first row the graph is freed. `retain_graph=True` in the call that computes "
            "a row keeps it.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        yield case(tk.tensor([1.0, 2.0]), label="two elements")
        yield case(tk.tensor(some(3)), label="any three")
        below, half, above = some(3)
        yield case(tk.tensor([-below, half / 2, 0.0, above]), label="four, one of them 0")
        yield case(tk.tensor(some(2)).double() / 2, label="float64")
        one, other = some(2)
        yield case(tk.tensor([one, 9.0, other])[::2], label="every second element (non-contiguous)")
        yield case(tk.tensor([draw.number(1.5, 9)]), label="a single element (size 1)")
        above, below = some(2)
        yield case(tk.tensor([above, -below], dtype=tk.float16), label="half the memory (float16)")


def hessian_vector(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    """The Hessian of `f` at `x`, times the vector `v`."""

    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
    product = (gradient * v).sum()
    return tk.autograd.grad(product, x)[0]


@no_type_check
def _hessian_vector_program(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    gradient = ...  # the gradient of f at x, with a history of its own
    product = ...  # gradient times v, added up: one number
    return ...  # the gradient of that number


def _recorded_gradient(x: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf, create_graph=True)
    return leaf, gradient


def _gradient_times_v(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    _, gradient = _recorded_gradient(x)
    return (gradient * v).detach()


def _v_afterwards(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf, gradient = _recorded_gradient(x)
    return tk.autograd.grad(gradient.sum(), leaf)[0] * v


def _without_v(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf, gradient = _recorded_gradient(x)
    return tk.autograd.grad(gradient.sum(), leaf)[0]


def _one_number(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    return hessian_vector(x, v) @ v


def _graph_not_recorded(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf)
    return tk.autograd.grad((gradient * v).sum(), leaf)[0]


def _gradient_still_there(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    _, gradient = _recorded_gradient(x)
    return gradient.detach() + hessian_vector(x, v)


@exercise(
    "hessian-vector",
    answer=hessian_vector,
    stub=_hessian_vector_program,
    kind="complete",
    points=6,
    difficulty=4,
    minutes=9,
)
class HessianVector(Exercise):
    """A Hessian times a vector, without the Hessian

    The Hessian of a model with a million parameters has a million times a million entries.
    Often only its product with one vector is needed, and that takes one more walk back.
    Fill the gaps.

    **Input:** `x` and `v`, two float vectors of the same length and dtype, with at least one
    element.

    **Output:** the Hessian of `f` at `x`, times `v`: a vector. `f` stands in the code.

    ```python
    hessian_vector(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 0.0]))
    # tensor([8., 2.]): the first column of [[8, 2], [2, 14]]
    ```
    """

    rules = (
        Rule(
            "without the Hessian",
            "The whole matrix is not needed: differentiate the one number `gradient @ v`.",
            refuses=(GRADIENT_IN_LOOP, "hessian", "jacobian", "hvp", "vhp", "stack", "diag"),
        ),
        Rule(
            "one more walk back",
            "Let autograd differentiate twice: first `f(x)`, then the product with `v`.",
            needs=(TWO_GRADIENTS,),
            returns=(".grad", "grad"),
        ),
    )
    hints = (
        "Slope `i` changes by row `i` of the Hessian. So the gradient of `gradient @ v` is the "
        "Hessian times `v`: `v` is a constant.",
        "`tk.autograd.grad(f(x), x, create_graph=True)[0]` is the gradient; the last line is one "
        "more `tk.autograd.grad`, of `product`.",
    )
    usual_mistakes = {
        "gradient times v": (
            _gradient_times_v,
            "This is the gradient times `v`, element by element. Add it up, and differentiate that "
            "number once more.",
        ),
        "v afterwards": (
            _v_afterwards,
            "You multiplied by `v` after the second derivative. That weighs the sums of the rows; "
            "multiply the gradient by `v` before you differentiate again.",
        ),
        "without v": (
            _without_v,
            "You differentiated the sum of the gradient: that is the Hessian times a vector of "
            "ones. Multiply by `v` first.",
        ),
        "one number": (
            _one_number,
            "You multiplied by `v` twice, which leaves one number. The result is a vector.",
        ),
        "not recorded": (
            _graph_not_recorded,
            "The gradient has no history, so it cannot be differentiated. `create_graph=True` "
            "belongs into the call that computes the gradient.",
        ),
        "the gradient is still there": (
            _gradient_still_there,
            "The gradient stands in your result as well: `.grad` held it before the second "
            "backward. Use `tk.autograd.grad`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        def unlike(n: int) -> list[float]:
            return [float(number) for number in draw.distinct(n, 2, 9)]

        yield case(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 0.0]), label="the first column")
        yield case(tk.tensor(some(3)), tk.tensor(unlike(3)), label="any three elements")
        (below, half), (up, down) = some(2), unlike(2)
        yield case(tk.tensor([-below, half / 2]), tk.tensor([up, -down]), label="negative numbers")
        yield case(tk.tensor(some(3)), tk.tensor([0.0, 0.0, 1.0]), label="the last column")
        yield case(tk.tensor(some(2)).double() / 2, tk.tensor(unlike(2)).double(), label="float64")
        one, other = draw.floats(2, 1.5, 9)
        yield case(tk.tensor([one]), tk.tensor([other]), label="one element (size 1)")
        one, other = some(2)
        yield case(
            tk.tensor([one, 9.0, other])[::2],
            tk.tensor([0.0, 9.0, unlike(1)[0]])[::2],
            label="every second element (non-contiguous)",
        )
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)
        above, below = some(2)
        half_v = tk.tensor(unlike(2), dtype=tk.float16)
        yield case(
            tk.tensor([above, -below], dtype=tk.float16), half_v, label="half the memory (float16)"
        )


def newton_step(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    """The point to which Newton's method goes from `x`."""
    return x - tk.linalg.solve(hessian, gradient)


def _times_hessian(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - hessian @ gradient


def _plus(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x + tk.linalg.solve(hessian, gradient)


def _only_gradient(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient


def _only_diagonal(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient / tk.stack([hessian[i, i] for i in range(len(x))])


def _element_by_element(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient / hessian


def _the_step_alone(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return tk.linalg.solve(hessian, gradient)


@exercise("newton-step", answer=newton_step, points=3, difficulty=3, minutes=8)
class NewtonStep(Exercise):
    """One step of Newton's method

    Gradient descent knows the slope and guesses how far to go. Newton's method also knows how the
    slope changes, and goes to where it would be 0: the step $s$ solves $H s = g$.

    **Input:** `x`, the present point, of shape `[n]`, `n` at least 1; `gradient`, of shape `[n]`;
    `hessian`, of shape `[n, n]`, which can be inverted; all of the same dtype.

    **Output:** the next point, `x` minus that step: a tensor of shape `[n]`.

    ```python
    H = tk.tensor([[2.0, 0.0], [0.0, 4.0]])
    newton_step(tk.tensor([1.0, 1.0]), tk.tensor([2.0, 8.0]), H)
    # tensor([ 0., -1.])
    ```

    `tk.linalg.solve(A, b)` gives the `s` for which `A @ s` is `b`.
    """

    hints = (
        "For one number: the slope 8 falls by 4 for each 1, so after 2 it is 0. The step is slope "
        "divided by curvature; with matrices dividing becomes solving.",
        "The step is `tk.linalg.solve(hessian, gradient)`; the new point is `x` minus the step.",
    )
    usual_mistakes = {
        "times the Hessian": (
            _times_hessian,
            "You multiplied by the Hessian. Where the curvature is large the step should be small: "
            "solve with it, which is the opposite.",
        ),
        "uphill": (_plus, "The step leads downhill if it is subtracted: `x - step`."),
        "without the Hessian": (
            _only_gradient,
            "This is gradient descent with a rate of 1. Let the Hessian decide how far to go.",
        ),
        "only the diagonal": (
            _only_diagonal,
            "You divided by the diagonal. The other entries say how the elements depend on each "
            "other: solve with the whole matrix.",
        ),
        "element by element": (
            _element_by_element,
            "You divided by the matrix element by element. `tk.linalg.solve(hessian, gradient)` is "
            "the division that is meant.",
        ),
        "the step alone": (
            _the_step_alone,
            "This is the step. The next point is `x` minus the step.",
        ),
        "exchanged": (
            lambda x, gradient, hessian: x - tk.linalg.solve(gradient, hessian),
            "`solve` takes the matrix first: `tk.linalg.solve(hessian, gradient)`.",
            r"solve\(gradient",
        ),
        "a learning rate": (
            lambda x, gradient, hessian: x - 0.1 * tk.linalg.solve(hessian, gradient),
            "You go a tenth of the way. Newton's step is taken as a whole.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case(
            tk.tensor([1.0, 1.0]),
            tk.tensor([2.0, 8.0]),
            tk.tensor([[2.0, 0.0], [0.0, 4.0]]),
            label="a diagonal matrix",
        )
        yield case(
            some(2),
            some(2),
            tk.tensor([[4.0, 1.0], [1.0, 3.0]]),
            label="elements that depend on each other",
        )
        a, b, c = (float(number) for number in draw.integers(3, 5, 9))
        symmetric = tk.tensor([[a, 2.0, 1.0], [2.0, b, 2.0], [1.0, 2.0, c]])
        yield case(
            tk.zeros(3), some(3) * tk.tensor([1.0, -1.0, 1.0]), symmetric, label="three elements"
        )
        a, b = (float(number) for number in draw.integers(2, 2, 9))
        coupled = tk.tensor([[a, 0.5], [0.5, b]]).double()
        yield case(-some(2).double(), some(2).double(), coupled, label="float64")
        curvature = float(draw.integer(2, 9))
        yield case(-some(1), some(1), tk.tensor([[curvature]]), label="a single element (size 1)")
        a, b = (float(number) for number in draw.integers(2, 4, 9))
        wide = tk.tensor([[a, 9.0, 1.0], [0.0, 0.0, 0.0], [2.0, 9.0, b]])
        yield case(
            some(3)[::2],
            some(3)[::2],
            wide[::2, ::2].T,
            label="not symmetric",
        )
        yield case(
            tk.zeros(0), tk.zeros(0), tk.zeros(0, 0), label="no elements (empty)", weight=0.25
        )
