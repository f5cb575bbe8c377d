"""The page of `course report`, as HTML: a reading order, tables, two plots with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from course.grading.overview import FAILED, NOT_STARTED, PARTLY, PASSED, Asked, Overview
from course.grading.similar import Pair
from course.notebook.report import prose

FEW, MANY = 5, 40
"""Rows of a table inside an exercise; rows of a table of learners. The CSV files hold all."""
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --good: #2a78b8; --half: #8fb8da; --bad: #c9822b }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .6rem 0 1.2rem }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
th, td { text-align: left; vertical-align: top; padding: .25rem .9rem .25rem 0;
  border-top: 1px solid var(--line) }
td.number { font-variant-numeric: tabular-nums }
td:first-child { min-width: 9rem }
svg { max-width: 100%; height: auto; display: block; fill: currentColor }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; max-width: 32rem }
summary { cursor: pointer }
.good { fill: var(--good) } .half { fill: var(--half) } .bad { fill: var(--bad) }
.none { fill: #8884 }
.key i { display: inline-block; width: .8em; height: .8em; margin: 0 .3rem 0 .9rem }
i.good { background: var(--good) } i.half { background: var(--half) }
i.bad { background: var(--bad) } i.none { background: #8884 }
"""
_SHADES = {PASSED: "good", PARTLY: "half", FAILED: "bad", NOT_STARTED: "none"}

Name = Callable[[str], str]


def page(overview: Overview, name: Name, *, is_named: bool) -> str:
    """The whole page. name: what a learner is called on it; is_named: whether by their own."""
    parts = [
        f"<h1>{escape(overview.chapter)}: how the class did</h1>",
        _summary(overview, is_named=is_named),
        "<h2>Points</h2>",
        _distribution(overview),
        "<h2>Exercises</h2>",
        _table_of_exercises(overview),
        *(_exercise(it) for it in overview.exercises),
        "<h2>Who needs help</h2>",
        _need_help(overview, name),
        _absent(overview, name),
        *_troubles(overview, name),
        "<h2>Similar answers</h2>",
        _alike(overview, name),
    ]
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(overview.chapter)}: report</title><style>{_STYLE}</style></head><body>"
    )
    return head + "\n".join(parts) + "</body></html>\n"


