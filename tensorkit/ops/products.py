"""Products of vectors and matrices: dot, mv, mm, bmm, and matmul, which is made of them.

Each takes tensors of one dtype; nothing is promoted. Matrices may lie in memory as they like:
transposes reach BLAS as they are.
"""

from math import prod
from typing import Any, NoReturn

from tensorkit import dtypes, layout
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, ShapeError, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying
from tensorkit.ops.arguments import need_two
from tensorkit.ops.arithmetic import mul
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


def matmul(input: Any, other: Any) -> Tensor:
    """Matrix product ``input @ other``.

    Two vectors give a number, a matrix and a vector a vector. With more dimensions the last two
    are matrices and the others broadcast: input (..., n, m), other (..., m, p), out (..., n, p).
    A vector counts as a row on the left and as a column on the right.

    >>> tk.tensor([[1., 2.], [3., 4.]]) @ tk.tensor([1., 1.])
    tensor([3., 7.])
    """
    try:
        n_left, n_right = input._array.ndim, other._array.ndim
    except AttributeError:
        if state.on_arrays:
            return backend_of(input).xp.matmul(input, other)
        need_two("matmul", input, other)
    if n_left == 2 and n_right == 2:
        return mm(input, other)
    if n_left == 0 or n_right == 0:
        raise ShapeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{n_left}D and {n_right}D",
            repair="x * y",
            a_shape=tuple(input.shape),
            b_shape=tuple(other.shape),
        )
    if n_left == 1 and n_right == 1:
        return dot(input, other)
    if n_left == 2 and n_right == 1:
        return mv(input, other)
    if n_left == 1 and n_right == 2:
        return _squeeze_row(mm(unsqueeze(input, 0), other))
    if n_right <= 2 and (other._node is not None or _folds(input, other, True)):
        return _folded(input, other)
    if n_left <= 2 and (input._node is not None or _folds(other, input, False)):
        return _folded_right(input, other)
    return _batched(input, other)


def operator(self: Tensor, other: Any) -> Any:
    """``self @ other``."""
    if not isinstance(other, TensorBase):
        return NotImplemented
    return matmul(self, other)


@op()
def _squeeze_row(xp: Any, input: Any) -> Any:
    """The only row of a product, which nobody else has."""
    return input[0]


_squeeze_row.grad(node="SqueezeBackward4", input=lambda g: unsqueeze(g, 0))


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
    pairs = (
        reshape(expand(x, (*batch, n, m)), (count, n, m)),
        reshape(expand(y, (*batch, m2, p)), (count, m2, p)),
    )
    products = squeeze(bmm(*pairs), -1) if is_column else bmm(*pairs)
    return unsafe_view(products, size=(*batch, *(n,)[is_row:], *(p,)[is_column:]))


def _check_matrices(input: Tensor, mat2: Tensor) -> None:
    (n, m), (m2, p) = input.shape, mat2.shape
    if m != m2:
        refuse_sizes((n, m), (m2, p))
    if input.dtype is not mat2.dtype:
        raise DTypeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{input.dtype.whole_name} != {mat2.dtype.whole_name}",
            "Products do not promote dtypes.",
            repair=f"y.to(tk.{input.dtype.name})",
        )


@op(
    ndim={"input": 2, "mat2": 2},
    dtypes="numeric",
    kernel="addmm_impl_cpu_",
    explain=_check_matrices,
)
def mm(xp: Any, input: Any, mat2: Any) -> Any:
    """Product of two matrices: (n, m) and (m, p) give (n, p).

    >>> tk.mm(tk.tensor([[1., 2.]]), tk.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    return _product(input, mat2)


mm.grad(input=lambda g, mat2: mm(g, t(mat2)), mat2=lambda g, input: mm(t(input), g))


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


def _check_sum_of(input: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> None:
    _check_matrices(mat1, mat2)
    expand(input, (mat1.shape[0], mat2.shape[1]))  # raises where it does not fit


@op(
    ndim={"mat1": 2, "mat2": 2},
    dtypes="numeric",
    kernel="addmm_impl_cpu_",
    explain=_check_sum_of,
)
def addmm(xp: Any, input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta * input + alpha * mat1 @ mat2``; ``input`` is broadcast to the product.

    >>> tk.addmm(tk.tensor([1., 2.]), tk.eye(2), tk.ones(2, 2))
    tensor([[2., 3.],
            [2., 3.]])
    """
    return _sum_of(input, _product(mat1, mat2), beta, alpha)


