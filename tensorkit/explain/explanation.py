"""What every function of ``tensorkit.explain`` returns: sentences, and repairs that were tried."""

import html as markup
import re
from dataclasses import dataclass

from tensorkit.viz.drawing import Canvas, Picture, heading, legible
from tensorkit.viz.palette import EDGE, INK, SOFT, WHITE

LEFT, WIDTH = 18.0, 700.0


@dataclass
class Repair:
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
        sentences: list[str],
        repairs: list[Repair],
        picture: Picture | None = None,
    ) -> None:
        title, sentences = legible(title), [legible(it) for it in sentences]
        self.repairs = [it.code for it in repairs]
        self._sentences, self._offered, self._picture = sentences, repairs, picture
        lines = [title, *sentences]
        for number, it in enumerate(repairs, start=1):
            lines.append(f"{number}. {it.effect}:")
            lines += [f"     {line}" for line in it.code.splitlines()]
        if picture is not None:
            lines += ["", picture.alt]
        super().__init__(title, _drawn(title, sentences, repairs), "\n".join(lines))

    @property
    def html(self) -> str:
        """What a notebook shows: text, and the picture as an image."""
        parts = [f"<p><strong>{markup.escape(self.title)}</strong></p>"]
        sentences = (f"<p>{markup.escape(it)}</p>" for it in self._sentences)
        parts += [re.sub("`(.*?)`", r"<code>\1</code>", it) for it in sentences]
        if self._offered:
            items = (
                f"<li>{markup.escape(it.effect)}:<pre>{markup.escape(it.code)}</pre></li>"
                for it in self._offered
            )
            parts.append(f"<ol>{''.join(items)}</ol>")
        if self._picture is not None:
            parts.append(self._picture.html)
        return "\n".join(parts)


def _drawn(title: str, sentences: list[str], repairs: list[Repair]) -> Canvas:
    canvas = Canvas()
    y = heading(canvas, title) + 4
    for sentence in sentences:
        y = canvas.lines(LEFT, y, sentence, 12.5, INK, width=WIDTH) + 4
    for number, it in enumerate(repairs, start=1):
        y = canvas.lines(LEFT, y + 6, f"{number}. {it.effect}:", 12.5, SOFT, width=WIDTH)
        lines = it.code.splitlines()
        canvas.rect(LEFT + 16, y - 11, WIDTH - 16, 18 * len(lines) + 8, WHITE, EDGE, radius=4)
        for line in lines:
            canvas.text(LEFT + 26, y + 6, line, 12, INK, mono=True)
            y += 18
        y += 12
    return canvas
