"""``explain.broadcast``: whether shapes fit together, and what would make them fit."""

from collections.abc import Iterator
from itertools import combinations
from math import prod
from typing import Any

from tensorkit import creation
from tensorkit.viz._grids import Alignment, Operand, operands_from, picture
from tensorkit.viz.picture import Explanation, Repair

MOST_REPAIRS = 3


def broadcast(*shapes_or_tensors: Any, **named: Any) -> Explanation:
    """Why shapes broadcast or do not, and the ``unsqueeze``, ``view`` or transpose that helps.

    Each repair was run before it is offered.

    >>> from tensorkit import explain
    >>> explain.broadcast((3, 4), (3,)).repairs
    ['b.unsqueeze(1)', 'a.T', 'a.unsqueeze(2)']
    """
    operands = operands_from("explain.broadcast", shapes_or_tensors, named)
    alignment = Alignment(operands)
    names = " and ".join(f"{operand.name} {operand.shape}" for operand in operands)
    title, changes = f"{names} broadcast", _changes(operands)
    sentences = ["Shapes are aligned at the right. Sizes fit if they are equal or one is 1."]
    sentences.append(f"{alignment.verdict}.")
    effect = "{1} gets shape {2}, together {3}"
    if alignment.shape is None:
        title = f"{names} do not broadcast"
        if not changes:
            sentences.append("No single unsqueeze, transpose or view makes these shapes fit.")
    else:
        effect = "if the elements are meant in pairs, {1} gets shape {2}"
        has_grown = prod(alignment.shape) > max([1, *(prod(operand.shape) for operand in operands)])
        wanted = (operands[0].shape, operands[-1].shape)
        changes = [change for change in changes if has_grown and change[-1] in wanted]
    repairs = [Repair(change[0], effect.format(*change)) for change in changes]
    return Explanation(title, *sentences, repairs=repairs, picture=picture(alignment))


Change = tuple[str, str, tuple[int, ...], tuple[int, ...]]  # code; name, its shape, the result's


def _changes(operands: list[Operand]) -> list[Change]:
    """Changes of one operand that were run and gave shapes that fit, the likeliest first."""
    found: list[Any] = []
    for number, operand in enumerate(operands):
        for rank, code in _ideas(operand, operands):
            x = operand.tensor
            x = creation.empty(()).expand(operand.shape) if x is None else x.detach()
            try:
                shape = tuple(eval(f"x{code}", {"x": x}).shape)
            except (RuntimeError, IndexError, TypeError, ValueError):
                continue
            after = [*operands[:number], Operand(operand.name, shape), *operands[number + 1 :]]
            result = Alignment(after).shape
            if result is not None:
                # the fewest new elements first: that is most often what was meant
                likelihood = (prod(result), rank, -number, len(found))
                found.append((likelihood, f"{operand.name}{code}", (operand.name, shape, result)))
    different: dict[Any, Change] = {}
    for _, code, change in sorted(found):
        different.setdefault(change, (code, *change))
    return list(different.values())[:MOST_REPAIRS]


def _ideas(operand: Operand, operands: list[Operand]) -> Iterator[tuple[int, str]]:
    """What might help: how far-fetched it is, and the code after the name."""
    n_dims = len(operand.shape)
    for dim in range(1, n_dims + 1):
        yield 0, f".unsqueeze({dim})"
    if n_dims == 2:
        yield 1, ".T"
    for first, second in combinations(range(n_dims), 2) if n_dims > 2 else ():
        yield 1, f".transpose({first}, {second})"
    for other in operands:
        if other is not operand and prod(other.shape) == prod(operand.shape):
            yield 2, f".view({', '.join(map(str, other.shape))})"
