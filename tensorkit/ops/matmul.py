"""Products of vectors and matrices, einsum, and systems of linear equations.

Products take tensors of one dtype; nothing is promoted. Matrices may lie in memory as they like:
transposes reach BLAS as they are. ``matmul`` and ``einsum`` are made of the others.
"""

from functools import partial
from math import prod
from typing import Any, NoReturn

import numpy as np

from tensorkit import layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of
from tensorkit.dispatch import op
from tensorkit.errors import NotSupportedError, ShapeError, TensorkitError
from tensorkit.layout import Ints
from tensorkit.ops import views
from tensorkit.ops.arguments import need_tensors, need_two
from tensorkit.ops.arithmetic import mul, neg
from tensorkit.ops.pointwise import wide
from tensorkit.ops.reductions import sum
from tensorkit.thread_state import state

Named = tuple[Tensor, str]  # an operand of einsum, and a letter for each of its dimensions

# Of vectors and matrices


def _product(x: Any, y: Any) -> Any:
    """x @ y for vectors and matrices; the method calls BLAS in half of xp.matmul's time."""
    if x.__class__ is not np.ndarray:
        return backend_of(x).product(x, y)
    if x.dtype.char != "e":
        return x.dot(y)
    return wide(np, x).dot(wide(np, y)).astype(x.dtype)


def _check_sizes(input: Tensor, **others: Tensor) -> None:
    """Raise unless the rows of the first are as long as the columns of the other."""
    (other,) = others.values()
    left, right = tuple(input.shape), tuple(other.shape)
    if left[-1] != _columns(right) or (len(left) == 3 and left[0] != right[0]):
        refuse_sizes(left, right)


def _columns(shape: Ints) -> int:
    """How long the columns of the second operand are; a vector is one."""
    return shape[-2] if len(shape) > 1 else shape[0]


def refuse_sizes(left: Ints, right: Ints, of_layer: bool = False) -> NoReturn:
    """ShapeError for two operands; ``of_layer``: the second is a layer's weight, transposed."""
    m, m2, p = left[-1], _columns(right), right[-1]
    numbers = f"Rows of the first have {m} numbers, columns of the second {m2}."
    if m == m2:
        numbers = f"The first has {left[0]} matrices, the second {right[0]}."
    fitting = (*left[:-2], m, p) if len(right) > 1 else (m,)
    repair = f"x @ y    # with a y of shape {fitting}"
    if of_layer:
        repair = f"tk.nn.Linear({m}, {p})    # in, out"
    elif m == p != m2:
        repair = "x @ y.mT" if len(right) == 3 else "x @ y.t()"
    first, second = ("x".join(map(str, shape)) for shape in (left, right))
    words = f"mat1 and mat2 shapes cannot be multiplied ({first} and {second})"
    if len(left) == 1:
        words = f"inconsistent tensor size, expected tensor [{first}] and src [{second}] to have "
        words += f"the same number of elements, but got {first} and {second} elements respectively"
    elif len(right) == 1:
        words = f"size mismatch, got input ({left[0]}), mat ({first}), vec ({second})"
    elif len(left) == 3:
        words = "Expected size for first two dimensions of batch2 tensor to be: "
        words += f"{[left[0], m]} but got: {list(right[:2])}."
    raise ShapeError(words, numbers, repair=repair)


_product_of = partial(op, dtypes="numeric", check=_check_sizes)


