"""Large graphs made small: what repeats becomes one box, or else equal stretches do.

A *group* is a list of vertices, by number. A stretch of the graph's order can always become one box
without making a circle, because every way out of it and back would lie inside it.
"""

from dataclasses import dataclass

from tensorkit.viz.autograd_graph import Vertex

LONGEST_BLOCK = 80


@dataclass
class Group:
    """Vertices drawn as one box; ``times`` and ``block`` if they are a repeated block."""

    members: list[int]
    times: int = 1
    block: int = 1


def fold(vertices: list[Vertex], most: int) -> list[Group]:
    """Groups that hold each vertex once, in an order in which inputs come first; about ``most``."""
    if len(vertices) <= most:
        return [Group([number]) for number in range(len(vertices))]
    operations = [number for number, it in enumerate(vertices) if not it.is_leaf]
    blocks = _repeated_blocks(vertices, operations)
    folded = _with_leaves(vertices, blocks)
    if len(folded) <= most:
        return folded
    *rest, last = operations
    size = -(-2 * len(rest) // most)
    stretches = [Group(rest[start : start + size]) for start in range(0, len(rest), size)]
    return _with_leaves(vertices, [*stretches, Group([last])])


def _repeated_blocks(vertices: list[Vertex], operations: list[int]) -> list[Group]:
    """The operations, with each block that follows itself at least twice as one group."""
    labels = [(vertices[it].title, vertices[it].form) for it in operations]

    def repeats(start: int, block: int) -> int:
        times = 1
        first = labels[start : start + block]
        while labels[start + times * block : start + (times + 1) * block] == first:
            times += 1
        return times

    groups, start = [], 0
    while start < len(labels):
        best = (0, -1, 1)  # operations saved, the shortest block of these, how often it is there
        for block in range(1, min(LONGEST_BLOCK, (len(labels) - start) // 3) + 1):
            if labels[start] == labels[start + block] and (times := repeats(start, block)) > 2:
                best = max(best, (block * (times - 1), -block, times))
        _, block, times = best
        groups.append(Group(operations[start : start - block * times], times, -block))
        start -= block * times
    return groups


def _with_leaves(vertices: list[Vertex], groups: list[Group]) -> list[Group]:
    """Leaves inside the folded group that uses them first, or together before an operation."""
    group_of = {it: number for number, group in enumerate(groups) for it in group.members}
    leaves: dict[int, Group] = {}
    placed: set[int] = set()
    for number, group in group_of.items():
        for source in vertices[number].inputs:
            if source is not None and vertices[source].is_leaf and source not in placed:
                placed.add(source)
                home = groups[group] if len(groups[group].members) > 1 else None
                (home or leaves.setdefault(group, Group([]))).members.append(source)
    return [*leaves.values(), *groups]


def edges(vertices: list[Vertex], groups: list[Group]) -> list[tuple[int, int]]:
    """The edges between groups: (from, to), each once if something is folded."""
    group_of = {it: number for number, group in enumerate(groups) for it in group.members}
    ends = [
        (group_of[source], group_of[number])
        for number, vertex in enumerate(vertices)
        for source in vertex.inputs
        if source is not None and group_of[source] != group_of[number]
    ]
    return ends if len(groups) == len(vertices) else list(dict.fromkeys(ends))
