"""What every function of ``tensorkit.explain`` returns: sentences, and repairs as code."""

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tensorkit.viz.drawing import MARGIN, Canvas, heading, legible, wrapped
from tensorkit.viz.palette import INK
from tensorkit.viz.picture import Picture

WIDTH = 700.0


class Repair(NamedTuple):
    """A line or two of code, and what it does."""

    code: str
    effect: str


class Explanation(Picture):
    """An answer in sentences with repairs as code; below it a picture, if one helps.

    ``repairs`` holds the code of each repair. In a notebook it is real text; saved as .svg or .png
    the text is drawn.
    """

    def __init__(
        self,
        title: str,
        sentences: Sequence[str],
        repairs: Sequence[Repair] = (),
        picture: Picture | None = None,
    ) -> None:
        self.repairs = [it.code for it in repairs]
        self._sentences, self._offered, self._picture = sentences, repairs, picture
        lines = [legible(it) for it in sentences]
        for number, it in enumerate(repairs, start=1):
            lines += [f"{number}. {it.effect}:", *(f"     {it}" for it in it.code.splitlines())]
        canvas = Canvas()
        low = heading(canvas, title) + 4
        drawn = [part for line in lines for part in wrapped(line, WIDTH, 12.5)]
        canvas.lines(MARGIN, low, drawn, 12.5, INK)
        below = [] if picture is None else ["", picture.alt]
        super().__init__(title, canvas, "\n".join([title, *lines, *below]))

    @property
    def html(self) -> str:
        """What a notebook shows: text, and the picture as an image."""
        parts = [f"<p><strong>{escape(self.title)}</strong></p>"]
        sentences = (f"<p>{escape(legible(it))}</p>" for it in self._sentences)
        parts += [re.sub("`(.*?)`", r"<code>\1</code>", it) for it in sentences]
        if self._offered:
            items = (
                f"<li>{escape(it.effect)}:<pre>{escape(it.code)}</pre></li>" for it in self._offered
            )
            parts.append(f"<ol>{''.join(items)}</ol>")
        if self._picture is not None:
            parts.append(self._picture.html)
        return "\n".join(parts)
