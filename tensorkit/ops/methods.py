"""Operations as methods and operators of tensors.

A function of the files of operations whose first parameter is ``input`` is a method: ``tk.exp(x)``
is ``x.exp()``. Element by element it has a form in place, too: ``x.exp_()``.
"""

from inspect import CO_VARARGS, CO_VARKEYWORDS, unwrap
from typing import TYPE_CHECKING, Any, NoReturn

from tensorkit import dtypes, random
from tensorkit.absent import explains_options
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import DTypeError
from tensorkit.ops import (
    arithmetic,
    comparison,
    copying,
    gathering,
    indexing,
    joining,
    matmul,
    pointwise,
    reductions,
    sorting,
    views,
)


class Methods(TensorBase):
    """What tensors compute; ``tensorkit.Tensor`` adds what they are."""

    __slots__ = ()

    # NumPy leaves mixed expressions to us, and we refuse them: see refusals.refuse_array.
    __array_ufunc__ = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The methods that are added below."""

    def split(self: Any, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """Views of ``split_size`` elements along ``dim``, or of as many as a list says."""
        return views.split(self, split_size, dim)

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """``self`` where ``condition`` is true, ``other`` elsewhere."""
        return comparison.where(condition, self, other)

    def copy_(self: Any, other: Tensor, non_blocking: Any = False) -> Tensor:
        """Write the values of ``other`` here; they are broadcast and cast.

        >>> tk.zeros(2, 2).copy_(tk.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
        """
        return indexing.copy_(self, other)

    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __delitem__(self, index: Any) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")

    __matmul__ = matmul.matmul_operator
    __add__ = arithmetic.add.operator
    __radd__ = arithmetic.add.operator
    __iadd__ = arithmetic.add.inplace
    __sub__ = arithmetic.sub.operator
    __rsub__ = arithmetic.sub.reflected
    __isub__ = arithmetic.sub.inplace
    __mul__ = arithmetic.mul.operator
    __rmul__ = arithmetic.mul.operator
    __imul__ = arithmetic.mul.inplace
    __truediv__ = arithmetic.div.operator

    def __rtruediv__(self, other: Any) -> Tensor:
        # PyTorch computes number / tensor as reciprocal times number; so the last digit agrees.
        return arithmetic.mul.operator(arithmetic.reciprocal(self), other)

    __itruediv__ = arithmetic.div.inplace
    __floordiv__ = arithmetic.floor_divide.operator
    __rfloordiv__ = arithmetic.floor_divide.reflected
    __ifloordiv__ = arithmetic.floor_divide.inplace
    __mod__ = arithmetic.remainder.operator
    __rmod__ = arithmetic.remainder.reflected
    __imod__ = arithmetic.remainder.inplace

    def __pow__(self, exponent: Any, modulo: Any = None) -> Tensor:
        # Python's pow(x, y, modulo) calls this with three arguments.
        return NotImplemented if modulo is not None else arithmetic.pow.operator(self, exponent)

    __rpow__ = arithmetic.pow.reflected
    __ipow__ = arithmetic.pow.inplace
    __neg__ = arithmetic.neg
    __abs__ = arithmetic.abs

    def __pos__(self: Any) -> Tensor:
        if self.dtype is dtypes.bool_:
            raise DTypeError("The `+` operator, on a bool tensor is not supported.")
        return self

    __eq__ = comparison.eq.operator
    __ne__ = comparison.ne.operator
    __lt__ = comparison.lt.operator
    __le__ = comparison.le.operator
    __gt__ = comparison.gt.operator
    __ge__ = comparison.ge.operator
    __and__ = arithmetic.bitwise_and.operator
    __rand__ = arithmetic.bitwise_and.operator
    __iand__ = arithmetic.bitwise_and.inplace
    __or__ = arithmetic.bitwise_or.operator
    __ror__ = arithmetic.bitwise_or.operator
    __ior__ = arithmetic.bitwise_or.inplace
    __xor__ = arithmetic.bitwise_xor.operator
    __rxor__ = arithmetic.bitwise_xor.operator
    __ixor__ = arithmetic.bitwise_xor.inplace
    __invert__ = arithmetic.bitwise_not


# The same as functions, by their names in ``tk``.
FUNCTIONS: dict[str, Any] = {}
_METHODS_ONLY = (
    "absolute_ copy_ expand index_add_ masked_fill_ normal_ repeat scatter_ "
    "scatter_add_ sign_ uniform_ view"
)


def _add(name: str, function: Any, *, is_function: bool) -> None:
    """Give tensors a method, unless the class says what it is, and ``tk`` the function."""
    if name not in vars(Methods):
        setattr(Methods, name, function)
    if is_function and name not in _METHODS_ONLY.split():
        FUNCTIONS[name] = function


_HAS_VARIABLE = CO_VARARGS | CO_VARKEYWORDS  # *args or **options


def _add_methods_of(module: Any) -> None:
    for name, function in vars(module).items():
        if name[0] == "_" or not hasattr(function, "__code__"):
            continue
        definition = getattr(function, "definition", None)
        code = unwrap(function).__code__
        if (definition.inputs if definition else code.co_varnames)[:1] != ("input",):
            continue
        if function.__code__ is code and not (definition or code.co_flags & _HAS_VARIABLE):
            function = explains_options(function)
        _add(name, function, is_function=True)
        if definition and definition.has_form_in_place and definition.rules:
            _add(f"{name}_", function.inplace, is_function=definition.tensors == 1)


for _module in (
    arithmetic,
    comparison,
    copying,
    gathering,
    indexing,
    joining,
    matmul,
    pointwise,
    random,
    reductions,
    sorting,
    views,
):
    _add_methods_of(_module)
