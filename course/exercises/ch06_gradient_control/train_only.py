"""The exercise train-only: freeze all parameters but a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def train_only(parameters: dict[str, tk.Tensor], names: list[str]) -> list[str]:
    """Freeze all but the named parameters; the names of those that can be trained."""
    for name, p in parameters.items():
        p.requires_grad_(name in names)
    return [name for name, p in parameters.items() if p.requires_grad]


def _others_frozen_only(parameters: Any, names: Any) -> Any:
    for name, p in parameters.items():
        if name not in names:
            p.requires_grad_(False)
    return [name for name, p in parameters.items() if p.requires_grad]


def _named_only(parameters: Any, names: Any) -> Any:
    for name in names:
        if name in parameters:
            parameters[name].requires_grad_(True)
    return [name for name, p in parameters.items() if p.requires_grad]


def _frozen_and_compared(parameters: Any, names: Any) -> Any:
    _others_frozen_only(parameters, names)
    return _compared(parameters, names)


def _thawed_and_compared(parameters: Any, names: Any) -> Any:
    _named_only(parameters, names)
    return _compared(parameters, names)


def _detached_copies(parameters: Any, names: Any) -> Any:
    for name in list(parameters):
        if name not in names:
            parameters[name] = parameters[name].detach()
    return [name for name, p in parameters.items() if p.requires_grad]


def _the_named_frozen(parameters: Any, names: Any) -> Any:
    for name, p in parameters.items():
        p.requires_grad_(name not in names)
    return [name for name, p in parameters.items() if p.requires_grad]


def _compared(parameters: Any, names: Any) -> Any:
    return [name for name in parameters if name in names]


def _in_the_order_asked(parameters: Any, names: Any) -> Any:
    train_only(parameters, names)
    return names


def _in_the_order_of_names(parameters: Any, names: Any) -> Any:
    train_only(parameters, names)
    return [name for name in names if name in parameters]


@exercise("train-only", answer=train_only, points=0, difficulty=2, minutes=6, further=True)
class TrainOnly(Exercise):
    """Freeze all but a few

    To train only the last layer of a network, freeze the rest: a parameter that does not require
    grad gets no gradient, and the graph does not even reach it.

    **Input:** `parameters`, a dictionary from names to leaves, some of which require grad; `names`,
    the names of those that should be trained, possibly none.

    **Output:** the names of all parameters that require grad afterwards, in the order of the
    dictionary. The parameters themselves are changed: those in `names` require grad, all others do
    not. Names that are not in the dictionary are ignored.

    ```python
    model = {"first": tk.ones(2, requires_grad=True), "last": tk.ones(2)}
    train_only(model, ["last"])
    # ["last"]
    ```
    """

    changes_arguments = True
    hints = (
        "`requires_grad_` takes True or False. Go through the whole dictionary, not only through "
        "`names`.",
        "`p.requires_grad_(name in names)` does both at once.",
    )
    usual_mistakes = {
        "only frozen": (
            _others_frozen_only,
            "You freeze the others, and a named one that was frozen before stays frozen. Set both "
            "ways.",
        ),
        "only thawed": (
            _named_only,
            "You let the named ones be trained, and the others are not frozen. Go through all of "
            "them.",
        ),
        "only frozen, the names as asked": (
            _frozen_and_compared,
            "The names are right, and one that was frozen before stays frozen. Set both ways: "
            "`p.requires_grad_(name in names)`.",
        ),
        "only thawed, the names as asked": (
            _thawed_and_compared,
            "The names are right, and the others still require grad in the model. "
            "`requires_grad_(False)` freezes a tensor itself.",
        ),
        "detached": (
            _detached_copies,
            "The names are right, and the model's own tensors still require grad: `detach` gives "
            "other tensors. `requires_grad_(False)` freezes the tensor itself.",
        ),
        "the wrong ones": (
            _the_named_frozen,
            "You froze those that should be trained, and the other way round. Turn it: True for "
            "those in `names`, False for all others.",
        ),
        "nothing set": (
            _compared,
            "The names are right, and no parameter has changed: set it with "
            "`p.requires_grad_(...)`.",
        ),
        "the names as they came": (
            _in_the_order_asked,
            "You return the names as they were given. Asked for are those that require grad now, "
            "in the order of the dictionary.",
        ),
        "in the order of names": (
            _in_the_order_of_names,
            "The names are in the order in which they were asked for. Go through the dictionary: "
            "its order counts.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def names(n: int) -> list[str]:
            return [chr(number) for number in sorted(draw.distinct(n, ord("a"), ord("z")))]

        yield case({"first": True, "last": False}, ["last"], label="the other one")
        a, b, c = names(3)
        yield case({a: True, b: True, c: False}, [c, a], label="two of three")
        yield case(
            {"a": False, "b": True, "c": True}, [], label="freeze everything, no names (empty)"
        )
        a, b, d = names(3)
        yield case({a: False, b: False}, [b, a, d], label="all, and one too many")
        start = draw.integer(0, 40)
        layers = {f"layer{start + i}": i % 2 == 0 for i in range(4)}
        wanted = f"layer{start + 2 * draw.integer(0, 1) + 1}"
        yield case(layers, [wanted], label="any layer")
        n = draw.integer(1, 9)
        layers = {f"layer{n}0": True, f"layer{n}": False, f"layer{n}1": True, "bias": False}
        yield case(layers, ["bias", f"layer{n}"], label="names that begin alike")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and which of the model's own tensors require grad."""
        asked, names = args
        model = {name: tk.ones(2, requires_grad=asks) for name, asks in asked.items()}
        returned = answer(dict(model), list(names))
        return {
            "returned": returned,
            "require grad": [name for name, p in model.items() if p.requires_grad],
        }
