"""Grids of cells with text: ``viz.broadcast`` and ``viz.indexing``.

The last dimension of a tensor lies along the rows; beside each row stand its other indices.
"""

from collections.abc import Callable, Sequence
from math import prod
from operator import index as as_index
from typing import Any, NamedTuple

import numpy as np

from tensorkit import creation
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.dtypes import bool_
from tensorkit.viz import drawing, words
from tensorkit.viz.drawing import INK, LEAF, MARGIN, PLAIN, RESULT, SOFT, Canvas, text_width
from tensorkit.viz.picture import Explanation, Picture

MOST_ROWS, MOST_COLUMNS, HEIGHT, SIZE = 8, 10, 24.0, 11.5
MOST_GRIDS = 3


class Cell(NamedTuple):
    """The text of a cell, its ground and the dashes of its outline."""

    text: str
    ground: str
    dash: str = ""


class Grid:
    """The cells of a tensor as rows; ``cell`` gives the cell at an index.

    A large grid is shortened to its ends, and some rows and columns that are ``wanted``.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        cell: Callable[[tuple[int, ...]], Cell],
        wanted: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> None:
        *lead, n_columns = shape or (1,)
        self.columns = words.shown(n_columns, MOST_COLUMNS, wanted[1][:4])
        self.rows: list[str] = []
        self.cells: list[list[Cell | None]] = []
        for row in words.shown(prod(lead), MOST_ROWS, wanted[0][:4]):
            index = () if row is None else tuple(map(int, np.unravel_index(row, lead)))
            self.rows.append("…" if row is None else ", ".join(map(str, index)))
            columns = [None if row is None else column for column in self.columns]
            full = [None if at is None else (*index, at)[: len(shape)] for at in columns]
            self.cells.append([None if at is None else cell(at) for at in full])

    def as_text(self) -> list[str]:
        """The cells as lines of text; those with the ground of a result in brackets."""
        lines = []
        for name, cells in zip(self.rows, self.cells, strict=True):
            texts = (c and (f"({c.text})" if c.ground == RESULT else c.text) for c in cells)
            line = "..." if name == "…" else " ".join(text or "..." for text in texts)
            lines += [f"  {line}"] if cells else []
        return lines

    def draw(
        self, canvas: Canvas, x: float, y: float, names: Sequence[str] = ()
    ) -> tuple[float, float]:
        """Draw the cells with their indices beside them; gives the right and lower end.

        ``names`` stand beside the rows instead of their indices.
        """
        rows = [names[int(name)] if names and name.isdigit() else name for name in self.rows]
        columns = ["" if column is None else str(column) for column in self.columns if rows]
        texts = [cell.text for cells in self.cells for cell in cells if cell is not None]
        widths = [text_width(text, SIZE, mono=True) for text in [*texts, *columns]]
        width = max([16.0, *widths]) + 14
        left, top = x + 8 + max((text_width(name, 10.5) for name in rows), default=0), y + 16
        for n, column in enumerate(columns):
            canvas.text(left + (n + 0.5) * width, y + 11, column, 10, SOFT, anchor="middle")
        for name, cells in zip(rows, self.cells, strict=True):
            canvas.text(left - 6, top + 16, name, 10.5, SOFT, anchor="end")
            for n, cell in enumerate(cells):
                at = left + n * width
                if cell is not None:
                    canvas.rect(at, top, width, HEIGHT, cell.ground, SOFT, dash=cell.dash, line=1)
                    if cell.ground == RESULT:  # inside the cell, so that it reads in grey too
                        canvas.rect(at + 2, top + 2, width - 4, HEIGHT - 4, "none", INK, line=1.8)
                text = "⋯" if cell is None else cell.text
                canvas.text(at + width / 2, top + 16, text, SIZE, anchor="middle", mono=True)
            top += HEIGHT
        return left + len(columns) * width, top


# Broadcasting


class Operand(NamedTuple):
    """One of the shapes: its name as code, and the tensor if there is one."""

    name: str
    shape: tuple[int, ...]
    tensor: Any = None


class Alignment:
    """Shapes aligned at the right: ``sizes`` and ``result`` hold a size, or None, per dimension.

    An operand has None where it has no such dimension; the result where the sizes do not fit.
    """

    def __init__(self, operands: list[Operand]) -> None:
        self.operands = operands
        n_dims = max(len(operand.shape) for operand in operands)
        self.sizes = [(None,) * (n_dims - len(x.shape)) + x.shape for x in operands]
        different = [set(sizes) - {None, 1} or {1} for sizes in zip(*self.sizes, strict=True)]
        self.result = [sizes.pop() if len(sizes) == 1 else None for sizes in different]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape together; None if the sizes do not fit."""
        fitting = tuple(size for size in self.result if size is not None)
        return fitting if len(fitting) == len(self.result) else None

    def changes(self, row: int) -> list[str]:
        """What happens to the sizes of an operand: ``3``, ``1 → 3``, ``new → 3``."""
        names = ["new" if size is None else str(size) for size in self.sizes[row]]
        triples = zip(names, self.sizes[row], self.result, strict=True)
        return [name if end in (None, size) else f"{name} → {end}" for name, size, end in triples]

    def cell(self, index: tuple[int, ...]) -> Cell:
        """The cell of the table of dimensions: a row for each operand, then one for the result."""
        row, dim = index
        result = self.result[dim]
        if row == len(self.operands):
            fits = result is not None
            return Cell(str(result) if fits else "no fit", drawing.RIGHT if fits else drawing.WRONG)
        text, size = self.changes(row)[dim], self.sizes[row][dim]
        if result is None and size not in (None, 1):
            return Cell(text, drawing.WRONG)
        return Cell(text, LEAF) if size == result else Cell(text, PLAIN, "3 3")

    @property
    def verdict(self) -> str:
        """The result, or where and why there is none."""
        if self.shape is not None:
            return f"Together: {self.shape}"
        parts = []
        for dim in (dim for dim, size in enumerate(self.result) if size is None):
            column = zip(self.operands, (each[dim] for each in self.sizes), strict=True)
            sizes = ", ".join(f"{x.name} has {size}" for x, size in column if size is not None)
            parts.append(f"dimension {dim} (also {dim - len(self.result)}): {sizes}")
        return "They do not fit in " + "; ".join(parts)


