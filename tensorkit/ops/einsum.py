"""Sums of products in Einstein's notation, made of permute, reshape and bmm.

Every operand gets one dimension for each subscript, in one order: those of the result first, then
those that are summed. Pairs are then multiplied from the left. The steps, and so the nodes, are
PyTorch's (aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair).
"""

import string
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

from tensorkit import base, layout
from tensorkit.autograd.history import requires_grad
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import ShapeError
from tensorkit.ops import reduction, views
from tensorkit.ops.arguments import need_tensors
from tensorkit.ops.arithmetic import mul
from tensorkit.ops.products import bmm
from tensorkit.ops.views import movedim

_DOTS = "..."
_Named = tuple[list[str], Tensor]  # an operand and the names of its dimensions


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products: letters name dimensions, and those missing on the right are summed.

    A letter twice in one operand means its diagonal; ``...`` stands for any dimensions, which
    broadcast. Without ``->`` the result has the letters that occur once, in alphabetical order.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.einsum("ij,jk->ik", x, x)
    tensor([[ 7., 10.],
            [15., 22.]])
    >>> tk.einsum("ii", x)
    tensor(5.)
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)) and isinstance(equation, str):
        operands = tuple(operands[0])
    if isinstance(equation, TensorBase) and operands:
        equation, operands = _spelled((equation, *operands))
    if not isinstance(equation, str) or not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    need_tensors(operands, 1)
    inputs, output = _parsed(equation)
    if len(inputs) != len(operands):
        how = "more" if len(inputs) < len(operands) else "fewer"
        raise ShapeError(f"einsum(): {how} operands were provided than specified in the equation")
    pairs = zip(inputs, operands, strict=True)
    named = [_named(names, x, place) for place, (names, x) in enumerate(pairs)]
    n_dots = max((sum(name[0] == "." for name in names) for names, _ in named), default=0)
    out, order = _order(named, output, n_dots)
    found: dict[str, int] = {}
    aligned = [_aligned(names, x, order, place, found) for place, (names, x) in enumerate(named)]
    if any(0 in x.shape for x in aligned):
        shape = tuple(found.get(name, 1) for name in out)
        result = base.new(aligned[0]._xp.zeros(shape, aligned[0]._array.dtype))
        for x in aligned:
            if requires_grad(x):  # so does the result
                result = result + reduction.sum(views.flatten(x)[:0])
        return result
    return _contracted(aligned, len(out), len(order))


def _spelled(parts: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""

    def letter(dim: Any) -> str:
        if dim is not Ellipsis and not 0 <= dim < len(_LETTERS):
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
        return _DOTS if dim is Ellipsis else _LETTERS[dim]

    def word(dims: Any) -> str:
        return "".join(map(letter, dims))

    words = [word(dims) for dims in parts[1::2]]
    result = f"->{word(parts[-1])}" if len(parts) % 2 else ""
    return ",".join(words) + result, parts[: 2 * len(words) : 2]


_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@lru_cache(100)
def _parsed(equation: str) -> tuple[list[list[str]], list[str] | None]:
    """The names of each operand's dimensions, and of the result's unless they are implied."""
    left, arrow, right = equation.partition("->")
    inputs: list[list[str]] = [[]]
    for _, name in _letters(left, 0):
        if name == ",":
            inputs.append([])
        else:
            _add(inputs[-1], name)
    if not arrow:
        return inputs, None
    output: list[str] = []
    known = {name for names in inputs for name in names} | {_DOTS}
    for place, name in _letters(right, len(left) + 2):
        if name == ",":
            _refuse_character(place)
        if name in output and name != _DOTS:
            raise ShapeError(
                f"einsum(): output subscript {name} appears more than once in the output"
            )
        if name not in known:
            raise ShapeError(
                f"einsum(): output subscript {name} does not appear in the equation for any "
                "input operand"
            )
        _add(output, name)
    return inputs, output


def _letters(text: str, start: int) -> Iterator[tuple[int, str]]:
    place = 0
    while place < len(text):
        name = text[place]
        if name == ".":
            name = text[place : place + 3]
            if name != _DOTS:
                raise ShapeError("einsum(): found '.' that is not part of any ellipsis")
        elif name != " " and name != "," and not (name.isascii() and name.isalpha()):
            _refuse_character(start + place)
        if name != " ":
            yield start + place, name
        place += len(name)


def _refuse_character(place: int) -> None:
    raise ShapeError(
        f"einsum(): invalid subscript given at index {place} in the equation string, subscripts "
        "must be in [a-zA-Z]"
    )


def _add(names: list[str], name: str) -> None:
    if name == _DOTS and _DOTS in names:
        raise ShapeError("einsum(): found a second ellipsis")
    names.append(name)


def _named(names: list[str], x: Tensor, place: int) -> _Named:
    """One name for each dimension: those under ``...`` are ".1" for the last, ".2" before it."""
    n_dims, n_letters = x.dim(), len(names) - (_DOTS in names)
    if n_letters > n_dims or (_DOTS not in names and n_letters != n_dims):
        is_more = _DOTS in names
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({n_letters}) "
            f"{'is more than' if is_more else 'does not match'} the number of dimensions "
            f"({n_dims}) for operand {place}{'' if is_more else ' and no ellipsis was given'}",
            a_shape=tuple(x.shape),
        )
    dots = [f".{number}" for number in range(n_dims - n_letters, 0, -1)]
    full: list[str] = []
    for name in names:
        full += dots if name == _DOTS else [name]
    return full, x


