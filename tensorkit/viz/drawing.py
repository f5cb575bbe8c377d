"""One canvas for all pictures: it measures text, and writes the same marks as SVG and as PNG.

There are two marks, a ``Shape`` (a line or an area) and a ``Text``. Text is measured with the
widths of DejaVu Sans and is told to keep the measured width, so that it fits in every browser,
whichever font that has. Nothing here depends on the machine: the same marks give the same bytes.

A ``Picture`` is what every function of ``tensorkit.viz`` returns.
"""

import base64
import io
import re
import unicodedata
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from tensorkit.errors import importing
from tensorkit.viz.palette import EDGE, INK, PAPER, SOFT

# Widths of the signs from space to ~ in DejaVu Sans, in thousandths of the font's size.
_WIDTHS = (
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 "
    "636 636 636 337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 "
    "748 787 603 787 695 635 611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635 "
    "615 352 635 634 278 278 579 278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636 "
    "337 636 838"
)
_WIDTH = {chr(32 + place): int(width) / 1000 for place, width in enumerate(_WIDTHS.split())}
_FONT = "'DejaVu Sans', Verdana, sans-serif"
_MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
_MARGIN = 18.0
WIDEST = 960.0  # of a picture: what a notebook's page shows at nearly full size


def text_width(text: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
    """How wide ``text`` is drawn, in pixels."""
    if mono:
        wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
        return 0.602 * size * (len(text) + wide)
    return size * sum(map(_sign_width, text)) * (1.1 if bold else 1.0)


def _sign_width(sign: str) -> float:
    if sign in _WIDTH:
        return _WIDTH[sign]
    if unicodedata.combining(sign):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(sign) in "WF" else 0.62 if sign < "\u2000" else 0.84


def shortened(text: str, width: float, size: float, *, mono: bool = False) -> str:
    """``text``, or as much of it as fits, ending in …."""
    if text_width(text, size, mono=mono) <= width:
        return text
    while text and text_width(text + "…", size, mono=mono) > width:
        text = text[:-1]
    return text + "…"


def legible(text: str) -> str:
    """``text`` with a box for each sign that no file may hold: SVG knows no control characters."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def wrapped(text: str, width: float, size: float, *, mono: bool = False) -> list[str]:
    """``text`` in lines that fit; lines break at spaces, and long words anywhere."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        indent = paragraph[: len(paragraph) - len(paragraph.lstrip())]
        line = indent
        for word in paragraph.split():
            longer = f"{line} {word}" if line.strip() else indent + word
            if text_width(longer, size, mono=mono) <= width or not line.strip():
                line = longer
            else:
                lines.append(line)
                line = indent + word
            while text_width(line, size, mono=mono) > width:
                keep = len(shortened(line, width, size, mono=mono)) - 1
                lines.append(line[: max(keep, 1)])
                line = line[max(keep, 1) :]
        lines.append(line)
    return lines


# Marks

Command = tuple[Any, ...]  # as in an SVG path: ("M", x, y), ("L", x, y), ("C", …), ("Z",)


@dataclass(frozen=True)
class Shape:
    """A line or an area."""

    commands: tuple[Command, ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.2
    dash: str = ""

    @property
    def svg(self) -> str:
        """This mark as an SVG element."""
        path = "".join(name + " ".join(map(_number, at)) for name, *at in self.commands)
        line = f' stroke="{self.stroke}" stroke-width="{_number(self.width)}"'
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'<path d="{path}" fill="{self.fill or "none"}"{line if self.stroke else ""}{dash}/>'


@dataclass(frozen=True)
class Text:
    """A line of text; ``x`` is its left end, ``y`` the line it stands on."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    bold: bool
    mono: bool

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return text_width(self.text, self.size, bold=self.bold, mono=self.mono)

    @property
    def svg(self) -> str:
        """This mark as an SVG element."""
        weight = ' font-weight="bold"' if self.bold else ""
        family = f' font-family="{_MONO}"' if self.mono else ""
        return (
            f'<text x="{_number(self.x)}" y="{_number(self.y)}" font-size="{_number(self.size)}"'
            f' fill="{self.fill}"{weight}{family} textLength="{_number(self.width)}"'
            f' lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(self.text)}</text>'
        )


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0: no -0


class Canvas:
    """Marks in the order in which they are drawn. y points down, units are pixels."""

    def __init__(self) -> None:
        self.marks: list[Shape | Text] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12.5,
        fill: str = INK,
        *,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> float:
        """Write a line of text; gives its right end. ``anchor``: start, middle or end."""
        text = legible(text)
        width = text_width(text, size, bold=bold, mono=mono)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        if text.strip():
            self.marks.append(Text(left, y, text, size, fill, bold, mono))
        return left + width

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = "",
        stroke: str = "",
        *,
        radius: float = 0.0,
        line: float = 1.2,
        dash: str = "",
    ) -> None:
        """Draw a rectangle with round corners."""
        r = min(radius, width / 2, height / 2)
        right, low = x + width, y + height
        corners: tuple[Command, ...] = (
            ("M", x + r, y), ("L", right - r, y), ("Q", right, y, right, y + r),
            ("L", right, low - r), ("Q", right, low, right - r, low),
            ("L", x + r, low), ("Q", x, low, x, low - r),
            ("L", x, y + r), ("Q", x, y, x + r, y), ("Z",),
        )  # fmt: skip
        if not r:
            corners = tuple(it for it in corners if it[0] != "Q")
        self.marks.append(Shape(corners, fill, stroke, line, dash))

    def dot(self, x: float, y: float, radius: float, fill: str = "", stroke: str = "") -> None:
        """Draw a disc: a square that is all corners."""
        self.rect(x - radius, y - radius, 2 * radius, 2 * radius, fill, stroke, radius=radius)

    def line(
        self,
        points: list[tuple[float, float]],
        stroke: str = INK,
        *,
        width: float = 1.2,
        dash: str = "",
        fill: str = "",
        closed: bool = False,
    ) -> None:
        """Draw straight lines from point to point."""
        commands = [("M" if not place else "L", *point) for place, point in enumerate(points)]
        self.marks.append(
            Shape((*commands, *([("Z",)] if closed else [])), fill, stroke, width, dash)
        )

    def path(
        self, commands: list[Command], stroke: str, *, width: float = 1.2, dash: str = ""
    ) -> None:
        """Draw a line from SVG's path commands."""
        self.marks.append(Shape(tuple(commands), "", stroke, width, dash))

    def arrowhead(self, x: float, y: float, dx: float, dy: float, fill: str) -> None:
        """Draw the head of an arrow that ends at x, y and points along dx, dy (of length 1)."""
        back_x, back_y = x - 7 * dx, y - 7 * dy
        side = [(back_x - 4 * dy, back_y + 4 * dx), (back_x + 4 * dy, back_y - 4 * dx)]
        self.line([(x, y), *side], "", fill=fill, closed=True)

    def lines(
        self, x: float, y: float, text: str, size: float, fill: str, *, width: float
    ) -> float:
        """Write wrapped text; gives the y below it."""
        for line in wrapped(text, width, size):
            self.text(x, y, line, size, fill)
            y += size * 1.45
        return y

    @property
    def extent(self) -> tuple[float, float]:
        """The right and the lower end of all marks."""
        right = low = 0.0
        for mark in self.marks:
            if isinstance(mark, Text):
                right, low = max(right, mark.x + mark.width), max(low, mark.y + 0.25 * mark.size)
            else:
                for _, *at in mark.commands:
                    right, low = max(right, *at[0::2], 0), max(low, *at[1::2], 0)
        return right, low


# What a function of tensorkit.viz returns


class Picture:
    """A picture: an image in a notebook, and the same in words for terminals and screen readers.

    ``alt`` says in words what is drawn, made from the same data. ``svg`` is the image. ``dot`` is
    the graph in graphviz' language, for pictures of graphs. ``save`` writes a file.
    """

    dot: str = ""

    def __init__(self, title: str, canvas: Canvas, alt: str) -> None:
        self.title = legible(title)
        self.alt = legible(alt)
        self._canvas = canvas

    @property
    def _size(self) -> tuple[float, float]:
        right, low = self._canvas.extent
        return max(right + _MARGIN, 120.0), low + _MARGIN

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        width, height = (f"{it:.0f}" for it in self._size)
        frame = f'width="{width}" height="{height}"'
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {frame} '
                    f'viewBox="0 0 {width} {height}" font-family="{_FONT}">'
                ),
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(self.alt)}</desc>",
                f'<rect {frame} rx="8" fill="{PAPER}" stroke="{EDGE}"/>',
                *(mark.svg for mark in self._canvas.marks),
                "</svg>\n",
            ]
        )

    @property
    def html(self) -> str:
        """What a notebook shows: the image, with its text as alternative."""
        # an <img> carries its alternative wherever the notebook goes, and runs no script
        data = base64.b64encode(self.svg.encode()).decode()
        width = self._size[0]
        # what is wider than a page is scrolled rather than made too small to read
        least = f";min-width:{0.8 * width:.0f}px" if width > WIDEST else ""
        return (
            f'<img alt="{escape(self.alt)}" style="max-width:100%;height:auto{least}" '
            f'src="data:image/svg+xml;base64,{data}">'
        )

    @property
    def png(self) -> bytes:
        """The picture as a PNG file, two pixels for one of the SVG."""
        return _png(self._canvas, self._size)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file ending in .svg, .png or .html, or its text to one in .txt."""
        path = Path(path)
        page = (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(self.title)}'
            f"</title>\n{self.html}\n</html>\n"
        )
        suffix = path.suffix.lower()
        if suffix == ".png":
            path.write_bytes(self.png)
        elif suffix in (".svg", ".html", ".txt"):
            text = {".svg": self.svg, ".html": page, ".txt": self.alt + "\n"}[suffix]
            path.write_bytes(text.encode())
        else:
            raise ValueError(
                f"A picture is saved as .svg, .png, .html or .txt, not as '{path.suffix}'. "
                f"Try: picture.save('{path.stem}.svg')"
            )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}

    def __repr__(self) -> str:
        return self.alt


def said(title: str, text: str) -> Picture:
    """A picture of a title and some sentences: for what cannot be drawn."""
    canvas = Canvas()
    low = heading(canvas, title)
    canvas.lines(_MARGIN, low + 4, text, 12.5, SOFT, width=640)
    return Picture(title, canvas, f"{title}\n{text}")


def heading(canvas: Canvas, title: str, below: str = "") -> float:
    """Write the picture's title, and a line below it; gives the y where the picture may begin."""
    y = 30.0
    for line in wrapped(title, 760, 14):
        canvas.text(_MARGIN, y, line, 14, bold=True)
        y += 19
    return canvas.lines(_MARGIN, y, below, 12, SOFT, width=820) + 2 if below else y - 1


