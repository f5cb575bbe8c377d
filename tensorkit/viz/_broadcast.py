"""``viz.broadcast``: shapes aligned at the right, what is stretched, and the resulting grid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorkit.creation import is_tensor
from tensorkit.viz import words
from tensorkit.viz.drawing import MARGIN, WIDEST, Canvas, heading, text_width
from tensorkit.viz.grid import Cell, Grid
from tensorkit.viz.palette import LEAF, PLAIN, RIGHT, SOFT, WRONG
from tensorkit.viz.picture import Picture

MOST_GRIDS = 3


@dataclass
class Operand:
    """One of the shapes: its name as code, and the tensor if there is one."""

    name: str
    shape: tuple[int, ...]
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
        own_axis = axis - len(self.result) + len(operand.shape)
        return operand.shape[own_axis] if own_axis >= 0 else None

    def change(self, operand: Operand, axis: int) -> str:
        """What happens to the size of an operand along an axis: ``3``, ``1 → 3``, ``new → 3``."""
        size, result = self.size(operand, axis), self.result[axis]
        if result is None:
            return "missing" if size is None else str(size)
        if size == result:
            return str(size)
        return f"{'new' if size is None else size} → {result}"

    def cell(self, index: tuple[int, ...]) -> Cell:
        """The cell of the table of axes: a row for each operand, then one for the result."""
        row, axis = index
        result = self.result[axis]
        if row == len(self.operands):
            return Cell("no fit", WRONG) if result is None else Cell(str(result), RIGHT)
        size = self.size(self.operands[row], axis)
        is_wrong = result is None and size not in (None, 1)
        ground = WRONG if is_wrong else LEAF if size == result else PLAIN
        dash = "" if ground != PLAIN else "3 3"
        return Cell(self.change(self.operands[row], axis), ground, dash)

    @property
    def verdict(self) -> str:
        """The result, or where and why there is none."""
        if not self.wrong:
            return f"Together: {tuple(self.result)}"
        parts = []
        for axis in self.wrong:
            pairs = [(it.name, self.size(it, axis)) for it in self.operands]
            sizes = ", ".join(f"{name} has {size}" for name, size in pairs if size is not None)
            parts.append(f"axis {axis} (the one numbered {axis - len(self.result)}): {sizes}")
        return "They do not fit at " + "; ".join(parts)


def align(operands: list[Operand]) -> Alignment:
    """Align shapes at the right. Sizes fit if they are equal or 1."""
    alignment = Alignment(operands, [None] * max((len(it.shape) for it in operands), default=0))
    for axis in range(len(alignment.result)):
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
    used = {name or known.get(id(value)) for name, value in given}
    letters = (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in used)
    operands = []
    for name, value in given:
        label = words.as_code(name or known.get(id(value), "")) or next(letters, "x")
        if is_tensor(value):
            operands.append(Operand(label, tuple(value.shape), value))
            continue
        try:
            sizes = (value,) if isinstance(value, int) else value
            shape = tuple(int(size.__index__()) for size in sizes)
        except (TypeError, AttributeError):
            shape = (-1,)
        if any(size < 0 for size in shape):
            raise TypeError(
                f"{function}() wants shapes or tensors; {label} is {value!r}. Try: "
                f"{function}(x, y) with the two that did not fit, or {function}((3, 1), (4,))"
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


@words.unrecorded()
def picture(alignment: Alignment) -> Picture:
    """Picture of an alignment: the table of axes and, if the sizes fit, the grids."""
    canvas = Canvas()
    low = heading(canvas, "Broadcasting", alignment.verdict)
    names = [*(it.name for it in alignment.operands), "result"]
    table = Grid((len(names), len(alignment.result)), alignment.cell)
    _, low = table.draw(canvas, MARGIN, low, names)
    low += 10
    axes = range(len(alignment.result))
    rows = [[it.name, *(alignment.change(it, axis) for axis in axes)] for it in alignment.operands]
    if alignment.wrong:
        rows.append(["fits", *("no" if it is None else "yes" for it in alignment.result)])
    text = [f"Broadcasting. {alignment.verdict}"]
    text += words.table(["axis", *map(str, axes)], rows)
    if not alignment.wrong:
        shape = tuple(size or 0 for size in alignment.result)
        left, lowest = MARGIN, low
        for operand in alignment.operands[:MOST_GRIDS] if 0 not in shape else []:
            grid = Grid(shape, _cells(operand, shape))
            title = f"{operand.name}, read as {shape}"
            canvas.text(left, low + 16, title, 12, SOFT)
            right, y = grid.draw(canvas, left, low + 22)
            lowest = max(lowest, y)
            end = max(right, left + text_width(title, 12)) + 28
            # the next one begins below if it will not fit beside
            left, low = (MARGIN, lowest + 6) if 2 * end - left > WIDEST else (end, low)
            text += [f"{title}:", *grid.as_text()]
        stretched = "Dashed: read again, not stored again (stride 0)."
        canvas.text(MARGIN, lowest + 24, stretched, 11.5, SOFT)
    return Picture("Broadcasting", canvas, "\n".join(text))


def _cells(operand: Operand, shape: tuple[int, ...]) -> Callable[[tuple[int, ...]], Cell]:
    """What an operand shows at an index of the result: its value there, or the index it reads."""
    n_new = len(shape) - len(operand.shape)
    values = None if operand.tensor is None else operand.tensor.detach().cpu()

    def cell(index: tuple[int, ...]) -> Cell:
        own = index[n_new:]
        read = tuple(0 if size == 1 else at for at, size in zip(own, operand.shape, strict=True))
        is_copy = read != own or any(index[:n_new])
        text = f"[{','.join(map(str, read))}]"
        text = text if values is None else words.number(values[read].item())
        return Cell(text, PLAIN if is_copy else LEAF, "3 3" if is_copy else "")

    return cell
