"""The exercise pixels: from a colour photo to a grey one."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def to_unit_range(image: tk.Tensor) -> tk.Tensor:
    """The brightness of each pixel as float32: 0 is black, 1 is white."""
    numbers = image.float()
    total = numbers[:, :, 0] + numbers[:, :, 1] + numbers[:, :, 2]
    return total / (3 * 255)


def _starts_again_from_zero(image: tk.Tensor) -> tk.Tensor:
    return (image[:, :, 0] + image[:, :, 1] + image[:, :, 2]) / 765


def _floor_division(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image).floor()


def _by_256(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 255 / 256


def _without_a_scale(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 255


def _sums_of_three(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 3


def _only_the_first_number(image: tk.Tensor) -> tk.Tensor:
    return image[:, :, 0] / 255


def _brackets_missing(image: tk.Tensor) -> tk.Tensor:
    numbers = image.float()
    return numbers[:, :, 0] + numbers[:, :, 1] + numbers[:, :, 2] / (3 * 255)


def _rows_for_colours(image: tk.Tensor) -> tk.Tensor:
    numbers = image.float()
    return (numbers[0] + numbers[1] + numbers[2]) / 765


def _still_three_numbers(image: tk.Tensor) -> tk.Tensor:
    return image.float() / 255


def _through_numpy(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image).double()


def _by_the_brightest(image: tk.Tensor) -> tk.Tensor:
    total = to_unit_range(image)
    return total / total.max()


@exercise("pixels", answer=to_unit_range, points=5, difficulty=2, minutes=8)
class Pixels(Exercise):
    """From a colour photo to a grey one

    A photo arrives as whole numbers from 0 to 255, three for each pixel: red, green and blue. A
    network wants one float from 0 to 1 for each pixel.

    **Input:** `image`, a uint8 tensor of shape `[height, width, 3]`.

    **Output:** a float32 tensor of shape `[height, width]`: for each pixel the mean of its three
    numbers, divided by 255, so that black becomes `0.0` and white `1.0`. `image` itself stays as it
    is.

    ```python
    to_unit_range(tk.tensor([[[0, 51, 102], [255, 255, 255]]], dtype=tk.uint8))
    # tensor([[0.2000, 1.0000]])
    ```

    `image[:, :, 0]` holds the red numbers, in the shape `[height, width]`.
    """

    hints = (
        "Slices give the three colours, each in the shape of the result. What happens if you add "
        "them as they are? Look at the last lines of *Kinds of numbers*.",
        "In uint8, 200 + 100 is 44. Cast before you add: `image.float()`. Then divide the sum by a "
        "number that makes 3 · 255 to 1.",
    )
    usual_mistakes = {
        "starts again from 0": (
            _starts_again_from_zero,
            "You add in uint8, where 255 is followed by 0. Cast first, then add: `image.float()`.",
        ),
        "floor division": (
            _floor_division,
            "Everything below 1 has become 0, as `//` and a cast to whole numbers make it. Divide "
            "floats with `/`, and return what that gives.",
        ),
        "divides by 256": (
            _by_256,
            "White is 0.9961. uint8 has 256 values, and the largest of them is 255: that is the "
            "number to become 1.",
        ),
        "no scale": (
            _without_a_scale,
            "The means are right, and they still run up to 255. A cast never rescales: divide.",
        ),
        "three times too bright": (
            _sums_of_three,
            "White is 3. A mean is the sum divided by how many there are.",
        ),
        "one colour": (
            _only_the_first_number,
            "Your brightness is that of red alone. Green and blue count as much.",
        ),
        "rows for colours": (
            _rows_for_colours,
            "`image[0]` is the first row of the photo, with all its colours. The colours are the "
            "last dimension: `image[:, :, 0]`.",
            r"\w\[0\]",
        ),
        "the mean of the rows": (
            lambda image: image.float().mean(dim=0) / 255,
            "Dimension 0 counts the rows of the photo, so yours is a mean over rows. The colours "
            "stand along the last dimension: `dim=2`.",
        ),
        "the mean of the columns": (
            lambda image: image.float().mean(dim=1) / 255,
            "Dimension 1 counts the columns of the photo, so yours is a mean over columns. The "
            "colours stand along the last dimension: `dim=2`.",
        ),
        "three numbers a pixel": (
            _still_three_numbers,
            "Each pixel still has three numbers. Their mean is asked for: one number a pixel.",
        ),
        "float64 from NumPy": (
            _through_numpy,
            "The numbers are right and their dtype is float64, in which NumPy computes, and which "
            "`.double()` asks for. `.float()` gives float32.",
        ),
        "by the brightest": (
            _by_the_brightest,
            "You divide by the brightest pixel of this photo, so a dark photo becomes a bright "
            "one. The same number must mean the same in every photo: divide by 255.",
        ),
        "brackets missing": (
            _brackets_missing,
            "Only the blue numbers are divided: `/` comes before `+`. Put brackets around the sum.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_image([[[0, 51, 102], [255, 255, 255]]]), label="two pixels")
        yield case(_image(_photo(draw, draw.integer(2, 3), 2)), label="any photo")
        yield case(_image(_photo(draw, 3, 3)), label="a square photo")
        yield case(_image(_photo(draw, 2, draw.integer(4, 5))), label="a wide photo")
        wide = _image(_photo(draw, 4, 2))
        yield case(wide[::2], label="every second row of a photo (non-contiguous)")
        yield case(_image(_photo(draw, 1, 1)), label="a single pixel (size 1)")
        yield case(_image([[[255] * 3] * 2] * 3), label="white")
        yield case(tk.zeros(0, 4, 3, dtype=tk.uint8), label="a photo without rows (empty)")


def _image(pixels: list[list[list[int]]]) -> tk.Tensor:
    return tk.tensor(pixels, dtype=tk.uint8)


def _photo(draw: Draw, height: int, width: int) -> list[list[list[int]]]:
    """Bright pixels of any colour but grey, whose sums do not fit into uint8."""
    return [
        [
            [draw.integer(30, 90), draw.integer(100, 180), draw.integer(190, 254)]
            for _ in range(width)
        ]
        for _ in range(height)
    ]
