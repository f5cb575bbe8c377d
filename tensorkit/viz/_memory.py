"""``viz.memory``: the flat storage as a row of boxes, and what each tensor sees of it.

First ``_describe`` turns the tensors into plain data (``Row``, ``Lane``); then ``_as_text`` and
``_draw`` write that data down. Only public attributes of tensors are used.
"""

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from tensorkit import creation
from tensorkit.base import Tensor
from tensorkit.viz import words
from tensorkit.viz.drawing import FAINT, MARGIN, SERIES, SOFT, WHITE, WIDEST, Canvas, text_width
from tensorkit.viz.picture import Picture

MOST_BOXES, FEWEST_BOXES, BOX_HEIGHT, GAP_WIDTH = 24, 5, 34.0, 30.0
Named = list[tuple[str, Tensor]]


class Lane(NamedTuple):
    """One tensor: its numbers, and the index at which it sees each shown box."""

    name: str
    numbers: str
    offset: int
    seen: dict[int, str]
    steps: dict[str, int]  # a step along each dimension in words, and its stride


class Row(NamedTuple):
    """One storage: the boxes that are shown, None for those left out; their values; its tensors."""

    title: str
    itemsize: int
    boxes: list[int | None]
    values: dict[int, str]
    lanes: list[Lane]
    box_width: float  # every text fits in


def memory(*tensors: Tensor, **named: Tensor) -> Picture:
    """Picture of the memory behind tensors: boxes in a row, and which of them each tensor sees.

    Tensors that share a storage are drawn below the same row: a write through one of them is seen
    by every other that shows an index in the same column. Tensors are called what
    they are called in the calling code; keywords give other names. Large storages are shortened.
    Boxes of several dtypes are as wide as their elements are large, where there is room.

    >>> from tensorkit import viz
    >>> a = tk.arange(6)
    >>> viz.memory(a=a, b=a[::2])
    storage: 6 elements, int64, 48 bytes
      box    0    1    2    3    4    5
      value  0    1    2    3    4    5
      a      [0]  [1]  [2]  [3]  [4]  [5]
             shape (6,), strides (1,), offset 0, contiguous
      b      [0]  .    [1]  .    [2]  .
             shape (3,), strides (2,), offset 0, not contiguous
    A write to a box is seen by every tensor with an index in its column.
    """
    known = words.names()
    pairs = [(known.get(id(x), f"tensor {number}"), x) for number, x in enumerate(tensors, 1)]
    pairs += named.items()
    if not pairs:
        raise TypeError("memory() draws tensors, and it got none. Try: viz.memory(tk.arange(6))")
    for name, value in pairs:
        words.must_be_tensor("viz.memory", value, name)
    with words.unrecorded():
        rows = _describe(pairs)
    lanes = [lane for row in rows for lane in row.lanes]
    notes = [_COLON] if any(0 in lane.steps.values() for lane in lanes) else []
    notes += [_SEEN] if len(lanes) > len(rows) else []
    canvas = _draw(rows)
    for note in notes:
        canvas.text(MARGIN, canvas.low + 24, note, 12, SOFT)
    text = "\n\n".join(map(_as_text, rows))
    title = "; ".join(f"{lane.name} on {row.title}" for row in rows for lane in row.lanes)
    return Picture(f"Memory of {title}", canvas, "\n".join([text, *notes]))


_SEEN = "A write to a box is seen by every tensor with an index in its column."
_COLON = "Below a box stands the index of the element there; a colon is every index of a dimension."


def _address(x: Tensor) -> Any:
    """Device, address and bytes of a storage; None where it is empty and has no address."""
    storage = x.untyped_storage()
    return (x.device, storage.data_ptr(), storage.nbytes()) if storage.nbytes() else None


