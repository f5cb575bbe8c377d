"""The one-definition notation: ``@op(...)`` turns a forward function into an operation.

A definition says what an operation computes on arrays; everything else comes from here: the dtype
it computes in, broadcasting, strides, the operators, the in-place form, the error messages.

    @op(kind="binary", dtypes="numeric")
    def mul(xp, x, y):
        return xp.multiply(x, y)

``kind`` picks one of a few factories. Each returns closures around the definition: ``mul`` itself,
``mul.operator`` and ``mul.reflected`` for ``*``, and ``mul.inplace``. A closure has a fast path
for the commonest case, two tensors of one plain form, and hands everything else to
``tensorkit.ops.general``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from tensorkit import base
from tensorkit.base import boolean_form
from tensorkit.devices import CPU, quiet
from tensorkit.ops import general
from tensorkit.ops.general import Definition

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

_xp = CPU.backend.xp
_new = object.__new__


class Operation(Protocol):
    """What ``@op`` makes of a forward function."""

    definition: Definition
    operator: Callable[[Any, Any], "Tensor"]
    method: Callable[..., "Tensor"]
    reflected: Callable[[Any, Any], "Tensor"]
    inplace: Callable[..., "Tensor"]
    inplace_operator: Callable[[Any, Any], "Tensor"]

    def __call__(self, *args: Any, **options: Any) -> "Tensor":
        """Apply the operation to tensors and numbers."""


def op(
    *,
    kind: str,
    dtypes: str = "any",
    kernel: str | None = None,
    symbol: str | None = None,
    refuse: Callable[..., None] | None = None,
    result: str = "promoted",
    number_first: bool = True,
    number_is_option: bool = False,
    overloaded: bool = False,
    two_numbers: bool = False,
    exact_number: bool = False,
) -> Callable[[Callable[..., Any]], Operation]:
    """Define an operation.

    ``kind``: unary, binary, comparison or view. ``dtypes``: any, numeric (not bool) or integral
    (no floating point). ``kernel``: the name in PyTorch's "not implemented for" message.
    ``symbol``: the operator. ``refuse``: raises for dtypes that need words of their own.
    ``result``: promoted, floating (integers become the default dtype) or bool.
    ``number_first`` and ``two_numbers``: whether the function takes a Python number as its first
    argument, and numbers only. ``overloaded``: PyTorch has several signatures for it and words
    its TypeErrors differently. ``number_is_option``: with a number as second argument it is a
    unary operation, which matters for strides. ``exact_number``: in float16, a number as second
    argument is not rounded first.
    """

    def define(forward: Callable[..., Any]) -> Operation:
        definition = Definition(
            name=forward.__name__.rstrip("_"),
            forward=forward,
            dtypes=dtypes,
            kernel=kernel or forward.__name__,
            symbol=symbol,
            refuse=refuse,
            result=result,
            options=tuple(forward.__kwdefaults__ or ()),
            number_first=number_first,
            number_is_option=number_is_option,
            overloaded=overloaded,
            two_numbers=two_numbers or not overloaded,
            exact_number=exact_number,
        )
        return _FACTORIES[kind](definition)

    return define


def _dress(call: Any, definition: Definition) -> Any:
    """Give a closure the name, the documentation and the definition that it stands for."""
    call.__name__ = call.__qualname__ = definition.name
    call.__module__ = definition.forward.__module__
    call.__doc__ = definition.forward.__doc__
    call.definition = definition
    return call


def _unary(definition: Definition) -> Operation:
    forward = definition.forward
    takes_floats = definition.dtypes != "integral"

    def call(input: "Tensor") -> "Tensor":
        try:
            form = input._form
            if form.plain and takes_floats:
                array = quiet.run(forward, _xp, input._array)
                result = _new(base.public)
                result._array = array
                result._form = form
                result._storage = None
                return result
        except (AttributeError, RuntimeError):
            pass  # not a tensor, or called from inside itself: the general path tells
        return general.unary(definition, input)

    def inplace(input: "Tensor") -> "Tensor":
        return general.unary_inplace(definition, input)

    operation = _dress(call, definition)
    operation.inplace = inplace
    return operation


def _binary(definition: Definition) -> Operation:
    forward = definition.forward
    if definition.dtypes == "integral":
        return _general(definition)

    def call(input: Any, other: Any, **options: Any) -> "Tensor":
        try:
            form = input._form
            if form is other._form and form.plain and not options:
                array = quiet.run(forward, _xp, input._array, other._array)
                result = _new(base.public)
                result._array = array
                result._form = form
                result._storage = None
                return result
        except (AttributeError, RuntimeError):
            pass  # a number, or called from inside itself
        return general.binary(definition, input, other, options)

    def operator(self: "Tensor", other: Any) -> "Tensor":
        try:
            form = self._form
            if form is other._form and form.plain:
                array = quiet.run(forward, _xp, self._array, other._array)
                result = _new(base.public)
                result._array = array
                result._form = form
                result._storage = None
                return result
        except (AttributeError, RuntimeError):
            pass
        return general.operator(definition, self, other)

    return _complete(call, operator, definition)


def _comparison(definition: Definition) -> Operation:
    forward = definition.forward

    def call(input: Any, other: Any) -> "Tensor":
        try:
            form = input._form
            if form is other._form and form.plain:
                array = forward(_xp, input._array, other._array)
                return base.new(array, boolean_form(form))
        except AttributeError:
            pass
        return general.binary(definition, input, other, {})

    def operator(self: "Tensor", other: Any) -> "Tensor":
        try:
            form = self._form
            if form is other._form and form.plain:
                array = forward(_xp, self._array, other._array)
                return base.new(array, boolean_form(form))
        except AttributeError:
            pass
        return general.operator(definition, self, other)

    return _complete(call, operator, definition)


def _general(definition: Definition) -> Operation:
    """Both forms without a fast path."""

    def call(input: Any, other: Any, **options: Any) -> "Tensor":
        return general.binary(definition, input, other, options)

    def operator(self: "Tensor", other: Any) -> "Tensor":
        return general.operator(definition, self, other)

    return _complete(call, operator, definition)


def _complete(call: Any, operator: Any, definition: Definition) -> Operation:
    """Add what always takes the general path: the method, the reflected and in-place forms."""

    def method(self: "Tensor", other: Any, **options: Any) -> "Tensor":
        return general.binary(definition, self, other, options, "method")

    def reflected(self: "Tensor", other: Any) -> "Tensor":
        return general.reflected(definition, self, other)

    def inplace(self: "Tensor", other: Any, **options: Any) -> "Tensor":
        return general.binary_inplace(definition, self, other, options)

    def inplace_operator(self: "Tensor", other: Any) -> "Tensor":
        return general.inplace_operator(definition, self, other)

    operation = _dress(call, definition)
    operation.operator = operator
    operation.method = method
    operation.reflected = reflected
    operation.inplace = inplace
    operation.inplace_operator = inplace_operator
    return operation


def _view(definition: Definition) -> Operation:
    """A view operation's forward maps a layout to a layout; no element is touched."""
    locate = definition.forward

    def call(input: "Tensor", *args: Any, **options: Any) -> "Tensor":
        general.need_tensor(definition.name, input)
        return base.view_of(input, locate(base.layout_of(input), *args, **options))

    return _dress(call, definition)


_FACTORIES: dict[str, Callable[[Definition], Any]] = {
    "unary": _unary,
    "binary": _binary,
    "comparison": _comparison,
    "view": _view,
}
