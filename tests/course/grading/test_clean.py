"""What a browser is given of a learner's notebook, and what it is not."""

from __future__ import annotations

import base64
import html
import json
import time

import pytest
from classroom import CHAPTER

from course.grading import writer
from course.grading.clean import Quota, clean_html, clean_markdown, clean_outputs
from course.grading.result import Result
from course.notebook.matching import Source

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src="x" onerror="alert(1)">',
    '<a href="javascript:alert(1)">x</a>',
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    "[x](javascript:alert(1))",
    "![x](https://tracker.example/pixel.png)",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<SVG/onload=alert(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table>",
    '<form action="/hub"><input name="x"></form>',
    '<div style="background: url(javascript:alert(1))">x</div>',
    "<details ontoggle=alert(1) open>x</details>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "`<img src=x onerror=alert(1)>`\n\n<img src=x onerror=alert(1)>",
    "<div>\n\n<script>alert(1)</script>\n\n</div>",
    "<p>a\n\n    <img src=x onerror=alert(1)>",
    "$<img src=x onerror=alert(1)>$",
    "[x]: javascript:alert(1)\n[x]",
    "<base href='//evil.example'><link rel=stylesheet href='//evil.example'>",
    "<object data='x'></object><embed src='x'>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
]


def dangers(page: str) -> list[str]:
    """What a browser would run or load in a page."""
    from bs4 import BeautifulSoup

    found = []
    for tag in BeautifulSoup(page, "html.parser").find_all(True):
        if tag.name in (
            "script",
            "iframe",
            "object",
            "embed",
            "form",
            "base",
            "link",
            "style",
            "svg",
        ):
            found.append(tag.name)
        for name, value in tag.attrs.items():
            text = str(value).strip().lower()
            if name.startswith("on") or name in ("style", "srcdoc", "action", "formaction"):
                found.append(f"{tag.name} {name}")
            if name in ("href", "src") and not text.startswith(
                ("http", "mailto", "data:image/", "#")
            ):
                found.append(f"{tag.name} {name}={text}")
            if name == "src" and not text.startswith("data:image/"):
                found.append(f"{tag.name} loads {text}")
    return found


ON_THE_SERVER = [
    "evil.html",
    "..%2F..%2F..%2Fsubmitted%2Feve%2F01_tensors%2Fevil.html",
    "/formgrader/submissions/1/evil.html",
    "//localhost/evil.html",
    "http:evil.html",
    "\\evil.html",
    "?path=evil.html",
    "file:///evil.html",
]


@pytest.mark.parametrize("address", ON_THE_SERVER)
def test_no_link_leads_to_a_file_that_was_handed_in(address: str) -> None:
    # stock: one click on it, and the file's script runs as the instructor
    for text in (f"[x]({address})", f'<a href="{address}">x</a>', f"[x]\n\n[x]: {address}"):
        assert "href" not in clean_markdown(text)
        assert "href" not in clean_html(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_html_runs_and_loads_nothing(text: str) -> None:
    assert dangers(clean_html(text)) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_runs_and_loads_nothing(text: str) -> None:
    from nbconvert.filters.markdown import markdown2html

    assert dangers(markdown2html(clean_markdown(text))) == []


def test_markdown_still_says_what_it_said() -> None:
    from nbconvert.filters.markdown import markdown2html

    source = "# Mine\n\nSee [this](https://example.com), and `a < b`:\n\n```\nx = 1\n\ny = 2\n```\n"
    shown = markdown2html(clean_markdown(source))
    for wanted in ("<h1", "Mine", 'href="https://example.com"', "a &lt; b", "x = 1", "y = 2"):
        assert wanted in shown


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("My sketch:\n\n![a <b> row](attachment:image.png)", "a picture: a"),
        ("![sketch][1]\n\n[1]: attachment:image.png", "![sketch][1]"),
    ],
)
def test_a_picture_that_is_not_there_is_named(text: str, kept: str) -> None:
    # nbconvert raises: one pasted picture would end the writing of everybody's grades
    assert kept in html.unescape(clean_markdown(text))