def _png(canvas: Canvas, size: tuple[float, float]) -> bytes:
    import numpy as np

    with importing("A picture as PNG"):
        from matplotlib.backends.backend_agg import RendererAgg
        from matplotlib.font_manager import FontProperties
        from matplotlib.path import Path as Outline
        from matplotlib.textpath import text_to_path
        from matplotlib.transforms import Affine2D
        from PIL import Image

    width, height = (round(it) for it in size)
    scale = 2
    agg: Any = RendererAgg
    renderer = agg(scale * width, scale * height, 72)
    down = Affine2D().scale(scale, -scale).translate(0, scale * height)
    n_numbers = {"M": 1, "L": 2, "Q": 3, "C": 4, "Z": 79}

    def draw(mark: Shape | Text) -> None:
        context = renderer.new_gc()
        if isinstance(mark, Text):
            family = "DejaVu Sans Mono" if mark.mono else "DejaVu Sans"
            font = FontProperties(family=family, weight="bold" if mark.bold else "normal")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a sign that the font lacks is drawn as a box
                points, codes = text_to_path.get_text_path(font, mark.text)
                natural, _, _ = text_to_path.get_text_width_height_descent(mark.text, font, False)
            if not len(points):
                return
            high = mark.size / text_to_path.FONT_SCALE
            at_size = font.get_size() / text_to_path.FONT_SCALE
            wide = mark.width / (natural / at_size) if natural else high
            outline = Outline(points, codes)
            place = Affine2D().scale(wide, -high).translate(mark.x, mark.y)
            context.set_linewidth(0)
            renderer.draw_path(context, outline, place + down, _colour(mark.fill))
            return
        corners: list[tuple[float, float]] = []
        kinds: list[int] = []
        for name, *at in mark.commands:
            pairs = list(zip(at[0::2], at[1::2], strict=True)) or [(0.0, 0.0)]
            corners += pairs
            kinds += [n_numbers[name]] * len(pairs)
        context.set_linewidth(scale * mark.width if mark.stroke else 0)
        if mark.stroke:
            context.set_foreground(_colour(mark.stroke))
        if mark.dash:
            context.set_dashes(0, [scale * float(it) for it in mark.dash.split()])
        face = _colour(mark.fill) if mark.fill else None
        renderer.draw_path(context, Outline(corners, kinds), down, face)

    card = Canvas()
    card.rect(0, 0, width, height, PAPER, EDGE)
    for mark in (*card.marks, *canvas.marks):
        draw(mark)
    written = io.BytesIO()
    Image.fromarray(np.asarray(renderer.buffer_rgba())).convert("RGB").save(written, "PNG")
    return written.getvalue()


def _colour(text: str) -> tuple[float, float, float, float]:
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue, 1.0
