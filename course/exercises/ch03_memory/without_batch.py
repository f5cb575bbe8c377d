"""The exercise without-batch: a batch of one, without its first dimension."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.exercises.ch03_memory.channels_first import some_photos
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def without_batch(batch: tk.Tensor) -> tk.Tensor:
    """The one photo in a batch of one."""
    return batch.squeeze(0)


def _squeezes_everything(batch: tk.Tensor) -> tk.Tensor:
    return batch.squeeze()


def _squeezes_the_channels(batch: tk.Tensor) -> tk.Tensor:
    return batch.squeeze(1)


def _keeps_the_batch(batch: tk.Tensor) -> tk.Tensor:
    return batch[0:1]


def _one_more(batch: tk.Tensor) -> tk.Tensor:
    return batch.unsqueeze(0)


def _everything_flat(batch: tk.Tensor) -> tk.Tensor:
    return batch.flatten()


@exercise(
    "without-batch",
    answer=without_batch,
    stub=_squeezes_everything,
    points=0,
    difficulty=2,
    minutes=4,
    further=True,
)
class WithoutBatch(Exercise):
    """One dimension too many, or too few

    A network takes batches. For a single photo you add a batch dimension, and remove it from
    the result. The code below removes it. It worked for months with colour photos, and fails
    with the first grey one. Repair it.

    **Input:** `batch` of shape `[1, channels, height, width]` and of any dtype. A photo
    may have sizes of 1.

    **Output:** the photo, of shape `[channels, height, width]`, whatever these sizes are. `batch`
    itself stays as it is.

    ```python
    without_batch(tk.zeros(1, 1, 28, 28)).shape
    # torch.Size([1, 28, 28])
    ```
    """

    hints = (
        "How many dimensions of size 1 does a grey photo have, and how many does `squeeze()` take?",
        "`squeeze` takes a dimension as its argument, and then removes no other.",
    )
    usual_mistakes = {
        "the channels": (
            _squeezes_the_channels,
            "You removed dimension 1, the channels, and only where there is one. The batch is "
            "dimension 0.",
        ),
        "the batch stays": (
            _keeps_the_batch,
            "The batch dimension is still there. A slice keeps it, with size 1; a whole number as "
            "index removes it.",
        ),
        "one more": (
            _one_more,
            "There is one more dimension now. `unsqueeze` adds one, `squeeze` takes one away.",
        ),
        "flat": (
            _everything_flat,
            "Your result has one dimension. Only that of the batch should go.",
        ),
        "the sizes of the example": (
            lambda batch: batch.reshape(1, 28, 28),
            "The sizes of the example stand in your code. Other photos have others.",
            r"28",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_one_photo(draw, 3, 2, draw.integer(3, 4)), label="a colour photo")
        yield case(_one_photo(draw, 1, 2, draw.integer(3, 6)), label="a grey photo")
        yield case(_one_photo(draw, 3, 1, 1), label="a single pixel (size 1)")
        yield case(_one_photo(draw, 1, 1, draw.integer(4, 9)), label="a single grey line")
        last = some_photos(draw, 1, 2, draw.integer(3, 4), 3).float().permute(0, 3, 1, 2)
        yield case(last, label="channels last in memory (non-contiguous)")
        halves = _one_photo(draw, 1, 2, draw.integer(3, 6)).half()
        yield case(halves, label="half the memory (float16)")
        yield case(
            some_photos(draw, 1, 1, 2, 1).permute(0, 3, 1, 2), label="two pixels as uint8 (int)"
        )
        yield case(tk.zeros(1, 3, 0, 4), label="no lines (empty)")


def _one_photo(draw: Draw, channels: int, height: int, width: int) -> tk.Tensor:
    numbers = draw.distinct(channels * height * width, 0, 255)
    return tk.tensor(numbers).float().reshape(1, channels, height, width)
