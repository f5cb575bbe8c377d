"""The exercise mean-of-means: the loss of an epoch with a short last batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def epoch_loss(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> float:
    """The mean cross entropy over all samples of an epoch, batch by batch."""
    total, samples = 0.0, 0
    for batch, its_labels in zip(scores, labels, strict=True):
        loss = tk.nn.functional.cross_entropy(batch, its_labels)
        total += loss.item() * len(its_labels)
        samples += len(its_labels)
    return total / samples


@no_type_check
def _losses_added(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    total = 0
    for batch, its_labels in zip(scores, labels, strict=True):
        loss = tk.nn.functional.cross_entropy(batch, its_labels)
        total = total + loss
    return total / len(scores)


def _mean_of_means(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    return _losses_added(scores, labels).item()


def _weighted_with_its_graph(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    return tk.nn.functional.cross_entropy(tk.cat(scores), tk.cat(labels))


def _sum_of_the_samples(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    return epoch_loss(scores, labels) * sum(map(len, labels))


def _by_the_first_size(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    return epoch_loss(scores, labels) * sum(map(len, labels)) / (len(labels) * len(labels[0]))


def _the_last_loss(scores: list[tk.Tensor], labels: list[tk.Tensor]) -> Any:
    return tk.nn.functional.cross_entropy(scores[-1], labels[-1]).item()


@exercise(
    "mean-of-means",
    answer=epoch_loss,
    stub=_losses_added,
    points=0,
    difficulty=2,
    minutes=6,
    further=True,
)
class MeanOfMeans(Exercise):
    """The loss of an epoch

    This program has two faults that many training programs have. Its result comes with the graphs
    of all batches behind it, and it is not the mean over the samples if the batches differ in
    size. Repair both.

    **Input:** `scores`, a list of tensors of shape `[samples, classes]`, one for each batch, that
    require grad; `labels`, a list of as many int64 tensors of shape `[samples]`.

    **Output:** the mean cross entropy over all samples of all batches, a Python float. `scores` and
    `labels` stay as they are.

    ```python
    scores = [tk.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), tk.tensor([[2.0, 0.0]])]
    epoch_loss(scores, [tk.tensor([0, 1, 0]), tk.tensor([0])])
    # about 0.5516: three samples with 0.6931, one with 0.1269; not the mean of both
    ```
    """

    hints = (
        "The loss of a batch is a mean. How many samples does it stand for, and how many are there "
        "in all?",
        "`total += loss.item() * len(its_labels)`: a number, weighted. Divide by the number of all "
        "samples at the end.",
    )
    usual_mistakes = {
        "the losses added": (
            _losses_added,
            "The result is still a tensor with a history: add `loss.item()`. And weigh each batch "
            "with its number of samples.",
        ),
        "the mean of the means": (
            _mean_of_means,
            "It is a number now, and still the mean of the batches: a small last batch counts as "
            "much as a full one. Weigh each with `len(its_labels)`.",
        ),
        "with its graph": (
            _weighted_with_its_graph,
            "The value is right, in a tensor. A Python number is asked for, which keeps no graph "
            "alive: `.item()`.",
        ),
        "the sum": (
            _sum_of_the_samples,
            "You have the sum over all samples. Divide it by their number.",
        ),
        "by the first size": (
            _by_the_first_size,
            "You count every batch as large as the first one. Add up `len(its_labels)` as you go.",
        ),
        "the last loss": (
            _the_last_loss,
            "This is the loss of the last batch alone. Add up all of them.",
        ),
        "divided by batches": (
            lambda scores, labels: epoch_loss(scores, labels) * sum(map(len, labels)) / len(labels),
            "You weigh each batch with its size and divide by the number of batches. Divide by "
            "the number of all samples.",
        ),
        "elements counted": (
            lambda scores, labels: epoch_loss(scores, labels) / scores[0].shape[1],
            "`numel()` counts samples times classes. The number of samples is `len(batch)`.",
            r"numel",
        ),
        "added, divided by samples": (
            lambda scores, labels: (
                _mean_of_means(scores, labels) * len(scores) / sum(map(len, labels))
            ),
            "The loss of a batch is a mean: multiply it by the number of its samples before you "
            "add.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        flat = tk.zeros(3, 2, dtype=tk.float64)
        sure = tk.tensor([[2.0, 0.0]], dtype=tk.float64)
        yield case([flat, sure], _labels([0, 1, 0], [0]), label="three samples and one")
        full = [_scored(draw, 2.0, 4), _scored(draw, -2.0, 4)]
        yield case(full, _labels([0] * 4, [0] * 4), label="batches of one size")
        three = [_scored(draw, 1.0, 5), _scored(draw, 3.0, 5), _scored(draw, -4.0, 2)]
        yield case(three, _labels([0] * 5, [0] * 5, [0] * 2), label="a smaller last batch")
        uneven = [_scored(draw, -3.0, 1), _scored(draw, 2.0, 6), _scored(draw, 1.0, 3)]
        yield case(uneven, _labels([0], [0] * 6, [0] * 3), label="a small first batch")
        yield case([_scored(draw, 1.0, 3)], _labels([0, 1, 1]), label="a single batch")
        yield case([_scored(draw, 2.0, 1)], _labels([1]), label="a single sample (size 1)")
        turned = [tk.stack([*_scored(draw, 3.0, 2).T]).T, _scored(draw, -1.0, 3)]
        yield case(turned, _labels([0, 1], [0, 0, 1]), label="turned (non-contiguous)")
        halves = [tk.zeros(3, 2, dtype=tk.float16), tk.zeros(1, 2, dtype=tk.float16)]
        yield case(
            halves, _labels([0, 1, 1], [0]), label="all scores alike, half the memory (float16)"
        )

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned for scores that require grad."""
        scores, labels = args
        return answer([batch.clone().requires_grad_() for batch in scores], labels)


def _labels(*batches: list[int]) -> list[tk.Tensor]:
    return [tk.tensor(batch) for batch in batches]


def _scored(draw: Draw, lead: float, n: int) -> tk.Tensor:
    """Scores in which class 0 leads by about this much; in float64, to compare closely."""
    return tk.tensor([[lead + draw.number(0, 0.5), 0.0] for _ in range(n)], dtype=tk.float64)
