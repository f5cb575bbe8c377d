"""Products of vectors and matrices: dot, mv, mm, bmm, and matmul, which is made of them.

Each takes tensors of one dtype; nothing is promoted. Matrices may lie in memory as they like:
transposes reach BLAS as they are.
"""

from math import prod
from typing import Any, NoReturn

from tensorkit import dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError, ShapeError, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying
from tensorkit.ops.arguments import need_tensor, need_two, no_kernel
from tensorkit.ops.arithmetic import mul
from tensorkit.ops.notation import op, planned
from tensorkit.ops.views import expand, reshape, squeeze, t, transpose, unsafe_view, unsqueeze

_ndarray: Any = CPU.backend.xp.ndarray


def _product(x: Any, y: Any) -> Any:
    """Of a matrix or vector and another; the method calls BLAS in half of xp.matmul's time."""
    if x.__class__ is not _ndarray:
        return backend_of(x).product(x, y)
    if x.dtype.char in "fd":
        return x.dot(y)
    wide = _wide(x, y)
    return x.astype(wide).dot(y.astype(wide)).astype(x.dtype)


def _are_plain(x: Any, y: Any) -> bool:
    """Whether these are matrices of the CPU, of one floating-point dtype, that fit."""
    if not (isinstance(x, TensorBase) and isinstance(y, TensorBase)):
        return False
    a, b = x._array, y._array
    return (
        a.__class__ is b.__class__ is _ndarray
        and a.ndim == b.ndim == 2
        and a.dtype is b.dtype
        and a.dtype.char in "fd"
        and a.shape[1] == b.shape[0]
    )


@planned(2)
def matmul(input: Tensor, other: Tensor) -> Any:
    """Matrix product ``input @ other``.

    Two vectors give a number, a matrix and a vector a vector. With more dimensions the last two
    are matrices and the others broadcast: input (..., n, m), other (..., m, p), out (..., n, p).
    A vector counts as a row on the left and as a column on the right.

    >>> tk.tensor([[1., 2.], [3., 4.]]) @ tk.tensor([1., 1.])
    tensor([3., 7.])
    """
    if _are_plain(input, other):
        return _mm(input, other)
    need_two("matmul", input, other)
    n_left, n_right = len(input.shape), len(other.shape)
    if n_left == 2 and n_right == 2:
        return mm.__wrapped__(input, other)
    if n_left == 0 or n_right == 0:
        raise ShapeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{n_left}D and {n_right}D",
            repair="x * y",
            a_shape=tuple(input.shape),
            b_shape=tuple(other.shape),
        )
    if n_left == 1 and n_right == 1:
        return dot.__wrapped__(input, other)
    if n_left == 2 and n_right == 1:
        return mv.__wrapped__(input, other)
    if n_left == 1 and n_right == 2:
        return _squeeze_row(mm(unsqueeze(input, 0), other))
    if n_right <= 2 and (other._node is not None or _folds(input, other, True)):
        return _folded(input, other)
    if n_left <= 2 and (input._node is not None or _folds(other, input, False)):
        return _folded_right(input, other)
    return _batched(input, other)


matmul.on_arrays = lambda x, y: backend_of(x).xp.matmul(x, y)


def operator(self: Tensor, other: Any) -> Any:
    """``self @ other``."""
    if not isinstance(other, TensorBase):
        return NotImplemented
    return matmul(self, other)


@op(kind="function")
def _squeeze_row(xp: Any, x: Any) -> Any:
    """The only row of a product, which nobody else has."""
    return x[0]


_squeeze_row.grad(node="SqueezeBackward4", x=lambda g: unsqueeze(g, 0))


def _folds(many: Tensor, one: Tensor, is_left: bool) -> bool:
    """Whether all rows become one tall matrix, as PyTorch decides it (should_fold).

    It does so if it costs no copy, and for a gradient of ``one``, which is then a single product.
    """
    sizes, steps = list(many.shape), list(many._strides)
    if not is_left:
        if len(one.shape) == 2:
            return False
        sizes[-2:], steps[-2:] = sizes[:-3:-1], steps[:-3:-1]
    pairs = zip(steps[:-2], steps[1:-1], sizes[1:-1], strict=True)
    return 0 in sizes or all(step == inner * size for step, inner, size in pairs)


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """Many matrices times one: all rows become one tall matrix."""
    shape = tuple(x.shape)
    tall = reshape(x, (prod(shape[:-1]), shape[-1]))
    if len(y.shape) == 1:
        return unsafe_view(mv(tall, y), size=shape[:-1])
    return unsafe_view(mm(tall, y), size=(*shape[:-1], y.shape[-1]))


