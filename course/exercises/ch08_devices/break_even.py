"""The exercise break-even: from how many runs on the GPU is faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def break_even(cpu: float, gpu: float, transfer: float) -> int:
    """From how many runs on the GPU is faster, with the transfer there counted once."""
    if gpu >= cpu:
        return 0
    runs = 1
    while runs * cpu <= transfer + runs * gpu:
        runs += 1
    return runs


def _without_transfer(cpu: float, gpu: float, transfer: float) -> Any:
    return 1 if gpu < cpu else 0


def _transfer_every_time(cpu: float, gpu: float, transfer: float) -> Any:
    return 1 if gpu + transfer < cpu else 0


def _a_tie_counts(cpu: float, gpu: float, transfer: float) -> Any:
    if gpu >= cpu:
        return 0
    runs = 1
    while runs * cpu < transfer + runs * gpu:
        runs += 1
    return runs


def _rounded_down(cpu: float, gpu: float, transfer: float) -> Any:
    return int(transfer / (cpu - gpu)) if gpu < cpu else 0


def _one_too_many(cpu: float, gpu: float, transfer: float) -> Any:
    runs = break_even(cpu, gpu, transfer)
    return runs + 1 if runs else 0


def _speed_up(cpu: float, gpu: float, transfer: float) -> Any:
    return cpu / gpu


@exercise("break-even", answer=break_even, points=0, difficulty=2, minutes=6, further=True)
class BreakEven(Exercise):
    """When the GPU pays

    Data are sent to the GPU once, and then used again and again.

    **Input:** three times in milliseconds: `cpu` and `gpu`, what one run takes there, and
    `transfer`, what sending the data takes, once.

    **Output:** the smallest number of runs for which the GPU, transfer included, takes less time
    than the CPU; 0 if it never does.

    ```python
    break_even(4.0, 1.0, 10.0)
    # 4: 16 ms against 10 + 4 = 14 ms; with 3 runs it is 12 against 13
    ```
    """

    hints = (
        "After `n` runs the CPU has taken `n * cpu`. And the GPU?",
        "Count up from 1 until `n * cpu` is larger than `transfer + n * gpu`. First make sure that "
        "this happens at all.",
    )
    usual_mistakes = {
        "without the transfer": (
            _without_transfer,
            "The transfer has its price: the first runs only earn it back. Add `transfer` to the "
            "time of the GPU.",
        ),
        "a transfer for every run": (
            _transfer_every_time,
            "The data are sent once, not for every run: add `transfer` once, whatever the number "
            "of runs.",
        ),
        "a tie counts": (
            _a_tie_counts,
            "At a tie the GPU is not faster yet: it must take less time.",
        ),
        "rounded down": (
            _rounded_down,
            "Your number is one too small: after so many runs the GPU has not yet taken less time. "
            "Try it with the numbers of the first failing case.",
        ),
        "one too many": (
            _one_too_many,
            "One run fewer is enough: try your number minus one.",
        ),
        "the speed-up": (
            _speed_up,
            "This is how much faster one run is. Asked for is the number of runs.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def times(high: int) -> tuple[float, float]:
            """What a run on the GPU takes, and how much longer it is on the CPU."""
            return float(draw.integer(2, 9)), float(draw.integer(1, high))

        yield case(4.0, 1.0, 10.0, label="a large matrix")
        gpu, more = times(9)
        yield case(gpu + more, gpu, 10 * more, label="a tie after ten runs")
        gpu, more = times(7)
        yield case(gpu + more, gpu, 4 * more, label="a tie after four runs")
        gpu, more = times(9)
        transfer = (draw.integer(10, 40) + 0.5) * more
        yield case(gpu + more, gpu, transfer, label="any large matrix")
        gpu, more = times(9)
        yield case(gpu + more, gpu, (draw.integer(300, 900) + 0.5) * more, label="hundreds of runs")
        gpu, more = times(9)
        yield case(gpu, gpu + more, float(draw.integer(5, 50)), label="slower in every run")
        yield case(gpu, gpu, 0.0, label="as fast as the CPU")
        gpu, more = times(50)
        yield case(gpu + 50 + more, gpu, more, label="it pays at once")
