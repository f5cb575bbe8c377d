"""Charts drawn by matplotlib, in one style.

``chart`` gives a picture: a heading, the axes that the caller fills, lines of text below. The
figure belongs to nobody's ``pyplot``, ignores the user's settings, and is the same on every run:
the names of its parts are derived from the text alternative, and text stays text.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorkit.viz.drawing import EDGE, INK, MARGIN, PAPER, SERIES, SOFT, WHITE, legible, wrap_text
from tensorkit.viz.picture import Picture
from tensorkit.viz.words import library

_STYLE = {
    "figure.dpi": 72,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": SOFT,
    "axes.facecolor": WHITE,
    "axes.labelcolor": SOFT,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": EDGE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.handlelength": 3,
}
_DASHES = ["-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1))]


def _style() -> Any:
    style = library("matplotlib.style")
    cycler = library("cycler").cycler
    cycle = cycler(color=[colour for colour, _ in SERIES]) + cycler(linestyle=_DASHES)
    return style.context(["default", _STYLE, {"axes.prop_cycle": cycle}])


def _saved(figure: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    with _style(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font lacks is drawn as a box
        figure.savefig(file, format=kind, **options)
    return file.getvalue()


# where things are drawn; processors differ in the last digit of what was computed, and a picture
# has the same bytes on all of them
_PLACES = re.compile(r' (?:d|x|y|x1|x2|y1|y2|width|height|transform)="[^"]*"')
_NAME = re.compile(r'id="(\w*[0-9a-f]{10})"')
_DECIMALS = re.compile(r"-?\d+\.\d\d+")


def _rounded(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 1) + 0.0:g}"  # + 0.0: no negative zero


class Chart:
    """A finished figure: what a picture shows of it."""

    def __init__(self, figure: Any, size: tuple[int, int], salt: str) -> None:
        self.size, self._figure = size, figure
        svg = _saved(figure, "svg", metadata={"Date": None}).decode()
        figure.set_layout_engine("none")  # everything stays where it is now
        # text has the font of the picture, which ends in one that every machine has
        svg = svg.replace(" font-family: 'DejaVu Sans';", "")
        svg = _PLACES.sub(lambda match: _DECIMALS.sub(_rounded, match[0]), svg)
        # matplotlib's names of shapes are random; these follow from their order and the text
        for number, name in enumerate(dict.fromkeys(_NAME.findall(svg))):
            own = hashlib.sha256(f"{number} {salt}".encode()).hexdigest()
            svg = svg.replace(name, f"p{own[:10]}")
        self.svg = svg[svg.index("<defs>") : svg.rindex("</svg>")]

    @property
    def png(self) -> bytes:
        """The figure as a PNG file, two pixels for one of the SVG."""
        return _saved(self._figure, "png", dpi=144, facecolor=PAPER)


def chart(
    title: str,
    alt: str,
    draw: Callable[..., None],
    *,
    note: str = "",
    panels: tuple[int, int] = (1, 1),
    size: tuple[int, float] = (760, 270),
    lines: Sequence[str] = (),
) -> Picture:
    """A picture of what ``draw(*axes)`` draws: a heading above, ``lines`` of a table below.

    ``panels`` are rows and columns of axes; ``size`` is the width of the picture and the height of
    the axes with their labels, in pixels.
    """
    width, height = size
    bold, soft = {"size": 14, "weight": "bold"}, {"size": 12, "color": SOFT}
    above = [(line, bold) for line in wrap_text(legible(title), (width - 100) // 8)]
    above += [(line, soft) for line in wrap_text(note, round((width - 40) / 6.4)) if line]
    top = 14 + 19 * len(above)
    total = round(top + height + 16 * len(lines) + MARGIN)
    texts = [(30.0 + 19 * n, *line) for n, line in enumerate(above)]
    mono = {"size": 11, "family": "DejaVu Sans Mono"}
    texts += [(top + height + 16 * (n + 0.9), line, mono) for n, line in enumerate(lines)]
    with _style():
        figure = library("matplotlib.figure").Figure((width / 72, total / 72), layout="constrained")
        figure.patch.set_visible(False)
        for y, text, style in texts:
            text = text.replace(" ", "\u00a0")  # several spaces stay
            figure.text(MARGIN / width, 1 - y / total, text, in_layout=False, **style)
        rect = (10 / width, 1 - (top + height) / total, 1 - 22 / width, height / total)
        figure.get_layout_engine().set(rect=rect, h_pad=0.1, w_pad=0.1)
        draw(*figure.subplots(*panels, squeeze=False).flat)
    return Picture(title, Chart(figure, (width, total), alt), alt)


def short(value: float) -> str:
    """A number at an axis."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e8 and value == int(value) else f"{value:.6g}"
