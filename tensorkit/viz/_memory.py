"""``viz.memory``: the flat storage as a row of boxes, and what each tensor sees of it.

First ``_describe`` turns the tensors into plain data (``Row``, ``Lane``); then ``_as_text`` and
``_draw`` write that data down. Only public attributes of tensors are used.
"""

import gc
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tensorkit.base import Tensor, TensorBase
from tensorkit.viz import words
from tensorkit.viz.drawing import MARGIN, WIDEST, Canvas, shortened, text_width
from tensorkit.viz.palette import FAINT, SERIES, SOFT, WHITE
from tensorkit.viz.picture import Picture

MOST_BOXES, FEWEST_BOXES, BOX_HEIGHT, GAP_WIDTH = 24, 5, 34.0, 30.0
Named = list[tuple[str, Tensor]]


@dataclass(frozen=True)
class Lane:
    """One tensor: its numbers, and the index at which it sees each shown box."""

    name: str
    numbers: str
    offset: int
    seen: dict[int, str]
    steps: dict[str, int]  # a step along each dimension in words, and its stride


@dataclass
class Row:
    """One storage: how many elements it has, and the boxes that are shown with their values."""

    title: str
    n_elements: int
    itemsize: int
    boxes: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    @property
    def box_width(self) -> float:
        """How wide each box must be, so that every text fits in."""
        texts = [*self.values, *(cell for lane in self.lanes for cell in lane.seen.values())]
        return max(39.0, 14.0 + max((text_width(it, 13, mono=True) for it in texts), default=0.0))

    def follows_gap(self, n: int) -> bool:
        """Whether boxes are left out before the n-th shown one."""
        return n > 0 and self.boxes[n] != self.boxes[n - 1] + 1


