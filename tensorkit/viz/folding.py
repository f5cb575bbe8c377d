"""Large graphs made small: what repeats becomes one box, then stretches of the rest do.

A *group* is a list of places in the graph's order. A stretch of that order can always become one
box without making a circle, because every way out of it and back would lie inside it.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tensorkit.viz.reading import Vertex

LONGEST_BLOCK = 80
MOST_LEAVES_AT_ONE = 4


@dataclass
class Group:
    """Some vertices drawn as one box; ``times`` and ``block`` if they are a repeated block,
    ``module`` if they belong to one."""

    members: list[int]
    times: int = 1
    block: int = 1
    module: str = ""


def fold(vertices: list[Vertex], most: int) -> list[Group]:
    """Groups that hold each vertex once, in an order in which inputs come first; about ``most``."""
    if len(vertices) <= most:
        return [Group([place]) for place in range(len(vertices))]
    operations = [place for place, it in enumerate(vertices) if not it.is_leaf]
    blocks = _blocks(vertices, operations)
    folded = _with_leaves(vertices, blocks)
    if len(folded) > most:
        alone = [Group([place]) for place in operations]
        parts = _modules(vertices, alone, most) or _stretches(blocks, max(most // 2, 2))
        folded = _with_leaves(vertices, parts)
    return folded


def _blocks(vertices: list[Vertex], operations: list[int]) -> list[Group]:
    """The operations, with each block that follows itself at least twice as one group."""
    labels = [(vertices[place].title, vertices[place].form) for place in operations]
    n = len(labels)
    number_of = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    numbers = np.array([number_of[label] for label in labels])
    longest = min(LONGEST_BLOCK, n // 3)
    # how often the block of each length that begins at each place follows itself
    times = np.ones((longest + 1, n), int)
    for block in range(1, longest + 1):
        ends = np.where(numbers[:-block] == numbers[block:], n, np.arange(n - block))
        first_end = np.minimum.accumulate(np.append(ends, n - block)[::-1])[::-1]
        times[block, : n - block] = (first_end[:-1] - np.arange(n - block)) // block + 1
    gains = np.where(times >= 3, np.arange(longest + 1)[:, None] * (times - 1), 0)
    best = gains.argmax(axis=0)  # of equal gains the shortest block
    groups, place = [], 0
    while place < n:
        block, n_times = max(int(best[place]), 1), int(times[best[place], place])
        groups.append(Group(operations[place : place + block * n_times], n_times, block))
        place += block * n_times
    return groups


def _modules(vertices: list[Vertex], groups: list[Group], most: int) -> list[Group]:
    """Neighbours that use parameters of one module joined, as deep in its tree as ``most`` permits.

    Operations without parameters belong to the module before them. Empty if there are no modules.
    """
    paths, current = [], ""
    for group in groups:
        sources = [at for it in group.members for at in vertices[it].inputs if at is not None]
        named = [vertices[at].name for at in sources if "." in vertices[at].name]
        current = named[-1].rpartition(".")[0] if named else current
        paths.append(current.split("."))
    for depth in range(max(map(len, paths)), 0, -1):
        joined: list[Group] = []
        for path, group in zip(paths, groups, strict=True):
            module = ".".join(path[:depth])
            if joined and joined[-1].module == module:
                joined[-1].members.extend(group.members)
            else:
                joined.append(Group(list(group.members), module=module))
        if 1 < len(joined) <= most:
            return joined
    return []


def _stretches(groups: list[Group], wanted: int) -> list[Group]:
    """Neighbouring groups joined until ``wanted`` are left; the last operation stays alone."""
    *rest, last = groups
    size = -(-len(rest) // wanted)
    joined = []
    for start in range(0, len(rest), size):
        part = rest[start : start + size]
        joined.append(
            part[0] if len(part) == 1 else Group([it for group in part for it in group.members])
        )
    return [*joined, last]


def _with_leaves(vertices: list[Vertex], groups: list[Group]) -> list[Group]:
    """Leaves put where they are used: inside a group that alone uses them, else beside it."""
    home = {place: number for number, group in enumerate(groups) for place in group.members}
    users: dict[int, set[int]] = {}
    for place, vertex in enumerate(vertices):
        for source in vertex.inputs:
            if source is not None and vertices[source].is_leaf:
                users.setdefault(source, set()).add(home[place])
    outside: list[int] = []
    for leaf in sorted(users):
        (*others, first) = sorted(users[leaf], reverse=True)
        if not others and len(groups[first].members) > 1:
            groups[first].members.append(leaf)
        else:
            outside.append(leaf)
    shared = Counter(tuple(sorted(users[leaf])) for leaf in outside)
    together: dict[tuple[int, ...], Group] = {}
    leaves: list[Group] = []
    for leaf in outside:
        key = tuple(sorted(users[leaf]))
        if shared[key] > MOST_LEAVES_AT_ONE and key in together:
            together[key].members.append(leaf)
        else:
            together[key] = Group([leaf])
            leaves.append(together[key])
    return [*leaves, *groups]


def edges(vertices: list[Vertex], groups: list[Group]) -> list[tuple[int, int]]:
    """The edges between groups: (from, to), each once if one of both is folded."""
    home = {place: number for number, group in enumerate(groups) for place in group.members}
    found: list[tuple[int, int]] = []
    for place, vertex in enumerate(vertices):
        for source in vertex.inputs:
            if source is not None and home[source] != home[place]:
                edge = home[source], home[place]
                folded = max(len(groups[number].members) for number in edge) > 1
                if not folded or edge not in found:
                    found.append(edge)
    return found
