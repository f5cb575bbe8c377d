"""``viz.memory``: the flat storage as a row of boxes, and what each tensor sees of it.

First ``_describe`` turns the tensors into plain data (``Row``, ``Lane``); then ``_as_text`` and
``_as_svg`` write that data down. Only public attributes of tensors are used.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorkit.creation import is_tensor

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

MOST_BOXES = 24


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
    boxes: list[int]
    values: list[str]
    lanes: list[Lane] = field(default_factory=list)


class MemoryPicture:
    """What ``viz.memory`` returns: a picture for notebooks, a text for terminals."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    @property
    def text(self) -> str:
        """The picture as text."""
        return _as_text(self._rows)

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        return _as_svg(self._rows, self.text)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file ending in .svg, or its text to one ending in .txt."""
        contents = {".svg": self.svg, ".txt": self.text + "\n"}
        suffix = Path(path).suffix
        if suffix not in contents:
            raise ValueError(
                f"A memory picture is saved as .svg or .txt, not as '{suffix}'. "
                f"Try: picture.save('{Path(path).stem}.svg')"
            )
        Path(path).write_text(contents[suffix], encoding="utf-8")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # an <img> carries its alternative wherever the notebook goes, and runs no script
        data = base64.b64encode(self.svg.encode()).decode()
        image = f'<img alt="{escape(self.text)}" src="data:image/svg+xml;base64,{data}">'
        return {"text/html": image, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def memory(*tensors: "Tensor", **named: "Tensor") -> MemoryPicture:
    """Picture of the memory behind tensors: boxes in a row, and which of them each tensor sees.

    Tensors that share a storage are drawn below the same row. Keywords give names. Storages of
    more than 24 elements are shortened.

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
    """
    pairs = [(f"tensor {number}", value) for number, value in enumerate(tensors, start=1)]
    pairs += named.items()
    if not pairs:
        raise TypeError("memory() draws tensors, and it got none. Try: viz.memory(tk.arange(6))")
    for name, value in pairs:
        if not is_tensor(value):
            raise TypeError(
                f"memory() draws tensors; {name} is of class {type(value).__name__}. "
                "Try: viz.memory(tk.tensor(...)), or tk.from_numpy(array) for a NumPy array"
            )
    return MemoryPicture(_describe(pairs))


# From tensors to plain data


def _describe(pairs: Sequence[tuple[str, "Tensor"]]) -> list[Row]:
    groups: dict[Any, list[tuple[str, Tensor]]] = {}
    for number, (name, x) in enumerate(pairs):
        storage = x.untyped_storage()
        # An empty storage has no address: each stands for itself.
        # Memory seen as two dtypes has other boxes for each.
        key = (storage.data_ptr(), storage.nbytes(), x.dtype) if storage.nbytes() else number
        groups.setdefault(key, []).append((name, x))
    return [
        _row("storage" if len(groups) == 1 else f"storage {number}", group)
        for number, group in enumerate(groups.values(), start=1)
    ]


def _row(title: str, group: list[tuple[str, "Tensor"]]) -> Row:
    x = group[0][1]
    n_bytes = x.untyped_storage().nbytes()
    n = n_bytes // x.itemsize
    dtype = str(x.dtype).removeprefix("torch.")
    boxes = _boxes_to_show(n, [tensor for _, tensor in group])
    flat = x.as_strided((n,), (1,), 0)
    elements = "1 element" if n == 1 else f"{n} elements"
    row = Row(
        title=f"{title}: {elements}, {dtype}, {n_bytes} bytes",
        n_elements=n,
        boxes=boxes,
        values=[_value(flat[box].item()) for box in boxes],
    )
    row.lanes = [_lane(name, tensor, boxes) for name, tensor in group]
    return row


def _value(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.4g}"
        return text + "." if text.lstrip("-").isdigit() else text
    return str(value)


def _boxes_to_show(n: int, tensors: list["Tensor"]) -> list[int]:
    """All boxes, or of many: both ends of the storage, and where each tensor starts and ends."""
    if n <= MOST_BOXES:
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
    return sorted(list(dict.fromkeys(wanted))[:MOST_BOXES])


def _last(x: "Tensor") -> int:
    reach = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.storage_offset() + reach


def _lane(name: str, x: "Tensor", boxes: list[int]) -> Lane:
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
    return Lane(name, shape, strides, offset, x.is_contiguous(), seen, jumps)


def _index_of(distance: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> str | None:
    """The index whose element lies ``distance`` after the first one; None if there is none.

    A dimension of stride 0 shows ``:``, because every index along it sees the same box.
    """
    if 0 in shape:
        return None
    slowest_first = sorted(range(len(shape)), key=lambda dim: -strides[dim])

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
    return None if found is None else ",".join(found[dim] for dim in range(len(shape)))


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
        out.append(" " * (lead + 4) + lane.numbers)
    return "\n".join(out)


def _bracketed(lane: Lane, box: int) -> str:
    return f"[{lane.seen[box]}]" if box in lane.seen else "."


# From plain data to a picture

# Okabe and Ito's colours, which also colour-blind readers can tell apart, with the text colour
# that is readable on each.
_COLOURS = (
    ("#0072B2", "#ffffff"),
    ("#D55E00", "#ffffff"),
    ("#009E73", "#ffffff"),
    ("#CC79A7", "#1b1b1b"),
    ("#E69F00", "#1b1b1b"),
    ("#56B4E9", "#1b1b1b"),
)
_MARGIN, _BOX_HEIGHT, _GAP_WIDTH = 18, 34, 30
_FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
_MONO = "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace'"


def _as_svg(rows: list[Row], text: str) -> str:
    parts: list[str] = []
    width, top, colour = 0.0, float(_MARGIN), 0
    for row in rows:
        row_width, top = _draw_row(parts, row, top, colour)
        colour += len(row.lanes)
        width = max(width, row_width)
        top += 14
    width, height = width + _MARGIN, top - 14 + _MARGIN
    title = "; ".join(f"{lane.name} on {row.title}" for row in rows for lane in row.lanes)
    frame = f"width='{width:.0f}' height='{height:.0f}'"
    view = f"viewBox='0 0 {width:.0f} {height:.0f}' style='max-width:100%;height:auto'"
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {frame} {view}>",
            f"<title>Memory of {escape(title)}</title>",
            f"<desc>{escape(text)}</desc>",
            f"<rect {frame} rx='8' fill='#fbfaf7' stroke='#d8d4ca'/>",
            *parts,
            "</svg>",
        ]
    )


def _draw_row(parts: list[str], row: Row, top: float, colour: int) -> tuple[float, float]:
    """Draw one storage and its tensors; gives the right and the lower end."""
    texts = [*row.values, *(cell for lane in row.lanes for cell in lane.seen.values())]
    box_width = max(40.0, 16.0 + 7.9 * max((len(cell) for cell in texts), default=0))
    left = _MARGIN + 0.0
    _text(parts, left, top + 12, row.title, 13, "#3b3b3b", weight="bold")
    top += 24
    places: dict[int, float] = {}
    x = left
    for place, box in enumerate(row.boxes):
        if place and box != row.boxes[place - 1] + 1:
            _text(parts, x + _GAP_WIDTH / 2, top + 36, "…", 18, "#6b6b6b", anchor="middle")
            x += _GAP_WIDTH
        places[box] = x
        x += box_width
    for box, value in zip(row.boxes, row.values, strict=True):
        at = places[box]
        middle = at + box_width / 2
        _text(parts, middle, top + 10, str(box), 11, "#6b6b6b", anchor="middle")
        parts.append(
            f"<rect x='{at:.1f}' y='{top + 15:.1f}' width='{box_width:.1f}' "
            f"height='{_BOX_HEIGHT}' fill='#ffffff' stroke='#55524b' stroke-width='1.2'/>"
        )
        _text(parts, middle, top + 37, value, 14, "#1b1b1b", anchor="middle", font=_MONO)
    right = x
    top += 15 + _BOX_HEIGHT + 14 if row.boxes else 0
    for number, lane in enumerate(row.lanes):
        fill, ink = _COLOURS[(colour + number) % len(_COLOURS)]
        lane_right, top = _draw_lane(parts, lane, places, box_width, top, fill, ink)
        right = max(right, lane_right)
    return right, top


def _draw_lane(
    parts: list[str],
    lane: Lane,
    places: dict[int, float],
    box_width: float,
    top: float,
    fill: str,
    ink: str,
) -> tuple[float, float]:
    """Draw what one tensor sees: its numbers, its cells and one jump per dimension."""
    left = _MARGIN + 0.0
    parts.append(
        f"<rect x='{left:.1f}' y='{top + 2:.1f}' width='11' height='11' rx='2' fill='{fill}'/>"
    )
    _text(parts, left + 17, top + 12, lane.name, 13, "#1b1b1b", weight="bold")
    start = left + 17 + 8.6 * len(lane.name) + 12
    _text(parts, start, top + 12, lane.numbers, 12.5, "#3b3b3b")
    right = start + 7.4 * len(lane.numbers)
    top += 22
    for box, at in places.items():
        middle = at + box_width / 2
        if box in lane.seen:
            parts.append(
                f"<rect x='{at + 2:.1f}' y='{top:.1f}' width='{box_width - 4:.1f}' height='22' "
                f"rx='5' fill='{fill}'/>"
            )
            _text(parts, middle, top + 15.5, lane.seen[box], 12.5, ink, anchor="middle", font=_MONO)
        else:
            parts.append(f"<circle cx='{middle:.1f}' cy='{top + 11:.1f}' r='2' fill='#b9b4a8'/>")
    top += 22 if places else 0
    jumps = [jump for jump in lane.jumps if jump.start in places and jump.stop in places]
    # All labels start right of the longest jump, so that no line crosses them.
    label_at = max((places[jump.stop] + box_width / 2 for jump in jumps), default=0.0) + 10
    for level, jump in enumerate(sorted(jumps, key=lambda jump: jump.stride)):
        top += 20
        begin = places[jump.start] + box_width / 2
        end = places[jump.stop] + box_width / 2
        above = top - 20 * (level + 1) + 1
        parts.append(
            f"<path d='M{begin:.1f} {above:.1f} V{top - 4:.1f} H{end:.1f} V{above + 6:.1f}' "
            f"fill='none' stroke='{fill}' stroke-width='1.6'/>"
            f"<path d='M{end - 4:.1f} {above + 7:.1f} L{end:.1f} {above:.1f} "
            f"L{end + 4:.1f} {above + 7:.1f} Z' fill='{fill}'/>"
        )
        label = f"+{jump.stride} in dimension {jump.dim}"
        _text(parts, label_at, top, label, 11.5, "#3b3b3b")
        right = max(right, label_at + 6.8 * len(label))
    return right, top + 18


def _text(
    parts: list[str],
    x: float,
    y: float,
    text: str,
    size: float,
    fill: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    font: str = _FONT,
) -> None:
    parts.append(
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' {font} font-weight='{weight}' "
        f"text-anchor='{anchor}' fill='{fill}'>{escape(text)}</text>"
    )
