"""``viz.broadcast``: shapes aligned at the right, what is stretched, and the resulting grid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorkit.data import is_tensor
from tensorkit.viz import grid, table, words
from tensorkit.viz.drawing import WIDEST, Canvas, Picture, heading, text_width
from tensorkit.viz.grid import Cell
from tensorkit.viz.palette import INK, LEAF, PLAIN, RIGHT, SERIES, SOFT, WRONG

Shape = tuple[int, ...]
MOST_GRIDS, MOST_INDICES = 3, 4


@dataclass
class Operand:
    """One of the shapes: its name as code, and the tensor if there is one."""

    name: str
    shape: Shape
    tensor: Any = None


@dataclass
class Alignment:
    """Shapes aligned at the right. ``result`` has None where the sizes do not fit."""

    operands: list[Operand]
    result: list[int | None]

    @property
    def wrong(self) -> list[int]:
        """The axes of the result at which the sizes do not fit."""
        return [axis for axis, size in enumerate(self.result) if size is None]

    def size(self, operand: Operand, axis: int) -> int | None:
        """The size of an operand along an axis of the result; None where it has no such axis."""
        place = axis - len(self.result) + len(operand.shape)
        return operand.shape[place] if place >= 0 else None

    def words(self, operand: Operand, axis: int) -> str:
        """What happens to an operand along an axis."""
        size, result = self.size(operand, axis), self.result[axis]
        if result is None:
            return "missing" if size is None else str(size)
        if size is None:
            return f"new → {result}"
        return str(size) if size == result else f"{size} → {result}"

    @property
    def verdict(self) -> str:
        """The result, or where and why there is none."""
        if not self.wrong:
            return f"Together: {tuple(self.result)}"
        parts = []
        for axis in self.wrong:
            sizes = [
                f"{it.name} has {self.size(it, axis)}"
                for it in self.operands
                if self.size(it, axis) is not None
            ]
            parts.append(
                f"axis {axis} (the one numbered {axis - len(self.result)}): {', '.join(sizes)}"
            )
        return "They do not fit at " + "; ".join(parts)


def align(operands: list[Operand]) -> Alignment:
    """Align shapes at the right. Sizes fit if they are equal or 1."""
    n_axes = max((len(it.shape) for it in operands), default=0)
    alignment = Alignment(operands, [None] * n_axes)
    for axis in range(n_axes):
        sizes = {alignment.size(it, axis) for it in operands} - {None, 1}
        if len(sizes) < 2:
            alignment.result[axis] = sizes.pop() if sizes else 1
    return alignment


def operands_from(function: str, values: tuple[Any, ...], named: dict[str, Any]) -> list[Operand]:
    """Operands from tensors and shapes; TypeError with a sentence for anything else."""
    given = [("", value) for value in values] + list(named.items())
    if not given:
        raise TypeError(f"{function}() wants shapes or tensors. Try: {function}((3, 1), (4,))")
    known = {id(x): name for name, x in reversed(list(words.named_tensors(words.caller())))}
    taken = {name or known.get(id(value)) for name, value in given}
    letters = (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in taken)
    operands = []
    for name, value in given:
        label = words.as_code(name or known.get(id(value), "")) or next(letters, "x")
        if is_tensor(value):
            operands.append(Operand(label, tuple(value.shape), value))
            continue
        if isinstance(value, BaseException):
            raise TypeError(
                f"{function}() wants shapes or tensors; an error does not say which they were. "
                f"Try: {function}(x, y) with the two that did not fit"
            )
        sizes = (value,) if isinstance(value, int) else value
        try:
            shape = tuple(int(size.__index__()) for size in sizes)
        except (TypeError, AttributeError):
            shape = (-1,)
        if any(size < 0 for size in shape):
            raise TypeError(
                f"{function}() wants shapes or tensors; {label} is {value!r}. "
                f"Try: {function}((3, 1), (4,))"
            )
        operands.append(Operand(label, shape))
    return operands


def broadcast(*shapes_or_tensors: Any, **named: Any) -> Picture:
    """Picture of broadcasting: shapes aligned at the right, what is stretched, and the grid.

    Takes shapes, tensors, or both. The last two axes are drawn as grids: with the values of
    tensors, or, for shapes, with the index that is read. ``explain.broadcast`` offers repairs.

    >>> from tensorkit import viz
    >>> viz.broadcast((2, 1), (3,))
    Broadcasting. Together: (2, 3)
    axis   0        1
    a      2        1 → 3
    b      new → 2  3
    a, read as (2, 3):
      [0,0] [0,0] [0,0]
      [1,0] [1,0] [1,0]
    b, read as (2, 3):
      [0] [1] [2]
      [0] [1] [2]
    """
    return picture(align(operands_from("viz.broadcast", shapes_or_tensors, named)))


@words.unseen()
def picture(alignment: Alignment) -> Picture:
    """Picture of an alignment: the table of axes and, if the sizes fit, the grids."""
    canvas = Canvas()
    low = heading(canvas, "Broadcasting", alignment.verdict)
    low = _table(canvas, alignment, low)
    text = [f"Broadcasting. {alignment.verdict}", *_table_text(alignment)]
    if not alignment.wrong:
        shape = tuple(size for size in alignment.result if size is not None)
        rows, columns = (1, 1, *shape)[-2:]
        x, lowest = 18.0, low
        for operand in alignment.operands[:MOST_GRIDS] if 0 not in shape else []:
            reads = _reader(operand, len(shape))
            title = f"{operand.name}, read as {shape}"
            if len(shape) > 2:
                title += f", at [{', '.join('0' * (len(shape) - 2))}]"
            canvas.text(x, low + 16, title, 12, SOFT)
            right, y = grid.draw(canvas, x, low + 22, rows, columns, reads, len(shape) > 1)
            lowest = max(lowest, y)
            end = max(right, x + text_width(title, 12)) + 28
            # the next one begins below if it will not fit beside
            x, low = (18.0, lowest + 6) if 2 * end - x > WIDEST else (end, low)
            text += [f"{title}:", *grid.text(rows, columns, reads)]
        stretched = "Dashed: read again, not stored again (stride 0)."
        canvas.text(18, lowest + 24, stretched, 11.5, SOFT)
    return Picture("Broadcasting", canvas, "\n".join(text))


def _reader(operand: Operand, n_axes: int) -> Callable[[int, int], Cell]:
    """What an operand shows at a row and a column of the result; leading indices are 0."""
    shape = operand.shape
    lead = n_axes - len(shape)
    values = None if operand.tensor is None else operand.tensor.detach().cpu()

    def read(row: int, column: int) -> Cell:
        wanted = ((0,) * n_axes + (row, column))[-n_axes:] if n_axes else ()
        own = wanted[lead:]
        index = tuple(0 if size == 1 else at for at, size in zip(own, shape, strict=True))
        is_copy = index != own or any(wanted[:lead])
        if values is None:
            shown = index if len(index) <= MOST_INDICES else ("…", *index[-2:])
            text = f"[{','.join(map(str, shown))}]"
        else:
            text = words.number(values[index].item())
        return Cell(text, PLAIN if is_copy else LEAF, "3 3" if is_copy else "")

    return read


def _rows(alignment: Alignment) -> list[list[str]]:
    """The table of axes as text: a heading, then a line per operand."""
    axes = range(len(alignment.result))
    lines = [[it.name, *(alignment.words(it, axis) for axis in axes)] for it in alignment.operands]
    return [["axis", *map(str, axes)], *lines]


def _table_text(alignment: Alignment) -> list[str]:
    header, *rows = _rows(alignment)
    if alignment.wrong:
        rows.append(["fits", *("no" if it is None else "yes" for it in alignment.result)])
    return table.text(header, rows)


def _table(canvas: Canvas, alignment: Alignment, top: float) -> float:
    """Draw the table of axes; gives the y below it."""
    lines = _rows(alignment)
    names = ["result", *(line[0] for line in lines)]
    first = 14 + max(text_width(name, 12.5, bold=True) for name in names)
    width = 24 + max((text_width(c, 12.5) for line in lines for c in line[1:]), default=0)
    if alignment.wrong:
        width = max(width, 24 + text_width("✗ no fit", 12))
    for number, line in enumerate(lines):
        y = top + 26 * number
        if number:
            canvas.rect(18, y + 8, 10, 10, SERIES[(number - 1) % 6][0], radius=2)
        canvas.text(34, y + 18, line[0], 12.5, INK if number else SOFT, bold=number > 0)
        for axis, cell in enumerate(line[1:]):
            x = 34 + first + axis * width
            if number:
                size = alignment.size(alignment.operands[number - 1], axis)
                wrong = alignment.result[axis] is None
                same = size == alignment.result[axis]
                ground = WRONG if wrong and size not in (None, 1) else LEAF if same else PLAIN
                dash = "" if size is not None and (same or wrong) else "3 3"
                canvas.rect(x, y + 1, width - 4, 24, ground, SOFT, dash=dash, line=1)
            ink = INK if number else SOFT
            canvas.text(x + (width - 4) / 2, y + 18, cell, 12.5, ink, anchor="middle")
    y = top + 26 * len(lines) + 4
    canvas.text(34, y + 16, "result", 12.5, SOFT, bold=True)
    for axis, result in enumerate(alignment.result):
        x = 34 + first + axis * width
        ground, text = (WRONG, "✗ no fit") if result is None else (RIGHT, str(result))
        canvas.rect(x, y - 1, width - 4, 24, ground, SOFT)
        canvas.text(x + (width - 4) / 2, y + 16, text, 12.5, INK, anchor="middle", bold=True)
    return y + 34