def _order(
    named: list[_Named], output: list[str] | None, n_dots: int
) -> tuple[list[str], list[str]]:
    """The names of the result's dimensions, and these followed by the summed ones."""
    dots = [f".{number}" for number in range(n_dots, 0, -1)]
    every = [name for names, _ in named for name in names if name[0] != "."]
    letters = sorted(set(every))  # capitals first, as in PyTorch
    if output is None:
        out = dots + [name for name in letters if every.count(name) == 1]
    else:
        out = []
        for name in output:
            out += dots if name == _DOTS else [name]
    hidden = [name for name in dots if name not in out]
    return out, out + hidden + [name for name in letters if name not in out]


def _aligned(
    names: list[str], x: Tensor, order: list[str], place: int, found: dict[str, int]
) -> Tensor:
    """The operand with one dimension for each name of ``order``; ``found`` collects their sizes."""
    names = list(names)
    for name in dict.fromkeys(names):
        while names.count(name) > 1:  # twice the same name: its diagonal
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(
                    f"einsum(): subscript {name} is repeated for operand {place} but the sizes "
                    f"don't match, {x.shape[second]} != {x.shape[first]}"
                )
            x = movedim(views.diagonal(x, 0, first, second), -1, first)
            del names[second]
    for name, size in zip(names, x.shape, strict=True):
        seen = found.get(name, 1)
        if size != seen and 1 not in (size, seen):
            raise ShapeError(
                f"einsum(): subscript {name} has size {size} for operand {place} which does not "
                f"broadcast with previously seen size {seen}"
            )
        found[name] = size if seen == 1 else seen
    missing = [name for name in order if name not in names]
    for _ in missing:
        x = views.unsqueeze(x, -1)
    names += missing
    return views.permute(x, tuple(names.index(name) for name in order))


def _contracted(operands: list[Tensor], n_out: int, n_dims: int) -> Tensor:
    """The product of all operands, summed over the dimensions from ``n_out`` on."""
    summed = range(n_out, n_dims)
    if len(operands) == 1:
        return reduction.sum(operands[0], tuple(summed)) if summed else operands[0]
    # in how many operands each dimension is more than a repetition
    uses = [sum(x.shape[dim] != 1 for x in operands) for dim in range(n_dims)]
    while len(operands) > 1:
        left, right, *operands = operands
        now: list[int] = []
        alone: dict[bool, list[int]] = {True: [], False: []}  # those that only one of them has
        for dim in summed:
            in_left, in_right = left.shape[dim] != 1, right.shape[dim] != 1
            if in_left and in_right:
                uses[dim] -= 1
                if uses[dim] == 1:
                    now.append(dim)
                    uses[dim] = 0
            elif uses[dim] == 1 and (in_left or in_right):
                alone[in_left].append(dim)
                uses[dim] = 0
        if alone[True]:
            left = reduction.sum(left, tuple(alone[True]), keepdim=True)
        if alone[False]:
            right = reduction.sum(right, tuple(alone[False]), keepdim=True)
        operands.insert(0, _pair(left, right, now))
    result = operands[0]
    return views.view(result, tuple(result.shape[:n_out])) if summed else result


def _pair(left: Tensor, right: Tensor, summed: list[int]) -> Tensor:
    """The product of two operands, summed over these dimensions, as one ``bmm``."""
    if not summed:
        return mul(left, right)
    batch: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for dim in range(left.dim()):
        if dim not in summed:
            in_left, in_right = left.shape[dim] != 1, right.shape[dim] != 1
            (batch if in_left and in_right else rows if in_left else columns).append(dim)
    if rows and columns and columns[-1] < rows[0]:  # then the result lies in its own order
        left, right, rows, columns = right, left, columns, rows
    sizes = {
        name: [(right if name == "columns" else left).shape[dim] for dim in dims]
        for name, dims in (("batch", batch), ("rows", rows), ("columns", columns), ("sum", summed))
    }
    n_batch, n_rows, n_columns, n_sum = (prod(each) for each in sizes.values())
    left = views.reshape(
        views.permute(left, (*batch, *rows, *summed, *columns)), (n_batch, n_rows, n_sum)
    )
    right = views.reshape(
        views.permute(right, (*batch, *summed, *columns, *rows)), (n_batch, n_sum, n_columns)
    )
    shape = (*sizes["batch"], *sizes["rows"], *[1] * len(summed), *sizes["columns"])
    order = [*batch, *rows, *summed, *columns]
    result = views.view(bmm(left, right), shape)
    return views.permute(result, layout.inverse(order))
