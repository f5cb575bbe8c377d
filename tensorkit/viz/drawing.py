"""Lines, areas and text on a canvas: for pictures that no library draws. And all colours.

The colours are Okabe and Ito's, which also colour-blind readers can tell apart, ordered so that
neighbours differ in grey too. No picture says anything by colour alone: names, marks or dashes say
it as well. A picture has a dark form of each light colour, for pages that are dark.

Text is measured with the widths of DejaVu Sans and keeps the measured width, so that it fits in
every browser, whichever font that has. The same calls give the same bytes on every machine.
"""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

PAPER, EDGE = "#fbfaf7", "#d8d4ca"
WHITE = "#ffffff"
INK, SOFT, FAINT = "#141414", "#4a4a4a", "#b9b4a8"

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
RED, SKY, PINK = "#D55E00", "#56B4E9", "#CC79A7"

# colour, and the colour of text upon it, which are the same on a dark page
BLACK = "#000000"
SERIES = ((BLUE, WHITE), (ORANGE, BLACK), (RED, BLACK), (SKY, BLACK), (GREEN, BLACK), (PINK, BLACK))

# light grounds for boxes with text: what they mean
LEAF, RESULT, FOLDED, PLAIN = "#dcecf7", "#fdeecb", "#e9e6df", WHITE
WRONG, RIGHT = "#f9dccb", "#d5efe4"

# what these colours are on a dark page
DARK = {
    PAPER: "#1c1d1f",
    EDGE: "#47484c",
    WHITE: "#2a2b2e",
    INK: "#efefef",
    SOFT: "#c4c4c4",
    FAINT: "#74716a",
    LEAF: "#1d3d53",
    RESULT: "#4d3d12",
    FOLDED: "#3b3a36",
    WRONG: "#5a3119",
    RIGHT: "#1a4535",
}

# Widths of the signs from space to ~ in DejaVu Sans, in thousandths of the font's size.
_WIDTHS = (
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 "
    "636 636 636 337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 "
    "748 787 603 787 695 635 611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635 "
    "615 352 635 634 278 278 579 278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636 "
    "337 636 838"
)
_WIDTH = {chr(code): int(width) / 1000 for code, width in enumerate(_WIDTHS.split(), start=32)}
_MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
MARGIN = 18.0
WIDEST = 960.0  # of a picture: what a notebook's page shows at nearly full size


def _character_width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return _WIDTH.get(character, 0.62 if character < "\u2000" else 0.84)


def text_width(text: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
    """How wide ``text`` is drawn, in pixels."""
    if mono:
        return 0.602 * size * sum(1 + (_character_width(character) == 1.0) for character in text)
    return size * sum(map(_character_width, text)) * (1.1 if bold else 1.0)


def wrap_text(text: str, most: int) -> list[str]:
    """``text`` in lines of at most ``most`` characters."""
    return [part for line in text.split("\n") for part in textwrap.wrap(line, most) or [""]]


def legible(text: str) -> str:
    """``text`` with a box for each character that SVG does not allow, such as control codes."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def dark(svg: str) -> str:
    """CSS that gives the colours of ``svg`` their dark form where the page around it is dark.

    A canvas names its colours in attributes, matplotlib in ``style``. White text stays white: it
    stands on blue.
    """
    rules = []
    for light, dark in DARK.items():
        which = ":not(text)" if light == WHITE else ""
        for name in ("fill", "stroke"):
            if f'{name}="{light}"' in svg:
                rules.append(f'{which}[{name}="{light}"]{{{name}:{dark}}}')
            if f"{name}: {light}" in svg:
                rules.append(f'{which}[style*="{name}: {light}"]{{{name}:{dark}!important}}')
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0: no -0


def _line(stroke: str, width: float, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f' stroke="{stroke}" stroke-width="{_number(width)}"{dashes}' if stroke else ""


class Canvas:
    """SVG elements in the order in which they are drawn. y points down, units are pixels.

    It begins with the picture's title, and a line or several below it. ``top`` is the y where the
    picture may begin; ``right`` and ``low`` are the ends of everything drawn.
    """

    def __init__(self, title: str = "", below: str = "") -> None:
        self._elements: list[str] = []
        self.right = self.low = 0.0
        y = 30.0
        for line in wrap_text(title, 48) if title else ():
            self.text(MARGIN, y, line, 14, bold=True)
            y += 19
        self.top = self.lines(MARGIN, y, wrap_text(below, 62), 12) + 2 if below else y - 1

    def _add(self, element: str, right: float, low: float) -> None:
        self._elements.append(element)
        self.right, self.low = max(self.right, right), max(self.low, low)

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
        style = ' font-weight="bold"' * bold + f' font-family="{_MONO}"' * mono
        element = (
            f'<text x="{_number(left)}" y="{_number(y)}" font-size="{_number(size)}"'
            f' fill="{fill}"{style} textLength="{_number(width)}"'
            f' lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(text)}</text>'
        )
        if text.strip():
            self._add(element, left + width, y + 0.25 * size)
        return left + width

    def lines(
        self, x: float, y: float, lines: list[str], size: float, fill: str = SOFT, **style: Any
    ) -> float:
        """Write lines of text below each other; gives the y below them."""
        for line in lines:
            self.text(x, y, line, size, fill, **style)
            y += size * 1.45
        return y

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        stroke: str = "",
        *,
        radius: float = 0.0,
        line: float = 1.2,
        dash: str = "",
    ) -> None:
        """Draw a rectangle with round corners."""
        left, top, wide, high, round_ = map(_number, (x, y, width, height, radius))
        element = f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="{round_}"'
        element += f' fill="{fill}"{_line(stroke, line, dash)}/>'
        self._add(element, x + width, y + height)

    def path(
        self, commands: Sequence[tuple[Any, ...]], stroke: str, width: float, fill: str = "none"
    ) -> None:
        """Draw a line or an area: ``("M", x, y)``, ``("L", x, y)``, as in an SVG path."""
        path = "".join(name + " ".join(map(_number, at)) for name, *at in commands)
        right, low = (max(max(at[n::2]) for _, *at in commands) for n in (0, 1))
        self._add(f'<path d="{path}" fill="{fill}"{_line(stroke, width)}/>', right, low)

    def arrowhead(self, x: float, y: float, dx: float, dy: float, fill: str) -> None:
        """Draw the head of an arrow that ends at x, y and points along dx, dy (of length 1)."""
        back_x, back_y = x - 7 * dx, y - 7 * dy
        one = ("L", back_x - 4 * dy, back_y + 4 * dx)
        other = ("L", back_x + 4 * dy, back_y - 4 * dx)
        self.path([("M", x, y), one, other], "", 0, fill)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a picture that holds everything drawn."""
        return round(max(self.right + MARGIN, 120.0)), round(self.low + MARGIN)

    @property
    def svg(self) -> str:
        """Everything drawn as SVG elements."""
        return "\n".join(self._elements)
