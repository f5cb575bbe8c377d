"""``viz.indexing``: which elements an index takes, and whether the result is a view or a copy."""

from typing import Any

import numpy as np

from tensorkit import creation
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.dtypes import bool_
from tensorkit.viz import words
from tensorkit.viz.drawing import MARGIN, Canvas, heading
from tensorkit.viz.grid import Cell, Grid
from tensorkit.viz.palette import INK, PLAIN, RESULT
from tensorkit.viz.picture import Picture, text_picture

MOST_ELEMENTS = 1_000_000


def indexing(t: Tensor, index: Any) -> Picture:
    """Picture of ``t[index]``: the elements it takes, the result, view or copy.

    The tensor is called what it is called in the calling code; one without a name is ``t``.
    Write an index with colons as ``np.s_[1:, ::2]``. The last dimension lies along the rows; beside
    each row stand its other indices. Of a large tensor rows and columns are shown that the index
    takes. More than a million elements get words only.

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
        names = (name for name, it in words.named_tensors(words.caller()) if it is t)
        return _picture(words.as_code(next(names, "t")), t.detach(), index)


def _picture(name: str, t: Tensor, index: Any) -> Picture:
    code = f"{name}[{index_text(index)}]"
    try:
        result = t[index]
    except (IndexError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        return text_picture(f"{code} does not work", f"{type(error).__name__}: {error}")
    if is_view := _share_memory(t, result):
        note = f"A view shares its memory: a write to the result is seen in {name}."
    else:
        note = f"A copy has memory of its own: a write to the result is not seen in {name}."
    kind = f"{'a view' if is_view else 'a copy' if t.numel() else 'nothing,'} of shape "
    kind += str(tuple(result.shape))
    if is_view:
        kind += f", strides {tuple(result.stride())}, offset {result.storage_offset()}"
    if t.numel() > MOST_ELEMENTS:
        title = f"{code} of {words.count(t.numel(), 'element')}: {kind}"
        return text_picture(title, f"{note} Values of the result: {words.values(result)}")
    taken = creation.zeros(tuple(t.shape), dtype=bool_, device=t.device)
    taken[index] = True
    is_taken = taken.cpu().numpy()
    again = "" if is_taken.sum() == result.numel() else ", some several times"
    title = f"{code} takes {is_taken.sum():,} of {words.count(t.numel(), 'element')}{again}: {kind}"
    canvas, text = Canvas(), [title]
    low = heading(canvas, title, note)
    low = _draw(canvas, text, f"{name}, shape {tuple(t.shape)}", t, is_taken, low)
    _draw(canvas, text, f"result, shape {tuple(result.shape)}", result, None, low + 12)
    return Picture(title, canvas, "\n".join(text))


def index_text(index: Any) -> str:
    """An index as it is written between the brackets."""
    if isinstance(index, tuple):
        return ", ".join(map(index_text, index)) + "," * (len(index) == 1)
    if isinstance(index, slice):
        parts = [index.start, index.stop] + [index.step] * (index.step is not None)
        return ":".join("" if it is None else str(it) for it in parts)
    if is_tensor(index) and index.numel() > words.MOST_VALUES:
        return f"tensor: {words.form(index)}"
    text = f"tensor({words.values(index)})" if is_tensor(index) else str(index)
    if len(text) > 40:
        return f"{type(index).__name__} of {words.count(len(index), 'entry')}"
    return "..." if index is Ellipsis else text


def _share_memory(t: Tensor, result: Tensor) -> bool:
    own, other = t.untyped_storage(), result.untyped_storage()
    return own.nbytes() > 0 and own.data_ptr() == other.data_ptr()


def _draw(canvas: Canvas, text: list[str], title: str, x: Tensor, taken: Any, top: float) -> float:
    """Draw a tensor as one matrix; write the same as text. Gives the lower end."""
    canvas.text(MARGIN, top + 14, title, 12, INK, bold=True)
    text.append(title if taken is None else f"{title}; (taken)")
    values = x.cpu().numpy()
    is_taken = np.zeros(values.shape, bool) if taken is None else taken

    def cell(index: tuple[int, ...]) -> Cell:
        value, heavy = values[index].item(), bool(is_taken[index])
        return Cell(words.number(value), RESULT if heavy else PLAIN, is_heavy=heavy)

    matrix = is_taken.reshape(-1, x.shape[-1] if x.numel() and x.ndim else 1)
    rows, columns = (np.flatnonzero(matrix.any(axis)).tolist() for axis in (1, 0))
    grid = Grid(values.shape, cell, (rows, columns))
    _, low = grid.draw(canvas, MARGIN, top + 22)
    text += grid.as_text()
    return low
