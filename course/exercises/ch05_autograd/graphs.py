"""Graphs for the exercises about the order of a walk: from a node's name to its inputs' names."""

from __future__ import annotations

from course.notebook.exercise import Draw

Graph = dict[str, list[str]]


def node_names(draw: Draw, fewest: int, most: int) -> list[str]:
    """Different letters from a to w."""
    return [chr(ord("a") + number) for number in draw.distinct(draw.integer(fewest, most), 0, 22)]


def chain(names: list[str], last: str) -> Graph:
    """Each of these nodes has the next one as its input, the last of them `last`."""
    return {name: [source] for name, source in zip(names, [*names[1:], last], strict=True)}


def diamond(arms: list[str]) -> Graph:
    return {"loss": arms, **{arm: ["x"] for arm in arms}, "x": []}


def residual(names: list[str]) -> Graph:
    """Two blocks: one of all the names but the first, one of the first."""
    first, *names_after = names
    return {
        "loss": ["add2"],
        "add2": ["add1", names_after[0]],
        **chain(names_after, "add1"),
        "add1": ["x", first],
        first: ["x"],
        "x": [],
    }
