"""The exercise unscaled: divide scaled gradients, or skip the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def unscaled(gradients: list[tk.Tensor], scale: float) -> list[tk.Tensor]:
    """The gradients, from those of `scale` times the loss; [] to skip the step."""
    divided = [gradient.float() / scale for gradient in gradients]
    if all(tk.isfinite(gradient).all() for gradient in divided):
        return divided
    return []


def _divided_in_half(gradients: Any, scale: float) -> Any:
    divided = [(gradient / scale).float() for gradient in gradients]
    return divided if all(tk.isfinite(gradient).all() for gradient in divided) else []


def _still_half(gradients: Any, scale: float) -> Any:
    divided = unscaled(gradients, scale)
    return divided and [gradient.half() for gradient in divided]


def _all_in_half(gradients: Any, scale: float) -> Any:
    is_finite = all(tk.isfinite(gradient).all() for gradient in gradients)
    return [gradient / scale for gradient in gradients] if is_finite else []


def _never_skipped(gradients: Any, scale: float) -> Any:
    return [gradient.float() / scale for gradient in gradients]


def _only_inf(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return [] if any(tk.isinf(gradient).any() for gradient in divided) else divided


def _only_the_first(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return divided if tk.isfinite(divided[0]).all() else []


def _broken_ones_left_out(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return [gradient for gradient in divided if tk.isfinite(gradient).all()]


def _multiplied(gradients: Any, scale: float) -> Any:
    result = unscaled(gradients, scale)
    return result and [gradient * scale * scale for gradient in result]


@exercise("unscaled", answer=unscaled, points=0, difficulty=3, minutes=7, further=True)
class Unscaled(Exercise):
    """Before the step: divide, or skip

    With mixed precision the loss was multiplied by `scale` before backward, and so is every
    gradient. What a gradient scaler does before the optimizer's step is this.

    **Input:** `gradients`, a list of float16 tensors, at least one; `scale`, a number.

    **Output:** a list of float32 tensors, each gradient divided by `scale`. If any element of any
    of them is `inf` or `nan`, the scale was too large and the whole step is skipped: then the list
    is empty. The gradients themselves stay as they are.

    ```python
    unscaled([tk.tensor([512.0, 256.0]).half()], 1024.0)
    # [tensor([0.5000, 0.2500])]
    unscaled([tk.tensor([512.0]).half(), tk.tensor([1e6]).half()], 1024.0)
    # []: in float16 1e6 is inf
    ```

    `tk.isfinite(t)` is True where an element is neither `inf` nor `nan`.
    """

    hints = (
        "Which comes first, the division or the cast to float32? Remember what becomes of 2e-8 in "
        "float16.",
        "`it.float() / scale` for each tensor. Then ask all of them: `tk.isfinite(it).all()`.",
    )
    usual_mistakes = {
        "divided in float16": (
            _divided_in_half,
            "You divide in float16 and cast afterwards. float16 ends at 65,504, where a scale may "
            "be larger, and what is very small becomes 0 in it. First `.float()`, then divide.",
        ),
        "still float16": (
            _still_half,
            "Your result is float16 again, where small gradients are 0. Leave it in float32.",
        ),
        "all in float16": (
            _all_in_half,
            "Your result is float16 still, where small gradients are 0. First `.float()`, then "
            "divide.",
        ),
        "never skipped": (
            _never_skipped,
            "A step with `inf` or `nan` in it destroys the parameters. Return an empty list if any "
            "element is not finite.",
        ),
        "only inf": (
            _only_inf,
            "You look for `inf` only. `nan` is not finite either: `tk.isfinite` finds both.",
        ),
        "only the first": (
            _only_the_first,
            "You look at the first tensor alone. One element in any of them spoils the step.",
        ),
        "left out": (
            _broken_ones_left_out,
            "You leave the broken gradients out and keep the others, so half of the model would "
            "move. Skip the whole step: `[]`.",
        ),
        "multiplied": (
            _multiplied,
            "You multiply by the scale once more. The gradients were multiplied already: divide.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def float16(*values: float) -> tk.Tensor:
            return tk.tensor(values).half()

        def numbers(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 99)]

        inf, nan = float("inf"), float("nan")
        yield case([float16(512, 256)], 1024.0, label="one tensor")
        yield case([float16(*numbers(3)), -float16(*numbers(2))], 16.0, label="two tensors")
        first, second = (number * 1e-6 for number in draw.distinct(2, 10, 50))
        yield case([float16(first, *numbers(1)), float16(second)], 65536.0, label="small ones")
        yield case([float16(6e-8)], 8.0, label="the smallest number (float16)")
        yield case(
            [float16(*numbers(1)), float16(*numbers(1), inf)], 2.0, label="inf in the second"
        )
        large = [40000.0 + number for number in numbers(2)]
        yield case([float16(*numbers(1)), float16(*large)], 2.0, label="a sum that is too large")
        yield case(
            [float16(-inf, *numbers(1)), float16(*numbers(1))], 4.0, label="minus inf in the first"
        )
        yield case([float16(nan, *numbers(1))], 2.0, label="nan")
        yield case(
            [float16(*numbers(1)), float16(*numbers(1), nan)], 4.0, label="nan in the second"
        )
        yield case(
            [float16(*numbers(1))[0], tk.zeros(0).half()],
            2.0,
            label="no elements, and a single number (0-d)",
        )
        wide = float16(*numbers(6)).reshape(2, 3)
        yield case([wide.T], 4.0, label="turned (non-contiguous)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradients, and how many of them are 0."""
        result = answer(*args)
        if not isinstance(result, list) or not all(
            isinstance(gradient, tk.Tensor) for gradient in result
        ):
            return result
        zeros = [int((gradient == 0).sum()) for gradient in result]
        return Seen({"gradients": result, "elements that are 0": zeros})
