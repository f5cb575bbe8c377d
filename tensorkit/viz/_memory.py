"""``viz.memory``: the flat storage as a row of boxes, and what each tensor sees of it.

First ``_describe`` turns the tensors into plain data (``Row``, ``Lane``); then ``_as_text`` and
``_draw`` write that data down. Only public attributes of tensors are used.
"""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tensorkit import layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.viz import words
from tensorkit.viz.drawing import WIDEST, Canvas, Picture, shortened, text_width
from tensorkit.viz.palette import FAINT, SERIES, SOFT, WHITE

MOST_BOXES, FEWEST_BOXES = 24, 5


@dataclass(frozen=True)
class Jump:
    """One step along a dimension, from the first element to its neighbour."""

    dim: int
    stride: int
    start: int
    stop: int


@dataclass(frozen=True)
class Lane:
    """One tensor: its numbers, and the index at which it sees each shown box."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    is_contiguous: bool
    seen: dict[int, str]
    jumps: list[Jump]
    repeats: list[str]  # what is said of each dimension along which nothing moves

    @property
    def numbers(self) -> str:
        """The tensor's shape, strides, offset and contiguity in words."""
        contiguous = "contiguous" if self.is_contiguous else "not contiguous"
        return f"shape {self.shape}, strides {self.strides}, offset {self.offset}, {contiguous}"


@dataclass
class Row:
    """One storage: how many elements it has, and the boxes that are shown with their values."""

    title: str
    n_elements: int
    boxes: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    @property
    def box_width(self) -> float:
        """How wide each box is drawn, so that every text fits in."""
        texts = [*self.values, *(cell for lane in self.lanes for cell in lane.seen.values())]
        return max(39.0, 14.0 + max((text_width(it, 13, mono=True) for it in texts), default=0.0))


