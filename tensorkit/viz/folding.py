"""Large graphs made small: what repeats becomes one box, then stretches of the rest do.

A *group* is a list of places in the graph's order. A stretch of that order can always become one
box without making a circle, because every way out of it and back would lie inside it.
"""

from collections import Counter
from dataclasses import dataclass

from tensorkit.viz.reading import Vertex

LONGEST_BLOCK = 80
MOST_LEAVES_AT_ONE = 5


@dataclass
class Group:
    """Some vertices drawn as one box; ``times`` and ``block`` if they are a repeated block."""

    members: list[int]
    times: int = 1
    block: int = 1


def fold(vertices: list[Vertex], most: int) -> list[Group]:
    """Groups that hold each vertex once, in an order in which inputs come first; about ``most``."""
    if len(vertices) <= most:
        return [Group([place]) for place in range(len(vertices))]
    operations = [place for place, it in enumerate(vertices) if not it.is_leaf]
    groups = _blocks(vertices, operations)
    if len(groups) > most:
        groups = _stretches(groups, max(most // 2, 2))
    return _with_leaves(vertices, groups)


def _blocks(vertices: list[Vertex], operations: list[int]) -> list[Group]:
    """The operations, with each block that follows itself at least twice as one group."""
    labels = [(vertices[place].title, vertices[place].form) for place in operations]
    n = len(labels)
    # repeats[block][place]: how many labels from here on are as those one block later
    repeats: dict[int, list[int]] = {}
    for block in range(1, min(LONGEST_BLOCK, n // 2) + 1):
        run = [0] * (n + 1)
        for place in reversed(range(n - block)):
            run[place] = run[place + 1] + 1 if labels[place] == labels[place + block] else 0
        repeats[block] = run
    groups, place = [], 0
    while place < n:
        best, best_times = 1, 1
        for block, run in repeats.items():
            times = run[place] // block + 1
            if times >= 3 and block * (times - 1) > best * (best_times - 1):
                best, best_times = block, times
        groups.append(Group(operations[place : place + best * best_times], best_times, best))
        place += best * best_times
    return groups


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