def memory(*tensors: Tensor, live: bool = False, **named: Tensor) -> Picture:
    """Picture of the memory behind tensors: boxes in a row, and which of them each tensor sees.

    Tensors that share a storage are drawn below the same row: a write through one of them is seen
    by every other that shows an index in the same column. Tensors are called what
    they are called in the calling code; keywords give other names. With ``live`` every other tensor
    that still lives on one of these storages is drawn too. Large storages are shortened. Boxes of
    several dtypes are as wide as their elements are large, where there is room.

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
    known = {id(x): name for name, x in reversed(list(words.named_tensors(words.caller())))}
    pairs = [(known.get(id(x), f"tensor {number}"), x) for number, x in enumerate(tensors, 1)]
    pairs += named.items()
    if not pairs:
        raise TypeError("memory() draws tensors, and it got none. Try: viz.memory(tk.arange(6))")
    for name, value in pairs:
        words.must_be_tensor("viz.memory", value, name)
    with words.unrecorded():
        if live:
            pairs += _others_alive(pairs, known)
        rows = _describe(pairs)
    lanes = [lane for row in rows for lane in row.lanes]
    notes = [_COLON] if any(0 in lane.steps.values() for lane in lanes) else []
    notes += [_SEEN] if len(lanes) > len(rows) else []
    notes += _overlaps(pairs)
    canvas = _draw(rows)
    for note in notes:
        canvas.text(MARGIN, canvas.extent[1] + 24, note, 12, SOFT)
    text = "\n\n".join(map(_as_text, rows))
    title = "; ".join(f"{lane.name} on {row.title}" for row in rows for lane in row.lanes)
    return Picture(f"Memory of {title}", canvas, "\n".join([text, *notes]))


_SEEN = "A write to a box is seen by every tensor with an index in its column."
_COLON = "Below a box stands the index of the element there; a colon is every index of a dimension."


def _address(x: Tensor) -> Any:
    """Device, address and bytes of a storage; None where it is empty and has no address."""
    storage = x.untyped_storage()
    return (x.device, storage.data_ptr(), storage.nbytes()) if storage.nbytes() else None


def _overlaps(pairs: Named) -> list[str]:
    """Sentences about storages that are parts of one array of NumPy: they share memory, too."""
    names = {_address(x): name for name, x in reversed(pairs)}
    addresses = sorted((it for it in names if it is not None), key=lambda it: it[1])
    return [
        f"The storages of {names[one]} and {names[other]} overlap: both are parts of one array."
        for one, other in combinations(addresses, 2)
        if one[0] == other[0] and other[1] < one[1] + one[2]
    ]


def _others_alive(pairs: Named, known: dict[int, str]) -> Named:
    """Every other tensor on these storages, in an order that is the same on every run."""
    given = {id(x) for _, x in pairs}
    addresses = {_address(x) for _, x in pairs} - {None}
    found = [
        (known.get(id(it), "~no name"), it)
        for it in gc.get_objects()
        # the type itself: asking an object for its __class__ may run code of anybody's
        if issubclass(type(it), TensorBase) and id(it) not in given and _address(it) in addresses
    ]
    found.sort(key=lambda it: (it[0], it[1].storage_offset(), tuple(it[1].shape), it[1].stride()))
    return [(name.removeprefix("~"), x) for name, x in found]


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
    row = Row(title, n, x.itemsize)
    flat = x.detach().as_strided((n,), (1,), 0).cpu()
    most = MOST_BOXES
    while not row.lanes or len(row.boxes) > most:
        row.boxes = _boxes_to_show(n, [tensor for _, tensor in group], most)
        row.values = [words.number(flat[box].item()) for box in row.boxes]
        row.lanes = [_lane(name, tensor, row.boxes) for name, tensor in group]
        # wide boxes: fewer of them, so that the picture is as wide as a notebook's page at most
        gap = GAP_WIDTH / 2 if len(row.boxes) < n else 0
        most = max(int((WIDEST - 2 * MARGIN) / (row.box_width + gap)), FEWEST_BOXES)
    return row


def _boxes_to_show(n: int, tensors: Iterable[Tensor], most: int) -> list[int]:
    """All boxes, or of many: both ends of the storage, and where each tensor starts and ends."""
    if n <= most:
        return list(range(n))
    wanted = [0, 1, 2, n - 1]
    for x in tensors:
        if x.numel():
            first = x.storage_offset()
            moves = [pair for pair in zip(x.shape, x.stride(), strict=True) if pair[0] > 1]
            last = first + sum((size - 1) * stride for size, stride in moves)
            wanted += [first, *(first + stride for _, stride in moves), last]
    return sorted(list(dict.fromkeys([*wanted, *range(n)[:most]]))[:most])


def _lane(name: str, x: Tensor, boxes: list[int]) -> Lane:
    shape, strides, offset = tuple(x.shape), tuple(x.stride()), x.storage_offset()
    contiguous = "contiguous" if x.is_contiguous() else "not contiguous"
    numbers = f"shape {shape}, strides {strides}, offset {offset}, {contiguous}"
    steps = {}
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size > 1 and x.numel():
            along = {(0, 2): "row", (1, 2): "column"}.get((dim, x.ndim), "index along it")
            still = "" if stride else f": every {along} is the same place"
            steps[f"+{stride} in dimension {dim}{still}"] = stride
    return Lane(name, numbers, offset, _seen(x, boxes), steps)


def _seen(x: Tensor, boxes: list[int]) -> dict[int, str]:
    """The index at which a tensor sees a box, for each box that it sees.

    A dimension of stride 0 shows ``:``, because every index along it sees the same box.
    """
    dims = sorted(range(x.ndim), key=lambda dim: -x.stride(dim))
    pairs = [(x.shape[dim], x.stride(dim)) for dim in dims]
    found = {}
    for box in boxes if x.numel() else []:
        index = _index_at(box - x.storage_offset(), pairs)
        if index is not None:
            cells = {dim: str(at) for dim, at in zip(dims, index, strict=True)}
            cells |= {dim: ":" for dim in dims if x.shape[dim] > 1 and not x.stride(dim)}
            found[box] = ",".join(cells[dim] for dim in sorted(dims)) or "()"
    return found


def _index_at(distance: int, pairs: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """An index ``distance`` after the first element; ``pairs`` are sizes and strides, falling."""
    if not pairs:
        return () if distance == 0 else None
    (size, stride), *rest = pairs
    reach = sum((n - 1) * step for n, step in rest)
    least = max(0, -(-(distance - reach) // stride)) if stride else 0
    for at in range(least, min(size - 1, distance // stride) + 1 if stride else 1):
        found = _index_at(distance - at * stride, rest)
        if found is not None:
            return (at, *found)
    return None


def _as_text(row: Row) -> str:
    lines = [["box", *map(str, row.boxes)], ["value", *row.values]]
    below: list[list[str]] = [[], []]
    for lane in row.lanes:
        cells = (f"[{lane.seen[it]}]" if it in lane.seen else "." for it in row.boxes)
        lines.append([lane.name, *cells])
        below.append([lane.numbers, *(step for step, stride in lane.steps.items() if not stride)])
    for n in reversed(range(len(row.boxes))):
        if row.follows_gap(n):
            lines = [[*line[: n + 1], "...", *line[n + 1 :]] for line in lines]
    indent = " " * (2 + max(len(line[0]) for line in lines))
    text = [row.title]
    for line, more in zip(words.table(lines[0], lines[1:]), below, strict=True):
        text += [line, *(indent + it for it in more)]
    return "\n  ".join(text)


def _draw(rows: list[Row]) -> Canvas:
    widths = [row.box_width for row in rows]
    per_byte = max(width / row.itemsize for width, row in zip(widths, rows, strict=True))
    to_scale = [per_byte * row.itemsize for row in rows]
    if max(it * len(row.boxes) for it, row in zip(to_scale, rows, strict=True)) <= WIDEST - 60:
        widths = to_scale
    canvas, top, n_lanes = Canvas(), MARGIN, 0
    for row, width in zip(rows, widths, strict=True):
        top = _draw_row(canvas, row, width, top, n_lanes) + 14
        n_lanes += len(row.lanes)
    return canvas


def _draw_row(canvas: Canvas, row: Row, box_width: float, top: float, n_before: int) -> float:
    """Draw one storage and its tensors; gives the lower end."""
    canvas.text(MARGIN, top + 12, row.title, 13, SOFT, bold=True)
    top += 24
    middles: dict[int, float] = {}
    x = MARGIN
    for n, (box, value) in enumerate(zip(row.boxes, row.values, strict=True)):
        if row.follows_gap(n):
            canvas.text(x + GAP_WIDTH / 2, top + 36, "…", 18, SOFT, anchor="middle")
            x += GAP_WIDTH
        middle = middles[box] = x + box_width / 2
        canvas.text(middle, top + 10, str(box), 11, SOFT, anchor="middle")
        canvas.rect(x, top + 15, box_width, BOX_HEIGHT, WHITE, SOFT)
        canvas.text(middle, top + 37, value, 13, anchor="middle", mono=True)
        x += box_width
    top += 15 + BOX_HEIGHT + 14 if row.boxes else 0
    for number, lane in enumerate(row.lanes, start=n_before):
        top = _draw_lane(canvas, lane, middles, box_width, top, *SERIES[number % 6])
    return top


def _draw_lane(
    canvas: Canvas,
    lane: Lane,
    middles: dict[int, float],
    box_width: float,
    top: float,
    fill: str,
    ink: str,
) -> float:
    """Draw what one tensor sees: its numbers, its cells and one jump per dimension."""
    canvas.rect(MARGIN, top + 2, 11, 11, fill, radius=2)
    right = canvas.text(MARGIN + 17, top + 12, shortened(lane.name, 300, 13), 13, bold=True)
    canvas.text(right + 12, top + 12, lane.numbers, 12.5, SOFT)
    top += 22
    for box, middle in middles.items():
        if box in lane.seen:
            canvas.rect(middle - box_width / 2 + 2, top, box_width - 4, 22, fill, radius=5)
            canvas.text(middle, top + 15.5, lane.seen[box], 12.5, ink, anchor="middle", mono=True)
        else:
            canvas.rect(middle - 2, top + 9, 4, 4, FAINT, radius=2)
    top += 22 if middles else 0
    cells = top
    # All words stand right of the longest arrow, so that no line crosses them.
    reached = [middles.get(lane.offset + stride, 0.0) for stride in lane.steps.values()]
    words_at = max([MARGIN + 7, *reached]) + 10
    for step, stride in sorted(lane.steps.items(), key=lambda pair: pair[1]):
        if lane.offset not in middles or lane.offset + stride not in middles:
            continue
        top += 20
        canvas.text(words_at, top, step, 11.5, SOFT)
        if stride:
            begin, end = middles[lane.offset], middles[lane.offset + stride]
            route = [("M", begin, cells + 1), ("L", begin, top - 4), ("L", end, top - 4)]
            canvas.path([*route, ("L", end, cells + 7)], fill, 1.6)
            canvas.arrowhead(end, cells + 1, 0, -1, fill)
    return top + 18
