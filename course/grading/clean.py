"""Makes harmless what a learner wrote or showed, for whoever opens it in Formgrader or as feedback.

Text stays text and pictures stay pictures; what a browser would run is taken out by a kept
sanitiser (nh3) with lists of what may stay. An output in SVG is shown as a picture, `<img>`, in
which nothing runs; SVG within HTML is taken out.
"""

from __future__ import annotations

import base64
import html
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from course.notebook.limited import limited
from course.shared.errors import TimeLimit

Output = dict[str, Any]

_SCHEMES = {"http", "https", "mailto", "data"}
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*")
_ELSEWHERE = re.compile(r"https?://|mailto:|#", re.IGNORECASE)
"""The addresses that a link may have. Any other may be of a file that was handed in: Formgrader's
server shows that as a page of its own, scripts included."""
_ADDRESSES = {"src": _PICTURE.fullmatch, "href": _ELSEWHERE.match}
"""What an attribute's value has to match. Nothing is loaded from elsewhere: that would tell who
looks, and when."""
_SPACES = re.compile(r"[ \t]{100,}")
_HARMLESS = re.compile(r"[^<\[&]*")
"""Markdown without these signs has no HTML, no link, no picture."""
_PASTED = re.compile(r"!\[([^\]\n]{0,200})\]\(attachment:[^)\n]{0,500}\)")
"""A picture that was pasted: it is an attachment of the cell, which intake does not keep."""
_FORMATTING = re.compile(
    r"<(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])", re.I
)
"""The beginning of a tag that each paragraph within it opens anew, by the rules of HTML."""
_VALUE = r"""=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+)"""
_PLAIN_TAG = re.compile(rf"<\w+(?:[ \t\n]+[\w:-]+(?:{_VALUE})?)*[ \t\n]*/?>", re.ASCII)
"""A tag that ends where it seems to: no sign of another tag is in it."""
_SEPARATORS = re.compile(r"""[\s/"']+""")
"""What may stand between two attributes of a tag."""
MOST_HTML, MOST_LEFT = 1 << 20, 2000
"""Characters of one text that are cleaned; those that are shown of a text with too many tags."""
MOST_KEPT = 1 << 20
"""Characters of all cells of a notebook that a result keeps."""
MOST_OPENED = 20_000_000
"""Characters of tags that a sanitiser may have to open anew; each tag takes it memory."""


@dataclass
class Quota:
    """How much of one notebook may still be rendered; the rest is shown as text or left out."""

    tags: int = 20_000
    """HTML tags that are cleaned."""
    separators: int = 60_000
    """Separators in HTML that is cleaned; a tag with so many attributes takes a second."""
    markdown: int = 60_000
    """Characters that are rendered; both take seconds where a text is made to."""
    page: int = 1_500_000
    """Characters of HTML that outputs become."""
    rendered: int = 1_000_000
    """Characters of HTML that markdown becomes."""
    code: int = 60_000
    """Characters of a learner's code, each of which may become twenty of colour."""
    seconds: float = 1.0
    """For all markdown: some texts take a renderer quadratic time."""


def cut_code(source: str, quota: Quota) -> str:
    """A cell's program as far as there is room for it on the page."""
    quota.code -= len(source)
    if quota.code >= 0:
        return source
    beginning = source[: max(0, len(source) + quota.code)]
    return f"{beginning}\n# [The rest is not shown: the notebook's code is too long for a page.]"


