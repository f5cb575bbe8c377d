"""The exercise brighter: brighter, without touching the photo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def brighter(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    """The pixels with `amount` added, no value below 0 or above 255."""
    return (pixels + amount).clamp(0, 255)


def _changes_the_photo(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    pixels.add_(amount)
    pixels.clamp_(0, 255)
    return pixels


def _only_the_clamp_is_new(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    pixels += amount
    return pixels.clamp(0, 255)


def _no_lower_limit(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return (pixels + amount).clamp(max=255)


def _no_upper_limit(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return (pixels + amount).clamp(min=0)


def _limits_first(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return pixels.clamp(0, 255) + amount


def _min_and_max_of_python(pixels: tk.Tensor, amount: float) -> Any:
    return min(max(pixels + amount, 0), 255)


@exercise("brighter", answer=brighter, stub=_changes_the_photo, points=4, difficulty=2, minutes=6)
class Brighter(Exercise):
    """Brighter, without touching the photo

    A program shows a photo three times: as it is, brighter, darker. With the code below all three
    look alike, because the function writes into the photo that it is given. Repair it.

    **Input:** `pixels`, a float tensor of any shape with values from 0 to 255, and `amount`, a
    number, negative for darker.

    **Output:** a tensor: `amount` added to every pixel, what is then below 0 set to 0, what is
    above 255 set to 255. `pixels` stays as it was.

    ```python
    photo = tk.tensor([10.0, 200.0])
    brighter(photo, 100)
    # tensor([110., 255.])
    photo
    # tensor([ 10., 200.])
    ```
    """

    hints = (
        "Which names in the code end in an underscore? Each of them writes into the tensor before "
        "the dot.",
        "`pixels + amount` is a new tensor, and so is `.clamp(0, 255)` without the underscore. "
        "Chain the two.",
    )
    usual_mistakes = {
        "writes into the photo": (
            _only_the_clamp_is_new,
            "`amount` is still added to the photo itself: `+=` and `add_` write into the tensor. "
            "Write `pixels + amount`, which makes a new one.",
        ),
        "min and max of Python": (
            _min_and_max_of_python,
            "Python's `min` and `max` want one answer for the whole tensor. `clamp` compares each "
            "element with the limits.",
            r"\b(min|max)\(",
        ),
        "the result is lost": (
            lambda pixels, amount: pixels.clamp(0, 255),
            "The pixels come back as they were. Without the underscore `add` and `clamp` change "
            "nothing; they return something new: use that.",
        ),
        "no lower limit": (
            _no_lower_limit,
            "Darker pixels fall below 0. Give `clamp` both limits: 0 and 255.",
        ),
        "no upper limit": (
            _no_upper_limit,
            "Bright pixels rise above 255. Give `clamp` both limits: 0 and 255.",
        ),
        "limits first": (
            _limits_first,
            "You clamp first and add then, so the sum can leave the range again. Add first.",
            "clamp|clip|minimum|maximum|where",
        ),
        "multiplied": (
            lambda pixels, amount: (pixels * (1 + amount / 100)).clamp(0, 255),
            "You make the pixels larger by a percentage. `amount` is added to each.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([10.0, 200.0]), 100, label="two pixels, brighter")
        three = [draw.integer(1, 40), draw.integer(180, 255), draw.integer(110, 170)]
        yield case(tk.tensor(three).float(), -draw.integer(50, 100), label="three pixels, darker")
        yield case(
            tk.tensor([[number / 10 for number in draw.integers(3, 1, 1800)] for _ in range(2)]),
            draw.integer(20, 60),
            label="any photo, brighter",
        )
        ends = tk.tensor([0, 255, draw.integer(200, 250), draw.integer(1, 4)]).float()
        yield case(ends, -draw.integer(5, 19) - 0.5, label="at both ends, darker")
        pixel = float(draw.integer(230, 250))
        yield case(tk.tensor(pixel), draw.integer(30, 60), label="a single pixel (0-d)")
        four = tk.tensor(draw.integers(4, 1, 200)).float()
        yield case(four[::2], draw.integer(20, 50), label="every second pixel (non-contiguous)")
        pixel = float(draw.integer(230, 250))
        yield case(tk.tensor([[pixel]]), draw.integer(30, 60), label="one row, one column (size 1)")
        halves = tk.tensor([draw.integer(1, 50), draw.integer(170, 250)]).half()
        yield case(halves, draw.integer(90, 150), label="half the memory (float16)")
        yield case(tk.zeros(0, 3), 1, label="no pixels (empty)")
