"""The exercise confusion: how often each class is taken for which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def confusion(scores: tk.Tensor, labels: tk.Tensor) -> tk.Tensor:
    """How often samples of each class (rows) were taken for each class (columns)."""
    classes = scores.shape[1]
    table = tk.zeros(classes, classes, dtype=tk.int64)
    guesses = scores.argmax(dim=1)
    for label, guess in zip(labels.tolist(), guesses.tolist(), strict=True):
        table[label, guess] += 1
    return table


def _guesses_in_rows(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    return confusion(scores, labels).T


def _counted_once(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    table = tk.zeros(scores.shape[1], scores.shape[1], dtype=tk.int64)
    table[labels, scores.argmax(dim=1)] += 1
    return table


def _over_the_samples_of_a_class(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    table = tk.zeros(scores.shape[1], scores.shape[1], dtype=tk.int64)
    guesses = scores.argmax(dim=0)
    for label, guess in zip(labels.tolist(), guesses.tolist(), strict=False):
        table[label, guess] += 1
    return table


def _float_table(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    return confusion(scores, labels).float()


def _classes_that_occur(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    classes = max([*labels.tolist(), *scores.argmax(dim=1).tolist(), -1]) + 1
    return confusion(scores, labels)[:classes, :classes].clone()


def _only_the_right_ones(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    return confusion(scores, labels) * tk.eye(scores.shape[1], dtype=tk.int64)


def _the_accuracy(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    return (scores.argmax(dim=1) == labels).float().mean().item()


def _classes_of_labels(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    classes = int(labels.max().item()) + 1
    table = tk.zeros(classes, classes, dtype=tk.int64)
    for label, guess in zip(labels.tolist(), scores.argmax(dim=1).tolist(), strict=True):
        table[label, guess] += 1
    return table


def _two_classes(scores: tk.Tensor, labels: tk.Tensor) -> Any:
    table = tk.zeros(2, 2, dtype=tk.int64)
    for label, guess in zip(labels.tolist(), scores.argmax(dim=1).tolist(), strict=True):
        table[label, guess] += 1
    return table


@exercise("confusion", answer=confusion, points=4, difficulty=3, minutes=9)
class Confusion(Exercise):
    """Who is taken for whom

    An accuracy of 0.95 does not say what the other 0.05 are. This table does.

    **Input:** `scores`, a float tensor of shape `[samples, classes]`: what a network says;
    `labels`, the right classes, an int64 tensor of shape `[samples]`.

    **Output:** an int64 tensor of shape `[classes, classes]`. Its entry in row `i`, column `j` is
    the number of samples of class `i` for which class `j` has the largest score. `scores` and
    `labels` stay as they are.

    ```python
    scores = tk.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])
    confusion(scores, tk.tensor([0, 1, 1, 1]))
    # tensor([[1, 0],
    #         [1, 2]])
    ```

    Three samples have the label 1. Two were recognised, one was taken for a 0.
    """

    hints = (
        "`scores.argmax(dim=1)` gives the guess for each sample. Begin with a table of zeros and "
        "go through the samples.",
        "For each pair of label and guess, add 1 to `table[label, guess]`. `tolist()` makes "
        "numbers of a tensor; `zip` goes through both together.",
    )
    usual_mistakes = {
        "guesses in the rows": (
            _guesses_in_rows,
            "Rows and columns are exchanged. The row is the true class, the column is the guess.",
        ),
        "counted once": (
            _counted_once,
            "All your counts are 0 or 1, however often a pair occurs. `= 1` does not count, and "
            "with tensors as index `+= 1` adds once for each place: use `+= 1` in a loop.",
        ),
        "argmax over the samples": (
            _over_the_samples_of_a_class,
            "`argmax(dim=0)` says for each class which sample has most of it. The guess for a "
            "sample is the class that has most: `dim=1`.",
        ),
        "floats": (
            _float_table,
            "The counts are right, and they are floats: make the table with `dtype=tk.int64`.",
        ),
        "classes that occur": (
            _classes_that_occur,
            "Your table is too small where the last classes do not occur. The number of classes is "
            "the number of columns of `scores`.",
        ),
        "only the right ones": (
            _only_the_right_ones,
            "You count what was recognised. The samples that were taken for another class are "
            "missing: they stand beside the diagonal.",
        ),
        "the accuracy": (
            _the_accuracy,
            "This is the accuracy, one number. Asked for is the table with a row for each class "
            "and a column for each guess.",
        ),
        "the largest label": (
            _classes_of_labels,
            "Your table has as many classes as the largest label says. The number of classes is "
            "`scores.shape[1]`.",
            r"max",
        ),
        "two classes": (
            _two_classes,
            "Your table has room for two classes. Their number is `scores.shape[1]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        scores = tk.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])
        yield case(scores, tk.tensor([0, 1, 1, 1]), label="four samples, two classes")
        guesses = [1, 1, 2, 0, 2, 2, *draw.integers(4, 0, 2)]
        labels = [1, 1, 1, 2, 2, 2, *draw.integers(4, 1, 2)]
        yield case(_as_scores(guesses, 4), tk.tensor(labels), label="any ten samples")
        last = draw.integer(2, 5)
        a, b = draw.distinct(2, 0, last - 1)
        always = _as_scores([last] * 4, last + 1)
        yield case(always, tk.tensor([a, a, a, b]), label="always the same")
        classes = draw.integer(5, 8)
        b, a, c = sorted(draw.distinct(3, 0, classes - 2))
        yield case(
            _as_scores([a, b, a], classes), tk.tensor([c, c, b]), label="classes without samples"
        )
        classes = draw.integer(3, 4)
        a, b = draw.distinct(2, 0, classes - 2)
        minus = _as_scores([a, b, a, a, a], classes) - draw.integer(3, 20)
        yield case(minus, tk.tensor([a, b, a, b, a]), label="negative scores")
        label, guess = sorted(draw.distinct(2, 0, 4))
        single = _as_scores([guess], 6) + draw.integer(0, 9)
        yield case(single, tk.tensor([label]), label="a single sample (size 1)")
        no_labels = tk.zeros(0, dtype=tk.int64)
        yield case(tk.zeros(0, 3), no_labels, label="no samples (empty)", weight=0.25)
        a = draw.integer(0, 1)
        turned = _as_scores([a, 1 - a, a, 1 - a], 2) + draw.integer(0, 20)
        labels = [1 - a, 1 - a, a, 1 - a]
        yield case(tk.stack([*turned.T]).T, tk.tensor(labels), label="turned (non-contiguous)")
        a = draw.integer(0, 1)
        halves = (_as_scores([1 - a, a, a], 2) + draw.integer(0, 20)).half()
        yield case(halves, tk.tensor([1 - a, 1 - a, a]), label="half the memory (float16)")
        single = tk.tensor(draw.floats(draw.integer(2, 6), 1, 9)).unsqueeze(1)
        no_choice = tk.zeros(len(single), dtype=tk.int64)
        yield case(single, no_choice, label="a single class (size 1)")


def _as_scores(guesses: list[int], classes: int) -> tk.Tensor:
    """Scores below 1 whose largest entries are at these places."""
    largest = classes / 16
    return tk.tensor(
        [[largest if i == guess else i / 16 for i in range(classes)] for guess in guesses]
    )
