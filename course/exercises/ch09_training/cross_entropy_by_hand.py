"""The exercise cross-entropy-by-hand: the loss of a classifier by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def mean_cross_entropy(logits: tk.Tensor, labels: tk.Tensor) -> tk.Tensor:
    """The mean over the samples of minus the log probability of the right class."""
    shifted = logits - logits.amax(dim=1, keepdim=True)
    log_total = shifted.exp().sum(dim=1).log()
    own = shifted[tk.arange(len(labels)), labels]
    return (log_total - own).mean()


def _log_of_softmax(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shares = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    return -shares[tk.arange(len(labels)), labels].log().mean()


def _log_of_stable_shares(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    return -logits.softmax(dim=1)[tk.arange(len(labels)), labels].log().mean()


def _one_maximum_for_all(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shifted = logits - logits.max()
    return (shifted.exp().sum(dim=1).log() - shifted[tk.arange(len(labels)), labels]).mean()


def _wrong_sign(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    return -mean_cross_entropy(logits, labels)


def _sum_of_samples(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    return mean_cross_entropy(logits, labels) * len(labels)


def _one_for_each_sample(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shifted = logits - logits.amax(dim=1, keepdim=True)
    return shifted.exp().sum(dim=1).log() - shifted[tk.arange(len(labels)), labels]


def _over_the_samples(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shifted = logits - logits.amax(dim=0, keepdim=True)
    log_shares = shifted - shifted.exp().sum(dim=0, keepdim=True).log()
    return -log_shares[tk.arange(len(labels)), labels].mean()


def _all_labels_of_every_row(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shifted = logits - logits.amax(dim=1, keepdim=True)
    return (shifted.exp().sum(dim=1, keepdim=True).log() - shifted[:, labels]).mean()


def _only_the_score(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    return -logits[tk.arange(len(labels)), labels].mean()


def _entropy_without_keepdim(logits: tk.Tensor, labels: tk.Tensor) -> Any:
    shifted = logits - logits.amax(dim=1)
    own = shifted[tk.arange(len(labels)), labels]
    return (shifted.exp().sum(dim=1).log() - own).mean()


@exercise(
    "cross-entropy-by-hand",
    answer=mean_cross_entropy,
    points=5,
    difficulty=3,
    minutes=11,
    without=(
        "nn.functional.cross_entropy",
        "nn.functional.log_softmax",
        "log_softmax",
        "Tensor.log_softmax",
        "logsumexp",
        "Tensor.logsumexp",
    ),
)
class CrossEntropyByHand(Exercise):
    """Cross entropy by hand

    **Input:** `logits`, the scores, a float tensor of shape `[samples, classes]`; `labels`, the
    right classes, an int64 tensor of shape `[samples]`. There is at least one
    sample, and at least one class.

    **Output:** the mean over the samples of

    $$-\\log \\frac{e^{s_y}}{\\sum_k e^{s_k}} = \\log \\sum_k e^{s_k} - s_y$$

    where $s$ are the scores of the sample and $y$ is its label: a 0-d tensor with the dtype of
    `logits`. `logits` and `labels` stay as they are.

    ```python
    mean_cross_entropy(tk.tensor([[2.0, 1.0, 0.0]]), tk.tensor([0]))
    # tensor(0.4076)
    ```

    Scores may be large: for `[[1000.0, 0.0]]` and the label 1 the answer is 1000, although
    `exp(1000)` is `inf`. The library's own `cross_entropy`, `log_softmax` and `logsumexp`
    are switched off while your answer runs; `exp`, `log`, `sum` and `amax` are enough.
    """

    hints = (
        "Subtracting the same number from all scores of a sample changes nothing in the fraction. "
        "Which number makes every `exp` at most 1?",
        "`shifted = logits - logits.amax(dim=1, keepdim=True)`. Then the formula on the right, "
        "with `shifted` in place of the scores; take the log of the sum, never of a fraction.",
        "`shifted[tk.arange(len(labels)), labels]` picks the score of its own label from each row.",
    )
    usual_mistakes = {
        "log of a fraction": (
            _log_of_softmax,
            "Small scores are right. For large ones `exp` is `inf` or 0, and the log of the "
            "fraction is `nan` or `inf`. Subtract the largest score of each row first, and take "
            "the log of the sum alone.",
        ),
        "log of stable shares": (
            _log_of_stable_shares,
            "If the probability of the right class is very small, it is rounded to 0, and the log "
            "of 0 is `-inf`. Do not compute it: take the log of the sum, and subtract.",
        ),
        "one maximum for all rows": (
            _one_maximum_for_all,
            "You subtract the largest score of the whole batch. In a row that lies far below it "
            "every `exp` is 0, and its log `-inf`. Each row needs its own maximum: "
            "`amax(dim=1, keepdim=True)`.",
        ),
        "wrong sign": (
            _wrong_sign,
            "The sign is wrong. A probability is at most 1, so its log is at most 0. The loss is "
            "minus this log.",
        ),
        "the sum": (
            _sum_of_samples,
            "You add up the samples. Take their mean, so that the loss does not depend on the size "
            "of the batch.",
        ),
        "one for each sample": (
            _one_for_each_sample,
            "This is the loss of each sample, and each is right. One number is asked for: their "
            "mean.",
        ),
        "over the samples": (
            _over_the_samples,
            "You compare the samples of a class with each other. The scores of one sample compete: "
            "sum over `dim=1`.",
        ),
        "the labels of all rows": (
            _all_labels_of_every_row,
            "`[:, labels]` takes the columns of all labels from every row. Each row has one label: "
            "index with the row numbers too, `[tk.arange(len(labels)), labels]`.",
        ),
        "only the score": (
            _only_the_score,
            "You take the score of the right class alone. What counts is how it compares with the "
            "others: add the log of the sum of all `exp`.",
        ),
        "nothing subtracted": (
            lambda logits, labels: (
                logits.exp().sum(dim=1).log() - logits[tk.arange(len(labels)), labels]
            ).mean(),
            "The formula is right, and for large scores `exp` is `inf`. Subtract the largest "
            "score of each row first.",
        ),
        "without keepdim": (
            _entropy_without_keepdim,
            "`amax(dim=1)` has shape `[samples]` and is subtracted along the wrong dimension, or "
            "does not fit. `keepdim=True` keeps a size of 1 in its place.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int, low: int, high: int) -> list[float]:
            return [float(number) for number in draw.integers(n, low, high)]

        yield case(tk.tensor([[2.0, 1.0, 0.0]]), tk.tensor([0]), label="one sample")
        n = draw.integer(2, 5)
        alike = tk.full((n, n), draw.number(1, 9))
        yield case(alike, tk.tensor(draw.integers(n, 0, n - 1)), label="all scores alike")
        scores = [draw.floats(4, -3, 3) for _ in range(5)]
        scores[0][1] = 4.0  # whatever is drawn, it matters which dimension is summed
        labels = [0, 3, *draw.integers(3, 0, 3)]
        yield case(tk.tensor(scores), tk.tensor(labels), label="any scores")
        large = tk.tensor(
            [[draw.integer(50, 200) * 10.0, 0.0], [*numbers(1, 2, 5), *numbers(1, 1, 3)]]
        )
        yield case(large, tk.tensor([1, 0]), label="a large score")
        # in float64, so that no right formula loses digits that the comparison looks at
        top, lower, last = (
            numbers(1, 1000, 2000)[0],
            numbers(1, 200, 600)[0],
            numbers(1, 800, 1500)[0],
        )
        near = [-top, -top - 1, -top - 2]
        low = tk.tensor([near, [-top - lower, -top - lower, -top - lower - last]]).double()
        yield case(low, tk.tensor([0, 2]), label="very low scores, float64")
        top, lower, last = (
            numbers(1, 1800, 2500)[0],
            numbers(1, 800, 1500)[0],
            numbers(1, 800, 1500)[0],
        )
        apart = tk.tensor([[top, top - last], [-lower, -lower - 1], [0.0, 1.0]]).double()
        yield case(apart, tk.tensor([1, 0, 0]), label="rows far apart, float64")
        wide = tk.tensor([draw.floats(3, -2, 2) for _ in range(2)], dtype=tk.float64)
        wide[1] -= 5000
        yield case(wide, tk.tensor([2, 1]), label="one row far below, float64")
        right, wrong = numbers(2, 1, 4), numbers(2, -3, 0)
        turned = tk.tensor([[right[0], wrong[0]], [wrong[1], right[1]], numbers(2, 0, 3)]).T
        yield case(turned, tk.tensor([0, 1]), label="turned (non-contiguous)")
        single = tk.tensor(draw.floats(2, 1, 9)).unsqueeze(1)
        yield case(single, tk.tensor([0, 0]), label="a single class (size 1)")
        n = draw.integer(3, 9)
        halves = tk.zeros(2, n, dtype=tk.float16)
        of_half = tk.tensor(draw.integers(2, 0, n - 1))
        yield case(halves, of_half, label="all scores alike, half the memory (float16)")

    def advice(self, *args: Any) -> str | None:
        logits, _ = args
        if logits.abs().max().item() > 100:
            return "Print what your `exp` gives: what becomes of it for scores like these?"
        return None
