"""Sums of products in Einstein's notation, made of permute, reshape and bmm."""

from math import prod
from typing import Any

from tensorkit.base import Tensor
from tensorkit.errors import NotSupportedError, ShapeError
from tensorkit.ops import views
from tensorkit.ops.arguments import need_tensors
from tensorkit.ops.arithmetic import mul
from tensorkit.ops.products import bmm
from tensorkit.ops.reductions import sum
from tensorkit.ops.views import movedim

Named = tuple[Tensor, str]  # an operand, and a letter for each of its dimensions


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
    inputs, output = _parsed(equation)
    if len(inputs) != len(operands):
        how = "more" if len(inputs) < len(operands) else "fewer"
        raise ShapeError(f"einsum(): {how} operands were provided than specified in the equation")
    pairs = zip(operands, inputs, strict=True)
    (x, names), *others = _of_one_size([_diagonal(*pair, at) for at, pair in enumerate(pairs)])
    for at, (y, more) in enumerate(others, 1):
        needed = output + "".join(later for _, later in others[at:])
        x, names = _product((x, names), (y, more), needed)
    x, names = _summed((x, names), output)
    return views.permute(x, tuple(names.index(name) for name in output))


def _parsed(equation: str) -> tuple[list[str], str]:
    """The letters of each operand, and those of the result."""
    left, arrow, output = str(equation).replace(" ", "").partition("->")
    inputs, letters = left.split(","), left.replace(",", "")
    if not arrow:
        output = "".join(name for name in sorted(letters) if letters.count(name) == 1)
    if not (letters + output).isalpha():
        raise NotSupportedError(
            f"einsum(): {equation!r} does not name each dimension with a letter",
            repair="tk.einsum('bij,bjk->bik', x, y), or x @ y",
        )
    for name in output:
        if name not in letters or output.count(name) > 1:
            often = "appears more than once in the output"
            never = "does not appear in the equation for any input operand"
            raise ShapeError(
                f"einsum(): output subscript {name} {often if name in letters else never}"
            )
    return inputs, output


def _diagonal(x: Tensor, names: str, at: int) -> Named:
    """The operand with each letter once."""
    if len(names) != x.dim():
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({len(names)}) does not match the "
            f"number of dimensions ({x.dim()}) for operand {at} and no ellipsis was given",
            a_shape=tuple(x.shape),
        )
    for name in sorted(names):
        first, second = names.index(name), names.rindex(name)
        if first == second:
            continue
        if x.shape[first] != x.shape[second]:
            raise ShapeError(
                f"einsum(): subscript {name} is repeated for operand {at} but the sizes don't "
                f"match, {x.shape[second]} != {x.shape[first]}"
            )
        x = movedim(views.diagonal(x, 0, first, second), -1, first)
        names = names[:second] + names[second + 1 :]
    return x, names


def _of_one_size(operands: list[Named]) -> list[Named]:
    """The operands, expanded where a letter has size 1 in one and another size in others."""
    sizes: dict[str, int] = {}
    for at, (x, names) in enumerate(operands):
        for name, size in zip(names, x.shape, strict=True):
            seen = sizes.get(name, 1)
            if size != seen and 1 not in (size, seen):
                raise ShapeError(
                    f"einsum(): subscript {name} has size {size} for operand {at} which does not "
                    f"broadcast with previously seen size {seen}"
                )
            sizes[name] = size if seen == 1 else seen
    found = [(x, tuple(sizes[name] for name in names), names) for x, names in operands]
    return [(x if x.shape == own else views.expand(x, own), names) for x, own, names in found]


def _summed(operand: Named, needed: str) -> Named:
    """The operand, summed over the letters that are not needed."""
    x, names = operand
    dims = tuple(dim for dim, name in enumerate(names) if name not in needed)
    if not dims:
        return operand
    return sum(x, dims), "".join(name for name in names if name in needed)


def _product(left: Named, right: Named, needed: str) -> Named:
    """The product of two operands, summed over the letters of both that are not needed."""
    x, of_x = _summed(left, needed + right[1])
    y, of_y = _summed(right, needed + left[1])
    size = {**dict(zip(of_x, x.shape, strict=True)), **dict(zip(of_y, y.shape, strict=True))}
    batch = [name for name in of_x if name in of_y and name in needed]
    inner = [name for name in of_x if name in of_y and name not in needed]
    rows = [name for name in of_x if name not in of_y]
    columns = [name for name in of_y if name not in of_x]

    def arranged(x: Tensor, names: str, *groups: list[str]) -> Tensor:
        """Dimensions in this order, those of each group as one."""
        order = [names.index(name) for group in groups for name in group]
        shape = [prod(size[name] for name in group) for group in groups]
        return views.reshape(views.permute(x, tuple(order)), tuple(shape))

    x = arranged(x, of_x, batch, rows, inner)
    y = arranged(y, of_y, batch, inner, columns)
    found = [*batch, *rows, *columns]
    result = bmm(x, y) if inner else mul(x, y)
    return views.reshape(result, tuple(size[name] for name in found)), "".join(found)