@_product_of(ndim={"input": 2, "mat2": 2}, kernel_name="addmm_impl_cpu_")
def mm(xp: Any, input: Any, mat2: Any) -> Any:
    """Product of two matrices: (n, m) and (m, p) give (n, p).

    >>> tk.mm(tk.tensor([[1., 2.]]), tk.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    return _product(input, mat2)


mm.grad(input=lambda g, mat2: mm(g, views.t(mat2)), mat2=lambda g, input: mm(views.t(input), g))


def _check_sum_of(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    _check_sizes(mat1, mat2=mat2)
    views.expand(input, (mat1.shape[0], mat2.shape[1]))  # raises where it does not fit


@_product_of(ndim={"mat1": 2, "mat2": 2}, kernel_name="addmm_impl_cpu_", check=_check_sum_of)
def addmm(xp: Any, input: Any, mat1: Any, mat2: Any) -> Any:
    """``input + mat1 @ mat2``; ``input`` is broadcast to the product.

    >>> tk.addmm(tk.tensor([1., 2.]), tk.eye(2), tk.ones(2, 2))
    tensor([[2., 3.],
            [2., 3.]])
    """
    if mat1.dtype.char == "e":  # the sum is rounded once
        forward = addmm.definition.forward
        return forward(xp, input, wide(xp, mat1), wide(xp, mat2)).astype(mat1.dtype)
    product = _product(mat1, mat2)
    product += input
    return product


addmm.grad(
    input=lambda g: g,
    mat1=lambda g, mat2: mm(g, views.t(mat2)),
    # made transposed, as a leaf whose transpose `linear` multiplies with takes it
    mat2=lambda g, mat1: views.t(mm(views.t(g), mat1)),
)


@_product_of(ndim={"input": 2, "vec": 1})
def mv(xp: Any, input: Any, vec: Any) -> Any:
    """Product of a matrix and a vector: (n, m) and (m,) give (n,).

    >>> tk.mv(tk.tensor([[1., 2.], [3., 4.]]), tk.tensor([1., 1.]))
    tensor([3., 7.])
    """
    return _product(input, vec)


mv.grad(
    input=lambda g, vec: views.unsqueeze(g, 1) * vec, vec=lambda g, input: mv(views.t(input), g)
)


@_product_of(ndim={"input": 1, "tensor": 1}, kernel_name="dot")
def dot(xp: Any, input: Any, tensor: Any) -> Any:
    """Product of two vectors of one length, a number.

    >>> tk.dot(tk.tensor([1., 2.]), tk.tensor([3., 4.]))
    tensor(11.)
    """
    return _product(input, tensor)


dot.grad(input=lambda g, tensor: g * tensor, tensor=lambda g, input: g * input)


_of_pairs = _product_of(ndim={"input": 3, "mat2": 3}, kernel_name="baddbmm_with_gemm")


@_of_pairs
def bmm(xp: Any, input: Any, mat2: Any) -> Any:
    """Products of matrices in pairs: (b, n, m) and (b, m, p) give (b, n, p).

    >>> tk.bmm(tk.ones(5, 2, 3), tk.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    if len(input) != len(mat2):
        raise ValueError("NumPy would repeat one matrix")
    if input.__class__ is not np.ndarray:
        return backend_of(input).product(input, mat2)
    return np.matmul(wide(np, input), wide(np, mat2)).astype(input.dtype, copy=False)


# the same for `@` and einsum: an exercise may forbid `bmm`, and `x @ y` is none
_bmm = _of_pairs(bmm.definition.forward)
for _each in (bmm, _bmm):
    _each.grad(
        input=lambda g, mat2: _bmm(g, views.transpose(mat2, 1, 2)),
        mat2=lambda g, input: _bmm(views.transpose(input, 1, 2), g),
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
    return mul(views.reshape(input, (-1, 1)), vec2)


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
        )
    if n_left == 1 and n_right == 1:
        return dot(input, other)
    if n_left == 2 and n_right == 1:
        return mv(input, other)
    if n_left == 1 and n_right == 2:
        return _squeezed(mm(views.unsqueeze(input, 0), other))
    if n_right <= 2:
        return _folded(input, other)
    return _batched(input, other)


def matmul_operator(self: Tensor, other: Any) -> Any:
    """``self @ other``."""
    if not isinstance(other, TensorBase):
        return NotImplemented
    are_matrices = self._array.ndim == other._array.ndim == 2
    return mm.operator(self, other) if are_matrices else matmul(self, other)


@op()
def _squeezed(xp: Any, input: Any) -> Any:
    """The only row of a product, an array of its own."""
    return input[0]


_squeezed.grad(node="SqueezeBackward4", input=lambda g: views.unsqueeze(g, 0))


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """Many matrices times one: all rows become one tall matrix."""
    shape = tuple(x.shape)
    tall = views.reshape(x, (prod(shape[:-1]), shape[-1]))
    if len(y.shape) == 1:
        return views.unsafe_view(mv(tall, y), size=shape[:-1])
    return views.unsafe_view(mm(tall, y), size=(*shape[:-1], y.shape[-1]))


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """Matrices times matrices, one by one; a vector on the right is a column, on the left a row."""
    is_row, is_column = len(x.shape) == 1, len(y.shape) == 1
    y = views.unsqueeze(y, 1) if is_column else y
    (*left, n, m), (*right, m2, p) = (1, *x.shape) if is_row else x.shape, y.shape
    batch = layout.broadcast_shapes(tuple(left), tuple(right))
    count = prod(batch)
    pairs = (
        views.reshape(views.expand(x, (*batch, n, m)), (count, n, m)),
        views.reshape(views.expand(y, (*batch, m2, p)), (count, m2, p)),
    )
    products = views.squeeze(_bmm(*pairs), -1) if is_column else _bmm(*pairs)
    return views.unsafe_view(products, size=(*batch, *(n,)[is_row:], *(p,)[is_column:]))


# Einstein's notation


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum of products: letters name dimensions, and those missing on the right are summed.

    A letter twice in one operand means its diagonal. Without ``->`` the result has the letters
    that occur once, in alphabetical order.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.einsum("ij,jk->ik", x, x)
    tensor([[ 7., 10.],
            [15., 22.]])
    >>> tk.einsum("ii", x)
    tensor(5.)
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    need_tensors(operands, 1)
    inputs, output = _letters(equation)
    if [len(names) for names in inputs] != [x.dim() for x in operands]:
        raise ShapeError(
            f"einsum(): {equation!r} does not name each dimension of each operand",
            f"The shapes are {', '.join(str(tuple(x.shape)) for x in operands)}.",
        )
    size: dict[str, int] = {}
    for names, x in zip(inputs, operands, strict=True):
        for name, n in zip(names, x.shape, strict=True):
            if size.setdefault(name, n) != n:
                raise ShapeError(f"einsum(): {name} has size {n} in one place, {size[name]} before")
    x, names = _diagonals(operands[0], inputs[0])
    for at, (y, others) in enumerate(zip(operands[1:], inputs[1:], strict=True), 2):
        needed = output + "".join(inputs[at:])
        x, names = _contracted((x, names), _diagonals(y, others), needed)
    x, names = _summed((x, names), output)
    return views.permute(x, tuple(names.index(name) for name in output))


def _letters(equation: str) -> tuple[list[str], str]:
    """The letters of each operand, and those of the result."""
    left, arrow, output = str(equation).replace(" ", "").partition("->")
    letters = left.replace(",", "")
    if not arrow:
        output = "".join(name for name in sorted(letters) if letters.count(name) == 1)
    if not (letters + output).isalpha():
        raise NotSupportedError(
            f"einsum(): {equation!r} does not name each dimension with a letter",
            repair="tk.einsum('bij,bjk->bik', x, y), or x @ y",
        )
    if len({*output} & {*letters}) != len(output):
        raise ShapeError(f"einsum(): {output!r} does not name letters of the operands, once each")
    return left.split(","), output


def _diagonals(x: Tensor, names: str) -> Named:
    """The operand with each letter once."""
    for name in names:
        first, second = names.index(name), names.rindex(name)
        if first != second:
            x = views.movedim(views.diagonal(x, 0, first, second), -1, first)
            names = names[:second] + names[second + 1 :]
    return x, names


def _summed(operand: Named, needed: str) -> Named:
    """The operand, summed over the letters that are not needed."""
    x, names = operand
    dims = tuple(dim for dim, name in enumerate(names) if name not in needed)
    return (sum(x, dims), "".join(filter(needed.count, names))) if dims else operand


def _contracted(left: Named, right: Named, needed: str) -> Named:
    """The product of two operands, summed over the letters of both that are not needed."""
    (x, of_x), (y, of_y) = _summed(left, needed + right[1]), _summed(right, needed + left[1])
    names = "".join(filter(needed.count, dict.fromkeys(of_x + of_y)))
    return _einsum(x, y, letters=(of_x, of_y, names)), names


@op(dtypes="numeric", name="einsum")
def _einsum(xp: Any, x: Any, y: Any, *, letters: tuple[str, str, str]) -> Any:
    """The product of two operands; ``letters`` are theirs and those of the result."""
    options = {"optimize": True} if xp is np else {}  # to use BLAS; CuPy uses cuBLAS anyway
    equation = "{},{}->{}".format(*letters)
    return xp.einsum(equation, wide(xp, x), wide(xp, y), **options).astype(x.dtype, copy=False)


# the letters of an operand and those of the result are exchanged
_einsum.grad(
    x=lambda g, y, letters: _einsum(g, y, letters=(letters[2], letters[1], letters[0])),
    y=lambda g, x, letters: _einsum(x, g, letters=(letters[0], letters[2], letters[1])),
)


# Linear equations, with LAPACK


class _LinAlgError(TensorkitError, RuntimeError):
    """A matrix that has no inverse."""


LinAlgError = _LinAlgError  # PyTorch's class prints with the underscore, too


def _computed(xp: Any, function: str, A: Any, *B: Any) -> Any:
    """What LAPACK gives; LinAlgError for singular matrices: NumPy raises, CuPy gives inf or nan."""
    name, (n, m) = f"linalg.{function}", A.shape[-2:] if A.ndim > 1 else (0, 0)
    if A.ndim < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if n != m:
        first = f"{name}: A must be batches of square matrices, but they are {n} by {m} matrices"
        raise ShapeError(first, f"Its shape is {A.shape}.")
    for each in B:
        if each.shape[-2] != n:
            given = f"{n}x{n} and {each.shape[-2]}x{each.shape[-1]}"
            first = f"{name}: Incompatible shapes of A and B for the equation AX = B ({given})"
            raise ShapeError(first, repair=f"B of shape ({n},) or ({n}, k)")
    try:
        found = getattr(xp.linalg, function)(A, *B)
    except np.linalg.LinAlgError:
        found = None
    if found is None or (xp is not np and xp.isfinite(A).all() and not xp.isfinite(found).all()):
        raise LinAlgError(
            "linalg: The input matrix is singular.",
            "Some row of A is a sum of multiples of the others.",
        )
    return found


def _is_vector(A: Any, B: Any) -> bool:
    return B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1])


