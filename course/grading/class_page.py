"""The page of `course report`: its template with the charts and tables that it shows."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from course.grading.class_report import (
    STATUSES,
    ClassReport,
    ExerciseSummary,
    Name,
    shown_answer,
)
from course.grading.similar import Pair
from course.grading.template import template
from course.shared.words import listed

FEW, MANY = 5, 40
"""How many ways to be wrong, and learners in a list, are shown of one exercise; the rows of a table
of learners. The file learners.csv holds all learners."""
FIRST = 10
"""Learners who need help that are shown at once."""
WIDE, NARROW = 760, 380
"""Pixels that a chart has on a screen, and on that of a phone."""
N_STEPS = 10
"""Bars in the chart of points."""


def page(report: ClassReport, title: str, name: Name, *, is_named: bool) -> str:
    """The whole page.

    title: the chapter's. name: gives the name that the page has for a learner. is_named: whether
    that is the learner's own name, and no pseudonym.
    """

    def called(learners: Sequence[str], most: int = FEW) -> str:
        return listed(list(map(name, learners)), most)

    known = {result.learner for result in report.graded}
    return template("class_report.html.j2").render(
        report=report,
        title=title,
        name=name,
        called=called,
        shown=partial(shown_answer, is_named=is_named),
        is_named=is_named,
        charts=[_points_chart(report), _exercises_chart(report)] if report.exercises else [],
        groups=[
            (id, [name(member) if member in known else member for member in members], likeness)
            for id, members, likeness in groups_of(report.alike)
        ],
        troubled=[result for result in report.graded if result.troubles],
        few=FEW,
        many=MANY,
        first=FIRST,
    )


def groups_of(pairs: Iterable[Pair]) -> list[tuple[str, list[str], float]]:
    """Groups of pairs that share a learner: exercise, learners, the greatest likeness."""
    groups: list[tuple[str, set[str], float]] = []
    for pair in pairs:
        near = [g for g in groups if g[0] == pair.exercise and g[1] & {pair.learner, pair.source}]
        groups = [g for g in groups if g not in near]
        members = {pair.learner, pair.source}.union(*(g[1] for g in near))
        groups.append((pair.exercise, members, max([pair.likeness, *(g[2] for g in near)])))
    groups.sort(key=lambda g: (-g[2], len(g[1]), g[0]))
    return [(id, sorted(members), likeness) for id, members, likeness in groups]


# charts


def _points_chart(report: ClassReport) -> dict[str, str]:
    """How many learners have how many points, in ten steps."""
    possible = report.possible or 1.0
    counts = [0] * N_STEPS
    for result in report.graded:
        counts[min(int(N_STEPS * report.points(result) / possible), N_STEPS - 1)] += 1
    edges = [f"{possible * n / N_STEPS:g}" for n in range(N_STEPS + 1)]
    named = [
        f"{count} with {edges[n]} to {edges[n + 1]}" for n, count in enumerate(counts) if count
    ]

    def draw(axes: Any) -> None:
        from tensorkit.viz.drawing import BLUE

        bars = axes.bar(range(N_STEPS), counts, width=0.94, align="edge", color=BLUE)
        axes.bar_label(bars, [count or "" for count in counts], padding=2)
        axes.set_xticks(range(N_STEPS + 1), edges)
        axes.set(xlabel="points", yticks=[], ylim=(0, 1.2 * max(counts)))

    return _chart("Learners by points", f"{', '.join(named)}.", draw, 190, 190)


def _exercises_chart(report: ClassReport) -> dict[str, str]:
    """How the answers to each exercise are, in the order of the chapter."""
    exercises = report.exercises
    named = []
    for summary in exercises:
        counts = [f"{count} {status}" for status, count in summary.counts.items() if count]
        named.append(f"{_plain(summary)}: {', '.join(counts)}")

    def draw(axes: Any) -> None:
        from tensorkit.viz.drawing import FAINT, GREEN, ORANGE, RED

        left = [0] * len(exercises)
        for status, colour in zip(STATUSES, (GREEN, ORANGE, RED, FAINT), strict=True):
            counts = [exercise.counts[status] for exercise in exercises]
            bars = axes.barh(range(len(counts)), counts, left=left, color=colour, label=status)
            axes.bar_label(bars, [count or "" for count in counts], label_type="center")
            left = [a + b for a, b in zip(left, counts, strict=True)]
        titles = [
            textwrap.shorten(_plain(exercise), 34, placeholder=" ...") for exercise in exercises
        ]
        titles = ["\n".join(textwrap.wrap(title, 18)) for title in titles]
        axes.set_yticks(range(len(titles)), titles)
        axes.set_ylim(len(titles) - 0.4, -0.6)
        axes.set_xticks([])
        axes.legend(loc="lower left", bbox_to_anchor=(-0.32, 1.0), ncols=4, handlelength=1,
                    columnspacing=1, borderpad=0)  # fmt: skip

    height = 50 + 36 * len(exercises)
    return _chart("Answers to each exercise", "; ".join(named) + ".", draw, height, height)


def _plain(exercise: ExerciseSummary) -> str:
    return exercise.title.replace("`", "")


def _chart(title: str, words: str, draw: Any, height: int, narrow_height: int) -> dict[str, str]:
    """A chart for wide screens and for narrow ones, and the same in words."""
    from tensorkit.viz.charts import chart

    def drawn(width: int, height: int) -> str:
        picture = chart(title, words, draw, size=(width, height))
        data = base64.b64encode(picture.svg.encode()).decode()
        return f"data:image/svg+xml;base64,{data}"

    return {
        "title": title,
        "words": words,
        "wide": drawn(WIDE, height),
        "narrow": drawn(NARROW, narrow_height),
    }