def _summary(overview: Overview, *, is_named: bool) -> str:
    scores = sorted(it.score for it in overview.graded)
    count = len(overview.results)
    others = count - len(scores)
    middle = scores[len(scores) // 2] if scores else 0
    absent = len(overview.absent)
    mended = sum(bool(it.repaired) for it in overview.results)
    troubled = sum(bool(it.troubles) for it in overview.results)
    said = [
        f"{count} submission{'s' * (count != 1)}, {len(scores)} graded.",
        f"{others} could not be graded; they stand below." if others else "",
        f"Half of the class has {_at_least(middle, overview.possible)}.",
        f"{mended} notebooks were mended on the way in." if mended else "",
        f"{absent} learner{'s' * (absent != 1)} handed nothing in." if absent else "",
        f"In {troubled} a cell was stopped or did not run, as told below." if troubled else "",
        "Points are the computed ones; what was entered by hand stands in the gradebook.",
        "" if is_named else "Learners have pseudonyms here; <code>--names</code> shows who it is.",
        "Tables with everything: learners.csv, exercises.csv, cases.csv, beside this page.",
    ]
    return f"<p>{' '.join(filter(None, said))}</p>"


def _at_least(points: float, possible: float) -> str:
    return (
        f"all {possible:g} points"
        if points == possible
        else f"{points:g} of {possible:g} points or more"
    )


def _distribution(overview: Overview) -> str:
    """A histogram in ten steps, and the same as a table."""
    steps = 10
    possible = overview.possible or 1.0
    counts = [0] * steps
    for it in overview.graded:
        counts[min(int(steps * it.score / possible), steps - 1)] += 1
    names = [f"{possible * at / steps:g} to {possible * (at + 1) / steps:g}" for at in range(steps)]
    most = max([*counts, 1])
    bars = "".join(
        f'<rect class="good" x="{60 * at + 4}" y="{150 - 120 * count / most:.1f}" width="52" '
        f'height="{120 * count / most:.1f}"/>'
        f'<text x="{60 * at + 30}" y="{145 - 120 * count / most:.1f}" text-anchor="middle" '
        f'font-size="13">{count or ""}</text>'
        f'<text x="{60 * at + 30}" y="168" text-anchor="middle" font-size="11">{names[at]}</text>'
        for at, count in enumerate(counts)
    )
    told = ", ".join(
        f"{count} with {its}" for count, its in zip(counts, names, strict=True) if count
    )
    picture = _picture(f"Learners by points: {told or 'nobody'}.", 600, 175, bars)
    rows = [[its, count] for its, count in zip(names, counts, strict=True)]
    table = _table("Learners by points", ["points", "learners"], rows)
    return f"{picture}<details><summary>The same as a table</summary>{table}</details>"


def _picture(words: str, width: int, height: int, inside: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg role="img" aria-label="{escape(words)}" {size}>{inside}</svg>'


def _table_of_exercises(overview: Overview) -> str:
    rows: list[list[object]] = []
    for it in overview.exercises:
        mistake = f"{it.mistakes[0][0]} ({it.mistakes[0][1]})" if it.mistakes else ""
        points = f"{it.mean:.2f} of {it.possible:g}" if it.possible else "none"
        link = Html(f'<a href="#{escape(it.id)}">{prose(it.title)}</a>')
        passed = f"{100 * it.share(PASSED):.0f} %"
        rows.append([link, Html(_bar(it)), passed, points, mistake, str(it.hints or "")])
    heads = ["exercise", "answers", "passed", "mean points"]
    heads += ["commonest mistake", "hints opened"]
    note = (
        "<p>Hints opened are the cells with <code>hint(...)</code> that learners left in their "
        "notebooks: their own report, never part of a grade.</p>"
    )
    key = "".join(
        f'<i class="{shade}"></i>{"in part" if status == PARTLY else status}'
        for status, shade in _SHADES.items()
    )
    table = _table("Exercises in the order of the chapter", heads, rows)
    return f'<p class="key">Answers:{key}</p>{table}{note}'


def _bar(it: Asked) -> str:
    """How many passed, in part, failed, did not start, as one line."""
    at, inside, told = 0.0, "", []
    for status, shade in _SHADES.items():
        share = it.share(status)
        inside += (
            f'<rect class="{shade}" x="{at:.1f}" y="3" width="{200 * share:.1f}" height="12"/>'
        )
        at += 200 * share
        told.append(f"{status} {100 * share:.0f} %")
    return _picture(f"{', '.join(told)}.", 200, 18, inside)


def _exercise(it: Asked) -> str:
    rows = [
        [label, f"{100 * passed / ran:.0f} %", f"{passed} of {ran}"]
        for label, (passed, ran) in it.cases.items()
    ]
    parts = [_table("Cases", ["case", "passed", "learners"], rows)] if rows else []
    if it.mistakes:
        parts.append(
            _table("Usual mistakes that were recognised", ["mistake", "learners"], it.mistakes)
        )
    if it.outputs:
        outputs = [
            [label, Html(f"<pre>{escape(got[:400])}</pre>"), count]
            for (label, got), count in it.outputs[:FEW]
        ]
        heads = ["first case that failed", "what came back", "learners"]
        kinds = f"{len(it.outputs)} kind{'s' * (len(it.outputs) != 1)}"
        title = f"Wrong in a way that no message explains ({kinds})"
        parts.append(_table(title, heads, outputs))
    inside = "".join(parts) or "<p>No answer ran.</p>"
    return f'<details id="{escape(it.id)}"><summary>{prose(it.title)}</summary>{inside}</details>'


def _need_help(overview: Overview, name: Name) -> str:
    found = overview.need_help()
    if not found:
        return "<p>Everybody has at least half of the points.</p>"
    rows = [[name(it.learner), f"{it.score:g}", why] for it, why in found[:MANY]]
    table = _table("Less than half of the points, fewest first", ["learner", "points", "why"], rows)
    return table + _more(len(found) - MANY)


def _absent(overview: Overview, name: Name) -> str:
    if not overview.absent:
        return ""
    shown = ", ".join(escape(name(it)) for it in overview.absent[:MANY])
    left = len(overview.absent) - MANY
    return f"<p>Submission nothing in: {shown}{f' and {left} more' if left > 0 else ''}.</p>"


def _troubles(overview: Overview, name: Name) -> list[str]:
    """What happened while learners' cells ran, those with points enough included."""
    rows = [[name(it.learner), " ".join(it.troubles)] for it in overview.graded if it.troubles]
    if not rows:
        return []
    table = _table("Cells that were stopped or did not run", ["learner", "what"], rows[:MANY])
    return ["<h2>What happened while it was graded</h2>", table, _more(len(rows) - MANY)]


def _alike(overview: Overview, name: Name) -> str:
    said = (
        "<p>A hint to look, not a verdict: the share of unusual runs of six tokens, names and "
        "layout aside, that two answers have in common (docs/grading.md).</p>"
    )
    groups = _groups(overview.alike)
    if not groups:
        return said + "<p>None.</p>"
    learners = {it.learner for it in overview.graded}
    rows = [
        [
            id,
            len(its),
            ", ".join(name(it) if it in learners else it for it in its[:FEW])
            + (f" and {len(its) - FEW} more" if len(its) > FEW else ""),
            f"{100 * likeness:.0f} %",
        ]
        for id, its, likeness in groups[:MANY]
    ]
    heads = ["exercise", "alike", "learners, or where it stands in the library", "at most"]
    return said + _table("Similar answers", heads, rows) + _more(len(groups) - MANY)


def _groups(pairs: Iterable[Pair]) -> list[tuple[str, list[str], float]]:
    """Exercise, who is alike, the greatest likeness; whoever is like one is like the others."""
    found: list[tuple[str, set[str], float]] = []
    for it in pairs:
        near = [g for g in found if g[0] == it.exercise and g[1] & {it.one, it.other}]
        found = [g for g in found if g not in near]
        members = {it.one, it.other}.union(*(g[1] for g in near))
        found.append((it.exercise, members, max([it.likeness, *(g[2] for g in near)])))
    found.sort(key=lambda g: (-g[2], len(g[1]), g[0]))
    return [(id, sorted(members), likeness) for id, members, likeness in found]


def _more(number: int) -> str:
    return f"<p>{number} more are not shown.</p>" if number > 0 else ""


class Html(str):
    """A text that is HTML already."""


def _table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f'<th scope="col">{escape(it)}</th>' for it in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if isinstance(value, Html):
        return f"<td>{value}</td>"
    if isinstance(value, int | float):
        return f'<td class="number">{value:g}</td>'
    return f"<td>{escape(str(value))}</td>"
