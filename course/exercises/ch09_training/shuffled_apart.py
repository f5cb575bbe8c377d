"""The exercise shuffled-apart: inputs and labels in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def batches_of_pairs(
    x: tk.Tensor, y: tk.Tensor, size: int, seed: int
) -> list[tuple[tk.Tensor, tk.Tensor]]:
    """The samples in random order, `size` at a time, each with its own label."""
    generator = tk.Generator().manual_seed(seed)
    order = tk.randperm(len(x), generator=generator)
    x, y = x[order], y[order]
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def _shuffled_apart(
    x: tk.Tensor, y: tk.Tensor, size: int, seed: int
) -> list[tuple[tk.Tensor, tk.Tensor]]:
    generator = tk.Generator().manual_seed(seed)
    x = x[tk.randperm(len(x), generator=generator)]
    y = y[tk.randperm(len(y), generator=generator)]
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def _not_shuffled(x: tk.Tensor, y: tk.Tensor, size: int, seed: int) -> Any:
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def _in_order(x: tk.Tensor, y: tk.Tensor, size: int, order: tk.Tensor) -> Any:
    return _not_shuffled(x[order], y[order], size, 0)


def _whole_batches_shuffled(x: tk.Tensor, y: tk.Tensor, size: int, seed: int) -> Any:
    batches = [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
    generator = tk.Generator().manual_seed(seed)
    return [batches[i] for i in tk.randperm(len(batches), generator=generator).tolist()]


def _last_one_lost(x: tk.Tensor, y: tk.Tensor, size: int, seed: int) -> Any:
    batches = batches_of_pairs(x, y, size, seed)
    return [batch for batch in batches if len(batch[0]) == size]


def _drawn_again(x: tk.Tensor, y: tk.Tensor, size: int, seed: int) -> Any:
    order = tk.zeros(len(x), dtype=tk.int64)
    x, y = x[order], y[order]
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


@exercise(
    "shuffled-apart",
    answer=batches_of_pairs,
    stub=_shuffled_apart,
    points=4,
    difficulty=2,
    minutes=7,
)
class ShuffledApart(Exercise):
    """The network that learns nothing

    With the batches of this program the loss goes down to about 2.3, the log of 10, and no further:
    ten classes, and a guess among them. Find out what is wrong with the batches, and repair it.

    **Input:** `x` of shape `[samples, inputs]`; `y` of shape `[samples]`, the label of each row of
    `x`; `size`, how many samples are in a batch; `seed` for the random order. There is at least one
    sample.

    **Output:** a list of pairs `(inputs, labels)`. Together they hold every sample once, in random
    order, each with its own label. All batches have `size` samples; only the last one may have
    fewer. `x` and `y` themselves stay as they are.

    ```python
    x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([10, 20, 30])
    batches_of_pairs(x, y, 2, 0)
    # for example [([[3.0], [1.0]], [30, 10]), ([[2.0]], [20])]
    ```

    Any random order will do, as long as the seed decides it: the same seed gives the same batches
    again, and another seed another order. The check looks whether the pairs are still pairs.
    """

    hints = (
        "Run it on the worked case and compare each row of the inputs with its label. Is 2.0 still "
        "with 20?",
        "Each call of `tk.randperm` gives another order. Draw one, keep it under a name, and index "
        "both tensors with it.",
    )
    usual_mistakes = {
        "still apart": (
            _shuffled_apart,
            "The inputs are in one order, the labels in another, so rows have lost their labels. "
            "Draw a single order and index both `x` and `y` with it.",
        ),
        "not shuffled": (
            _not_shuffled,
            "The pairs are right, in the order in which they came. Sorted data would give batches "
            "of a single class: shuffle, both in the same way.",
        ),
        "whole batches shuffled": (
            _whole_batches_shuffled,
            "You shuffle the batches, and each still holds neighbours. Shuffle the samples first, "
            "then cut them into batches.",
        ),
        "the last one is lost": (
            _last_one_lost,
            "The last batch is missing where the samples do not divide evenly. It is smaller, and "
            "it belongs to the epoch.",
        ),
        "one sample again and again": (
            _drawn_again,
            "Samples come twice and others not at all. An epoch holds each of them once: "
            "`tk.randperm` is such an order.",
        ),
        "an order of one batch": (
            lambda x, y, size, seed: _in_order(
                x, y, size, tk.randperm(size, generator=tk.Generator().manual_seed(seed))
            ),
            "You draw an order of `size` samples, and the rest is lost. Draw one of all samples: "
            "`tk.randperm(len(x), ...)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbered(n: int, inputs: int) -> tuple[tk.Tensor, tk.Tensor]:
            return _numbered(draw.integer(2, 50), n, inputs)

        def seed() -> int:
            return draw.integer(1, 9999)

        x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([10, 20, 30])
        yield case(x, y, 2, 0, label="three samples")
        yield case(*numbered(12, 2), 4, seed(), label="batches of one size")
        yield case(*numbered(11, 3), 4, seed(), label="a smaller last batch")
        yield case(*numbered(14, 1), 1, seed(), label="one sample at a time")
        yield case(*numbered(13, 2), 20, seed(), label="everything in one batch")
        yield case(*numbered(1, 4), 3, seed(), label="a single sample (size 1)", weight=0.5)
        x, y = numbered(10, 3)
        yield case(x[:, ::2], y, 3, seed(), label="every second column (non-contiguous)")
        x, y = numbered(10, 3)
        yield case(x.half(), y, 4, seed(), label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """What holds of the batches, in whatever order they are."""
        x, y, size, seed = args
        batches = answer(*args)
        if not isinstance(batches, list | tuple):
            return batches
        batches = [batch if isinstance(batch, list | tuple) else () for batch in batches]
        is_pairs = all(len(batch) == 2 and _sizes(batch) == 1 for batch in batches)
        seen = Seen({"a list of pairs `(inputs, labels)`, one for each batch": is_pairs})
        if not is_pairs:
            return seen
        given, of_rows = x.tolist(), dict(zip(map(tuple, x.tolist()), y.tolist(), strict=True))
        rows = _rows(batches)
        labels = [label for _, batch_labels in batches for label in batch_labels.tolist()]
        seen["sizes"] = [len(inputs) for inputs, _ in batches]
        seen["every sample once"] = sorted(rows) == sorted(given)
        seen["each with its own label"] = [of_rows.get(tuple(row)) for row in rows] == labels
        if len(x) >= MANY:
            parts = [inputs.tolist() for inputs, _ in batches] if size > 1 else [rows]
            seen["neighbours separated"] = not all(_is_run(part, given) for part in parts)
            seen["the same seed gives the same order"] = rows == _rows(answer(x, y, size, seed))
            reshuffled = [_rows(answer(x, y, size, seed + more)) for more in (1, 2)]
            seen["another seed gives another order"] = rows not in reshuffled
        return seen


def _rows(batches: Any) -> list[Any]:
    """The inputs of all batches, row by row."""
    return [row for inputs, _ in batches for row in inputs.tolist()]


def _sizes(pair: Sequence[Any]) -> int:
    """How many different first sizes these tensors have; 0 if one of them has none."""
    if not all(isinstance(tensor, tk.Tensor) and tensor.ndim for tensor in pair):
        return 0
    return len({len(tensor) for tensor in pair})


MANY = 8
"""So many samples that a random order is not the given one by chance."""


def _is_run(rows: list[Any], given: list[Any]) -> bool:
    """Whether these rows stand side by side among those given, whose first follows the last."""
    start = given.index(rows[0]) if rows and rows[0] in given else 0
    return rows == (given + given)[start : start + len(rows)]


def _numbered(start: int, n: int, inputs: int) -> tuple[tk.Tensor, tk.Tensor]:
    """Samples that begin with start, start + 1, ...; the label of each is ten times that."""
    numbers = start + tk.arange(n)
    return numbers.unsqueeze(1) + 0.5 * tk.arange(inputs), 10 * numbers
