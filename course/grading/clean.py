"""Makes harmless what a learner wrote or showed, for whoever opens it in Formgrader or as feedback.

Text stays text and pictures stay pictures; what a browser would run is taken out by a kept
sanitiser (nh3) with lists of what may stay. A drawing in SVG is shown as a picture, `<img>`, in
which nothing runs.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from typing import Any

import nh3

Output = dict[str, Any]

_NAMES = """
a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2
h3 h4 h5 h6 hr i img kbd li ol p pre s samp small span strong sub summary sup table tbody td tfoot
th thead tr tt u ul var
"""
_TAGS = set(_NAMES.split())
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
    "details": {"open"},
}
_SCHEMES = {"http", "https", "mailto", "data"}
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*")
_SVG = re.compile(r"<svg\b.*?</svg\s*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_HARMLESS = re.compile(r"[^<\[&]*")
"""Markdown without these signs has no HTML, no link, no picture."""
MOST_HTML = 1 << 20


def clean_html(text: str) -> str:
    """HTML with the tags, attributes and addresses of the lists above, and no others.

    >>> clean_html('<b onclick="x()">bold</b><script>x()</script>')
    '<b>bold</b>'
    """
    drawn = _SVG.sub(lambda found: _as_picture(found[0]), text[:MOST_HTML])
    return nh3.clean(
        drawn,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    address = value.strip().lower()
    if name == "src":  # nothing is loaded from elsewhere: that would tell who looks, and when
        return value if _PICTURE.fullmatch(value.strip()) else None
    if name == "href" and address.startswith("data:"):
        return None
    return value


def clean_markdown(source: str) -> str:
    """Markdown that a browser can be given: as it is, or as one block of clean HTML.

    >>> clean_markdown("*Plain* $x^2$")
    '*Plain* $x^2$'
    >>> clean_markdown('<img src="x" onerror="alert(1)"> a')
    '<div><p><img> a</p></div>'
    """
    if _HARMLESS.fullmatch(source):
        return source
    from nbconvert.filters.markdown import markdown2html  # half a second

    rendered = clean_html(markdown2html(source)).strip()
    # on one line: a blank line would end the block, and what follows be read as markdown
    return "<div>" + re.sub(r"\s*\n", "&#10;", rendered).replace("¶", "") + "</div>"


def clean_outputs(outputs: list[Any]) -> list[Output]:
    """Outputs of a cell in the shape that notebooks have, with what is known to be harmless."""
    return [it for output in outputs if (it := _clean(output)) is not None]


def _clean(output: Any) -> Output | None:
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
            "traceback": [_text(it) for it in lines[:60]] if isinstance(lines, list) else [],
        }
    if kind in ("display_data", "execute_result"):
        data = output.get("data")
        cleaned: Output = {
            "output_type": kind,
            "data": _bundle(data if isinstance(data, dict) else {}),
            "metadata": {},
        }
        if kind == "execute_result":
            count = output.get("execution_count")
            cleaned["execution_count"] = count if type(count) is int else None
        return cleaned if cleaned["data"] else None
    return None


def _bundle(data: dict[Any, Any]) -> dict[str, str]:
    kept: dict[str, str] = {}
    if "text/plain" in data:
        kept["text/plain"] = _text(data["text/plain"])
    if "text/html" in data:
        kept["text/html"] = clean_html(_text(data["text/html"]))
    elif "image/svg+xml" in data:
        kept["text/html"] = _as_picture(_text(data["image/svg+xml"]))
    for kind in ("image/png", "image/jpeg"):
        if (picture := _base64(data.get(kind))) is not None:
            kept[kind] = picture
    return kept


def _base64(text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    try:
        return base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        return None


def _as_picture(svg: str) -> str:
    title = _TITLE.search(svg)
    words = html.escape(html.unescape(re.sub(r"<[^>]*>", "", title[1])).strip()) if title else ""
    coded = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    return f'<img src="data:image/svg+xml;base64,{coded}" alt="{words}">'


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    # control characters cannot stand in XML or a terminal; the colours of tracebacks may
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]", "", value)
