"""The exercise stereo: two channels of a recording as rows of one view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def channels_of(samples: tk.Tensor) -> tk.Tensor:
    """The two channels of a recording, as two rows that share its memory."""
    return samples.view(-1, 2).T


def _halves(samples: tk.Tensor) -> tk.Tensor:
    return samples.view(2, -1)


def _a_row_for_each_moment(samples: tk.Tensor) -> tk.Tensor:
    return samples.view(-1, 2)


def _copied(samples: tk.Tensor) -> tk.Tensor:
    return tk.stack([samples[::2], samples[1::2]])


def _contiguous(samples: tk.Tensor) -> tk.Tensor:
    return samples.view(-1, 2).T.contiguous()


def _left_alone(samples: tk.Tensor) -> tk.Tensor:
    return samples[::2]


@exercise("stereo", answer=channels_of, points=2, difficulty=2, minutes=5)
class Stereo(Exercise):
    """Two channels in one vector

    A recording in stereo comes as one long vector: the left and the right sample of a moment side
    by side, then those of the next moment. To work on one channel you want each in a row of its
    own, without copying the recording.

    **Input:** `samples`, a vector of any dtype with an even number of elements, possibly none. It
    may be a view, such as every second element of a longer vector.

    **Output:** a matrix of shape `[2, moments]`: row 0 holds the left samples, row 1 the right
    ones. It shares the memory of `samples`: the check changes `samples` afterwards and looks
    whether the rows show it. Your function itself leaves `samples` as it is.

    ```python
    channels_of(tk.tensor([1, 10, 2, 20, 3, 30]))
    # tensor([[ 1,  2,  3],
    #         [10, 20, 30]])
    ```
    """

    hints = (
        "Two numbers belong to each moment. Which shape puts the two side by side, so that a row "
        "is a moment?",
        "`view(-1, 2)` gives a row for each moment. A row for each channel is one step away, and "
        "that step does not copy either.",
    )
    usual_mistakes = {
        "halves": (
            _halves,
            "Row 0 is the first half of the recording, row 1 the second. Left and right take "
            "turns: make a row for each moment first.",
        ),
        "a row for each moment": (
            _a_row_for_each_moment,
            "Each row is a moment, with left and right side by side. Rows should be channels: "
            "exchange the dimensions.",
        ),
        "a copy": (
            _copied,
            "The rows are right, and they are copies: after a change of `samples` they show the "
            "old numbers. `view` and `.T` never copy.",
        ),
        "contiguous": (
            _contiguous,
            "The rows are right, and they are copies: `.contiguous()` copies what is not "
            "contiguous, such as a transpose. Leave it out.",
            "contiguous",
        ),
        "one channel": (
            _left_alone,
            "This is the left channel alone. Both are asked for, as rows of one matrix.",
        ),
        "strides of a new vector": (
            lambda samples: samples.as_strided(
                (2, len(samples) // 2), (1, 2), samples.storage_offset()
            ),
            "The strides 1 and 2 are right for a contiguous vector. `samples` may be every second "
            "element of another one: ask `samples.stride(0)`, or use `view` and `.T`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1, 10, 2, 20, 3, 30]), label="three moments (int)")
        yield case(some_vector(draw, 8), label="any four moments")
        yield case(some_vector(draw, 10).double(), label="float64")
        yield case(some_vector(draw, 12)[::2], label="every second element (non-contiguous)")
        yield case(some_vector(draw, 18)[::3], label="every third element (non-contiguous)")
        yield case(some_vector(draw, 9)[3:], label="the end of a vector")
        yield case(some_vector(draw, 2), label="one moment (size 1)")
        yield case(some_vector(draw, 6).half(), label="half the memory (float16)")
        yield case(tk.zeros(0), label="no moments (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The channels, before and after `samples` was changed."""
        (samples,) = args
        channels = answer(samples)
        if not isinstance(channels, tk.Tensor):
            return channels
        seen = Seen({"at first": channels.clone()})
        samples += 100
        seen["after samples += 100"] = channels.clone()
        samples -= 100
        return seen


def some_vector(draw: Draw, n: int) -> tk.Tensor:
    return tk.tensor(draw.distinct(n, 1, 99)).float()
