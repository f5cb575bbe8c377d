"""What is known of an operation, and what was found out when it first met its operands."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorkit import base, dtypes
from tensorkit.autograd.recorders import Recorder
from tensorkit.autograd.rules import Rule
from tensorkit.base import Form, TensorBase
from tensorkit.devices import CPU, Device
from tensorkit.layout import Layout


class Definition:
    """What is known of an operation. First come the options of ``@op``, with their defaults.

    ``takes`` says what two arguments may be. "any": tensors and numbers, in any mixture;
    "tensors": no numbers. Where PyTorch has several signatures, which its TypeError then lists:
    "overloads" (any mixture), "one tensor" (at least), "tensor first"; "exponent" is as "one
    tensor", and a number is an option: as the second argument it leaves a unary operation, as the
    first one a contiguous result.

    ``rules`` holds its gradients: for tensors under None; under "x", "y" or "reflected" for calls
    in which that argument is a number, where they differ.
    """

    kind: str  # unary, binary, view or function; see tensorkit.ops.notation
    symbol: str | None = None  # the operator
    takes: str = "any"
    dtypes: str = "any"  # or numeric (not bool), integral (no floating point)
    kernel: str  # the name in PyTorch's "not implemented for" message, if not <name>_cpu
    refuse: Callable[..., None] | None = None  # raises for dtypes that need words of their own
    result: str = "promoted"  # the dtype; or floating (integers become the default dtype), bool
    exact_number: bool = False  # in float16, a number as second argument is not rounded first
    # The array function that the forward is without options: plans call it, which is quicker.
    ufunc: str | None = None
    # Gives for the forms of tensors on the CPU and options a quicker forward, which takes their
    # arrays, or None; it may raise RuntimeError for values that it leaves to the forward.
    shortcut: Callable[..., Any] | None = None
    # What a view or function does to arrays, where that is more direct than the forward.
    on_arrays: Callable[..., Any] | None = None
    method: str | None = None  # of arrays, where that is what a view does

    def __init__(self, forward: Callable[..., Any], **told: Any) -> None:
        assert told.keys() <= Definition.__annotations__.keys(), told
        self.name, self.forward = forward.__name__.strip("_"), forward
        self.kernel = f"{self.name}_cpu"
        self.__dict__.update(told)
        code = forward.__code__
        self.inputs = code.co_varnames[1 : code.co_argcount]  # without xp
        self.options = tuple(forward.__kwdefaults__ or ())
        self.window: Callable[[Layout, dict[str, Any]], Layout]  # of a view
        self.rules: dict[str | None, Rule] = {}
        self.write_rules: dict[str | None, Rule] = {}  # where only the in-place form has a gradient
        self.plans: dict[Any, Plan] = table()  # by the forms of the operands; see Plan
        self.writes: dict[Any, Plan] = table()  # the same for the in-place form

    def grad(
        self,
        *,
        node: str | None = None,
        number: str | None = None,
        option: bool = False,
        **formulas: Callable[..., Any] | None,
    ) -> None:
        """Give the gradient formulas, one per input.

        A formula's first parameter is the gradient of the result; the others name what it needs:
        inputs, options, ``out`` (the result) or ``shape`` (of the first input). It is written in
        operations and operators only, so that it runs on tensors and on arrays.

        ``node`` is PyTorch's name of the node if it is not ``<Name>Backward0``. ``number`` is
        "x", "y" or "reflected" (a number before the operator) if these formulas are for a call in
        which that argument is a number; ``option`` tells that to PyTorch the number is no input.
        Without formulas, or with None for one, the result has a node, but backward refuses to
        pass it.
        """
        camel = self.name.title().replace("_", "")
        no_edge = ("x" if number == "reflected" else number) if option else None
        inputs = self.inputs
        if self.kind == "function":  # a condition, say, has no gradient and no edge
            inputs = tuple(name for name in inputs if name in formulas)
        rule = Rule(self.name, node or f"{camel}Backward0", inputs, formulas, no_edge)
        if self.kind == "view":
            rule.keeps.update(self.options)
        self.rules[number] = rule

    def compute_for(self, device: Device, *forms: Any, **options: Any) -> Callable[..., Any]:
        """The forward for arrays of tensors with these forms, by the shortcut if it has one."""
        if self.shortcut is not None and device is CPU:
            shorter = self.shortcut(*forms, **options)
            if shorter is not None:
                return shorter
        return partial(self.forward, device.backend.xp, **options)

    def rule_for(self, number: str | None) -> Rule | None:
        """The rule of a call in which ``number`` ("x", "y", "reflected" or None) is a number."""
        if number == "reflected" and number not in self.rules:
            number = "x"
        rules = self.rules or self.write_rules
        return rules.get(number) or rules.get(None)


class Plan:
    """How an operation is computed on operands of certain forms.

    The general path finds it out once, with all checks; from then on fast paths look it up.
    ``compute`` takes the operands' arrays, and for a number among them ``number``; a write also
    takes the array to write to. ``form`` is that of the result, which ``record(result, *operands)``
    records; see ``autograd.recorders``.
    """

    __slots__ = ("compute", "form", "number", "record")

    def __init__(
        self, form: Form, compute: Callable[..., Any], number: Any, record: Recorder
    ) -> None:
        self.form = form
        self.compute = compute
        self.number = number
        self.record = record


_MOST_PLANS = 1000
_tables: list[dict[Any, Any]] = []  # all there are


def table() -> dict[Any, Any]:
    """A dictionary of plans: ``remember`` fills it, ``forget_plans`` empties it."""
    _tables.append({})
    return _tables[-1]


def forget_plans() -> None:
    """Find everything out anew: a rule by which plans were made has changed."""
    for each in _tables:
        each.clear()
    base.forget_views()


dtypes.when_default_changes.append(forget_plans)


def remember(plans: dict[Any, Any], key: Any, plan: Any) -> None:
    """Keep a plan; a table that has grown too large begins anew."""
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan


def key_of(x: Any, y: Any, options: dict[str, Any]) -> Any:
    """What plans depend on. Fast paths look for the same keys: a form, two forms, and a number.

    Numbers that are equal but not the same must differ: hence the class (1 and True), and the
    ``repr`` of zeros (0.0 and -0.0).
    """
    if isinstance(x, TensorBase) and isinstance(y, TensorBase):
        key: Any = x._form if x._form is y._form else (x._form, y._form)
    elif isinstance(x, TensorBase):
        key = (x._form, y.__class__, y or repr(y))
    elif isinstance(y, TensorBase):
        key = (x.__class__, x or repr(x), y._form)
    else:
        return None
    if options:
        key = (key, *((name, each.__class__, each or repr(each)) for name, each in options.items()))
    return key


def is_plain(value: Any) -> bool:
    """Whether an argument is what it equals: tensors and what holds them are not."""
    if value.__class__ is tuple:
        return all(each.__class__ is int for each in value)
    return value is None or value.__class__ in (int, bool, float, str)
