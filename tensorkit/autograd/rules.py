"""Rules: what an operation's ``.grad(...)`` was told, a formula per input and what each needs.

A formula is written in operations on tensors. Backward runs the same code on arrays: a copy of the
function in whose globals the names of operations mean their array forms.
"""

import builtins
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tensorkit import kernels
from tensorkit.devices import backend_of

# The commonest needs of a formula; each is one object in all rules, so that ``is`` compares.
X: tuple[str, ...] = ("x",)
Y: tuple[str, ...] = ("y",)
XY: tuple[str, ...] = ("x", "y")

_SAVED_AS = {"x": "self", "y": "other", "out": "result", "shape": "self_sym_sizes"}
_SAVED_ELSEWHERE = {"pow": "exponent", "mm": "mat2", "bmm": "mat2", "mv": "vec", "dot": "tensor"}


class Rule:
    """The gradient formulas of an operation, on tensors and on arrays."""

    def __init__(
        self,
        name: str,
        node: str,
        inputs: tuple[str, ...],
        formulas: dict[str, Callable[..., Any] | None],
        option: str | None = None,
    ) -> None:
        self.name = name
        self.node = node  # its name, as PyTorch prints it: MulBackward0
        self.option = option  # the input that is an option to PyTorch: a number, no edge
        self.inputs = inputs
        self.formulas = tuple(formulas.get(name) for name in inputs)
        # What a formula needs beside the gradient g: the names of its other parameters.
        self.needs = tuple(() if f is None else _names(f) for f in self.formulas)
        self.needs = tuple({X: X, Y: Y, XY: XY}.get(names, names) for names in self.needs)
        self.keeps = {name for needs in self.needs for name in needs}
        self.reads_window = False  # a view of which no element appears twice; for the engine
        self.commutes = name == "mul"  # both formulas are the same, of the other input
        self.is_pair = inputs == ("x", "y") and self.keeps <= {"x", "y"} and all(self.formulas)
        self._on_arrays: tuple[Any, ...] | None = None
        # for a product of which broadcasting repeated an operand: its gradient, added up at once
        self.summed: Callable[..., Any] | None = None
        self._kept: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def on_arrays(self) -> tuple[Any, ...]:
        """The formulas for a plain backward: the same code, with operations on arrays."""
        if self._on_arrays is None:
            self._on_arrays = tuple(f and on_arrays(f) for f in self.formulas)
        return self._on_arrays

    @property
    def kept(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The names in ``keeps``, each with the places of the inputs whose formulas need it.

        In the order in which formulas ask: the first that is no longer as it was is reported.
        """
        if len(self._kept) != len(self.keeps):  # a view's rule also keeps its options
            asked = dict.fromkeys(name for needs in self.needs for name in needs)
            self._kept = tuple(
                (name, tuple(at for at, needs in enumerate(self.needs) if name in needs))
                for name in [*asked, *sorted(self.keeps - asked.keys())]
            )
        return self._kept


def saved_as(rule: Rule, name: str) -> str:
    """PyTorch's name for a saved value: ``_saved_other`` for ``y``."""
    if name == "y" and rule.name in _SAVED_ELSEWHERE:
        return f"_saved_{_SAVED_ELSEWHERE[rule.name]}"
    return f"_saved_{_SAVED_AS.get(name, name)}"


def _names(formula: Callable[..., Any]) -> tuple[str, ...]:
    code = formula.__code__
    return tuple(code.co_varnames[1 : code.co_argcount])


_converted: dict[Any, Any] = {}


def on_arrays(function: Any) -> Any:
    """``function`` running on arrays: the same code, in which the names of operations mean their
    array forms. Functions that it calls are converted too; everything else stays."""
    found = _converted.get(function)
    if found is None:
        scope: dict[str, Any] = {"__builtins__": builtins}
        found = _converted[function] = FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__
        )
        found.__kwdefaults__ = function.__kwdefaults__
        for name in _globals_of(function.__code__):
            if name in function.__globals__:
                scope[name] = _array_form(function.__globals__[name])
        if hasattr(function, "launch"):
            found = _converted[function] = _or_launched(function.launch, found)
    return found


def _or_launched(launch: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A formula that is a kernel on arrays which kernels are for; see ``kernels.formula``."""

    def run(g: Any, *saved: Any) -> Any:
        if g.__class__ is np.ndarray:
            return plain(g, *saved)
        xp = backend_of(g).xp
        arrays = [each for each in saved if hasattr(each, "dtype")]
        return launch(xp, g, *saved) if kernels.are_for(xp, g, *arrays) else plain(g, *saved)

    return run


def _globals_of(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*(_globals_of(const) for const in inner))


def _array_form(value: Any) -> Any:
    if hasattr(value, "on_arrays"):
        return value.on_arrays
    if isinstance(value, FunctionType) and value.__module__.startswith("tensorkit.ops."):
        return on_arrays(value)
    return value
