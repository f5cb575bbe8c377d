"""Operations as methods and operators of tensors: one visible line for each.

What an operation does is defined beside this file; here it only gets its name.
"""

from typing import Any, NoReturn

from tensorkit import creation, dtypes, sampling
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import DTypeError
from tensorkit.ops import (
    arithmetic,
    bitwise,
    comparison,
    copying,
    elementary,
    error_function,
    gathering,
    indexing,
    joining,
    reductions,
    selection,
    sorting,
    views,
)
from tensorkit.ops import matmul as products
from tensorkit.ops import softmax as softmax_ops
from tensorkit.ops.writing import in_place


class Methods(TensorBase):
    """What tensors compute; ``tensorkit.Tensor`` adds what they are."""

    __slots__ = ()

    # NumPy leaves mixed expressions to us, and we refuse them: see explainer.refuse_array.
    __array_ufunc__ = None

    # Views

    as_strided = views.as_strided
    select = views.select
    unsqueeze = views.unsqueeze
    expand = broadcast_to = views.expand
    view = views.view
    reshape = views.reshape
    flatten = views.flatten
    squeeze = views.squeeze
    permute = views.permute
    transpose = swapaxes = swapdims = views.transpose
    t = views.t

    ravel = views.ravel
    movedim = moveaxis = views.movedim
    diagonal = views.diagonal
    narrow = views.narrow

    def split(self: Any, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """Views of ``split_size`` elements along ``dim``, or of as many as a list says."""
        return views.split(self, split_size, dim)

    chunk = views.chunk
    unbind = views.unbind

    # The elements in another arrangement

    flip = joining.flip
    repeat = joining.repeat
    repeat_interleave = joining.repeat_interleave
    tril = joining.tril
    triu = joining.triu

    # Picking

    index_select = gathering.index_select
    gather = gathering.gather
    take_along_dim = gathering.take_along_dim
    scatter = gathering.scatter
    scatter_ = gathering.scatter_
    scatter_add = gathering.scatter_add
    scatter_add_ = gathering.scatter_add_
    index_add = gathering.index_add
    index_add_ = gathering.index_add_
    masked_fill = selection.masked_fill
    masked_select = indexing.masked_select
    masked_fill_ = selection.masked_fill_

    # Arithmetic

    add, add_ = arithmetic.add, arithmetic.add.inplace
    sub, sub_ = arithmetic.sub, arithmetic.sub.inplace
    mul, mul_ = arithmetic.mul, arithmetic.mul.inplace

    div, div_ = arithmetic.div, arithmetic.div_
    floor_divide = arithmetic.floor_divide
    floor_divide_ = arithmetic.floor_divide.inplace
    remainder, remainder_ = arithmetic.remainder, arithmetic.remainder.inplace

    pow, pow_ = arithmetic.pow, arithmetic.pow.inplace

    reciprocal, reciprocal_ = arithmetic.reciprocal, arithmetic.reciprocal.inplace
    neg, neg_ = arithmetic.neg, arithmetic.neg.inplace
    abs, abs_ = arithmetic.abs, arithmetic.abs.inplace
    sign, sign_ = arithmetic.sign, arithmetic.sign.inplace
    square = arithmetic.square

    subtract, subtract_ = sub, sub_
    multiply, multiply_ = mul, mul_
    divide, divide_ = div, div_
    absolute, absolute_ = abs, abs_

    true_divide, true_divide_ = arithmetic.true_divide, arithmetic.true_divide.inplace

    # Elementary functions

    exp, exp_ = elementary.exp, elementary.exp.inplace
    log, log_ = elementary.log, elementary.log.inplace
    sqrt, sqrt_ = elementary.sqrt, elementary.sqrt.inplace
    sin, sin_ = elementary.sin, elementary.sin.inplace
    cos, cos_ = elementary.cos, elementary.cos.inplace
    tanh, tanh_ = elementary.tanh, elementary.tanh.inplace
    sigmoid, sigmoid_ = elementary.sigmoid, elementary.sigmoid.inplace
    relu, relu_ = elementary.relu, elementary.relu.inplace
    expm1, expm1_ = elementary.expm1, elementary.expm1.inplace
    log2, log2_ = elementary.log2, elementary.log2.inplace
    log10, log10_ = elementary.log10, elementary.log10.inplace
    log1p, log1p_ = elementary.log1p, elementary.log1p.inplace
    rsqrt, rsqrt_ = elementary.rsqrt, elementary.rsqrt.inplace
    tan, tan_ = elementary.tan, elementary.tan.inplace
    asin, asin_ = elementary.asin, elementary.asin.inplace
    acos, acos_ = elementary.acos, elementary.acos.inplace
    atan, atan_ = elementary.atan, elementary.atan.inplace
    sinh, sinh_ = elementary.sinh, elementary.sinh.inplace
    cosh, cosh_ = elementary.cosh, elementary.cosh.inplace
    atan2 = elementary.atan2
    erf, erf_ = error_function.erf, error_function.erf.inplace
    floor, floor_ = elementary.floor, elementary.floor.inplace
    ceil, ceil_ = elementary.ceil, elementary.ceil.inplace
    trunc, trunc_ = elementary.trunc, elementary.trunc.inplace
    round, round_ = elementary.round, in_place(elementary.round)
    isnan, isinf = elementary.isnan, elementary.isinf
    isfinite = elementary.isfinite

    # Reductions, products, choices

    sum = reductions.sum
    mean = reductions.mean
    var = reductions.var
    std = reductions.std
    prod = reductions.prod
    cumsum = reductions.cumsum
    all, any = reductions.all, reductions.any
    norm = reductions.norm
    sort, argsort = sorting.sort, sorting.argsort
    topk = sorting.topk
    nonzero = selection.nonzero
    unique = sorting.unique
    bincount = sorting.bincount
    max, maximum = reductions.max, comparison.maximum
    min, minimum = reductions.min, comparison.minimum
    amax, argmax = reductions.amax, reductions.argmax
    amin, argmin = reductions.amin, reductions.argmin
    clamp, clamp_ = clip, clip_ = comparison.clamp, comparison.clamp_
    softmax = softmax_ops.softmax
    log_softmax = softmax_ops.log_softmax
    logsumexp = softmax_ops.logsumexp
    matmul = products.matmul
    mm = products.mm
    mv = products.mv
    dot = products.dot
    bmm = products.bmm
    outer = products.outer
    addmm = products.addmm

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """``self`` where ``condition`` is true, ``other`` elsewhere."""
        return selection.where(condition, self, other)

    __matmul__ = products.operator
    __add__ = arithmetic.add.operator
    __radd__ = arithmetic.add.operator
    __iadd__ = arithmetic.add.inplace
    __sub__ = arithmetic.sub.operator
    __rsub__ = arithmetic.sub.reflected
    __isub__ = arithmetic.sub.inplace
    __mul__ = arithmetic.mul.operator
    __rmul__ = arithmetic.mul.operator
    __imul__ = arithmetic.mul.inplace
    __truediv__ = arithmetic.true_divide.operator

    def __rtruediv__(self, other: Any) -> Tensor:
        # PyTorch computes number / tensor as reciprocal times number; so the last digit agrees.
        return arithmetic.mul.operator(arithmetic.reciprocal(self), other)

    __itruediv__ = arithmetic.true_divide.inplace
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

    # Comparison

    eq = comparison.eq
    ne = comparison.ne
    lt = comparison.lt
    le = comparison.le
    gt = comparison.gt
    ge = comparison.ge
    __eq__ = comparison.eq.operator
    __ne__ = comparison.ne.operator
    __lt__ = comparison.lt.operator
    __le__ = comparison.le.operator
    __gt__ = comparison.gt.operator
    __ge__ = comparison.ge.operator
    logical_and = comparison.logical_and
    logical_or = comparison.logical_or
    logical_xor = comparison.logical_xor
    logical_not = comparison.logical_not
    equal = comparison.equal
    isclose = comparison.isclose
    allclose = comparison.allclose

    # Logic and bits

    bitwise_and = bitwise.bitwise_and
    bitwise_or = bitwise.bitwise_or
    bitwise_xor = bitwise.bitwise_xor
    bitwise_not = bitwise.bitwise_not
    __and__ = bitwise.bitwise_and.operator
    __rand__ = bitwise.bitwise_and.operator
    __iand__ = bitwise.bitwise_and.inplace
    __or__ = bitwise.bitwise_or.operator
    __ror__ = bitwise.bitwise_or.operator
    __ior__ = bitwise.bitwise_or.inplace
    __xor__ = bitwise.bitwise_xor.operator
    __rxor__ = bitwise.bitwise_xor.operator
    __ixor__ = bitwise.bitwise_xor.inplace
    __invert__ = bitwise.bitwise_not

    # Writing

    fill_ = copying.fill_
    zero_ = copying.zero_
    uniform_ = sampling.uniform_
    normal_ = sampling.normal_
    bernoulli_ = sampling.bernoulli_
    new_empty = creation.new(creation.empty)
    new_zeros = creation.new(creation.zeros)
    new_ones = creation.new(creation.ones)
    new_full = creation.new(creation.full)
    new_tensor = creation.new(creation.tensor)

    def copy_(self: Any, other: Tensor, non_blocking: Any = False) -> Tensor:
        """Write the values of ``other`` here; they are broadcast and cast.

        >>> tk.zeros(2, 2).copy_(tk.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
        """
        return copying.copy_(self, other)

    __getitem__ = indexing.getitem

    def __setitem__(self: Any, index: Any, value: Any) -> None:
        indexing.setitem(self, index, value)

    def __delitem__(self, index: Any) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")
