"""``Picture``: what every function of ``tensorkit.viz`` returns."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tensorkit.viz.drawing import EDGE, INK, MARGIN, PAPER, Canvas, dark, legible, wrap_text

_FONT = "'DejaVu Sans', Verdana, sans-serif"
# An image is dark where its element is. JupyterLab and the course's site name their theme here. The
# words above an image have its width where it does not fit; elsewhere this width is negative, which
# counts as 0.
_STYLE = (
    '<style>body:is([data-jp-theme-light="false"],[data-theme="dark"]) .tk-picture'
    '{color-scheme:dark}@media (prefers-color-scheme:dark){body[data-theme="auto"] .tk-picture'
    "{color-scheme:dark}}.tk-scroll::before{float:left;height:1.5em;max-width:100%;overflow:hidden;"
    'width:calc((var(--tk-least) - 100%)*999);content:"Scroll right for the rest."/""}</style>'
)


class Picture:
    """A picture: an image in a notebook, and the same in words for terminals and screen readers.

    ``alt`` says in words what is drawn, made from the same data. ``svg`` is the image. ``save``
    writes a file.

    ``drawing`` is a canvas or a chart: it has ``size`` and ``svg``; a chart also has ``png``. A
    notebook shows the HTML ``below`` under the image.
    """

    def __init__(self, title: str, drawing: Any, alt: str, below: str = "") -> None:
        self.title = legible(title)
        self.alt = legible(alt)
        self._drawing, self._below = drawing, below

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        width, height = self._drawing.size
        frame = f'width="{width}" height="{height}"'
        drawn = f'<rect {frame} rx="8" fill="{PAPER}" stroke="{EDGE}"/>\n{self._drawing.svg}'
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'role="img" {frame} viewBox="0 0 {width} {height}" font-family="{_FONT}">\n'
            f"<title>{escape(self.title)}</title>\n<desc>{escape(self.alt)}</desc>\n"
            f"<style>{dark(drawn)}</style>\n{drawn}\n</svg>\n"
        )

    @property
    def html(self) -> str:
        """What a notebook shows: the image, with its text as alternative."""
        # an <img> carries its alternative wherever the notebook goes, and runs no script
        data = base64.b64encode(self.svg.encode()).decode()
        # a picture is scrolled, by keyboard too, rather than made too small to read; the page of a
        # telephone has 340 pixels for it
        least = 0.8 * self._drawing.size[0]
        fit = f"min-width:{least:.0f}px;" if least > 340 else ""
        box = f' class="tk-scroll" tabindex="0" role="group" aria-label="{escape(self.title)}"'
        return (
            f'{_STYLE}<div style="overflow-x:auto;--tk-least:{least:.0f}px"{fit and box}>'
            f'<img class="tk-picture" style="{fit}max-width:100%;height:auto" '
            f'alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}"></div>{self._below}'
        )

    def save(self, path: str | Path) -> None:
        """Write the picture to a file ending in .svg or .html, or its text to one in .txt.

        A chart is also written to one ending in .png, two pixels for one of the SVG.
        """
        path = Path(path)
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title>'
        page = f'<!doctype html>\n<html lang="en">{head}\n{self.html}\n</html>\n'
        texts = {".svg": self.svg, ".html": page, ".txt": self.alt + "\n"}
        kind = path.suffix.lower()
        if kind == ".png" and hasattr(self._drawing, "png"):
            path.write_bytes(self._drawing.png)
        elif kind in texts:
            path.write_bytes(texts[kind].encode())
        else:
            raise ValueError(
                "A picture is saved as .svg, .html or .txt, a chart also as .png, not as "
                f"'{path.suffix}'. Try: picture.save('{path.stem}.svg')"
            )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}

    def __repr__(self) -> str:
        return self.alt


class Repair(NamedTuple):
    """A line or two of code, and what it does."""

    code: str
    effect: str


class Explanation(Picture):
    """Sentences, with repairs as code; below them a picture, if one helps.

    ``repairs`` holds the code of each repair. In a notebook it is real text; saved as .svg the text
    is drawn.
    """

    def __init__(
        self,
        title: str,
        *sentences: str,
        repairs: Sequence[Repair] = (),
        picture: Picture | None = None,
    ) -> None:
        self.repairs = [repair.code for repair in repairs]
        lines = [legible(text) for text in sentences]
        paragraphs = [f"<strong>{escape(title)}</strong>", *map(escape, filter(None, lines))]
        html = [re.sub("`(.*?)`", r"<code>\1</code>", f"<p>{text}</p>") for text in paragraphs]
        items = [f"<li>{escape(effect)}:<pre>{escape(code)}</pre></li>" for code, effect in repairs]
        html += [f"<ol>{''.join(items)}</ol>"] if items else []
        for number, (code, effect) in enumerate(repairs, start=1):
            lines += [f"{number}. {effect}:", *(f"     {line}" for line in code.splitlines())]
        canvas = Canvas(title)
        drawn = [part for line in lines for part in wrap_text(line, 98)]
        canvas.lines(MARGIN, canvas.top + 4, drawn, 12.5, INK)
        alt = [title, *lines]
        if picture is not None:
            alt += ["", picture.alt]
            html.append(picture.html)
        super().__init__(title, canvas, "\n".join(alt))
        self._html = "\n".join(html)

    @property
    def html(self) -> str:
        """What a notebook shows: text, and the picture as an image."""
        return self._html