def test_a_drawing_becomes_a_picture() -> None:
    svg = "<svg><script>alert(1)</script></svg>"
    (output,) = clean_outputs([{"output_type": "display_data", "data": {"image/svg+xml": svg}}])
    assert output["data"]["text/html"].startswith('<img src="data:image/svg+xml;base64,')
    assert clean_html(f"<figure>{svg}</figure>") == "<figure></figure>"


def test_outputs_of_known_shapes_stay() -> None:
    png = base64.b64encode(b"\x89PNG").decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "1\n"},
        {"output_type": "execute_result", "execution_count": 3, "data": {"text/plain": "2"}},
        {"output_type": "display_data", "data": {"image/png": png + "\n", "text/plain": "x"}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m"]},
    ]
    cleaned = clean_outputs(outputs)
    assert [each["output_type"] for each in cleaned] == [
        output["output_type"] for output in outputs
    ]
    assert cleaned[2]["data"]["image/png"] == png


@pytest.mark.parametrize(
    "output",
    [
        None,
        [],
        {"output_type": "update_display_data", "data": {}},
        {"output_type": ["stream"]},
    ],
)
def test_outputs_of_other_shapes_go(output: object) -> None:
    assert clean_outputs([output]) == []


@pytest.mark.parametrize(
    "data",
    [
        {"application/javascript": "alert(1)"},
        {"application/vnd.jupyter.widget-view+json": "{}"},
        {"text/markdown": "<script>alert(1)</script>"},
        {"text/latex": r"\href{javascript:alert(1)}{x}"},
        {"image/png": '" onerror="alert(1)'},
        {"image/png": {"x": 1}},
        {"text/html": "<script>alert(1)</script>"},
    ],
)
def test_an_output_that_would_run_loses_what_runs(data: dict[str, object]) -> None:
    cleaned = clean_outputs([{"output_type": "display_data", "data": {"text/plain": "x", **data}}])
    assert [each["data"].pop("text/plain") for each in cleaned] == ["x"]
    assert "alert" not in json.dumps(cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "<svg " * 200_000,
        "<svg>" + "<title>" * 140_000 + "</svg>",
        "<svg><title>" + "<" * 1_000_000 + "</title></svg>",
        "<div>" * 200_000,
        "<b>" + " " * 1_000_000 + "</b>",
        "# a\n" * 250_000,
        "a" + " " * 1_000_000 + "b",
    ],
)
def test_a_text_made_to_take_long_does_not(text: str) -> None:
    # each takes minutes to hours where a pattern or a renderer costs the square of it
    begun = time.process_time()
    clean_outputs([{"output_type": "display_data", "data": {"text/html": text}}])
    clean_outputs([{"output_type": "display_data", "data": {"image/svg+xml": text}}])
    assert " " * 1000 not in clean_markdown(text)
    assert time.process_time() - begun < 20


def test_what_is_too_much_for_a_notebook_stands_there_as_text() -> None:
    quota = Quota(tags=3, markdown=30)
    assert clean_html("<b>1</b>", quota) == "<b>1</b>"
    assert clean_html("<b>2</b>", quota) == "<pre>&lt;b&gt;2&lt;/b&gt;</pre>"
    assert clean_markdown("*One*, which is short enough", quota) == "*One*, which is short enough"
    assert clean_markdown("*Two* <b>", quota) == "<div><pre>*Two* &lt;b&gt;</pre></div>"


def test_what_stands_above_a_notebook_is_escaped(source: Source) -> None:
    # names of a learner's files stand in these sentences
    troubles = ('*One* <script>alert(1)</script> & "two"', "Three.")
    (note, *_) = json.loads(writer.autograded(Result("ada", CHAPTER, troubles=troubles), source))[
        "cells"
    ]
    assert note["source"] == (
        "<div><strong>About this submission</strong><ul>"
        "<li>*One* &lt;script&gt;alert(1)&lt;/script&gt; &amp; &#34;two&#34;</li><li>Three.</li>"
        "</ul></div>"
    )
