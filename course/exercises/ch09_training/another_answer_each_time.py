"""The exercise another-answer-each-time: a network with dropout, when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


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


def _not_loaded(state: dict[str, tk.Tensor], x: tk.Tensor) -> Any:
    inputs, outputs = state["0.weight"].shape[1], state["3.weight"].shape[0]
    layers = tk.nn.Linear(inputs, 8), tk.nn.ReLU(), tk.nn.Linear(8, outputs)
    with tk.no_grad():
        return tk.nn.Sequential(*layers)(x)


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
    call, and without a history. `state` and `x` stay as they are.

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
        "not loaded": (
            _not_loaded,
            "Each call makes a new network with random parameters. `model.load_state_dict(state)` "
            "puts the saved ones there.",
            r"^(?!(?s:.*)load_state_dict)(?s:.*)Linear\(",
        ),
        "only no_grad": (
            _only_no_grad,
            "Two calls still give two answers, so something is random: dropout, to which `no_grad` "
            "says nothing. Call `model.eval()` before the model is used.",
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
        # two drop the same active units of a single sample once in 64 times
        first, *later = (answer(*args) for _ in range(4))
        if not all(isinstance(result, tk.Tensor) for result in (first, *later)):
            return first
        is_same = all(tk.equal(first, result) for result in later)
        seen = {"the same at each call": is_same, "requires grad": first.requires_grad}
        return Seen({**seen, "scores": first.detach().clone() if is_same else None})


def _state(seed: int, inputs: int, outputs: int) -> dict[str, tk.Tensor]:
    """A network of whose hidden units the first six are active on positive inputs."""
    generator = tk.Generator().manual_seed(seed)
    signs = tk.tensor([1.0] * 6 + [-1.0] * 2)
    return {
        "0.weight": (tk.rand(8, inputs, generator=generator) + 0.5) * signs.unsqueeze(1),
        "0.bias": tk.rand(8, generator=generator) * signs,
        "3.weight": tk.randn(outputs, 8, generator=generator),
        "3.bias": tk.randn(outputs, generator=generator),
    }