def operands_from(function: str, values: tuple[Any, ...], named: dict[str, Any]) -> list[Operand]:
    """Operands from tensors and shapes; TypeError with a sentence for anything else."""
    known = words.names()
    given = [(known.get(id(value), ""), value) for value in values] + list(named.items())
    if not given:
        raise TypeError(f"{function}() wants shapes or tensors. Try: {function}((3, 1), (4,))")
    used = {name for name, _ in given}
    letters = (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in used)
    operands = []
    for name, value in ((name or next(letters, "x"), value) for name, value in given):
        sizes = value.shape if is_tensor(value) else value
        try:
            shape = tuple(map(as_index, (sizes,) if isinstance(sizes, int) else sizes))
        except TypeError:
            shape = (-1,)
        if any(size < 0 for size in shape):
            raise TypeError(
                f"{function}() wants shapes or tensors; {name} is {value!r}. Try: "
                f"{function}(x, y) with the two that did not fit, or {function}((3, 1), (4,))"
            )
        operands.append(Operand(name, shape, value if is_tensor(value) else None))
    return operands


def broadcast(*shapes_or_tensors: Any, **named: Any) -> Picture:
    """Picture of broadcasting: shapes aligned at the right, what is stretched, and the grid.

    Takes shapes, tensors, or both. The last two dimensions are drawn as grids: with the values of
    tensors, or, for shapes, with the index that is read. ``explain.broadcast`` offers repairs.

    >>> from tensorkit import viz
    >>> viz.broadcast((2, 1), (3,))
    Broadcasting. Together: (2, 3)
    dimension  0        1
    a          2        1 → 3
    b          new → 2  3
    a, read as (2, 3):
      [0,0] [0,0] [0,0]
      [1,0] [1,0] [1,0]
    b, read as (2, 3):
      [0] [1] [2]
      [0] [1] [2]
    """
    return picture(Alignment(operands_from("viz.broadcast", shapes_or_tensors, named)))


@words.unrecorded()
def picture(alignment: Alignment) -> Picture:
    """Picture of an alignment: the table of dimensions and, if the sizes fit, the grids."""
    canvas, shape = Canvas("Broadcasting", alignment.verdict), alignment.shape
    names = [*(operand.name for operand in alignment.operands), "result"]
    table = Grid((len(names), len(alignment.result)), alignment.cell)
    _, low = table.draw(canvas, MARGIN, canvas.top, names)
    low += 10
    rows = [[x.name, *alignment.changes(row)] for row, x in enumerate(alignment.operands)]
    if shape is None:
        rows.append(["fits", *("no" if size is None else "yes" for size in alignment.result)])
    text = [f"Broadcasting. {alignment.verdict}"]
    text += words.table(["dimension", *map(str, range(len(alignment.result)))], rows)
    if shape is not None:
        left, lowest = MARGIN, low
        for operand in alignment.operands[:MOST_GRIDS] if 0 not in shape else []:
            grid = Grid(shape, _cells(operand, len(shape)))
            title = f"{operand.name}, read as {shape}"
            canvas.text(left, low + 16, title, 12, SOFT)
            right, y = grid.draw(canvas, left, low + 22)
            lowest = max(lowest, y)
            end = max(right, left + text_width(title, 12)) + 28
            # the next one begins below if it will not fit beside
            left, low = (MARGIN, lowest + 6) if 2 * end - left > drawing.WIDEST else (end, low)
            text += [f"{title}:", *grid.as_text()]
        stretched = "Dashed: read again, not stored again (stride 0)."
        canvas.text(MARGIN, lowest + 24, stretched, 11.5, SOFT)
    return Picture("Broadcasting", canvas, "\n".join(text))


