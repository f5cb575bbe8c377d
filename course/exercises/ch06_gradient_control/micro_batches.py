"""The exercise micro-batches: the gradient of a large batch in small pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.rules import GRADIENT_IN_LOOP, Rule


def micro_batch_gradient(
    x: tk.Tensor,
    y: tk.Tensor,
    w: tk.Tensor,
    size: int,
) -> tk.Tensor:
    """The gradient of the mean squared error over all samples, `size` at a time."""
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        share = len(part_x) / len(x)
        (loss * share).backward()
    return w.grad


@no_type_check
def _micro_batch_program(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> tk.Tensor:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        share = ...  # which part of all samples this piece is, from 0 to 1
        ...  # backward, with this piece counted as much as its share
    return w.grad


def _batches(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int, weight: Any) -> Any:
    w = w.clone().requires_grad_()
    starts = range(0, len(x), size)
    for start in starts:
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        (loss * weight(len(part_x), len(x), len(starts))).backward()
    return w.grad


def _no_share(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1)


def _equal_shares(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1 / batches)


def _share_of_the_size(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: size / whole)


def _share_of_one(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1 / whole)


def _whole_numbers(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: part // whole)


def _count_of_samples(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: part)


def _the_sum_scaled(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        ((part_x @ w - part_y) ** 2).mean().backward()
        w.grad *= len(part_x) / len(x)
    return w.grad


def _share_for_backward(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    ((x[:size] @ w - y[:size]) ** 2).mean().backward(0.5)
    return w.grad


def _cleared_between(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        w.grad = None
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        (loss * (len(part_x) / len(x))).backward()
    return w.grad


@exercise(
    "micro-batches",
    answer=micro_batch_gradient,
    stub=_micro_batch_program,
    kind="complete",
    points=6,
    difficulty=4,
    minutes=10,
)
class MicroBatches(Exercise):
    """A large batch in small pieces

    If a batch does not fit into memory, it can be computed in pieces: gradients add up by
    themselves. But the mean over all samples is not the sum of the means of the pieces, and the
    last piece may be smaller. Fill the two gaps.

    **Input:** `x` of shape `[samples, inputs]`, with at least one sample, `y` of shape `[samples]`,
    `w` of shape `[inputs]`, and `size`, the number of samples in a piece.

    **Output:** the gradient, with respect to `w`, of the mean squared error over all samples, with
    a `backward` for each piece. `x`, `y` and `w` themselves stay as they are.

    ```python
    x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([1.0, 1.0, 1.0])
    micro_batch_gradient(x, y, tk.tensor([0.0]), 2)
    # tensor([-4.])
    ```

    All at once: the mean of 2 · (0 - 1) · 1, 2 · (0 - 1) · 2 and 2 · (0 - 1) · 3.
    """

    rules = (
        Rule(
            "a `backward` for each piece",
            "Go through the samples in a loop, `size` at a time, with a `backward` for each piece.",
            needs=(GRADIENT_IN_LOOP,),
        ),
        Rule(
            "`size`, the number of samples in a piece",
            "A piece has `size` samples: `range(0, len(x), size)` has the first one of each.",
            reads=3,
        ),
    )
    hints = (
        "A piece of 2 samples out of 3 should count two thirds: its mean, times its share, is its "
        "part of the whole mean.",
        "`share = len(part_x) / len(x)`; `len(part_x)` may be smaller than `size` in the last "
        "piece. Then `(loss * share).backward()`.",
    )
    usual_mistakes = {
        "no share": (
            _no_share,
            "You add up the means of the pieces. With 3 pieces that is about 3 times too much: "
            "multiply each loss by its share of all samples.",
        ),
        "equal shares": (
            _equal_shares,
            "You count every piece alike. The last one may be smaller, and then its samples count "
            "too much: take `len(part_x)`.",
        ),
        "the size of a full piece": (
            _share_of_the_size,
            "You take `size` for every piece. The last one may hold fewer samples: `len(part_x)`.",
        ),
        "one sample": (
            _share_of_one,
            "You count each piece as one sample. Its loss is a mean, so it stands for as many as "
            "the piece holds.",
        ),
        "whole numbers": (
            _whole_numbers,
            "`//` divides whole numbers and cuts, so nearly every share is 0. Divide with `/`.",
        ),
        "the count": (
            _count_of_samples,
            "This is how many samples the piece has. Its share is that divided by `len(x)`.",
        ),
        "the sum scaled": (
            _the_sum_scaled,
            "You multiply `w.grad`, in which the pieces before are added up already; they are "
            "scaled once more each time. Multiply the loss, before `backward`.",
        ),
        "backward with a number": (
            _share_for_backward,
            "`backward` does not take the share. Multiply the loss by it first: "
            "`(loss * share).backward()`.",
        ),
        "cleared between": (
            _cleared_between,
            "You clear the gradient before each piece, so only the last one counts. Here they are "
            "meant to add up.",
        ),
        "divided by the share": (
            lambda x, y, w, size: _batches(
                x, y, w, size, lambda part, whole, batches: whole / part
            ),
            "You divide by the share. A piece that is half of the samples should count half: "
            "multiply.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([1.0, 1.0, 1.0])
        yield case(x, y, tk.tensor([0.0]), 2, label="three samples, two at a time")
        yield case(*_samples(draw, 6, 2), 2, label="pieces of the same size")
        yield case(*_samples(draw, 7, 3), 3, label="a last piece of one sample")
        yield case(*_samples(draw, 5, 2), 4, label="a large piece and a small one")
        yield case(*_samples(draw, 3, 1), 1, label="one sample at a time")
        yield case(*_samples(draw, 4, 2), 10, label="everything in one piece")
        x, y, w = _samples(draw, 5, 2)
        apart = tk.stack([x, -x, y.unsqueeze(1) * x], dim=2)[..., 0]
        yield case(apart, y, w, 2, label="samples apart in memory (non-contiguous)")
        x = tk.tensor([[1.0], [2.0], [4.0], [8.0]], dtype=tk.float16)
        yield case(
            x, x.flatten(), tk.zeros(1, dtype=tk.float16), 2, label="half the memory (float16)"
        )


def _samples(draw: Draw, n: int, inputs: int) -> tuple[tk.Tensor, tk.Tensor, tk.Tensor]:
    """Samples whose gradients differ much: the later, the larger."""
    rows = [[(i + 1.0) * number for number in draw.floats(inputs, 1, 2)] for i in range(n)]
    return tk.tensor(rows), tk.tensor([3.0 * (i + 1) for i in range(n)]), tk.zeros(inputs)
