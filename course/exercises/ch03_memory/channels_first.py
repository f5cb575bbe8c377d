"""The exercise channels-first: photos as a network wants them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def channels_first(photos: tk.Tensor) -> tk.Tensor:
    """Photos as a network wants them: channels first, values from 0 to 1."""
    scaled = photos.float() / 255
    moved = scaled.permute(0, 3, 1, 2)
    return moved.contiguous()


def _channels_program(photos: tk.Tensor) -> Any:
    scaled = ...  # float32, values from 0 to 1, still [photo, height, width, channel]
    moved = ...  # [photo, channel, height, width]
    return ...  # the same, contiguous


def _reshaped(photos: tk.Tensor) -> tk.Tensor:
    n, height, width, channels = photos.shape
    return (photos.float() / 255).reshape(n, channels, height, width)


def _photos_on_their_side(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 3, 2, 1).contiguous()


def _the_inverse_order(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 2, 3, 1).contiguous()


def _not_scaled(photos: tk.Tensor) -> tk.Tensor:
    return photos.float().permute(0, 3, 1, 2).contiguous()


def _rounded(photos: tk.Tensor) -> tk.Tensor:
    return (photos // 255).float().permute(0, 3, 1, 2).contiguous()


def _channels_in_front(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(3, 0, 1, 2).contiguous()


def _by_the_brightest(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / photos.max()).permute(0, 3, 1, 2).contiguous()


def _not_contiguous(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 3, 1, 2)


@exercise(
    "channels-first",
    answer=channels_first,
    stub=_channels_program,
    kind="complete",
    points=3,
    difficulty=3,
    minutes=7,
)
class ChannelsFirst(Exercise):
    """From the camera to the network

    Image files keep the channels (red, green, blue) last and their values from 0 to 255. Layers
    want the channels before height and width and small floats. Fill the three gaps.

    **Input:** `photos`, a uint8 tensor of shape `[n, height, width, channels]` (NHWC).
    It may be a view.

    **Output:** a contiguous float32 tensor of shape `[n, channels, height, width]` (NCHW), its
    values divided by 255. `photos` itself stays as it is.

    ```python
    photos = tk.tensor([[[[255, 0], [0, 255], [51, 0]]]], dtype=tk.uint8)
    channels_first(photos)      # one photo: 1 high, 3 wide, 2 channels
    # tensor([[[[1.0000, 0.0000, 0.2000]],
    #
    #          [[0.0000, 1.0000, 0.0000]]]])
    ```
    """

    hints = (
        "`permute` lists, for each new dimension, the old one. New dimension 1 should be the "
        "channels: which number did they have?",
        "New order: photo 0, channel 3, height 1, width 2.",
        "A cast keeps the numbers; only a division makes 255 to 1. After `permute` the elements "
        "lie in the old order: `.contiguous()` copies them into the new one.",
    )
    usual_mistakes = {
        "reshaped": (
            _reshaped,
            "The shape is right and the pixels are mixed: `reshape` and `view` keep the order in "
            "memory. To move a dimension, use `permute`.",
        ),
        "on their side": (
            _photos_on_their_side,
            "Height and width changed places: your photos lie on their side. After the channels "
            "come height (1), then width (2).",
        ),
        "the inverse order": (
            _the_inverse_order,
            "This is the way back, from channels first to channels last. `permute` asks for the "
            "old number of each new dimension.",
        ),
        "not scaled": (
            _not_scaled,
            "The values still go up to 255. Divide by 255.",
        ),
        "rounded down": (
            _rounded,
            "Only 255 survives: what lies below has become 0, as `//` between whole numbers makes "
            "it. Make floats first, then use `/`.",
        ),
        "the channels in front": (
            _channels_in_front,
            "The channels came before the photos. The photo stays dimension 0, the channels become "
            "dimension 1.",
        ),
        "the brightest pixel": (
            _by_the_brightest,
            "You divide by the brightest pixel there is. Then a dark photo becomes a bright one: "
            "255 is the largest a uint8 can be, divide by that.",
        ),
        "not contiguous": (
            _not_contiguous,
            "The values are right, and the elements still lie in the camera's order. Finish with "
            "`.contiguous()`.",
        ),
        "divides by 256": (
            lambda photos: (photos.float() / 256).permute(0, 3, 1, 2).contiguous(),
            "Your brightest pixel is 0.9961. The largest uint8 is 255: divide by that.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[[[255, 0], [0, 255], [51, 0]]]], dtype=tk.uint8), label="three pixels"
        )
        yield case(some_photos(draw, 2, 2, 3, 3), label="two photos")
        yield case(some_photos(draw, 1, 3, 3, 3), label="a square photo")
        yield case(some_photos(draw, 2, 3, 2, 1), label="grey photos")
        yield case(some_photos(draw, 1, 1, 1, 3), label="a single pixel (size 1)")
        lines = some_photos(draw, 2, 4, 2, 3)[:, ::2]
        yield case(lines, label="every second line of two photos (non-contiguous)")
        yield case(tk.zeros(0, 4, 5, 3, dtype=tk.uint8), label="no photos (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The photos, and whether they are contiguous."""
        moved = answer(*args)
        if not isinstance(moved, tk.Tensor):
            return moved
        return Seen({"photos": moved, "contiguous": moved.is_contiguous()})


def some_photos(draw: Draw, n: int, height: int, width: int, channels: int) -> tk.Tensor:
    numbers = draw.distinct(n * height * width * channels, 1, 254)
    return tk.tensor(numbers, dtype=tk.uint8).reshape(n, height, width, channels)
