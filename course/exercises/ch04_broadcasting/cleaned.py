"""The exercise cleaned: the write that vanishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def cleaned(readings: tk.Tensor) -> tk.Tensor:
    """The readings, with the negative ones replaced by the mean of the others."""
    result = readings.clone()
    faulty = result < 0
    result[faulty] = result[~faulty].mean()
    return result


def _write_that_vanishes(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    faulty = result < 0
    result[faulty][:] = result[~faulty].mean()
    return result


def _into_the_readings(readings: tk.Tensor) -> tk.Tensor:
    faulty = readings < 0
    readings[faulty] = readings[~faulty].mean()
    return readings


def _mean_of_all(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    result[result < 0] = readings.mean()
    return result


def _zero_instead(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    result[result < 0] = 0
    return result


def _left_out(readings: tk.Tensor) -> tk.Tensor:
    return readings[readings >= 0]


def _the_good_ones_replaced(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    faulty = result < 0
    result[~faulty] = result[~faulty].mean()
    return result


def _zero_is_faulty(readings: tk.Tensor) -> tk.Tensor:
    good = readings > 0
    return tk.where(good, readings, readings[good].mean())


def _mean_of_the_faulty(readings: tk.Tensor) -> tk.Tensor:
    faulty = readings < 0
    return tk.where(faulty, readings[faulty].mean(), readings)


def _write_into_a_named_copy(readings: tk.Tensor) -> tk.Tensor:
    return readings.clone()


@exercise("cleaned", answer=cleaned, stub=_write_that_vanishes, points=4, difficulty=3, minutes=8)
class Cleaned(Exercise):
    """The write that vanishes

    A sensor reports a negative number when it fails. The code below should replace these readings
    by the mean of the good ones. It runs without an error, and nothing changes. Repair it.

    **Input:** `readings`, a tensor of any shape and any float dtype, with at least one reading that
    is not negative.

    **Output:** a tensor of the same shape, in which each negative reading is replaced by the
    mean of all readings that are not negative. `readings` itself stays as it was.

    ```python
    cleaned(tk.tensor([2.0, -1.0, 4.0]))
    # tensor([2., 3., 4.])
    ```
    """

    hints = (
        "`result[faulty]` picks with a mask. Is that a view of `result`, or a copy?",
        "It is a copy, and `[:] = ...` writes into that copy. An assignment right behind the mask, "
        "`result[faulty] = ...`, writes into `result`.",
    )
    usual_mistakes = {
        "into the readings": (
            _into_the_readings,
            "You write into the readings themselves, which belong to the caller. Write into a "
            "clone.",
        ),
        "the mean of all": (
            _mean_of_all,
            "Your mean counts the faulty readings too. Pick the good ones first: `~faulty`.",
        ),
        "zero": (
            _zero_instead,
            "You replace the faulty readings by 0. They should become the mean of the others.",
        ),
        "left out": (
            _left_out,
            "You leave the faulty readings out, so the shape changes. Keep their places and "
            "replace the numbers.",
        ),
        "the good ones": (
            _the_good_ones_replaced,
            "You replaced the good readings. `faulty` picks what is to be replaced, `~faulty` what "
            "the mean is taken of.",
        ),
        "a named copy": (
            _write_into_a_named_copy,
            "A mask picks a copy, and what is written into that copy, under whatever name, is not "
            "written into `result`. Assign to `result[mask]`.",
            r"(\w+) = \w+\[.*\]\n(?s:.*)\1\[|\]\.fill_",
        ),
        "zeros in the mean": (
            lambda readings: tk.where(readings < 0, readings.clamp(min=0).mean(), readings),
            "Your mean counts the faulty readings as 0. Take it over the good ones alone.",
        ),
        "0 is a good reading": (
            _zero_is_faulty,
            "You replace readings of 0 as well. 0 is not negative: `< 0`.",
        ),
        "the mean of the faulty": (
            _mean_of_the_faulty,
            "You take the mean of the faulty readings. `~faulty` picks the good ones.",
        ),
        "without the sign": (
            lambda readings: readings.abs(),
            "You take the minus away. A faulty reading becomes the mean of the good ones.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([2.0, -1.0, 4.0]), label="one fault")
        good, bad = draw.floats(4, 1, 9), draw.floats(2, -9, -1)
        yield case(
            tk.tensor([good[0], bad[0], good[1], good[2], bad[1], good[3]]), label="two faults"
        )
        yield case(
            tk.tensor([[good[0], bad[0], 12.0], [bad[1], 0.5, good[1]]]),
            label="a table of readings",
        )
        # a fault is farther from 0 than the mean of any others
        zero = tk.tensor([-draw.integer(10, 19), 0, draw.integer(2, 9)]).float()
        yield case(zero, label="a reading of 0 is good")
        zeros = tk.tensor([0, -draw.integer(10, 19), draw.integer(2, 9), 0]).float()
        yield case(zeros, label="two readings of 0")
        a, b, c, d = *draw.distinct(2, 1, 9), *draw.integers(2, 10, 19)
        yield case(tk.tensor([a, -c, -d, b]).double(), label="float64")
        a, b, c = *draw.distinct(2, 1, 9), draw.integer(10, 19)
        yield case(tk.tensor([a, -c, b]).half(), label="half the memory (float16)")
        a, b, c = *draw.distinct(2, 1, 9), draw.integer(10, 19)
        wide = tk.tensor([a, 99, -c, 99, b, 99]).float()
        yield case(wide[::2], label="every second reading (non-contiguous)")
        # an answer that does nothing is right here
        yield case(tk.tensor(draw.number(1, 9)), label="a single reading (0-d)", weight=0.25)
        single = tk.tensor([[draw.number(1, 9)]])
        yield case(single, label="one row, one column (size 1)", weight=0.25)
        yield case(tk.tensor(draw.distinct(2, 1, 9)).float(), label="no fault", weight=0.25)

    def advice(self, *args: Any) -> str | None:
        (readings,) = args
        if (readings == 0).any():
            return "0 is not negative: it is a good reading, stays, and counts in the mean."
        return None