def _folded_right(x: Tensor, y: Tensor) -> Tensor:
    """One matrix, or a row, times many: transposed, it is many times one."""
    flipped = transpose(y, -2, -1)
    if len(x.shape) == 1:
        return _folded(flipped, x)
    return copying.contiguous(transpose(_folded(flipped, t(x)), -2, -1))


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """Matrices times matrices, one by one; a vector on the right is a column, on the left a row."""
    is_row, is_column = len(x.shape) == 1, len(y.shape) == 1
    y = unsqueeze(y, 1) if is_column else y
    (*left, n, m), (*right, m2, p) = (1, *x.shape) if is_row else x.shape, y.shape
    batch = layout.broadcast_shapes(tuple(left), tuple(right))
    count = prod(batch)
    pairs = _in_pairs(
        reshape(expand(x, (*batch, n, m)), (count, n, m)),
        reshape(expand(y, (*batch, m2, p)), (count, m2, p)),
    )
    products = squeeze(_bmm(*pairs), -1) if is_column else _bmm(*pairs)
    return unsafe_view(products, size=(*batch, *(n,)[is_row:], *(p,)[is_column:]))


@op(kind="function")
def _mm(xp: Any, x: Any, y: Any) -> Any:
    return _product(x, y)


@planned(2)
def mm(input: Tensor, mat2: Tensor) -> Any:
    """Product of two matrices: (n, m) and (m, p) give (n, p).

    >>> tk.mm(tk.tensor([[1., 2.]]), tk.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    if _are_plain(input, mat2):
        return _mm(input, mat2)
    need_two("mm", input, mat2, "mat2")
    left, right = input, mat2
    if len(left.shape) != 2:
        raise ShapeError("self must be a matrix", a_shape=tuple(left.shape))
    if len(right.shape) != 2:
        raise ShapeError("mat2 must be a matrix", a_shape=tuple(right.shape))
    (n, m), (m2, p) = left.shape, right.shape
    if m != m2:
        refuse_sizes((n, m), (m2, p))
    if left.dtype is not right.dtype or left.dtype is dtypes.bool_:
        _refuse_dtypes(left.dtype, right.dtype)
    return _mm, (input, mat2), {}


def refuse_sizes(left: Ints, right: Ints, of_layer: bool = False) -> NoReturn:
    """ShapeError for two matrices; ``of_layer``: the second one is a layer's weight, transposed."""
    (n, m), (m2, p) = left, right
    turned = "x @ y.t()" if m == p else None
    raise ShapeError(
        f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {m2}x{p})",
        f"Rows of the first have {m} numbers, columns of the second {m2}.",
        repair=f"tk.nn.Linear({m}, {p})    # in, out" if of_layer else turned,
        a_shape=(n, m),
        b_shape=(m2, p),
    )


mm.on_arrays = _product
_mm.grad(x=lambda g, y: mm(g, t(y)), y=lambda g, x: mm(t(x), g))


