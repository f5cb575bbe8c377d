"""The exercises of chapter 09, Training, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.varied import Value, Varied


def trained_line(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    """Slope and height of a line after some steps of gradient descent from 0."""
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        prediction = model(x).flatten()
        loss = ((prediction - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return tk.tensor([model.weight.item(), model.bias.item()])


@no_type_check
def _line_program(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        prediction = ...  # what the model says for x, in the shape of y
        loss = ...  # the mean of the squared differences
        ...  # the three lines that turn a loss into a step
    return tk.tensor([model.weight.item(), model.bias.item()])


def _a_line(
    x: tk.Tensor, y: tk.Tensor, steps: int, lr: float, step: Callable[[Any, Any, Any], None]
) -> tk.Tensor:
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        step(optimizer, model(x), y)
    return tk.tensor([model.weight.item(), model.bias.item()])


def _every_pair(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        loss = ((prediction - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _line_never_cleared(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        ((prediction.flatten() - y) ** 2).mean().backward()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _line_stays(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        ((prediction.flatten() - y) ** 2).mean().backward()
        optimizer.zero_grad()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _one_step_late(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        optimizer.step()
        optimizer.zero_grad()
        ((prediction.flatten() - y) ** 2).mean().backward()

    return _a_line(x, y, steps, lr, step)


def _the_sum(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        loss = ((prediction.flatten() - y) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


@exercise(
    "trained-line",
    answer=trained_line,
    stub=_line_program,
    kind="complete",
    points=5,
    difficulty=3,
    minutes=10,
)
class TrainedLine(Exercise):
    """The loop

    The model and the optimizer are there; the loop is not. Fill its gaps.

    **Input:** `x` of shape `[samples, 1]` and `y` of shape `[samples]`, both float32, with at least
    one sample; `steps`, how many steps to take; `lr`, the learning rate.

    **Output:** slope and height of the line after these steps, in a tensor of shape `[2]`. The line
    begins at 0, and each step goes against the gradient of the mean squared error.

    ```python
    trained_line(tk.tensor([[2.0]]), tk.tensor([1.0]), 1, 0.25)
    # tensor([1.0000, 0.5000]): the gradients are 2 · (0 - 1) · 2 = -4 and -2
    ```

    Look at the shapes of `model(x)` and `y` before you subtract.
    """

    hints = (
        "`model(x)` has the shape `[samples, 1]`, `y` has `[samples]`. What would broadcasting "
        "make of their difference? `flatten()` brings the first into the shape of the second.",
        "A step is: clear the gradients, compute new ones, move. The optimizer does the first and "
        "the last, the loss the one between.",
        "`optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`.",
    )
    usual_mistakes = {
        "every pair": (
            _every_pair,
            "You subtract `[samples]` from `[samples, 1]`, and broadcasting compares every "
            "prediction with every target. Bring the prediction into the shape of `y` first: "
            "`model(x).flatten()`.",
        ),
        "never cleared": (
            _line_never_cleared,
            "The gradients of earlier steps are still there and are added. "
            "`optimizer.zero_grad()` clears them, before `backward` in every step.",
        ),
        "the line stays": (
            _line_stays,
            "The line stays at 0: the optimizer makes no step, or finds no gradient. First "
            "`zero_grad()`, then `backward()`, then `step()`, in every round.",
        ),
        "one step late": (
            _one_step_late,
            "You are one step behind: the optimizer moves before there is a gradient, and the last "
            "gradient is never used. First `backward`, then `step()`.",
        ),
        "the sum": (
            _the_sum,
            "You take the sum of the squares, so your steps are longer the more samples there are. "
            "Take their mean.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def rising(n: int) -> tk.Tensor:
            return tk.tensor([float(number) for number in sorted(draw.distinct(n, 1, 20))])

        yield case(
            tk.tensor([[2.0]]),
            tk.tensor([1.0]),
            1,
            0.25,
            label="one point, one step (size 1)",
            weight=0.5,
        )
        x = tk.tensor([[1.0], [2.0], [3.0]])
        yield case(x, rising(3), 1, 0.1, label="three points, one step")
        yield case(x, rising(3), 3, 0.1, label="three points, three steps")
        slope, height = draw.floats(2, 2, 6)
        x = tk.tensor([[-1.0], [0.5], [1.0], [1.5]])
        yield case(x, slope * x.flatten() - height, 6, 0.125, label="any line, six steps")
        beside = rising(4) * tk.tensor([1.0, -1.0, 1.0, 1.0])
        yield case(x, beside, 15, 0.25, label="points beside a line")
        yield case(
            tk.tensor([[0.5]]),
            tk.tensor([draw.number(2, 9)]),
            2,
            0.5,
            label="one point, two steps",
            weight=0.5,
        )
        apart = tk.tensor([[1.0, 9.0], [0.0, 9.0], [-2.0, 9.0]])
        y = tk.stack([rising(3), tk.full((3,), 9.0)], dim=1)[:, 0]
        yield case(apart[:, :1], y, 4, 0.25, label="apart in memory (non-contiguous)")


@exercise("how-many-parameters", points=2, difficulty=2, minutes=5)
class HowManyParameters(Prediction):
    """Predict: parameters and shapes

    Write a whole number, or a shape as a list, before you run anything. `net` is the network that
    reads the digits further below.

    One is done for you:

    ```python
    net = tk.nn.Sequential(tk.nn.Linear(64, 32), tk.nn.ReLU(), tk.nn.Linear(32, 10))
    sum(p.numel() for p in tk.nn.Linear(3, 2).parameters())  # 8: 2 · 3 weights, 2 biases
    ```
    """

    name = "parameters"
    ask = "Replace each ... by a whole number, or by a shape such as [2, 3]."
    questions = {
        "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": (
            "One weight for each pair of input and output, and one bias for each output."
        ),
        "sum(p.numel() for p in tk.nn.Linear(64, 10, bias=False).parameters())": (
            "Without biases only the weights are left."
        ),
        "list(tk.nn.Linear(64, 10).weight.shape)": "Outputs first: a row of weights each.",
        "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": (
            "The last dimension becomes the outputs; whatever stands before it stays."
        ),
        "list(tk.nn.Linear(64, 10)(tk.zeros(5, 32, 64)).shape)": (
            "The last dimension becomes the outputs; whatever stands before it stays."
        ),
        "sum(p.numel() for p in tk.nn.ReLU().parameters())": "ReLU has nothing to learn.",
        "len(list(net.parameters()))": "A weight and a bias for each linear layer.",
        "sum(p.numel() for p in net.parameters())": (
            "Count both linear layers by the rule above, and add."
        ),
    }
    varied = (Varied(("64",), 20, 99, ("tk.nn.Linear(64, 10",)),)
    hints = (
        "A linear layer from `n` inputs to `m` outputs has `n * m` weights and `m` biases.",
        "Its weight has the shape `[m, n]`. It changes only the last dimension of its input, from "
        "`n` to `m`.",
    )
    usual_mistakes = {
        "no biases": (
            {
                "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": Value("64 * 10"),
                "len(list(net.parameters()))": 2,
                "sum(p.numel() for p in net.parameters())": 2368,
            },
            "You left out the biases. Unless it is told `bias=False`, a linear layer has one for "
            "each output.",
        ),
        "a bias for each input": (
            {
                "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": Value("64 * 10 + 64"),
                "sum(p.numel() for p in net.parameters())": 2464,
            },
            "You counted a bias for each input. A bias is added to the result, so there is one for "
            "each output.",
        ),
        "inputs first": (
            {
                "list(tk.nn.Linear(64, 10).weight.shape)": [64, 10],
                "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": [10, 32],
            },
            "You took inputs for rows. The weight has one row for each output, and the batch stays "
            "the first dimension of the result.",
        ),
        "the batch in front is lost": (
            {
                "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": [10],
                "list(tk.nn.Linear(64, 10)(tk.zeros(5, 32, 64)).shape)": [5, 10],
            },
            "A layer answers for every sample: all dimensions but the last stay.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        net = tk.nn.Sequential(tk.nn.Linear(64, 32), tk.nn.ReLU(), tk.nn.Linear(32, 10))
        return eval(expression, {"tk": tk, "net": net})


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
    fewer.

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
        found = answer(*args)
        if not isinstance(found, list | tuple):
            return found
        batches = [batch if isinstance(batch, list | tuple) else () for batch in found]
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
            seen["another seed gives another order"] = rows != _rows(answer(x, y, size, seed + 1))
        return seen


def _rows(batches: Any) -> list[Any]:
    """The inputs of all batches, row by row."""
    return [row for inputs, _ in batches for row in inputs.tolist()]


def _sizes(pair: Sequence[Any]) -> int:
    """How many different first sizes these tensors have; 0 if one of them has none."""
    if not all(isinstance(each, tk.Tensor) and each.ndim for each in pair):
        return 0
    return len({len(each) for each in pair})


MANY = 8
"""So many samples that a random order is not the given one by chance."""


def _is_run(rows: list[Any], given: list[Any]) -> bool:
    """Whether these rows stand side by side among those that were given."""
    start = given.index(rows[0]) if rows and rows[0] in given else 0
    return rows == given[start : start + len(rows)]


def _numbered(start: int, n: int, inputs: int) -> tuple[tk.Tensor, tk.Tensor]:
    """Samples that begin with start, start + 1, ...; the label of each is ten times that."""
    numbers = start + tk.arange(n)
    return numbers.unsqueeze(1) + 0.5 * tk.arange(inputs), 10 * numbers


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
    right classes, an int64 tensor of shape `[samples]`. There is at least one sample.

    **Output:** the mean over the samples of

    $$-\\log \\frac{e^{s_y}}{\\sum_k e^{s_k}} = \\log \\sum_k e^{s_k} - s_y$$

    where $s$ are the scores of the sample and $y$ is its label: a 0-d tensor with the dtype of
    `logits`.

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
        def some(n: int, low: int, high: int) -> list[float]:
            return [float(number) for number in draw.integers(n, low, high)]

        yield case(tk.tensor([[2.0, 1.0, 0.0]]), tk.tensor([0]), label="one sample")
        n = draw.integer(2, 5)
        alike = tk.full((n, n), draw.number(1, 9))
        yield case(alike, tk.tensor(draw.integers(n, 0, n - 1)), label="all scores alike")
        scores = [draw.floats(4, -3, 3) for _ in range(5)]
        scores[0][1] = 4.0  # whatever is drawn, it matters which dimension is summed
        labels = [0, 3, *draw.integers(3, 0, 3)]
        yield case(tk.tensor(scores), tk.tensor(labels), label="any scores")
        large = tk.tensor([[draw.integer(50, 200) * 10.0, 0.0], [*some(1, 2, 5), *some(1, 1, 3)]])
        yield case(large, tk.tensor([1, 0]), label="a large score")
        # in float64, so that no right formula loses digits that the comparison looks at
        top, lower, last = some(1, 1000, 2000)[0], some(1, 200, 600)[0], some(1, 800, 1500)[0]
        near = [-top, -top - 1, -top - 2]
        low = tk.tensor([near, [-top - lower, -top - lower, -top - lower - last]]).double()
        yield case(low, tk.tensor([0, 2]), label="very low scores, float64")
        top, lower, last = some(1, 1800, 2500)[0], some(1, 800, 1500)[0], some(1, 800, 1500)[0]
        apart = tk.tensor([[top, top - last], [-lower, -lower - 1], [0.0, 1.0]]).double()
        yield case(apart, tk.tensor([1, 0, 0]), label="rows far apart, float64")
        wide = tk.tensor([draw.floats(3, -2, 2) for _ in range(2)], dtype=tk.float64)
        wide[1] -= 5000
        yield case(wide, tk.tensor([2, 1]), label="one row far below, float64")
        own, other = some(2, 1, 4), some(2, -3, 0)
        turned = tk.tensor([[own[0], other[0]], [other[1], own[1]], some(2, 0, 3)]).T
        yield case(turned, tk.tensor([0, 1]), label="turned (non-contiguous)")
        single = tk.tensor(draw.floats(2, 1, 9)).unsqueeze(1)
        yield case(single, tk.tensor([0, 0]), label="a single class (size 1)")
        n = draw.integer(3, 9)
        half = tk.zeros(2, n, dtype=tk.float16)
        of_half = tk.tensor(draw.integers(2, 0, n - 1))
        yield case(half, of_half, label="all scores alike, half the memory (float16)")

    def advice(self, *args: Any) -> str | None:
        logits, _ = args
        if logits.abs().max().item() > 100:
            return "Print what your `exp` gives: what becomes of it for scores like these?"
        return None


def momentum_step(
    parameters: list[tk.Tensor],
    gradients: list[tk.Tensor | None],
    velocities: list[tk.Tensor],
    lr: float,
    momentum: float,
) -> None:
    """Renew each velocity, then move each parameter by minus `lr` times it."""
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += g
                p -= lr * v


def _no_memory(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v = momentum * v + g
                p -= lr * v


def _old_velocity(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                p -= lr * v
                v *= momentum
                v += g


def _running_mean(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += (1 - momentum) * g
                p -= lr * v


def _rate_in_the_velocity(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += lr * g
                p -= v


def _without_momentum(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p -= lr * g


def _velocity_of_none(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            v *= momentum
            if g is not None:
                v += g
            p -= lr * v


def _into_the_gradient(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                g += momentum * v
                v.copy_(g)
                p -= lr * v


def _momentum_recorded(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    for p, g, v in zip(parameters, gradients, velocities, strict=True):
        if g is not None:
            v *= momentum
            v += g
            p -= lr * v


@exercise("momentum-step", answer=momentum_step, points=0, difficulty=3, minutes=9, further=True)
class MomentumStep(Exercise):
    """A step with momentum

    What `optim.SGD(..., momentum=0.9)` does in its `step()`. Each parameter has a velocity, a
    tensor of its shape.

    **Input:** `parameters`, a list of leaves that require grad, of any shape and dtype;
    `gradients`, as many tensors, or None where there is no gradient; `velocities`, as many tensors;
    `lr` and `momentum`, two numbers.

    **Output:** nothing. For each parameter $p$ with gradient $g$ and velocity $v$, *in place*:

    $$v \\leftarrow \\text{momentum} \\cdot v + g, \\qquad p \\leftarrow p - \\text{lr} \\cdot v$$

    Where the gradient is None, parameter and velocity stay as they are. The gradients stay as they
    are everywhere.

    ```python
    p, v = tk.tensor([1.0], requires_grad=True), tk.tensor([10.0])
    momentum_step([p], [tk.tensor([1.0])], [v], 0.1, 0.5)
    # v is tensor([6.]), 0.5 · 10 + 1
    # p is tensor([0.4000], requires_grad=True), 1 - 0.1 · 6
    ```

    Your function runs inside tensorkit's own optimizer below.
    """

    changes_arguments = True
    hints = (
        "`v = momentum * v + g` makes a new tensor and forgets it. The velocity has to be "
        "remembered until the next step: write into it.",
        "`v *= momentum`, then `v += g`, then `p -= lr * v`, all inside `with tk.no_grad():`.",
    )
    usual_mistakes = {
        "no memory": (
            _no_memory,
            "The parameters are right, and the velocities have not changed: at the next step they "
            "will be missing. Write into `v` with `*=` and `+=`.",
        ),
        "the old velocity": (
            _old_velocity,
            "You move with the velocity of the last step and renew it afterwards. Renew it first.",
        ),
        "a running mean": (
            _running_mean,
            "You weigh the gradient with `1 - momentum`. That is a running mean, as in Adam; here "
            "the gradient is added as it is.",
        ),
        "the rate in the velocity": (
            _rate_in_the_velocity,
            "You multiply by `lr` while you renew the velocity. It comes in only when the "
            "parameter moves, so that a new rate takes effect at once.",
        ),
        "without momentum": (
            _without_momentum,
            "This is the step without momentum. Renew the velocity, and move by it in place of "
            "the gradient.",
        ),
        "moves without a gradient": (
            _velocity_of_none,
            "Where the gradient is None you still move. Skip that parameter altogether.",
        ),
        "written into the gradient": (
            _into_the_gradient,
            "You write into the gradient, which belongs to the caller. Write into the velocity.",
        ),
        "recorded": (
            _momentum_recorded,
            "A leaf that requires grad cannot be written to while operations are recorded: put "
            "the update into `with tk.no_grad():`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        one, ten = tk.tensor([1.0]), tk.tensor([10.0])
        yield case([one], [one.clone()], [ten], 0.1, 0.5, label="one parameter")
        yield case(
            [some(3), some(2).unsqueeze(0)],
            [some(3), some(2).unsqueeze(0)],
            [some(3), some(2).unsqueeze(0)],
            0.5,
            0.5,
            label="two parameters",
        )
        yield case([some(1)[0]], [some(1)[0]], [tk.tensor(0.0)], 0.5, 0.9, label="at rest")
        yield case(
            [some(1), some(1)],
            [None, some(1)],
            [some(1), some(1)],
            0.25,
            0.5,
            label="one without a gradient",
        )
        yield case(
            [some(2).unsqueeze(0).double(), some(1).double()],
            [some(2).unsqueeze(0).double(), None],
            [some(2).unsqueeze(0).double(), some(1).double()],
            2.0,
            0.75,
            label="float64, one without a gradient",
        )
        up, down = draw.integers(2, 1, 9)
        half = tk.tensor([up, -down], dtype=tk.float16)
        yield case([half], [4 * half], [2 * half], 0.25, 0.5, label="half the memory (float16)")
        wide, quick = some(6).reshape(2, 3), some(6).reshape(2, 3)
        yield case(
            [wide.T, tk.zeros(0, 3)],
            [2 * wide.T, tk.zeros(0, 3)],
            [quick.T, tk.zeros(0, 3)],
            0.5,
            0.25,
            label="one turned, one without elements (empty)",
        )

    def run(self, answer: Any, *args: Any) -> Any:
        """What has become of parameters and velocities."""
        values, gradients, velocities, lr, momentum = args
        parameters = [value.clone().requires_grad_() for value in values]
        listed, kept = list(parameters), list(velocities)
        answer(listed, gradients, velocities, lr, momentum)
        return {
            "parameters": [parameter.detach().clone() for parameter in parameters],
            "velocities": [velocity.detach().clone() for velocity in kept],
            "gradients": gradients,
            "still leaves": all(
                parameter.is_leaf and parameter.requires_grad for parameter in listed
            ),
        }


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

    **Output:** the mean cross entropy over all samples of all batches, a Python float.

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
            "The value is right, in a tensor that keeps every graph alive. Take the number out: "
            "`.item()`.",
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
    the number of samples of class `i` for which class `j` has the largest score.

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
            "`table[labels, guesses] += 1` reads, adds and writes once for each place, however "
            "often it is named: all your counts are 0 or 1. Count in a loop.",
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
        one = _as_scores([guess], 6) + draw.integer(0, 9)
        yield case(one, tk.tensor([label]), label="a single sample (size 1)")
        no_labels = tk.zeros(0, dtype=tk.int64)
        yield case(tk.zeros(0, 3), no_labels, label="no samples (empty)", weight=0.25)
        a = draw.integer(0, 1)
        turned = _as_scores([a, 1 - a, a, 1 - a], 2) + draw.integer(0, 20)
        labels = [1 - a, 1 - a, a, 1 - a]
        yield case(tk.stack([*turned.T]).T, tk.tensor(labels), label="turned (non-contiguous)")
        a = draw.integer(0, 1)
        half = (_as_scores([1 - a, a, a], 2) + draw.integer(0, 20)).half()
        yield case(half, tk.tensor([1 - a, 1 - a, a]), label="half the memory (float16)")
        single = tk.tensor(draw.floats(draw.integer(2, 6), 1, 9)).unsqueeze(1)
        no_choice = tk.zeros(len(single), dtype=tk.int64)
        yield case(single, no_choice, label="a single class (size 1)")


def _as_scores(guesses: list[int], classes: int) -> tk.Tensor:
    """Scores whose largest entries are at these places."""
    return tk.tensor(
        [[2.5 if i == guess else 0.25 * i for i in range(classes)] for guess in guesses]
    )


def scores_of(state: dict[str, tk.Tensor], x: tk.Tensor) -> tk.Tensor:
    """What a saved network says about `x`."""
    inputs, outputs = state["0.weight"].shape[1], state["3.weight"].shape[0]
    model = tk.nn.Sequential(
        tk.nn.Linear(inputs, 8),
        tk.nn.ReLU(),
        tk.nn.Dropout(0.5),
        tk.nn.Linear(8, outputs),
    )
    model.load_state_dict(state)
    model.eval()
    with tk.no_grad():
        return model(x)


@no_type_check
def _as_in_training(state: dict[str, tk.Tensor], x: tk.Tensor) -> tk.Tensor:
    inputs, outputs = state["0.weight"].shape[1], state["3.weight"].shape[0]
    model = tk.nn.Sequential(
        tk.nn.Linear(inputs, 8),
        tk.nn.ReLU(),
        tk.nn.Dropout(0.5),
        tk.nn.Linear(8, outputs),
    )
    model.load_state_dict(state)
    return model(x)


def _used(state: dict[str, tk.Tensor], x: tk.Tensor, last: str) -> Any:
    inputs, outputs = state["0.weight"].shape[1], state["3.weight"].shape[0]
    model = tk.nn.Sequential(
        tk.nn.Linear(inputs, 8),
        tk.nn.ReLU(),
        tk.nn.Dropout(0.5),
        tk.nn.Linear(8, outputs),
    )
    model.load_state_dict(state)
    if last == "no_grad":
        with tk.no_grad():
            return model(x)
    model.eval()
    if last == "eval":
        return model(x)
    with tk.no_grad():
        return model(x).softmax(dim=-1)


def _only_no_grad(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    return _used(state, x, "no_grad")


def _only_eval(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    return _used(state, x, "eval")


def _as_shares(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    return _used(state, x, "softmax")


def _with_a_seed(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    tk.manual_seed(0)
    return _used(state, x, "no_grad")


def _without_dropout(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    inputs, outputs = state["0.weight"].shape[1], state["3.weight"].shape[0]
    layers = tk.nn.Linear(inputs, 8), tk.nn.ReLU(), tk.nn.Linear(8, outputs)
    tk.nn.Sequential(*layers).load_state_dict(state)


@exercise(
    "another-answer-each-time",
    answer=scores_of,
    stub=_as_in_training,
    points=0,
    difficulty=2,
    minutes=6,
    further=True,
)
class AnotherAnswerEachTime(Exercise):
    """Another answer each time

    This program loads a trained network and uses it. For the same photo it gives a different
    answer each time, and each answer keeps its graph. Repair both.

    **Input:** `state`, the saved state of a network with 8 hidden units: a dictionary from the
    names of its parameters to tensors; `x`, a float tensor of shape `[samples, inputs]`, each at
    least 1.

    **Output:** the scores of the network for `x`, of shape `[samples, classes]`: the same at each
    call, and without a history.

    ```python
    a, b = scores_of(state, x), scores_of(state, x)
    tk.equal(a, b), a.requires_grad
    # (True, False)
    ```
    """

    hints = (
        "Which layer of this network draws random numbers? A new model is in training mode.",
        "`model.eval()` switches the layers; `with tk.no_grad():` stops the recording. Neither "
        "does the other's work.",
    )
    usual_mistakes = {
        "only no_grad": (
            _only_no_grad,
            "Two calls still give two answers, so something is random: dropout, because `no_grad` "
            "says nothing to the layers. Call `model.eval()`, after the state is loaded.",
            r"^(?!(?s:.*)\.eval\(\)(?s:.*)model\(x\))",
        ),
        "only eval": (
            _only_eval,
            "The scores are right, and they still have a history: `eval` says nothing to autograd. "
            "Compute them inside `with tk.no_grad():`.",
        ),
        "as shares": (
            _as_shares,
            "You return probabilities, whose sum is 1. Return the scores as the network gives "
            "them, without a softmax.",
        ),
        "a seed": (
            _with_a_seed,
            "The answer is the same each time, and half of the hidden units are still dropped: a "
            "seed only repeats the draw. `model.eval()` switches dropout off.",
            r"manual_seed",
        ),
        "without the dropout layer": (
            _without_dropout,
            "Without the dropout layer the last layer is number 2, and the state calls it 3. "
            "Leave the layers as they are; `model.eval()` switches dropout off.",
            r"^(?!(?s:.*)Dropout\()",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def saved(inputs: int, outputs: int) -> dict[str, tk.Tensor]:
            return _state(draw.integer(1, 9999), inputs, outputs)

        def rows(n: int, inputs: int) -> tk.Tensor:
            return tk.tensor([draw.floats(inputs, 0.1, 2) for _ in range(n)])

        yield case(saved(4, 3), rows(1, 4), label="one sample")
        yield case(saved(4, 3), rows(5, 4), label="any five samples")
        yield case(saved(1, 2), rows(2, 1), label="a single input (size 1)")
        yield case(saved(3, 1), rows(1, 3), label="a single class (size 1)")
        yield case(saved(2, 4), tk.zeros(0, 2), label="no samples (empty)", weight=0.25)
        yield case(saved(3, 2), rows(3, 2).T, label="turned (non-contiguous)")

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        return f"{self.name}(state, {show(args[1])})"

    def run(self, answer: Any, *args: Any) -> Any:
        """The scores, if four calls agree, and whether they have a history."""
        # two drop the same units of a single sample once in 256 times
        one, *others = (answer(*args) for _ in range(4))
        if not all(isinstance(other, tk.Tensor) for other in (one, *others)):
            return one
        is_same = all(tk.equal(one, other) for other in others)
        seen = {"the same at each call": is_same, "requires grad": one.requires_grad}
        return Seen({**seen, "scores": one.detach().clone() if is_same else None})


def _state(seed: int, inputs: int, outputs: int) -> dict[str, tk.Tensor]:
    """A network whose hidden units are all active on positive inputs."""
    generator = tk.Generator().manual_seed(seed)
    return {
        "0.weight": tk.rand(8, inputs, generator=generator) + 0.5,
        "0.bias": tk.rand(8, generator=generator),
        "3.weight": tk.randn(outputs, 8, generator=generator),
        "3.bias": tk.randn(outputs, generator=generator),
    }