def _cells(operand: Operand, n_dims: int) -> Callable[[tuple[int, ...]], Cell]:
    """What an operand shows at an index of the result: its value there, or the index it reads."""
    n_new = n_dims - len(operand.shape)
    values = None if operand.tensor is None else operand.tensor.detach().cpu()

    def cell(index: tuple[int, ...]) -> Cell:
        own = index[n_new:]
        read = tuple(0 if size == 1 else at for at, size in zip(own, operand.shape, strict=True))
        text = f"[{','.join(map(str, read))}]"
        text = text if values is None else words.number(values[read].item())
        is_first = read == own and not any(index[:n_new])
        return Cell(text, LEAF) if is_first else Cell(text, PLAIN, "3 3")

    return cell


# Indexing


def indexing(t: Tensor, index: Any) -> Picture:
    """Picture of ``t[index]``: the elements it takes, the result, view or copy.

    The tensor is called what it is called in the calling code; one without a name is ``t``.
    Write an index with colons as ``np.s_[1:, ::2]``. Of a large tensor rows and columns are shown
    that the index takes.

    >>> from tensorkit import viz
    >>> viz.indexing(tk.arange(6), np.s_[1::2])
    t[1::2] takes 3 of 6 elements: a view of shape (3,), strides (2,), offset 1
    t, shape (6,); (taken)
      0 (1) 2 (3) 4 (5)
    result, shape (3,)
      1 3 5
    """
    words.must_be_tensor("viz.indexing", t)
    with words.unrecorded():
        return _indexing(words.names().get(id(t), "t"), t.detach(), index)


def _indexing(name: str, t: Tensor, index: Any) -> Picture:
    code = f"{name}[{_index_text(index)}]"
    try:
        result = t[index]
    except (IndexError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        lines = f"{type(error).__name__}: {error}".splitlines()
        return Explanation(f"{code} does not work", *lines)
    kind = f"{'a copy' if t.numel() else 'nothing,'} of shape {tuple(result.shape)}"
    note = f"A copy has memory of its own: a write to the result is not seen in {name}."
    own, other = t.untyped_storage(), result.untyped_storage()
    if own.nbytes() > 0 and own.data_ptr() == other.data_ptr():
        kind = f"a view of shape {tuple(result.shape)}, strides {tuple(result.stride())}, "
        kind += f"offset {result.storage_offset()}"
        note = f"A view shares its memory: a write to the result is seen in {name}."
    taken = creation.zeros(tuple(t.shape), dtype=bool_, device=t.device)
    taken[index] = True
    is_taken = taken.cpu().numpy()
    again = "" if is_taken.sum() == result.numel() else ", some several times"
    title = f"{code} takes {is_taken.sum():,} of {words.count(t.numel(), 'element')}{again}: {kind}"
    canvas, text = Canvas(title, note), [title]
    low = _matrix(canvas, text, f"{name}, shape {tuple(t.shape)}", t, is_taken, canvas.top)
    _matrix(canvas, text, f"result, shape {tuple(result.shape)}", result, None, low + 12)
    return Picture(title, canvas, "\n".join(text))


def _index_text(index: Any) -> str:
    """An index as it is written between the brackets."""
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index)) + "," * (len(index) == 1)
    if isinstance(index, slice):
        parts = [index.start, index.stop] + [index.step] * (index.step is not None)
        return ":".join("" if part is None else str(part) for part in parts)
    if is_tensor(index):
        return f"tensor({words.values(index)})"
    return "..." if index is Ellipsis else words.shortened(str(index), 40)


def _matrix(
    canvas: Canvas, text: list[str], title: str, x: Tensor, taken: Any, top: float
) -> float:
    """Draw a tensor as one matrix; write the same as text. Gives the lower end."""
    canvas.text(MARGIN, top + 14, title, 12, INK, bold=True)
    text.append(title if taken is None else f"{title}; (taken)")
    values = x.cpu().numpy()
    is_taken = np.zeros(values.shape, bool) if taken is None else taken

    def cell(index: tuple[int, ...]) -> Cell:
        return Cell(words.number(values[index].item()), RESULT if is_taken[index] else PLAIN)

    matrix = is_taken.reshape(-1, x.shape[-1] if x.numel() and x.ndim else 1)
    rows, columns = (np.flatnonzero(matrix.any(axis)).tolist() for axis in (1, 0))
    grid = Grid(values.shape, cell, (rows, columns))
    _, low = grid.draw(canvas, MARGIN, top + 22)
    text += grid.as_text()
    return low