@planned(3)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta * input + alpha * mat1 @ mat2``; ``input`` is broadcast to the product.

    >>> tk.addmm(tk.tensor([1., 2.]), tk.eye(2), tk.ones(2, 2))
    tensor([[2., 3.],
            [2., 3.]])
    """
    try:
        own, left, right = input._array, mat1._array, mat2._array
        (_, m), (m2, p) = left.shape, right.shape
        fits = m == m2 and own.dtype is left.dtype is right.dtype and own.shape == (p,)
    except (AttributeError, ValueError):  # no tensor, no matrix
        fits = False
    if not fits or right.dtype == bool:
        _check_sum_of(input, mat1, mat2)
    turned = right.strides[0] == right.itemsize and not right.flags.c_contiguous
    return _addmm, (input, mat1, mat2), {"beta": beta, "alpha": alpha, "turned": turned}


def _check_sum_of(input: Any, mat1: Any, mat2: Any) -> None:
    for place, (name, value) in enumerate((("input", input), ("mat1", mat1), ("mat2", mat2)), 1):
        need_tensor("addmm", value, name, place)
        if name != "input" and len(value.shape) != 2:
            raise ShapeError(
                f"{name} must be a matrix, got {len(value.shape)}-D tensor",
                a_shape=tuple(value.shape),
            )
    left, right = mat1, mat2
    (n, m), (m2, p) = left.shape, right.shape
    if m != m2:
        refuse_sizes((n, m), (m2, p))
    for own, name in ((input, "self"), (left, "mat1")):
        if own.dtype is not right.dtype:
            raise DTypeError(
                f"{name} and mat2 must have the same dtype, but got {own.dtype.word} and "
                f"{right.dtype.word}",
                repair=f"x.to(tk.{right.dtype.name})",
            )
    if right.dtype is dtypes.bool_:
        _refuse_dtypes(left.dtype, right.dtype)
    expand(input, (n, p))  # raises where it does not fit


@op(kind="function")
def _addmm(
    xp: Any, input: Any, mat1: Any, mat2: Any, *, beta: float, alpha: float, turned: bool
) -> Any:
    return _sum_of(input, _product(mat1, mat2), beta, alpha)


def _right_slope(g: Any, mat1: Any, alpha: float, turned: bool) -> Any:
    # of a transposed matrix (`linear` has one) the gradient is made transposed, too: the leaf
    # then takes it as it lies
    slope = t(mm(t(g), mat1)) if turned else mm(t(mat1), g)
    return slope if alpha == 1 else slope * alpha


_addmm.grad(
    input=lambda g, beta: g if beta == 1 else g * beta,
    mat1=lambda g, mat2, alpha: mm(g, t(mat2)) if alpha == 1 else mm(g, t(mat2)) * alpha,
    mat2=_right_slope,
)


@planned(2)
def mv(input: Tensor, vec: Tensor) -> Any:
    """Product of a matrix and a vector: (n, m) and (m,) give (n,).

    >>> tk.mv(tk.tensor([[1., 2.], [3., 4.]]), tk.tensor([1., 1.]))
    tensor([3., 7.])
    """
    need_two("mv", input, vec, "vec")
    left, right = input, vec
    if len(left.shape) != 2 or len(right.shape) != 1:
        raise ShapeError(
            f"vector + matrix @ vector expected, got 1, {len(left.shape)}, {len(right.shape)}",
            a_shape=tuple(left.shape),
            b_shape=tuple(right.shape),
        )
    n, m = left.shape
    if right.shape[0] != m:
        raise ShapeError(
            f"size mismatch, got input ({n}), mat ({n}x{m}), vec ({right.shape[0]})",
            a_shape=(n, m),
            b_shape=tuple(right.shape),
        )
    if left.dtype is not right.dtype or left.dtype is dtypes.bool_:
        _refuse_dtypes(left.dtype, right.dtype, "addmv_impl_cpu")
    return _mv, (input, vec), {}


@op(kind="function")
def _mv(xp: Any, x: Any, y: Any) -> Any:
    return _product(x, y)


mv.on_arrays = _product
_mv.grad(x=lambda g, y: unsqueeze(g, 1) * y, y=lambda g, x: mv(t(x), g))


@planned(2)
def dot(input: Tensor, tensor: Tensor) -> Any:
    """Product of two vectors of one length, a number.

    >>> tk.dot(tk.tensor([1., 2.]), tk.tensor([3., 4.]))
    tensor(11.)
    """
    need_two("dot", input, tensor, "tensor")
    left, right = input, tensor
    if len(left.shape) != 1 or len(right.shape) != 1:
        raise ShapeError(
            f"1D tensors expected, but got {len(left.shape)}D and {len(right.shape)}D tensors",
            a_shape=tuple(left.shape),
            b_shape=tuple(right.shape),
        )
    if left.dtype is not right.dtype:
        _refuse_dtypes(left.dtype, right.dtype, "dot")
    if left.shape != right.shape:
        n, m = left.shape[0], right.shape[0]
        raise ShapeError(
            f"inconsistent tensor size, expected tensor {sizes(left.shape)} and src "
            f"{sizes(right.shape)} to have the same number of elements, but got {n} and {m} "
            "elements respectively",
            a_shape=tuple(left.shape),
            b_shape=tuple(right.shape),
        )
    if left.dtype is dtypes.bool_:
        _refuse_dtypes(left.dtype, right.dtype, "dot")
    return _dot, (input, tensor), {}


@op(kind="function")
def _dot(xp: Any, x: Any, y: Any) -> Any:
    return _product(x, y)


dot.on_arrays = _product
_dot.grad(x=lambda g, y: g * y, y=lambda g, x: g * x)


@planned(2)
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """Products of matrices in pairs: (b, n, m) and (b, m, p) give (b, n, p).

    >>> tk.bmm(tk.ones(5, 2, 3), tk.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    need_two("bmm", input, mat2, "mat2")
    return _bmm, _in_pairs(input, mat2), {}


def _in_pairs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both, if their matrices can be multiplied in pairs; ShapeError or RuntimeError if not."""
    _check_batches(x, y)
    left, right = x, y
    if left.dtype is not right.dtype or left.dtype is dtypes.bool_:
        _refuse_dtypes(left.dtype, right.dtype, "baddbmm_with_gemm")
    return x, y


def _check_batches(input: Tensor, mat2: Tensor) -> None:
    left, right = input, mat2
    for name, form in (("batch1", left), ("batch2", right)):
        if len(form.shape) != 3:
            raise ShapeError(f"{name} must be a 3D tensor", a_shape=tuple(form.shape))
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        wanted, got = (left.shape[0], left.shape[2]), tuple(right.shape[:2])
        raise ShapeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"{sizes(wanted)} but got: {sizes(got)}.",
            a_shape=tuple(left.shape),
            b_shape=tuple(right.shape),
        )


@op(kind="function")
def _bmm(xp: Any, x: Any, y: Any) -> Any:
    return _batch_product(xp, x, y)


bmm.on_arrays = lambda x, y: _batch_product(backend_of(x).xp, x, y)
_bmm.grad(x=lambda g, y: bmm(g, transpose(y, 1, 2)), y=lambda g, x: bmm(transpose(x, 1, 2), g))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every element of one vector times every element of another: (n,) and (m,) give (n, m).

    >>> tk.outer(tk.tensor([1., 2.]), tk.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    need_two("outer", input, vec2, "vec2")
    for name, x in (("self", input), ("vec2", vec2)):
        if x.dim() != 1:
            raise ShapeError(f"outer: Expected 1-D argument {name}, but got {x.dim()}-D")
    return mul(reshape(input, (-1, 1)), vec2)


def _sum_of(z: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta:  # with 0, nan and inf in z do not count
        product += z if beta == 1 else z * z.dtype.type(beta)
    return product


def _batch_product(xp: Any, x: Any, y: Any) -> Any:
    if x.__class__ is not _ndarray:
        return backend_of(x).product(x, y)
    if x.dtype.char in "fd":
        return xp.matmul(x, y)
    wide = _wide(x, y)
    return xp.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _wide(x: Any, y: Any) -> Any:
    """The dtype to multiply in: NumPy has fast products of float32 and float64 only.

    Products of integers are exact in float64 as long as no sum reaches 2**53.
    """
    if x.dtype == dtypes.float16.numpy:  # PyTorch adds in float32, too
        return dtypes.float32.numpy
    if x.size * y.size > 4096:
        largest = [max(-int(each.min()), int(each.max()), 1) for each in (x, y)]
        if prod(largest) * x.shape[-1] < 2**53:
            return dtypes.float64.numpy
    return x.dtype


def _refuse_dtypes(left: DType, right: DType, kernel: str = "addmm_impl_cpu_") -> NoReturn:
    """Raise for different dtypes, and for bool, which has no product."""
    if left is not right:
        raise DTypeError(
            _DIFFERENT[kernel].format(left, right),
            "Products do not promote dtypes.",
            repair=f"y.to(tk.{left.name})",
        )
    raise no_kernel(kernel, left, "x.float()")


_DIFFERENT = {
    "addmm_impl_cpu_": "expected m1 and m2 to have the same dtype, but got: "
    "{0.whole_name} != {1.whole_name}",
    "addmv_impl_cpu": "addmv input tensors must have the same dtype, but got "
    "{1.word}, {0.word}, and {1.word}",
    "baddbmm_with_gemm": "expected scalar type {0.word} but found {1.word}",
    "dot": "dot : expected both vectors to have same dtype, but found {0.word} and {1.word}",
}
