"""The exercise largest-batch: how many samples fit into a memory."""

from __future__ import annotations

from collections.abc import Iterator

from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def largest_batch(free: int, fixed: int, per_sample: int) -> int:
    """How many samples fit into the memory of a device."""
    left = (free - fixed) // 512 * 512
    return max(0, left // per_sample)


def _without_blocks(free: int, fixed: int, per_sample: int) -> int:
    return max(0, (free - fixed) // per_sample)


def _without_fixed(free: int, fixed: int, per_sample: int) -> int:
    return free // 512 * 512 // per_sample


def _rounded_up(free: int, fixed: int, per_sample: int) -> int:
    left = (free - fixed) // 512 * 512
    return max(0, -(-left // per_sample))


def _never_quite_full(free: int, fixed: int, per_sample: int) -> int:
    return largest_batch(free - 1, fixed, per_sample)


def _each_sample_in_blocks(free: int, fixed: int, per_sample: int) -> int:
    block = -(-per_sample // 512) * 512
    return max(0, (free - fixed) // block)


def _below_zero(free: int, fixed: int, per_sample: int) -> int:
    return (free - fixed) // 512 * 512 // per_sample


@exercise("largest-batch", answer=largest_batch, points=0, difficulty=3, minutes=6, further=True)
class LargestBatch(Exercise):
    """What fits

    Memory on the device is given out in blocks of 512 bytes. A model takes a fixed part; the rest
    is for one tensor that holds the whole batch.

    **Input:** three whole numbers of bytes: `free`, what the device has left; `fixed`, what the
    model takes (a multiple of 512); `per_sample`, what one sample takes (at least 1).

    **Output:** the largest number of samples whose tensor, rounded up to whole blocks, still fits;
    0 if none does.

    ```python
    largest_batch(2048, 512, 400)
    # 3: three blocks are left, 1536 bytes; three samples take 1200, four take 1600
    ```
    """

    hints = (
        "How many whole blocks are left once the model is there? How many bytes are these?",
        "`(free - fixed) // 512 * 512` bytes can be given out. Whole numbers: divide with `//`.",
    )
    usual_mistakes = {
        "without blocks": (
            _without_blocks,
            "The rest of less than a block cannot be used: round what is left down to whole blocks "
            "first.",
        ),
        "without the model": (
            _without_fixed,
            "The model takes its part first: subtract `fixed`.",
        ),
        "rounded up": (
            _rounded_up,
            "It is one sample too many; the last does not fit any more. Divide with `//`, which "
            "rounds down, or stop counting one earlier.",
        ),
        "never quite full": (
            _never_quite_full,
            "It is one too few where the samples fill the blocks exactly. They fit then, too: "
            "`<=` where you compare.",
            "<",
        ),
        "a block for each sample": (
            _each_sample_in_blocks,
            "You give each sample blocks of its own. The batch is one tensor and is rounded once.",
        ),
        "below zero": (
            _below_zero,
            "If the model alone does not fit, the answer is 0, not a negative number.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def memory(blocks: int, per_sample: int) -> tuple[int, int, int]:
            """Whole blocks and a rest in which one sample more would have room."""
            fixed = 512 * draw.integer(2, 8)
            missing = -(512 * blocks) % per_sample
            return fixed + 512 * blocks + draw.integer(missing, 511), fixed, per_sample

        def odd(low: int, high: int) -> int:
            """A size of which no few blocks are a multiple."""
            return 2 * draw.integer(low // 2, high // 2) + 1

        yield case(2048, 512, 400, label="three small samples")
        blocks, fixed = draw.integer(2, 9), 512 * draw.integer(1, 9)
        yield case(fixed + 512 * blocks, fixed, odd(50, 250), label="whole blocks are left")
        yield case(*memory(draw.integer(2, 9), odd(100, 250)), label="a rest of less than a block")
        yield case(*memory(draw.integer(15, 30), odd(50, 100)), label="many small samples")
        yield case(*memory(draw.integer(10, 30), odd(30, 50)), label="any rest")
        blocks, fixed = draw.integer(3, 30), 512 * draw.integer(1, 9)
        yield case(fixed + 512 * blocks + 511, fixed, odd(30, 250), label="one byte is missing")
        samples, large = draw.integer(4, 9), odd(600, 700)
        blocks = (samples + 1) * large // 512
        yield case(*memory(blocks, large), label="samples larger than a block")
        large = draw.integer(600, 800)
        yield case(512 + draw.integer(large, 1023), 512, large, label="none fits")
        free, more = 512 * draw.integer(2, 9), 512 * draw.integer(1, 9)
        yield case(free, free + more, odd(50, 250), label="the model does not fit")
        free = draw.integer(1024, 4096)
        yield case(free, 8192, draw.integer(600, 1000), label="the model is much too large")
