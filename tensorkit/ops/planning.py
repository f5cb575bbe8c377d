"""What is known of an operation: what ``@op`` and ``.grad`` were told."""

from collections.abc import Callable
from typing import Any

from tensorkit.autograd.rules import Rule
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
    # The array function that the forward is without options, by its name in the array library.
    ufunc: str | None = None
    direct: str  # NumPy's letters of the dtypes of which nothing is to be asked; see notation
    # What a view does to an array, given the same arguments; a copy where no view is possible.
    on_arrays: Callable[..., Any] | None = None

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
        if "direct" not in told:
            self.direct = self._direct()

    def _direct(self) -> str:
        if self.result == "bool":
            return "fdlihbB?"
        if self.result == "floating" or self.refuse is not None:
            return "fd"
        return {"numeric": "fdlihbB", "integral": "lihbB?"}.get(self.dtypes, "fdlihbB?")

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
        options = self.options if self.kind == "view" else ()
        name = node or f"{camel}Backward0"
        self.rules[number] = Rule(self.name, name, inputs, formulas, no_edge, options)

    def rule_for(self, number: str | None) -> Rule | None:
        """The rule of a call in which ``number`` ("x", "y", "reflected" or None) is a number."""
        if number == "reflected" and number not in self.rules:
            number = "x"
        rules = self.rules or self.write_rules
        return rules.get(number) or rules.get(None)
