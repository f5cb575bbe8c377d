"""Rules: what an operation's ``.grad(...)`` was told, a formula per input and what each needs."""

from collections.abc import Callable
from typing import Any

_SAVED_AS = {"x": "self", "y": "other", "out": "result", "shape": "self_sym_sizes"}
_SAVED_ELSEWHERE = {"pow": "exponent", "mm": "mat2", "bmm": "mat2", "mv": "vec", "dot": "tensor"}


class Rule:
    """The gradient formulas of an operation.

    A formula is written in operations: these compute on arrays when they are given arrays, so the
    same code serves a plain backward and one that is itself recorded.
    """

    def __init__(
        self,
        name: str,
        node: str,
        inputs: tuple[str, ...],
        formulas: dict[str, Callable[..., Any] | None],
        option: str | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.node = node  # its name, as PyTorch prints it: MulBackward0
        self.options = options  # of a view: what it was called with
        self.option = option  # the input that is an option to PyTorch: a number, no edge
        self.inputs = inputs
        self.formulas = tuple(formulas.get(name) for name in inputs)
        # What a formula needs beside the gradient g: the names of its other parameters.
        self.needs = tuple(() if f is None else _names(f) for f in self.formulas)
        # All that a node keeps, in the order in which formulas ask: the first that is no longer as
        # it was is reported. A view also keeps its options.
        asked = [name for needs in self.needs for name in needs]
        self.keeps = tuple(dict.fromkeys([*asked, *options]))
        self.places = tuple(tuple(map(self.keeps.index, needs)) for needs in self.needs)
        # a formula with the places of what it needs among `keeps`, for each input
        self.ways = tuple(zip(self.formulas, self.places, strict=True))
        self.kept = tuple(
            (name, tuple(at for at, needs in enumerate(self.needs) if name in needs))
            for name in self.keeps
        )
        # Which of these are freed after a backward: tensors and numbers that are inputs.
        self.frees = tuple(
            name == "out" or (name in inputs and name != option) for name in self.keeps
        )
        self.frees_all = all(self.frees)
        # Of a view of which no element appears twice: the same view of another array; see engine.
        self.part: Callable[..., Any] | None = None


def saved_as(rule: Rule, name: str) -> str:
    """PyTorch's name for a saved value: ``_saved_other`` for ``y``."""
    if name == "y" and rule.name in _SAVED_ELSEWHERE:
        return f"_saved_{_SAVED_ELSEWHERE[rule.name]}"
    return f"_saved_{_SAVED_AS.get(name, name)}"


def _names(formula: Callable[..., Any]) -> tuple[str, ...]:
    code = formula.__code__
    return tuple(code.co_varnames[1 : code.co_argcount])
