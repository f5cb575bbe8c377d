"""What is declared of an operation: the options of ``@op`` and the formulas of ``.grad``."""

from collections.abc import Callable
from functools import partial, wraps
from inspect import Signature, signature
from typing import Any

from tensorkit import direct_path
from tensorkit.absent import known_options, wrong_arguments
from tensorkit.autograd.node import Rule, add_node, quick_form
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU

# NumPy's typecodes of the dtypes of a category.
TYPECODES = {"any": "fdlihbB?e", "numeric": "fdlihbBe", "integral": "lihbB?", "floating": "fde"}
_xp = CPU.backend.xp


class Definition:
    """What is known of an operation. These are the options of ``@op``, with their defaults."""

    tensors: int  # how many of the first parameters are tensors, if not those without a default
    ndim: dict[str, int]  # how many dimensions a tensor must have
    # "any", "numeric" (no bool), "integral" (no floating point) or "floating": the category of all
    # tensors, which then share one dtype. Or a category for each parameter by name: then only
    # parameters of the same category share one dtype.
    dtypes: str | dict[str, str] = "any"
    # Element by element: shapes broadcast, dtypes that differ are promoted.
    promote: bool = False
    numbers: bool = True  # whether Python numbers may be operands
    # The result copies the operands' memory order; promote, to_floating and ufunc imply it. Other
    # results are row-major.
    elementwise: bool = False
    to_floating: bool = False  # integers are computed with in the default dtype
    # NumPy's name of the function that the forward is, options aside: the forward may have no body.
    ufunc: str | None = None
    symbol: str = ""  # the operator
    dim: tuple[str, ...] = ("dim",)  # options that name dimensions of the first tensor
    outputs: Callable[..., Any] | None = None  # of several results: a namedtuple
    view: bool = False  # the result shares the memory of the first tensor
    # Called by the layers with the arguments by name: raises if they do not fit. The direct path
    # does not call it. So where NumPy would compute something, the forward raises as well; the
    # layers then find the words.
    check: Callable[..., object] | None = None
    name: str  # how a refusal names it, if not as its forward
    kernel_name: str  # that in PyTorch's "not implemented for" message, if not <name>_cpu

    def __init__(self, forward: Callable[..., Any], **declared: Any) -> None:
        assert declared.keys() <= Definition.__annotations__.keys(), declared
        self.forward, self.name = forward, forward.__name__.strip("_")
        # the public operation; autograd.recording looks for the variable ``definition`` of its code
        self.call: Any = None
        self.kernel_name, self.ndim = f"{self.name}_cpu", {}
        parameters = list(signature(forward).parameters.values())[1:]
        self.signature = Signature(parameters)
        self.tensors = forward.__code__.co_argcount - 1 - len(forward.__defaults__ or ())
        self.__dict__.update(declared)
        names = [each.name for each in parameters]
        self.inputs, self.options = tuple(names[: self.tensors]), tuple(names[self.tensors :])
        self.defaults = {
            each.name: each.default for each in parameters if each.default is not each.empty
        }
        # the option that takes integers one by one or as a sequence: x.view(2, 3), x.view((2, 3))
        self.variadic = next((x.name for x in parameters if x.kind is x.VAR_POSITIONAL), "")
        if self.ufunc:
            self.forward = wraps(forward)(partial(self._ufunc_or, forward))
        self.kernels: dict[str, Any] = {"default": self.forward}  # by kinds of device
        # What a call asks on the direct path. Of each tensor: number of dimensions, category of its
        # dtype, and NumPy's typecodes of the dtypes that it may have.
        self.ndims: tuple[Any, ...] = tuple(self.ndim.get(name) for name in self.inputs)
        is_of_all = isinstance(self.dtypes, str)
        words: Any = dict.fromkeys(self.inputs, self.dtypes) if is_of_all else self.dtypes
        self.categories = tuple(words.get(name, "any") for name in self.inputs)
        self.typecodes = tuple(
            "fde" if self.to_floating else TYPECODES[word] for word in self.categories
        )
        # the classes of options: neither x.sum(0, 1) nor keepdim=1 means keepdim=True
        self.classes = {
            each.name: (float, int) if each.annotation is float else (each.annotation,)
            for each in parameters
            if each.annotation in (bool, int, float, str) and each.name != self.variadic
        }
        # whether every call names a dimension, by default at least: a 0-d tensor counts as of shape
        # (1,) then
        self.at_least_1d = not self.view and any(
            self.defaults.get(name, 0) is not None for name in self.dim if name in self.options
        )
        # one tensor, with the name that it has in dispatch._of_one: it may be given by name, too
        self.is_of_one = self.inputs == ("input",) and not self.variadic
        # two tensors of one dtype, or one and a number, and nothing else by position
        self.is_of_two = (
            self.tensors == 2
            and not (self.view or self.outputs or names[0] in self.defaults)
            and is_of_all
            and all(each.kind is each.KEYWORD_ONLY for each in parameters[2:])
        )
        self.contiguous = not (self.elementwise or self.promote or self.to_floating or self.ufunc)
        # whether the result may be written to the first tensor: of what takes several tensors but
        # no number, such as maximum, PyTorch has no such form
        is_plain = self.is_of_two or not self.options
        self.has_form_in_place = is_plain and self.numbers and not self.contiguous
        # The rules; the key is the name of the operand that is a Python number, None if none is.
        # Then the rule of calls without options, if it is another one: see ``grad``.
        self.rules: dict[str | None, Rule] = {}
        self.rule_without_options: Rule | None = None
        # What gives the result of a call without options its node: called with the result and the
        # tensors. The keys are the same.
        self.record_tensors: dict[str | None, Callable[..., object]] = dict.fromkeys(
            (None, *self.inputs), _record_nothing
        )

    def _ufunc_or(self, forward: Any, xp: Any, *arrays: Any, **options: Any) -> Any:
        """The array library's own function, unless options ask for more: that is the forward's."""
        if options and options != self.defaults:
            return forward(xp, *arrays, **options)
        return getattr(xp, self.ufunc or "")(*arrays)

    @property
    def compute(self) -> Callable[..., Any]:
        """What computes on arrays of the CPU."""
        return getattr(_xp, self.ufunc) if self.ufunc else partial(self.forward, _xp)

    def grad(
        self,
        *,
        node: str | None = None,
        without_options: str | None = None,
        number: str | None = None,
        **formulas: Callable[..., Any] | None,
    ) -> None:
        """Give the gradient formulas, one per tensor that has a gradient.

        A formula's first parameter is the gradient of the result; the others name what it needs:
        tensors, options, ``out`` (the result), ``shape`` (of the first tensor), other outputs. It
        is written in operations and operators only, so that it runs on tensors and on arrays.
        ``node`` is PyTorch's name of the node if it is not ``<Name>Backward0``,
        ``without_options`` that of a call without options. An operation that promotes has an edge
        for each operand, as in PyTorch: for one that is a number, it leads nowhere. ``number``
        names an operand: these formulas are for calls in which it is a number, and it has no edge.
        Without formulas the result has a node, but backward refuses to pass it.
        """
        inputs = tuple(
            name for name in self.inputs if name != number and (self.promote or name in formulas)
        )
        options = self.options if self.view else ()
        name = node or f"{self.name.title().replace('_', '')}Backward0"
        self.rules[number] = Rule(self.name, name, inputs, formulas, options)
        if without_options is not None:
            self.rule_without_options = Rule(self.name, without_options, inputs, formulas, options)
        values = {name: self.defaults.get(name) for name in self.options}
        for rule in filter(None, (self.rules[number], self.rule_without_options)):
            if not (self.view or self.outputs):  # these get their nodes in other ways
                rule.quick_form = quick_form(rule, self.inputs, values)
            function = rule.quick_form or partial(self._add_node, rule)
            names = (None, *self.inputs) if number is None else (number,)
            self.record_tensors = {**self.record_tensors, **dict.fromkeys(names, function)}

    def _add_node(self, rule: Rule, result: Tensor, *tensors: Any) -> None:
        named = zip(self.inputs, tensors)  # noqa: B905 - some may be left out
        add_node(rule, result, {**self.defaults, **dict(named), "shape": tensors[0]._array.shape})

    def record(
        self, result: Tensor, args: tuple[Any, ...], options: dict[str, Any], **outputs: Any
    ) -> None:
        """Give the result of a call with these arguments its node."""
        values = self.options_of(args, options)
        rule, tensors = self.rules.get(None), args[: self.tensors]
        if self.rule_without_options is not None and values == self.defaults:
            rule = self.rule_without_options
        if len(self.rules) > 1:
            for name, x in zip(self.inputs, args, strict=False):
                if name in self.rules and not isinstance(x, TensorBase):
                    rule = self.rules[name]
        if rule is None or (direct_path.is_open and result._array.dtype.kind != "f"):
            return
        if rule.quick_form is not None and not outputs and direct_path.is_open:
            rule.quick_form(result, *tensors, values=tuple([values[name] for name in self.options]))
        else:
            values.update(outputs)
            values.update(zip(self.inputs, tensors))  # noqa: B905 - strict= takes time
            values["shape"] = args[0]._array.shape if isinstance(args[0], TensorBase) else ()
            add_node(rule, result, values)

    def saved_by_view(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """What the node of a view of ``args[0]`` saves."""
        values = {**self.options_of(args, options), "shape": args[0]._array.shape}
        return tuple([values[name] for name in self.rules[None].saved_names])

    def options_of(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """The options of a call by name, with defaults."""
        values = {**self.defaults, **options}
        values.update(zip(self.options, args[self.tensors :]))  # noqa: B905
        if self.variadic:
            values[self.variadic] = unpacked(args[self.tensors :])
        return values

    def bind(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, with defaults; TypeError where they do not fit."""
        options = known_options(self.name, self.signature.parameters, options)
        if self.variadic in options:
            args, options = (*args, options.pop(self.variadic)), options
        try:
            bound = self.signature.bind(*args, **options)
        except TypeError as error:
            raise wrong_arguments(f"{self.name}(): {error}", self.signature.parameters) from None
        bound.apply_defaults()
        values = bound.arguments
        for name in self.options:
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
            elif isinstance(values[name], _xp.generic):
                values[name] = values[name].item()
        if self.variadic:
            if not values[self.variadic]:
                raise TypeError(f"{self.name}() missing 1 required argument: {self.variadic}")
            values[self.variadic] = unpacked(values[self.variadic])
        return values


def _record_nothing(result: Tensor, *tensors: Any) -> None:
    """For operations without a gradient."""


def unpacked(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers that are given one by one or as one sequence: permute(1, 0), permute((1, 0))."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values
