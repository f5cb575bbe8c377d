"""``viz.indexing``: which elements an index takes, and whether the result is a view or a copy."""

from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from tensorkit import creation
from tensorkit.base import Tensor
from tensorkit.data import is_tensor
from tensorkit.dtypes import bool_
from tensorkit.viz import grid, words
from tensorkit.viz.drawing import WIDEST, Canvas, Picture, heading, said, text_width
from tensorkit.viz.grid import Cell
from tensorkit.viz.palette import INK, PLAIN, RESULT, SOFT

MOST_ELEMENTS, MOST_BLOCKS = 1_000_000, 6


def indexing(t: Tensor, index: Any) -> Picture:
    """Picture of ``t[index]``: the elements it takes, the result, view or copy.

    The tensor is called what it is called in the calling code; one without a name is ``t``.
    Write an index with colons as ``np.s_[1:, ::2]``. Of a tensor with more than two dimensions the
    first matrices are drawn, or the first that it takes from; of large ones rows and columns that
    it takes. More than a million elements are only told in words.

    >>> from tensorkit import viz
    >>> viz.indexing(tk.arange(6), np.s_[1::2])
    t[1::2] takes 3 of 6 elements: a view of shape (3,), strides (2,), offset 1
    t, shape (6,); (taken)
      0 (1) 2 (3) 4 (5)
    result, shape (3,)
      1 3 5
    """
    words.must_be_tensor("viz.indexing", t)
    with words.unseen():
        names = (name for name, it in words.named_tensors(words.caller()) if it is t)
        return _taken(words.as_code(next(names, "t")), t.detach(), index)


def _taken(name: str, t: Tensor, index: Any) -> Picture:
    code = f"{name}[{index_text(index)}]"
    try:
        result = t[index]
    except (IndexError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        return said(f"{code} does not work", f"{type(error).__name__}: {error}")
    consequence = _consequence(name, t, result)
    if t.numel() > MOST_ELEMENTS:
        title = f"{code} of {words.count(t.numel(), 'element')}: {_kind(t, result)}"
        return said(title, f"{consequence} Values of the result: {words.values(result)}")
    taken = creation.zeros(tuple(t.shape), dtype=bool_, device=t.device)
    taken[index] = True
    taken = taken.cpu()
    n_taken = int(taken.sum().item())
    again = "" if n_taken == result.numel() else ", some several times"
    title = f"{code} takes {n_taken:,} of {words.count(t.numel(), 'element')}{again}: "
    title += _kind(t, result)
    canvas = Canvas()
    text = [title]
    low = heading(canvas, title, consequence)
    low = _draw(canvas, text, f"{name}, shape {tuple(t.shape)}", t.cpu(), taken, low)
    _draw(canvas, text, f"result, shape {tuple(result.shape)}", result.cpu(), None, low + 12)
    return Picture(title, canvas, "\n".join(text))


def index_text(index: Any) -> str:
    """An index as it is written between the brackets."""
    if isinstance(index, tuple):
        return ", ".join(map(index_text, index)) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        parts = ["" if it is None else str(it) for it in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{index.step}")
    if index is Ellipsis:
        return "..."
    if is_tensor(index):
        if index.numel() > words.MOST_VALUES:
            return f"tensor: {words.form(index)}"
        return f"tensor({words.values(index)})"
    text = str(index)
    return (
        text if len(text) <= 40 else f"{type(index).__name__} of {words.count(len(index), 'entry')}"
    )


def _is_view(t: Tensor, result: Tensor) -> bool:
    own, other = t.untyped_storage(), result.untyped_storage()
    return own.nbytes() > 0 and own.data_ptr() == other.data_ptr()


def _kind(t: Tensor, result: Tensor) -> str:
    shape = f"of shape {tuple(result.shape)}"
    if not t.numel():
        return f"nothing, {shape}"
    if _is_view(t, result):
        strides, offset = tuple(result.stride()), result.storage_offset()
        return f"a view {shape}, strides {strides}, offset {offset}"
    return f"a copy {shape}"


def _consequence(name: str, t: Tensor, result: Tensor) -> str:
    if _is_view(t, result):
        return f"A view shares its memory: a write to the result is seen in {name}."
    return f"A copy has memory of its own: a write to the result is not seen in {name}."


def _draw(
    canvas: Canvas, text: list[str], title: str, x: Tensor, taken: Tensor | None, top: float
) -> float:
    """Draw a tensor as matrices; write the same as text. Gives the lower end."""
    canvas.text(18, top + 14, title, 12, INK, bold=True)
    text.append(title if taken is None else f"{title}; (taken)")
    rows, columns = (1, 1, *x.shape)[-2:]
    lead = tuple(x.shape[:-2])
    marked = None if taken is None else taken.numpy().reshape(*lead, rows, columns)
    shown = list(islice(product(*map(range, lead)), MOST_BLOCKS))
    if marked is not None and lead:
        first = [tuple(it) for it in np.argwhere(marked.any((-2, -1)))[:MOST_BLOCKS].tolist()]
        shown = shown if set(first) <= set(shown) else first
    at, low, lowest = 18.0, top + 22, top + 22
    for place in shown:

        def cell(row: int, column: int, place: Any = place) -> Cell:
            index = (*place, row, column)[-x.ndim :] if x.ndim else ()
            value = words.number(x[index].item())
            is_taken = taken is not None and bool(taken[index].item())
            return Cell(value, RESULT if is_taken else PLAIN, strong=is_taken)

        label = f"[{', '.join(map(str, place))}]" if lead else ""
        if label:
            canvas.text(at, low + 12, label, 11, SOFT)
        named = x.ndim > 1
        begin = low + (16 if label else 0)
        wanted: tuple[Any, Any] = ((), ())
        if marked is not None:
            taken_rows, taken_columns = (marked[place].any(axis) for axis in (1, 0))
            wanted = (np.flatnonzero(taken_rows).tolist(), np.flatnonzero(taken_columns).tolist())
        right, y = grid.draw(canvas, at, begin, rows, columns, cell, named, wanted)
        lowest = max(lowest, y)
        end = max(right, at + text_width(label, 11)) + 20
        at, low = (18.0, lowest + 8) if 2 * end - at > WIDEST else (end, low)
        text += [f"  {label}:"] if label else []
        text += grid.text(rows, columns, cell, wanted)
    left_out = prod(lead) - len(shown)
    if left_out > 0:
        more = f"and {words.count(left_out, 'matrix')} more"
        canvas.text(18, lowest + 16, more, 11.5, SOFT)
        text.append(f"  {more}")
        lowest += 20
    return lowest
