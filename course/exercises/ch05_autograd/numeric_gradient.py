"""The exercise numeric-gradient: slopes that are measured by small steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


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


def _only_the_second_divided(x: tk.Tensor, h: float, by: float) -> tk.Tensor:
    gradient = tk.zeros_like(x)
    for i in range(len(x)):
        step = _one_at_a_time(x, i, h)
        gradient[i] = _cubes(x + step) - _cubes(x - step) / by
    return gradient


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

    **Output:** a vector as long as `x` with the measured slopes. `x` itself stays as it was.

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
        "only the second divided": (
            lambda x, h: _only_the_second_divided(x, h, 2 * h),
            "Only the second value of `f` is divided: `/` comes before `-`. Put brackets around "
            "the difference.",
        ),
        "no brackets at all": (
            lambda x, h: _only_the_second_divided(x, h, 2 / h),
            "`/` and `*` come before `-`, so only the second value of `f` is divided by 2 and "
            "multiplied by `h`. Put brackets around the difference and around `2 * h`.",
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
        yield case(tk.tensor(two, dtype=tk.float64), 0.25, label="a very large step")
        four = tk.tensor(draw.distinct(4, 1, 9)).double()
        yield case(four[::2], 0.01, label="every second element (non-contiguous)")
        single = tk.tensor([draw.integer(1, 19) / 2]).double()
        yield case(single, 0.1, label="a single element (size 1)")