addmm.grad(
    input=lambda g, beta: _scaled(g, beta),
    mat1=lambda g, mat2, alpha: _scaled(mm(g, t(mat2)), alpha),
    # made transposed, as a leaf whose transpose `linear` multiplies with takes it
    mat2=lambda g, mat1, alpha: _scaled(t(mm(t(g), mat1)), alpha),
)


def _scaled(x: Any, alpha: float) -> Any:
    return x if alpha == 1 else x * alpha


def _check_matrix_and_vector(input: Tensor, vec: Tensor) -> None:
    if input.shape[1] != vec.shape[0]:
        n, m = input.shape
        raise ShapeError(
            f"size mismatch, got input ({n}), mat ({n}x{m}), vec ({vec.shape[0]})",
            a_shape=(n, m),
            b_shape=tuple(vec.shape),
        )


@op(ndim={"input": 2, "vec": 1}, dtypes="numeric", explain=_check_matrix_and_vector)
def mv(xp: Any, input: Any, vec: Any) -> Any:
    """Product of a matrix and a vector: (n, m) and (m,) give (n,).

    >>> tk.mv(tk.tensor([[1., 2.], [3., 4.]]), tk.tensor([1., 1.]))
    tensor([3., 7.])
    """
    return _product(input, vec)


mv.grad(input=lambda g, vec: unsqueeze(g, 1) * vec, vec=lambda g, input: mv(t(input), g))


def _check_vectors(input: Tensor, tensor: Tensor) -> None:
    if input.shape != tensor.shape:
        n, m = input.shape[0], tensor.shape[0]
        raise ShapeError(
            f"inconsistent tensor size, expected tensor {sizes(input.shape)} and src "
            f"{sizes(tensor.shape)} to have the same number of elements, but got {n} and {m} "
            "elements respectively",
            a_shape=tuple(input.shape),
            b_shape=tuple(tensor.shape),
        )


@op(ndim={"input": 1, "tensor": 1}, dtypes="numeric", kernel="dot", explain=_check_vectors)
def dot(xp: Any, input: Any, tensor: Any) -> Any:
    """Product of two vectors of one length, a number.

    >>> tk.dot(tk.tensor([1., 2.]), tk.tensor([3., 4.]))
    tensor(11.)
    """
    return _product(input, tensor)


dot.grad(input=lambda g, tensor: g * tensor, tensor=lambda g, input: g * input)


def _check_batches(input: Tensor, mat2: Tensor) -> None:
    left, right = tuple(input.shape), tuple(mat2.shape)
    if left[0] != right[0] or left[2] != right[1]:
        raise ShapeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"{sizes((left[0], left[2]))} but got: {sizes(right[:2])}.",
            a_shape=left,
            b_shape=right,
        )


@op(
    ndim={"input": 3, "mat2": 3},
    dtypes="numeric",
    kernel="baddbmm_with_gemm",
    explain=_check_batches,
)
def bmm(xp: Any, input: Any, mat2: Any) -> Any:
    """Products of matrices in pairs: (b, n, m) and (b, m, p) give (b, n, p).

    >>> tk.bmm(tk.ones(5, 2, 3), tk.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    return _batch_product(xp, input, mat2)


bmm.grad(
    input=lambda g, mat2: bmm(g, transpose(mat2, 1, 2)),
    mat2=lambda g, input: bmm(transpose(input, 1, 2), g),
)


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
    if len(x) != len(y):  # NumPy would repeat one matrix
        raise ValueError("batches of different sizes")
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
