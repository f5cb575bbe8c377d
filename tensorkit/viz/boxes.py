"""Boxes of text joined by arrows, on a canvas: how pictures of graphs are drawn."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tensorkit.viz import layers
from tensorkit.viz.drawing import Canvas, shortened, text_width
from tensorkit.viz.palette import INK, PLAIN, SOFT

SIZE, LINE, PAD, WIDEST = 12.0, 16.5, 9.0, 250.0


@dataclass
class Box:
    """A heading and lines below it, on a ground whose colour and outline say what it is."""

    title: str
    lines: list[str] = field(default_factory=list)
    ground: str = PLAIN
    dash: str = ""
    radius: float = 4.0
    outline: float = 1.2

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that its text needs."""
        widths = [text_width(self.title, SIZE, bold=True)]
        widths += [text_width(line, SIZE - 1) for line in self.lines]
        return min(max(widths), WIDEST) + 2 * PAD, LINE * (1 + len(self.lines)) + 1.2 * PAD


def draw(
    canvas: Canvas,
    boxes: list[Box],
    edges: list[tuple[int, int]],
    left: float,
    top: float,
    place: Callable[..., layers.Placed] = layers.place,
) -> None:
    """Draw boxes from top to bottom with an arrow for each edge; ``place`` says where."""
    placed = place([box.size for box in boxes], edges)
    for commands in placed.edges:
        shift = itertools.cycle((left, top))
        moved = [(name, *(it + next(shift) for it in at)) for name, *at in commands]
        canvas.path(moved, SOFT, width=1.3)
        *_, from_x, from_y, x, y = [it for _, *at in moved for it in at]
        length = math.hypot(x - from_x, y - from_y) or 1.0
        canvas.arrowhead(x, y, (x - from_x) / length, (y - from_y) / length, SOFT)
    for box, (x, y) in zip(boxes, placed.boxes, strict=True):
        width, height = box.size
        at, y = left + x - width / 2, top + y
        _ground(canvas, at, y, width, height, box)
        y += 0.6 * PAD + 0.72 * LINE
        title = shortened(box.title, WIDEST / 1.1, SIZE)
        canvas.text(at + width / 2, y, title, SIZE, INK, anchor="middle", bold=True)
        for line in box.lines:
            y += LINE
            text = shortened(line, WIDEST, SIZE - 1)
            canvas.text(at + width / 2, y, text, SIZE - 1, INK, anchor="middle")


def key(canvas: Canvas, left: float, y: float, samples: list[Box]) -> None:
    """Write in a row what grounds and outlines mean: the title of each sample."""
    for sample in samples:
        _ground(canvas, left, y - 11, 20, 14, sample)
        left = canvas.text(left + 26, y, sample.title, 11.5, SOFT) + 20


def _ground(canvas: Canvas, x: float, y: float, width: float, height: float, box: Box) -> None:
    style = {"radius": box.radius, "line": box.outline, "dash": box.dash}
    canvas.rect(x, y, width, height, box.ground, SOFT, **style)  # type: ignore[arg-type]
