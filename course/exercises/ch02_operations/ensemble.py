"""The exercise ensemble: the average of several models."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def ensemble(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    """The average of several models, and the class that it gives each sample."""
    stacked = tk.stack(predictions)
    average = stacked.mean(dim=0)
    winners = average.argmax(dim=1)
    return average, winners


def _ensemble_program(predictions: list[tk.Tensor]) -> Any:
    stacked = ...  # one tensor of shape [models, samples, classes]
    average = ...  # the mean over the models: [samples, classes]
    winners = ...  # for each sample the class with the largest average: [samples]
    return average, winners


def _joined(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.cat(predictions).mean(dim=0)
    return average, average.argmax()


def _mean_over_samples(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=1)
    return average, average.argmax(dim=1)


def _mean_of_everything(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    stacked = tk.stack(predictions)
    return stacked.mean(), stacked.mean(dim=0).argmax(dim=1)


def _winners_over_samples(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.argmax(dim=0)


def _one_winner(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.argmax()


def _values_of_the_winners(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.amax(dim=1)


def _the_sum(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    total = tk.stack(predictions).sum(dim=0)
    return total, total.argmax(dim=1)


def _winners_of_the_stack(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    stacked = tk.stack(predictions)
    return stacked.mean(dim=0), stacked.argmax(dim=0)


def _half_and_half(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = predictions[0]
    for table in predictions[1:]:
        average = (average + table) / 2
    return average, average.argmax(dim=1)


def _a_vote(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    stacked = tk.stack(predictions)
    votes = stacked.argmax(dim=2).T
    winners = [row.bincount().argmax().item() for row in votes]
    return stacked.mean(dim=0), tk.tensor(winners, dtype=tk.int64)


def _values_and_places(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, Any]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.max(dim=1)


@exercise(
    "ensemble",
    answer=ensemble,
    stub=_ensemble_program,
    kind="complete",
    points=4,
    difficulty=3,
    minutes=8,
)
class Ensemble(Exercise):
    """The average of several models

    Three models look at the same samples. Each gives a table: a row for each sample, a probability
    for each class. Their average is usually better than any of them. Fill the three gaps.

    **Input:** `predictions`, a list of at least one float tensor, all of shape `[samples, classes]`
    and of the same dtype, with at least one sample.

    **Output:** two tensors: the average table, `[samples, classes]`, and for each sample the number
    of the class with the largest average, `[samples]`. The predictions stay as they are.

    ```python
    one = tk.tensor([[0.9, 0.1], [0.4, 0.6]])
    two = tk.tensor([[0.5, 0.5], [0.0, 1.0]])
    ensemble([one, two])
    # (tensor([[0.7000, 0.3000],
    #          [0.2000, 0.8000]]), tensor([0, 1]))
    ```
    """

    hints = (
        "Which of `cat` and `stack` makes a new dimension, one entry for each model?",
        "After `stack` the models are dimension 0. That is the one which the mean makes disappear.",
        "In `average`, dimension 1 holds the classes: `argmax(dim=1)` leaves one number for each "
        "sample.",
    )
    usual_mistakes = {
        "joined": (
            _joined,
            "Your average is over models and samples at once. `stack` gives the models a "
            "dimension of their own: the mean goes over that one alone.",
        ),
        "mean over the samples": (
            _mean_over_samples,
            "You averaged over dimension 1 of the stack, the samples. The models are dimension 0.",
        ),
        "mean of everything": (
            _mean_of_everything,
            "Your average is a single number: without `dim` everything is averaged. Name the "
            "dimension of the models.",
        ),
        "winners over the samples": (
            _winners_over_samples,
            "`argmax(dim=0)` makes the samples disappear: it says for each class which sample is "
            "best. You want the class of each sample, so the classes must go.",
        ),
        "one winner": (
            _one_winner,
            "`argmax()` without `dim` gives one position in the whole table. Name the dimension of "
            "the classes to get one for each sample.",
        ),
        "winners of the stack": (
            _winners_of_the_stack,
            "`argmax(dim=0)` of the stack gives a model for each entry. The winner is a class: ask "
            "`average`, along its classes.",
            r"argmax",
        ),
        "a vote": (
            _a_vote,
            "Your winner is the class that most models choose, however sure each of them is. The "
            "winner is the class with the largest average: ask `average`.",
        ),
        "half and half": (
            _half_and_half,
            "In your loop each model counts as much as all before it together. Add them all up, "
            "then divide by their number.",
        ),
        "values and places": (
            _values_and_places,
            "`max(dim=1)` answers twice: the largest averages and where they stand. You want the "
            "places alone: `argmax(dim=1)`.",
        ),
        "the largest value": (
            _values_of_the_winners,
            "You gave the largest average itself. `argmax` says at which class it stands.",
        ),
        "the sum": (
            _the_sum,
            "You added the tables and did not divide by the number of models: take the mean.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            [tk.tensor([[0.9, 0.1], [0.4, 0.6]]), tk.tensor([[0.5, 0.5], [0.0, 1.0]])],
            label="two models, two samples",
        )
        yield case(_tables(draw, 3, 4, 3), label="three models, any numbers")
        yield case(_tables(draw, 3, 2, 5), label="five classes")
        yield case(_tables(draw, 3, 4, 4), label="as many samples as classes")
        yield case(_tables(draw, 2, 1, 3), label="a single sample (size 1)")
        yield case(_tables(draw, 1, 3, 4), label="a single model (size 1)")
        halves = [table.half() for table in _tables(draw, 2, 3, 3)]
        yield case(halves, label="half the memory (float16)")
        wide = [tk.stack([table, -table], dim=2).flatten(1) for table in _tables(draw, 2, 4, 3)]
        yield case([table[:, ::2] for table in wide], label="every second column (non-contiguous)")
        yield case([tk.zeros(0, 3), tk.zeros(0, 3)], label="no samples (empty)")
        yield case([table.double() for table in _tables(draw, 4, 3, 2)], label="float64")

    def advice(self, *args: Any) -> str | None:
        (predictions,) = args
        shape = list(predictions[0].shape)
        return (
            f"Print the shapes on the way: the stack is {[len(predictions), *shape]}, the average "
            f"{shape}, the winners {shape[:1]}."
        )


def _tables(draw: Draw, models: int, samples: int, classes: int) -> list[tk.Tensor]:
    """Tables in which the average gives some sample another class than its first or last model.

    Where there are several samples, the product and the largest number do so for some sample, too,
    and so does the class that most of several models choose.
    The winners are never the samples that are best in each class.
    """
    while True:
        tables = [[draw.floats(classes, 0, 1) for _ in range(samples)] for _ in range(models)]
        votes = [list(zip(*rows, strict=True)) for rows in zip(*tables, strict=True)]
        sums = [sorted(map(sum, of_sample)) for of_sample in votes]
        if any(row[-1] < row[-2] + 0.02 * models for row in sums):
            continue  # another rounding would give another class
        wrong = [_winners(list(zip(*votes, strict=True)), sum)]  # the samples for each class
        if models > 1:
            wrong += [_winners(votes, operator.itemgetter(end)) for end in (0, -1)]
        if models > 1 and samples > 1:
            wrong += [_winners(votes, math.prod), _winners(votes, max)]
        chosen = [[row.index(max(row)) for row in rows] for rows in zip(*tables, strict=True)]
        pairs = zip(_winners(votes, sum), map(statistics.multimode, chosen), strict=True)
        is_outvoted = models == 1 or any(winner not in most for winner, most in pairs)
        if is_outvoted and _winners(votes, sum) not in wrong:
            return [tk.tensor(table) for table in tables]


def _winners(votes: Sequence[Sequence[tuple[float, ...]]], together: Any) -> list[int]:
    """For each sample the class whose numbers, one from each model, give most together."""
    numbers = [list(map(together, of_sample)) for of_sample in votes]
    return [row.index(max(row)) for row in numbers]