@op(name="linalg.solve", dtypes="floating")
def solve(xp: Any, A: Any, B: Any) -> Any:
    """The ``x`` for which ``A @ x`` is ``B``; A: (..., n, n), B: (..., n, k) or (n,).

    Raises LinAlgError if ``A`` is singular.

    >>> tk.linalg.solve(tk.tensor([[2., 0.], [0., 4.]]), tk.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    if _is_vector(A, B):
        return _computed(xp, "solve", A, B[..., None])[..., 0]
    return _computed(xp, "solve", A, B)


def _slope_of_matrix(A: Any, slope: Any, out: Any) -> Any:
    """Minus ``slope @ out.T``, with vectors as columns."""
    if _is_vector(A, out):
        slope, out = views.unsqueeze(slope, -1), views.unsqueeze(out, -1)
    return neg(matmul(slope, views.transpose(out, -2, -1)))


solve.grad(
    node="LinalgSolveExBackward0",
    A=lambda g, A, out: _slope_of_matrix(A, solve(views.transpose(A, -2, -1), g), out),
    B=lambda g, A: solve(views.transpose(A, -2, -1), g),
)


@op(name="linalg.inv", dtypes="floating")
def inv(xp: Any, A: Any) -> Any:
    """The inverse of each matrix; A: (..., n, n). Raises LinAlgError if there is none.

    >>> tk.linalg.inv(tk.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _computed(xp, "inv", A)


inv.grad(
    node="LinalgInvExBackward0",
    A=lambda g, out: neg(
        matmul(views.transpose(out, -2, -1), matmul(g, views.transpose(out, -2, -1)))
    ),
)
