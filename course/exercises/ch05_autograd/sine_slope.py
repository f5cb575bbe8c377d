"""The exercise sine-slope: a slope by autograd and by the chain rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


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


def _is_other(again: Any, number: float) -> bool:
    """Whether a second run gave another number; the value may differ in its last digits."""
    return isinstance(again, float) and not math.isclose(again, number, rel_tol=1e-6)


def _the_value(value: float) -> tuple[float, float]:
    return math.sin(value**2), 2 * value * math.cos(value**2)


@exercise("sine-slope", answer=sine_slope, points=0, difficulty=2, minutes=5, further=True)
class SineSlope(Exercise):
    """Autograd and your own hand

    **Input:** `value`, a Python float.

    **Output:** the slope of `sin(x²)` at `x = value`, twice, as two Python floats: once as autograd
    finds it, once from the formula that the chain rule gives on paper, with all the digits of a
    Python float. Python's `math` has them (`import math`).

    ```python
    sine_slope(1.0)
    # (1.0806046..., 1.0806046...)
    ```

    At π both are about -5.67. They differ in the last digits.
    """

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
        "the value twice": (
            lambda value: (math.sin(value**2),) * 2,
            "This is sin(x²) itself, twice. The slope is in `x.grad` after `backward`, and by hand "
            "it is the derivative of the sine times that of the square.",
        ),
        "autograd twice": (
            lambda value: (sine_slope(value)[0],) * 2,
            "The second number has the digits of float32, as the first. Compute it with Python's "
            "`math`, from the formula on paper.",
            r"^(?!(?s:.*)(math\.cos|from math))",
        ),
        "both by hand": (
            lambda value: (2 * value * math.cos(value**2),) * 2,
            "The numbers are right, and autograd found neither. Let it compute the first one: "
            "`backward()` on the sine, then `x.grad`.",
        ),
        "minus cosine": (
            lambda value: (sine_slope(value)[0], -sine_slope(value)[1]),
            "By hand the sign is wrong: the derivative of the sine is the cosine, without a minus.",
        ),
        "the cosine of 2x": (
            lambda value: (sine_slope(value)[0], math.cos(2 * value)),
            "By hand you put the inner derivative into the cosine. It is a factor: cos(x²) times "
            "2x.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(draw.integer(60, 80) / 100, label="below 1")
        yield case(math.pi, label="at π")
        yield case(draw.integer(110, 140) / 100, label="anywhere")
        yield case(-draw.integer(55, 80) / 100, label="at a negative number")
        yield case(0.0, label="at 0")

    def run(self, answer: Any, *args: Any) -> Any:
        """Both slopes as float32 has them, who found the first, and the digits of the second."""
        (value,) = args
        pair, work = measured(answer, value)
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return pair
        exact = 2 * value * math.cos(value**2)
        slopes = tuple(
            round(slope, 4) + 0.0 if isinstance(slope, float) else slope for slope in pair
        )
        distances = [abs(slope - exact) if isinstance(slope, float) else 1.0 for slope in pair]
        # what lies further away is wrong already, and 0 has no digits
        can_tell = max(distances) < 1e-5 and pair[1] != 0
        is_float32 = can_tell and tk.tensor(pair[1]).item() == pair[1]
        again = [(..., ...) if run is ... else run for run in (work["doubled"], *work["alone"])]
        is_found = distances[0] > 1e-3 or is_by_autograd(pair[0], again[0][0])
        is_second = can_tell and any(_is_other(run[1], pair[1]) for run in again)
        return Seen(
            {
                "slopes": slopes,
                "the first by autograd": is_found,
                "the second has the digits of float32": is_float32,
                "the second by autograd": is_second,
                "the second has all digits": not can_tell or distances[1] < 1e-12,
            }
        )