def kept_cells(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A notebook's cells as a result keeps them: where they are too long, a part of each."""
    if sum(len(cell["source"]) for cell in cells) <= MOST_KEPT:
        return cells
    share = MOST_KEPT // len(cells)
    return [{**cell, "source": cut_code(cell["source"], Quota(code=share))} for cell in cells]


def clean_html(text: str, quota: Quota | None = None) -> str:
    """HTML with the tags, attributes and addresses of the lists above, and no others.

    >>> clean_html('<b onclick="x()">bold</b><script>x()</script>')
    '<b>bold</b>'
    """
    quota = quota or Quota()
    read = text[:MOST_HTML]
    quota.tags -= read.count("<")
    quota.separators -= len(_SEPARATORS.findall(read))
    if min(quota.tags, quota.separators) < 0 or _opened_anew(read) > MOST_OPENED:
        return f"<pre>{html.escape(text[:MOST_LEFT])}</pre>"
    import nh3  # the extra `teach` has it; a learner's nbgrader imports this module, too

    return nh3.clean(
        read, attribute_filter=_attribute, url_schemes=_SCHEMES, link_rel="noopener noreferrer"
    )


def _opened_anew(text: str) -> int:
    """The most characters of tags that are opened anew in reading a text as HTML.

    Each tag may open anew all tags of `_FORMATTING` that are open: three of the same, one link.

    >>> _opened_anew("<b><p><p>") == 3 * _opened_anew("<b>")
    True
    """
    links, elements = Counter[str](), Counter[str]()
    for match in _FORMATTING.finditer(text):
        plain = _PLAIN_TAG.match(text, match.start())
        tag = plain[0] if plain else text  # elsewhere its end may be anywhere
        (links if match[0].lower() == "<a" else elements)[tag] += 1
    opened = sum(min(count, 3) * (len(tag) + _ELEMENT) for tag, count in elements.items())
    return text.count("<") * (opened + max(map(len, links), default=0) + _ELEMENT)


_ELEMENT = 60
"""Characters that an element counts besides those of its tag, for what else is kept of it."""


def _attribute(tag: str, name: str, value: str) -> str | None:
    is_allowed = _ADDRESSES.get(name)
    return value if is_allowed is None or is_allowed(value.strip()) else None


def clean_markdown(source: str, quota: Quota | None = None) -> str:
    """Markdown that a browser can be given: as it is, or as one block of clean HTML.

    >>> clean_markdown("*Plain* $x^2$")
    '*Plain* $x^2$'
    >>> clean_markdown('<img src="x" onerror="alert(1)"> a')
    '<div><p><img> a</p></div>'
    """
    from nbconvert.filters.markdown import markdown2html  # half a second

    quota = quota or Quota()
    quota.markdown -= len(source)
    source = _SPACES.sub(" " * 100, source)  # rendering takes quadratic time in them
    rendered_texts: list[str] = []
    begun = time.monotonic()
    try:
        if quota.markdown >= 0 and quota.seconds > 0:
            without_files = _PASTED.sub(r"*(a picture: \1)*", source)
            limited(lambda: rendered_texts.append(markdown2html(without_files)), quota.seconds)
    except (Exception, TimeLimit):  # a picture that is not there, a quote within a thousand quotes
        pass
    quota.seconds -= time.monotonic() - begun
    if rendered_texts and _HARMLESS.fullmatch(source):
        return source  # rendering it again takes no longer
    rendered = clean_html(rendered_texts[0], quota).strip() if rendered_texts else _as_text(source)
    quota.rendered -= len(rendered)
    if quota.rendered < 0:
        rendered = _as_text(source)
    # on one line: a blank line would end the block, and what follows be read as markdown
    lines = "&#10;".join(line.rstrip() for line in re.split(r"\n+", rendered))
    # nbconvert looks from each bracket on for the end of a link to a file
    return f"<div>{lines.replace('¶', '').replace('[', '&#91;')}</div>"


def _as_text(source: str) -> str:
    """The beginning of a text as it was typed, with no sign in it that begins a formula."""
    shown = html.escape(source[:MOST_LEFT]).replace("\\", "&#92;").replace("$", "&#36;")
    note = "\n[The rest is left out: it takes too long to show.]" * (len(source) > MOST_LEFT)
    return f"<pre>{shown}{note}</pre>"


def clean_outputs(outputs: Any, quota: Quota | None = None) -> list[Output]:
    """Outputs of a cell in the shape that notebooks have, with what is known to be harmless.

    The first for which there is no room, and all after that, are left out.
    """
    quota = quota or Quota()
    kept: list[Output] = []
    for output in outputs if isinstance(outputs, list) else []:
        if (cleaned := _clean(output, quota)) is not None:
            if not _fits(cleaned, quota):
                return [*kept, {"output_type": "stream", "name": "stdout", "text": _TOO_LARGE}]
            kept.append(cleaned)
    return kept


_TOO_LARGE = "[The rest is not shown: the notebook's outputs are too large for a page.]\n"


def _fits(output: Output, quota: Quota) -> bool:
    """Whether there is room on the page for an output."""
    shown = [output.get("text", ""), *output.get("data", {}).values(), *output.get("traceback", ())]
    # an escape sequence of colour becomes an element
    size = 200 + sum(len(html.escape(text)) + 60 * text.count("\x1b") for text in shown)
    if size > quota.page:
        return False
    quota.page -= size
    return True


def _clean(output: Any, quota: Quota) -> Output | None:
    kind = output.get("output_type") if isinstance(output, dict) else None
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        lines = output.get("traceback")
        return {
            "output_type": "error",
            "ename": _text(output.get("ename"))[:200],
            "evalue": _text(output.get("evalue"))[:2000],
            "traceback": [_text(line) for line in lines[:60]] if isinstance(lines, list) else [],
        }
    if kind in ("display_data", "execute_result"):
        data = output.get("data")
        cleaned: Output = {
            "output_type": kind,
            "data": _bundle(data if isinstance(data, dict) else {}, quota),
            "metadata": {},
        }
        if kind == "execute_result":
            count = output.get("execution_count")
            cleaned["execution_count"] = count if type(count) is int else None
        return cleaned if cleaned["data"] else None
    return None


def _bundle(data: dict[Any, Any], quota: Quota) -> dict[str, str]:
    kept: dict[str, str] = {}
    if "text/plain" in data:
        kept["text/plain"] = _text(data["text/plain"])
    if "text/html" in data:
        kept["text/html"] = clean_html(_text(data["text/html"]), quota)
    elif "image/svg+xml" in data:
        kept["text/html"] = _as_picture(_text(data["image/svg+xml"]))
    for kind in ("image/png", "image/jpeg"):
        if (picture := _base64(data.get(kind))) is not None:
            kept[kind] = picture
    return kept


def _base64(text: Any) -> str | None:
    try:
        return base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode()
    except (AttributeError, ValueError):  # no text; no base64
        return None


def _as_picture(svg: str) -> str:
    coded = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    return f'<img src="data:image/svg+xml;base64,{coded}" alt="A drawing in SVG">'


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    # control characters cannot stand in XML or a terminal; the colours of tracebacks may
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]", "", value)