def _describe(pairs: Named) -> list[Row]:
    """A row for each storage, with the tensors on it."""
    groups: dict[Any, Named] = {}
    for number, (name, x) in enumerate(pairs):
        # memory seen as two dtypes has other boxes for each
        key = number if _address(x) is None else (*_address(x), x.dtype)
        groups.setdefault(key, []).append((name, x))
    return [
        _row("storage" if len(groups) == 1 else f"storage {number}", group)
        for number, group in enumerate(groups.values(), start=1)
    ]


def _row(title: str, group: Named) -> Row:
    x = group[0][1]
    n_bytes = x.untyped_storage().nbytes()
    n = n_bytes // x.itemsize
    dtype = str(x.dtype).removeprefix("torch.")
    device = "" if x.device.type == "cpu" else f", on {x.device}"
    title = f"{title}: {words.count(n, 'element')}, {dtype}, {n_bytes:,} bytes{device}"
    flat = x.detach().as_strided((n,), (1,), 0).cpu()
    ends = [box for _, tensor in group for box in _ends(tensor)]
    n_shown, fits = MOST_BOXES + 1, MOST_BOXES
    while n_shown > fits:
        boxes = words.shown(n, fits, ends)
        values = {box: words.number(flat[box].item()) for box in boxes if box is not None}
        n_shown = len(values)
        lanes = [_lane(name, tensor, list(values)) for name, tensor in group]
        texts = [*values.values(), *(text for lane in lanes for text in lane.seen.values())]
        width = max(39.0, 14.0 + max((text_width(t, 13, mono=True) for t in texts), default=0.0))
        # wide boxes: fewer of them, so that the picture is as wide as a notebook's page at most
        gap = GAP_WIDTH / 2 if None in boxes else 0
        fits = max(int((WIDEST - 2 * MARGIN) / (width + gap)), FEWEST_BOXES)
    return Row(title, x.itemsize, boxes, values, lanes, width)


def _ends(x: Tensor) -> list[int]:
    """The boxes where a tensor starts, where a step along each dimension leads, where it ends."""
    first = x.storage_offset()
    moves = [pair for pair in zip(x.shape, x.stride(), strict=True) if pair[0] > 1]
    last = first + sum((size - 1) * stride for size, stride in moves)
    return [first, *(first + stride for _, stride in moves), last] if x.numel() else []


def _lane(name: str, x: Tensor, boxes: list[int]) -> Lane:
    shape, strides, offset = tuple(x.shape), tuple(x.stride()), x.storage_offset()
    contiguous = "contiguous" if x.is_contiguous() else "not contiguous"
    numbers = f"shape {shape}, strides {strides}, offset {offset}, {contiguous}"
    steps = {}
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size > 1 and x.numel():
            direction = {(0, 2): "row", (1, 2): "column"}.get((dim, x.ndim), "index along it")
            still = "" if stride else f": every {direction} is the same place"
            steps[f"+{stride} in dimension {dim}{still}"] = stride
    return Lane(name, numbers, offset, _seen(x, boxes), steps)


def _seen(x: Tensor, boxes: list[int]) -> dict[int, str]:
    """The index at which a tensor sees a box, for each box that it sees.

    A dimension of stride 0 shows ``:``, because every index along it sees the same box.
    """
    strides, n = x.stride(), x.untyped_storage().nbytes() // x.itemsize
    sizes = tuple(
        min(size, 1) if stride == 0 else size for size, stride in zip(x.shape, strides, strict=True)
    )
    box_of = creation.arange(n, device="cpu").as_strided(sizes, strides, x.storage_offset()).numpy()
    found = {}
    for box in boxes:
        for index in np.argwhere(box_of == box)[:1].tolist():
            pairs = zip(index, x.shape, strides, strict=True)
            cells = [":" if size > 1 and not stride else str(at) for at, size, stride in pairs]
            found[box] = ",".join(cells) or "()"
    return found


