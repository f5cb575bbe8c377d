"""The exercise micro-batches: the gradient of a large batch in small pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd, seen
from course.notebook.exercise import Case, Draw, Exercise, case, exercise

Pieces = list[tuple[tk.Tensor, tk.Tensor]]


def micro_batch_gradient(
    pieces: list[tuple[tk.Tensor, tk.Tensor]],
    w: tk.Tensor,
) -> tk.Tensor:
    """The gradient of the mean squared error over all samples, a piece at a time."""
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        loss = ((x @ w - y) ** 2).mean()
        share = len(x) / samples
        (loss * share).backward()
    return w.grad


@no_type_check
def _micro_batch_program(pieces: Pieces, w: tk.Tensor) -> tk.Tensor:
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        loss = ((x @ w - y) ** 2).mean()
        share = ...  # which part of all samples this piece is, from 0 to 1
        ...  # backward, with this piece counted as much as its share
    return w.grad


def _batches(pieces: Pieces, w: tk.Tensor, weight: Any) -> Any:
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        loss = ((x @ w - y) ** 2).mean()
        (loss * weight(len(x), samples, len(pieces))).backward()
    return w.grad


def _no_share(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: 1)


def _equal_shares(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: 1 / batches)


def _share_of_the_first(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: len(pieces[0][0]) / whole)


def _share_of_one(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: 1 / whole)


def _whole_numbers(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: part // whole)


def _count_of_samples(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: part)


def _count_of_inputs(pieces: Pieces, w: tk.Tensor) -> Any:
    return _batches(pieces, w, lambda part, whole, batches: len(w) / whole)


def _the_sum_scaled(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        ((x @ w - y) ** 2).mean().backward()
        w.grad *= len(x) / samples
    return w.grad


def _share_for_backward(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    x, y = pieces[0]
    ((x @ w - y) ** 2).mean().backward(0.5)
    return w.grad


def _all_at_once(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    x, y = (tk.cat(parts) for parts in zip(*pieces, strict=True))
    ((x @ w - y) ** 2).mean().backward()
    return w.grad


def _one_backward(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    losses = [((x @ w - y) ** 2).sum() for x, y in pieces]
    (tk.stack(losses).sum() / sum(len(y) for _, y in pieces)).backward()
    return w.grad


def _cleared_between(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        w.grad = None
        loss = ((x @ w - y) ** 2).mean()
        (loss * (len(x) / samples)).backward()
    return w.grad


def _last_loss(pieces: Pieces, w: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    samples = sum(len(y) for x, y in pieces)
    for x, y in pieces:
        loss = ((x @ w - y) ** 2).mean()
    (loss * (len(x) / samples)).backward()
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

    What backward needs of a large batch may not fit into memory. Then the batch comes in pieces,
    and gradients add up by themselves. But the mean over all samples is not the sum of the means
    of the pieces, because pieces may differ in size. Fill the two gaps.

    **Input:** `pieces`, a list of at least one pair `(x, y)`: `x` of shape `[samples, inputs]` with
    at least one sample, `y` of shape `[samples]`; `w` of shape `[inputs]`. All are floats of the
    same dtype.

    **Output:** the gradient, with respect to `w`, of the mean squared error over all samples of all
    pieces, with a `backward` for each piece. The pieces and `w` itself stay as they are.

    ```python
    first = tk.tensor([[1.0], [2.0]]), tk.tensor([1.0, 1.0])
    last = tk.tensor([[3.0]]), tk.tensor([1.0])
    micro_batch_gradient([first, last], tk.tensor([0.0]))
    # tensor([-4.])
    ```

    All at once: the mean of 2 · (0 - 1) · 1, 2 · (0 - 1) · 2 and 2 · (0 - 1) · 3.
    """

    hints = (
        "A piece of 2 samples out of 3 should count two thirds: its mean, times its share, is its "
        "part of the whole mean.",
        "`share = len(x) / samples`: so many of all samples are in this piece. Then "
        "`(loss * share).backward()`.",
    )
    usual_mistakes = {
        "no share": (
            _no_share,
            "You add up the means of the pieces. With 3 pieces that is about 3 times too much: "
            "multiply each loss by its share of all samples.",
        ),
        "equal shares": (
            _equal_shares,
            "You count every piece alike. One may be smaller, and then its samples count too much: "
            "take `len(x)`.",
        ),
        "the size of the first piece": (
            _share_of_the_first,
            "Every piece counts as much as the first one here, and may have fewer samples: take "
            "`len(x)`.",
        ),
        "the number of inputs": (
            _count_of_inputs,
            "This is the number of inputs. The share counts samples: `len(x)`, the first size.",
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
            "This is how many samples the piece has. Its share is that divided by `samples`.",
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
        "all at once": (
            _all_at_once,
            "The gradient is right, and you put all pieces into one tensor for it, which is what "
            "the memory has no room for. Go through the pieces, with a `backward` for each.",
        ),
        "one backward at the end": (
            _one_backward,
            "The gradient is right, but the graphs of all pieces are kept until the last one is "
            "made. Called for each piece, in the loop, `backward` frees that piece's graph.",
            r"backward|grad\(",
        ),
        "cleared between": (
            _cleared_between,
            "You clear the gradient before each piece, so only the last one counts. Here they are "
            "meant to add up.",
            r"\n        .*(grad = |zero)",
        ),
        "the last loss": (
            _last_loss,
            "Behind the loop there is only the loss of the last piece. Call `backward` for each "
            "piece, in the loop.",
            r"(?m)^    \S.*backward\(",
        ),
        "divided by the share": (
            lambda pieces, w: _batches(pieces, w, lambda part, whole, batches: whole / part),
            "You divide by the share. A piece that is half of the samples should count half: "
            "multiply.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        first = tk.tensor([[1.0], [2.0]]), tk.tensor([1.0, 1.0])
        last = tk.tensor([[3.0]]), tk.tensor([1.0])
        yield case([first, last], tk.tensor([0.0]), label="two samples and one")
        yield case(*_samples(draw, [2, 2, 2], 2), label="pieces of the same size")
        yield case(*_samples(draw, [3, 3, 1], 3), label="a last piece of one sample")
        yield case(*_samples(draw, [1, 4], 2), label="a small piece and a large one")
        yield case(*_samples(draw, [1, 1, 1], 1), label="one sample at a time")
        yield case(*_samples(draw, [4], 2), label="everything in one piece")
        [(x, y), *later], w = _samples(draw, [3, 2], 2)
        apart = tk.stack([x, -x], dim=2)[..., 0]
        yield case([(apart, y), *later], w, label="samples apart in memory (non-contiguous)")
        x = tk.tensor([[1.0], [2.0], [4.0], [8.0]], dtype=tk.float16)
        halves = list(zip(x.split([3, 1]), x.flatten().split([3, 1]), strict=True))
        yield case(halves, tk.tensor([-1.0], dtype=tk.float16), label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradient, whether each piece had its backward, and whether pieces were joined."""
        pieces, w = args
        right = self.reference(*args)
        gradient, work = measured(answer, *args)
        if not isinstance(gradient, tk.Tensor):
            return gradient
        for_each = work["walks"] >= len(pieces) and is_by_autograd(gradient, work["doubled"])
        # the loss of the last piece is computed after the graphs of others are freed
        for_each = for_each and (len(pieces) < 2 or work["fresh"] > 0)
        # one walk for all samples makes the whole gradient alone
        for_each = for_each and not any(
            summand is not ... and is_by_autograd(gradient, summand) for summand in work["alone"]
        )
        # of a single input a piece has as many numbers as samples
        joined = (
            len(w) > 1 and len(pieces) > 1 and sum(len(y) for _, y in pieces) in work["lengths"]
        )
        demands = {"a `backward` for each piece": for_each, "pieces joined": joined}
        return seen("gradient", gradient, right, demands)


def _samples(draw: Draw, sizes: list[int], inputs: int) -> tuple[Pieces, tk.Tensor]:
    """Pieces of samples whose gradients differ much: the later, the larger."""
    n = sum(sizes)
    rows = [[(i + 1.0) * number for number in draw.floats(inputs, 1, 2)] for i in range(n)]
    x, y = tk.tensor(rows), tk.tensor([3.0 * (i + 1) for i in range(n)])
    # below 0, so that every error has the same sign
    w = tk.tensor(draw.floats(inputs, -2, -0.5))
    return list(zip(x.split(sizes), y.split(sizes), strict=True)), w