def memory(*tensors: Tensor, live: bool = False, **named: Tensor) -> Picture:
    """Picture of the memory behind tensors: boxes in a row, and which of them each tensor sees.

    Tensors that share a storage are drawn below the same row: a write through one of them is seen
    by every other that shows an index in the same column. Tensors are called what
    they are called in the calling code; keywords give other names. With ``live`` every other tensor
    that still lives on one of these storages is drawn too. Large storages are shortened.

    >>> from tensorkit import viz
    >>> a = tk.arange(6)
    >>> viz.memory(a=a, b=a[::2])
    storage: 6 elements, int64, 48 bytes
      box    0    1    2    3    4    5
      value  0    1    2    3    4    5
      a      [0]  [1]  [2]  [3]  [4]  [5]
             shape (6,), strides (1,), offset 0, contiguous
      b      [0]   .   [1]   .   [2]   .
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
    with words.unseen():
        if live:
            pairs += _others_alive(pairs, known)
        rows = _describe(pairs)
    overlaps = _overlaps(pairs)
    title = "; ".join(f"{lane.name} on {row.title}" for row in rows for lane in row.lanes)
    canvas, text = _draw(rows), _as_text(rows)
    lanes = [lane for row in rows for lane in row.lanes]
    seen = [_SEEN] if len(lanes) > len(rows) else []
    colons = [_COLON] if any(lane.repeats for lane in lanes) else []
    for told in [*colons, *seen, *overlaps]:
        canvas.text(_LEFT, canvas.extent[1] + 24, told, 12, SOFT)
        text += f"\n{told}"
    return Picture(f"Memory of {title}", canvas, text)


_SEEN = "A write to a box is seen by every tensor with an index in its column."
_COLON = "Below a box stands the index of the element there; a colon is every index of a dimension."


def _overlaps(pairs: list[tuple[str, Tensor]]) -> list[str]:
    """Said of storages that are parts of one array of NumPy: they share memory, too."""
    found: dict[Any, str] = {}
    for name, x in pairs:
        found.setdefault(_place(x), name)
    found.pop(None, None)
    return [
        f"The storages of {one} and {other} overlap: both are parts of one array."
        for (at, one), (to, other) in combinations(found.items(), 2)
        if at[0] == to[0] and max(at[1], to[1]) < min(at[1] + at[2], to[1] + to[2])
    ]


def _others_alive(
    pairs: list[tuple[str, Tensor]], known: dict[int, str]
) -> list[tuple[str, Tensor]]:
    """Every other tensor on these storages, in an order that is the same on every run."""
    given = {id(x) for _, x in pairs}
    places = {_place(x) for _, x in pairs} - {None}
    found = [
        (known.get(id(it), "no name"), it)
        for it in gc.get_objects()
        # the type itself: asking an object for its __class__ may run code of anybody's
        if issubclass(type(it), TensorBase) and id(it) not in given and _place(it) in places
    ]
    return sorted(found, key=lambda pair: (pair[0] == "no name", pair[0], _numbers(pair[1])))


def _place(x: Tensor) -> Any:
    storage = x.untyped_storage()
    return (x.device, storage.data_ptr(), storage.nbytes()) if storage.nbytes() else None


def _numbers(x: Tensor) -> Any:
    return x.storage_offset(), tuple(x.shape), tuple(x.stride())


# From tensors to plain data


def _describe(pairs: Sequence[tuple[str, Tensor]]) -> list[Row]:
    groups: dict[Any, list[tuple[str, Tensor]]] = {}
    for number, (name, x) in enumerate(pairs):
        # An empty storage has no address: each stands for itself.
        # Memory seen as two dtypes has other boxes for each.
        place = _place(x)
        key = number if place is None else (*place, x.dtype)
        groups.setdefault(key, []).append((name, x))
    return [
        _row("storage" if len(groups) == 1 else f"storage {number}", group)
        for number, group in enumerate(groups.values(), start=1)
    ]


def _row(title: str, group: list[tuple[str, Tensor]]) -> Row:
    x = group[0][1]
    n_bytes = x.untyped_storage().nbytes()
    n = n_bytes // x.itemsize
    dtype = str(x.dtype).removeprefix("torch.")
    place = "" if x.device.type == "cpu" else f", on {x.device}"
    flat = x.detach().as_strided((n,), (1,), 0).cpu()
    row = Row(f"{title}: {words.count(n, 'element')}, {dtype}, {n_bytes:,} bytes{place}", n)
    most = MOST_BOXES
    while True:
        row.boxes = _boxes_to_show(n, [tensor for _, tensor in group], most)
        row.values = [words.number(flat[box].item()) for box in row.boxes]
        row.lanes = [_lane(name, tensor, row.boxes) for name, tensor in group]
        # wide boxes: fewer of them, so that the picture is as wide as a notebook's page at most
        gap = _GAP_WIDTH / 2 if len(row.boxes) < n else 0
        most = max(int((WIDEST - 2 * _LEFT) / (row.box_width + gap)), FEWEST_BOXES)
        if len(row.boxes) <= most:
            return row


def _boxes_to_show(n: int, tensors: list[Tensor], most: int) -> list[int]:
    """All boxes, or of many: both ends of the storage, and where each tensor starts and ends."""
    if n <= most:
        return list(range(n))
    wanted = [0, 1, 2, n - 1]
    for x in tensors:
        if x.numel():
            first = x.storage_offset()
            steps = [s for size, s in zip(x.shape, x.stride(), strict=True) if size > 1]
            wanted += [first, *(first + s for s in steps), _last(x)]
    wanted += [*range(3, 12), n - 2]
    for x in tensors:
        wanted += range(x.storage_offset(), min(x.storage_offset() + 6, n))
    return sorted(list(dict.fromkeys(wanted))[:most])


def _last(x: Tensor) -> int:
    reach = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.storage_offset() + reach


def _lane(name: str, x: Tensor, boxes: list[int]) -> Lane:
    shape, strides, offset = tuple(x.shape), tuple(x.stride()), x.storage_offset()
    seen = {}
    for box in boxes:
        index = _index_of(box - offset, shape, strides)
        if index is not None:
            seen[box] = index
    jumps = [
        Jump(dim, stride, offset, offset + stride)
        for dim, (size, stride) in enumerate(zip(shape, strides, strict=True))
        if size > 1 and stride and x.numel()
    ]
    repeats = [
        f"+0 in dimension {dim}: every {_direction(dim, len(shape))} is the same place"
        for dim, (size, stride) in enumerate(zip(shape, strides, strict=True))
        if size > 1 and not stride and x.numel()
    ]
    return Lane(name, shape, strides, offset, x.is_contiguous(), seen, jumps, repeats)


def _direction(dim: int, n_dims: int) -> str:
    return {(0, 2): "row", (1, 2): "column"}.get((dim, n_dims), "index along it")


def _index_of(distance: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> str | None:
    """The index whose element lies ``distance`` after the first one; None if there is none.

    A dimension of stride 0 shows ``:``, because every index along it sees the same box.
    """
    if 0 in shape:
        return None
    slowest_first = layout.slowest_first(strides)

    def find(remaining: int, dims: list[int]) -> dict[int, str] | None:
        if not dims:
            return {} if remaining == 0 else None
        dim, rest = dims[0], dims[1:]
        size, stride = shape[dim], strides[dim]
        if stride == 0:
            found = find(remaining, rest)
            return None if found is None else {**found, dim: ":" if size > 1 else "0"}
        reach = sum((shape[d] - 1) * strides[d] for d in rest)
        least = max(0, -(-(remaining - reach) // stride))
        for at in range(least, min(size - 1, remaining // stride) + 1):
            found = find(remaining - at * stride, rest)
            if found is not None:
                return {**found, dim: str(at)}
        return None

    if distance < 0:
        return None
    found = find(distance, slowest_first)
    return None if found is None else ",".join(found[dim] for dim in range(len(shape))) or "()"


# From plain data to text


def _as_text(rows: list[Row]) -> str:
    return "\n\n".join(_row_as_text(row) for row in rows)


def _row_as_text(row: Row) -> str:
    lines = [(lane, [_bracketed(lane, box) for box in row.boxes]) for lane in row.lanes]
    columns = [[str(box) for box in row.boxes], row.values, *(cells for _, cells in lines)]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    lead = max(5, *(len(lane.name) for lane in row.lanes))

    def line(name: str, cells: list[str]) -> str:
        parts = []
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            gap = place > 0 and row.boxes[place] != row.boxes[place - 1] + 1
            dots = cell.center(width) if cell == "." else cell.ljust(width)
            parts.append(("... " if gap else "") + dots)
        return f"  {name:<{lead}}  " + "  ".join(parts).rstrip()

    out = [row.title, line("box", columns[0]), line("value", columns[1])]
    if not row.boxes:
        out = [row.title]
    for lane, cells in lines:
        out.append(line(lane.name, cells).rstrip())
        out += [" " * (lead + 4) + told for told in (lane.numbers, *lane.repeats)]
    return "\n".join(out)


def _bracketed(lane: Lane, box: int) -> str:
    return f"[{lane.seen[box]}]" if box in lane.seen else "."


# From plain data to a picture

_BOX_HEIGHT, _GAP_WIDTH, _LEFT = 34.0, 30.0, 18.0


def _draw(rows: list[Row]) -> Canvas:
    canvas, top, colour = Canvas(), 18.0, 0
    for row in rows:
        top = _draw_row(canvas, row, top, colour) + 14
        colour += len(row.lanes)
    return canvas


def _draw_row(canvas: Canvas, row: Row, top: float, colour: int) -> float:
    """Draw one storage and its tensors; gives the lower end."""
    box_width = row.box_width
    canvas.text(_LEFT, top + 12, row.title, 13, SOFT, bold=True)
    top += 24
    places: dict[int, float] = {}
    x = _LEFT
    for place, box in enumerate(row.boxes):
        if place and box != row.boxes[place - 1] + 1:
            canvas.text(x + _GAP_WIDTH / 2, top + 36, "…", 18, SOFT, anchor="middle")
            x += _GAP_WIDTH
        places[box] = x
        x += box_width
    for box, value in zip(row.boxes, row.values, strict=True):
        middle = places[box] + box_width / 2
        canvas.text(middle, top + 10, str(box), 11, SOFT, anchor="middle")
        canvas.rect(places[box], top + 15, box_width, _BOX_HEIGHT, WHITE, SOFT)
        canvas.text(middle, top + 37, value, 13, anchor="middle", mono=True)
    top += 15 + _BOX_HEIGHT + 14 if row.boxes else 0
    for number, lane in enumerate(row.lanes):
        top = _draw_lane(canvas, lane, places, box_width, top, *SERIES[(colour + number) % 6])
    return top


def _draw_lane(
    canvas: Canvas,
    lane: Lane,
    places: dict[int, float],
    box_width: float,
    top: float,
    fill: str,
    ink: str,
) -> float:
    """Draw what one tensor sees: its numbers, its cells and one jump per dimension."""
    canvas.rect(_LEFT, top + 2, 11, 11, fill, radius=2)
    right = canvas.text(_LEFT + 17, top + 12, shortened(lane.name, 300, 13), 13, bold=True)
    canvas.text(right + 12, top + 12, lane.numbers, 12.5, SOFT)
    top += 22
    for box, at in places.items():
        middle = at + box_width / 2
        if box in lane.seen:
            canvas.rect(at + 2, top, box_width - 4, 22, fill, radius=5)
            canvas.text(middle, top + 15.5, lane.seen[box], 12.5, ink, anchor="middle", mono=True)
        else:
            canvas.dot(middle, top + 11, 2, FAINT)
    top += 22 if places else 0
    jumps = [jump for jump in lane.jumps if jump.start in places and jump.stop in places]
    # All labels start right of the longest jump, so that no line crosses them.
    label_at = max((places[jump.stop] + box_width / 2 for jump in jumps), default=0.0) + 10
    for level, jump in enumerate(sorted(jumps, key=lambda jump: jump.stride)):
        top += 20
        begin = places[jump.start] + box_width / 2
        end = places[jump.stop] + box_width / 2
        above = top - 20 * (level + 1) + 1
        corners = [(begin, above), (begin, top - 4), (end, top - 4), (end, above + 6)]
        canvas.line(corners, fill, width=1.6)
        canvas.arrowhead(end, above, 0, -1, fill)
        canvas.text(label_at, top, f"+{jump.stride} in dimension {jump.dim}", 11.5, SOFT)
    for told in lane.repeats:
        top += 20
        canvas.text(label_at if jumps else _LEFT + 17, top, told, 11.5, SOFT)
    return top + 18