def _as_text(row: Row) -> str:
    def line(name: str, cells: dict[int, str]) -> list[str]:
        return [name, *("..." if box is None else cells.get(box, ".") for box in row.boxes)]

    lines = [line("value", row.values)]
    below: list[list[str]] = [[], []]
    for lane in row.lanes:
        lines.append(line(lane.name, {box: f"[{index}]" for box, index in lane.seen.items()}))
        below.append([lane.numbers, *(step for step, stride in lane.steps.items() if not stride)])
    header = line("box", {box: str(box) for box in row.values})
    indent = " " * (2 + max(len(line[0]) for line in [header, *lines]))
    text = [row.title]
    for written, more in zip(words.table(header, lines), below, strict=True):
        text += [written, *(indent + note for note in more)]
    return "\n  ".join(text)


def _draw(rows: list[Row]) -> Canvas:
    widths = [row.box_width for row in rows]
    per_byte = max(width / row.itemsize for width, row in zip(widths, rows, strict=True))
    to_scale = [per_byte * row.itemsize for row in rows]
    if max(w * len(row.boxes) for w, row in zip(to_scale, rows, strict=True)) <= WIDEST - 60:
        widths = to_scale
    canvas, top, colours = Canvas(), MARGIN, cycle(SERIES)
    for row, width in zip(rows, widths, strict=True):
        middles, top = _draw_boxes(canvas, row, width, top)
        for lane in row.lanes:
            top = _draw_lane(canvas, lane, middles, top, width, *next(colours))
        top += 14
    return canvas


Middles = dict[int, float]  # the middle of each box that is shown


def _draw_boxes(canvas: Canvas, row: Row, width: float, top: float) -> tuple[Middles, float]:
    """Draw one storage; gives the middles of its boxes and the lower end."""
    canvas.text(MARGIN, top + 12, row.title, 13, SOFT, bold=True)
    top += 24
    middles, x = {}, MARGIN
    for box in row.boxes:
        if box is None:
            canvas.text(x + GAP_WIDTH / 2, top + 36, "…", 18, SOFT, anchor="middle")
            x += GAP_WIDTH
            continue
        middle = middles[box] = x + width / 2
        canvas.text(middle, top + 10, str(box), 11, SOFT, anchor="middle")
        canvas.rect(x, top + 15, width, BOX_HEIGHT, WHITE, SOFT)
        canvas.text(middle, top + 37, row.values[box], 13, anchor="middle", mono=True)
        x += width
    return middles, top + 15 + BOX_HEIGHT + 14 if row.boxes else top


def _draw_lane(
    canvas: Canvas, lane: Lane, middles: Middles, top: float, width: float, fill: str, ink: str
) -> float:
    """Draw what one tensor sees: its numbers, its cells and one jump per dimension."""
    canvas.rect(MARGIN, top + 2, 11, 11, fill, radius=2)
    right = canvas.text(MARGIN + 17, top + 12, words.shortened(lane.name, 40), 13, bold=True)
    canvas.text(right + 12, top + 12, lane.numbers, 12.5, SOFT)
    top += 22
    for box, middle in middles.items():
        if box in lane.seen:
            canvas.rect(middle - width / 2 + 2, top, width - 4, 22, fill, radius=5)
            canvas.text(middle, top + 15.5, lane.seen[box], 12.5, ink, anchor="middle", mono=True)
        else:
            canvas.rect(middle - 2, top + 9, 4, 4, FAINT, radius=2)
    top += 22 if middles else 0
    cells = top
    # All words stand right of the longest arrow, so that no line crosses them.
    reached = [middles.get(lane.offset + stride, 0.0) for stride in lane.steps.values()]
    words_at = max([MARGIN + 7, *reached]) + 10
    for step, stride in sorted(lane.steps.items(), key=lambda pair: pair[1]):
        begin, end = middles.get(lane.offset), middles.get(lane.offset + stride)
        if begin is None or end is None:
            continue
        top += 20
        canvas.text(words_at, top, step, 11.5, SOFT)
        if stride:
            route = [("M", begin, cells + 1), ("L", begin, top - 4), ("L", end, top - 4)]
            canvas.path([*route, ("L", end, cells + 7)], fill, 1.6)
            canvas.arrowhead(end, cells + 1, 0, -1, fill)
    return top + 18
