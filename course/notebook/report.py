"""What a check answers: a number, a text, a table.

`repr` of a report is its points, a bare float: nbgrader reads it as the score. `str` is the report
as text. In a notebook it is a table that needs no colour and fits light and dark themes alike. What
passed is framed by a solid line and begins with a filled sign, what did not by a dashed line and an
empty one.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from html import escape

MARKS = {"passed": "✓", "failed": "✗", "not run": "–"}


@dataclass(frozen=True)
class Row:
    """One case: what was called, what came back, what was expected, what to try."""

    label: str
    status: str
    """`passed`, `failed` or `not run`."""
    call: str = ""
    got: str = ""
    expected: str = ""
    tip: str = ""

    def details(self) -> list[tuple[str, str]]:
        """Names and texts of what is known about this case, empty ones left out."""
        named = [
            ("called", self.call),
            ("got", self.got),
            ("expected", self.expected),
            ("try", self.tip),
        ]
        return [(name, text) for name, text in named if text]


@dataclass(frozen=True)
class Report:
    """The answer to one `check`."""

    exercise_id: str
    title: str
    status: str
    """`passed`, `partly`, `failed`, `not started`, `missing`, `unfit`, `unknown` or `stopped`."""
    possible: float
    earned: float = 0.0
    message: str = ""
    """The sentence above the table: what is there to do, or the mistake that was recognised."""
    mistake: str = ""
    """Name of the usual mistake that was recognised, or the exception that kept it from running."""
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = field(default=())
    code: str = ""
    """Lines to put into the answer cell, below the message."""

    @property
    def score(self) -> float:
        """Points between 0 and what is possible, never nan."""
        earned = float(self.earned)
        return 0.0 if math.isnan(earned) else round(min(max(earned, 0.0), self.possible), 2)

    def __repr__(self) -> str:
        return repr(self.score)

    def __float__(self) -> float:
        return self.score

    @property
    def headline(self) -> str:
        """Title, points, status in one line."""
        noun = "point" if self.possible == 1 else "points"
        begin = self.title if self.title.endswith("?") else f"{self.title}:"
        # an exercise without points says nothing of them
        points = f"{self.score:g} of {self.possible:g} {noun}" if self.possible else ""
        words = {
            "not started": "not started",
            "missing": "does not run" if self.mistake else "nothing to check",
            "unfit": "nothing to check",
            "unknown": "nothing to check",
            "stopped": "stopped",
        }
        if self.status in words:
            return f"{begin} {words[self.status]}{f' ({points})' if points else ''}"
        passed = sum(row.status == "passed" for row in self.rows)
        cases = f"{passed} of {len(self.rows)} cases passed"
        return f"{begin} {', '.join(filter(None, [points, cases]))}"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.message:
            lines += _wrapped(self.message, 76, "  ")
        lines += [f"  {line}" for line in self.code.splitlines()]
        shown_in_full = False
        for row in self.rows:
            lines.append(f"  {row.status:<8} {row.label}")
            if row.status == "failed" and not shown_in_full:
                shown_in_full = True
                for name, text in row.details():
                    lines += _beside(name, text)
        for note in self.notes:
            lines += _beside("note", note)
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}

    def html(self) -> str:
        """The report as a table with caption and scoped headers; the first failure in full."""
        passed = self.status == "passed"
        sign = _SIGN_PASSED if passed else _SIGN_FAILED if self.rows else ""
        parts = [f'<div style="{_BOX_PASSED if passed else _BOX_FAILED if self.rows else _BOX}">']
        message = f'<p style="{_TEXT}">{prose(self.message)}</p>' if self.message else ""
        message += f'<pre style="{_PRE}">{escape(self.code)}</pre>' if self.code else ""
        if self.rows:
            parts += [f'<table style="{_TABLE}">', f'<caption style="{_CAPTION}">']
            parts += [f"{sign} {prose(self.headline)}{message}</caption>"]
            parts += [
                "<thead><tr>"
                + "".join(f'<th scope="col" style="{_CELL}">{h}</th>' for h in ("Result", "Case"))
                + "</tr></thead><tbody>"
            ]
            first_failure = next((r for r in self.rows if r.status == "failed"), None)
            parts += [_row_html(row, is_open=row is first_failure) for row in self.rows]
            parts.append("</tbody></table>")
        else:
            parts.append(f'<p style="{_CAPTION}">{prose(self.headline)}</p>{message}')
        parts += [f'<p style="{_TEXT}">Note: {prose(note)}</p>' for note in self.notes]
        parts.append("</div>")
        return "".join(parts)


# Only inline styles: they survive where JupyterLab and the feedback pages sanitise a stylesheet
# away. Colours come from the theme, so that a dark one stays readable.
_LINE = "1px solid var(--jp-border-color1, #8a8a8a)"
_SPACE = "padding: 2px 12px; margin: 4px 0"
_BOX = f"border-left: 4px solid var(--jp-border-color0, #8a8a8a); {_SPACE}"
_BOX_PASSED = f"border-left: 10px solid #2e8555; {_SPACE}"
_BOX_FAILED = f"border-left: 4px dashed #d1602e; {_SPACE}"
_PILL = "display: inline-block; border-radius: 9px; padding: 0 9px; margin-right: 4px; border: 2px"
_SIGN_PASSED = (
    f'<span style="{_PILL} solid #2e8555; background: #2e8555; color: #fff">✓ Passed</span>'
)
_SIGN_FAILED = f'<span style="{_PILL} dashed #d1602e">✗ Not yet</span>'
_TABLE = "border-collapse: collapse; margin: 0; min-width: min(52em, 100%); text-align: left"
_CAPTION = "caption-side: top; text-align: left; font-weight: bold; color: inherit; padding: 4px 0"
_TEXT = "font-weight: normal; max-width: 46em; margin: 4px 0; text-align: left; white-space: normal"
_CELL = f"text-align: left; vertical-align: top; padding: 3px 12px 3px 0; border-top: {_LINE}"
_PRE = "margin: 0; padding: 0; background: transparent; color: inherit; white-space: pre-wrap; "
_PRE += "overflow-wrap: anywhere; word-break: normal; border: 0"
_SUMMARY = "cursor: pointer; display: list-item"  # the feedback page hides the triangle otherwise


def _row_html(row: Row, *, is_open: bool) -> str:
    result = f"{MARKS[row.status]} {row.status}"
    weight = f"font-weight: {'bold' if row.status == 'failed' else 'normal'}"
    label = prose(row.label)
    details = row.details() if row.status == "failed" else []
    if details:
        inner = "".join(
            f'<tr><th scope="row" style="{_CELL}">{name}</th><td style="{_CELL}">'
            + (
                f'<span style="{_TEXT}">{prose(text)}</span>'
                if name == "try" and "\n" not in text
                else f'<pre style="{_PRE}">{escape(text)}</pre>'
            )
            + "</td></tr>"
            for name, text in details
        )
        state = " open" if is_open else ""
        label = (
            f'<details{state}><summary style="{_SUMMARY}">{label}</summary>'
            f'<table style="{_TABLE}">{inner}</table></details>'
        )
    return (
        f'<tr><th scope="row" style="{_CELL}; white-space: nowrap; {weight}">{result}</th>'
        f'<td style="{_CELL}">{label}</td></tr>'
    )


def prose(text: str) -> str:
    """Text as HTML, with `code` in backticks as code."""
    pieces = escape(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return "".join(
        f'<code style="white-space: nowrap">{piece}</code>' if position % 2 else piece
        for position, piece in enumerate(pieces)
    )


def _beside(name: str, text: str) -> list[str]:
    """`name` in a column, `text` beside it, line by line."""
    is_prose = name in ("try", "note") and "\n" not in text
    lines = _wrapped(text, 58) if is_prose else text.splitlines()
    return [f"           {name if i == 0 else '':<9} {line}" for i, line in enumerate(lines)]


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    # the ids of exercises have hyphens, and `nbgrader validate` cuts long lines
    wrap = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return wrap.wrap(text)
