"""Graphs for the exercises about the order of a walk: from a node's name to its inputs' names."""

from __future__ import annotations

from course.notebook.exercise import Draw

Graph = dict[str, list[str]]


def node_names(draw: Draw, fewest: int, most: int) -> list[str]:
    """Different letters from a to w."""
    return [chr(ord("a") + number) for number in draw.distinct(draw.integer(fewest, most), 0, 22)]


def chain(names: list[str], last: str) -> Graph:
    """A chain: the input of each node is the next one, and that of the last node is `last`."""
    return {name: [source] for name, source in zip(names, [*names[1:], last], strict=True)}


def diamond(arms: list[str]) -> Graph:
    return {"loss": arms, **{arm: ["x"] for arm in arms}, "x": []}


def residual(names: list[str]) -> Graph:
    """A graph of two residual blocks: a chain of all names but the first, and the first alone."""
    first, *names_after = names
    return {
        "loss": ["add2"],
        "add2": ["add1", names_after[0]],
        **chain(names_after, "add1"),
        "add1": ["x", first],
        first: ["x"],
        "x": [],
    }
