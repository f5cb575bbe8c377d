"""Answers that are alike: a hint to look, never a verdict.

The measure: an answer's program becomes a row of tokens in which comments, layout and docstrings
are gone and every name that the answer itself binds is the same sign, so that renaming changes
nothing. Its *shingles* are the runs of `LENGTH` tokens. Shingles that many answers share (the head
of the function, the way everybody writes it) say nothing and are left out; of the rare ones that
two answers have, the share that both have is their likeness. Short answers are not compared: there
are few ways to write three lines.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path

import tensorkit

LENGTH = 6
COMMON, CROWD = 0.1, 50
"""What more than this share of the answers have (and more than two), or this many, is common."""
LEAST, ALIKE = 12, 0.6
"""Rare shingles that an answer must have to be compared, and the likeness from which on."""
MOST = 200_000
"""Characters of one answer."""

Shingle = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two answers to one exercise, or an answer and a function of the library."""

    exercise: str
    one: str
    other: str
    likeness: float
    shared: int


@lru_cache(100_000)  # each answer is looked at twice, and many are the same
def shingles(source: str) -> frozenset[Shingle]:
    """The runs of tokens of a program; none for a text that is no program.

    >>> shingles("def f(a, b):\\n  return a + b * 2") == shingles("def f(x, y): return x+y*2  # !")
    True
    """
    row = _tokens(source[:MOST])
    return frozenset(tuple(row[at : at + LENGTH]) for at in range(len(row) - LENGTH + 1))


def _tokens(source: str) -> list[str]:
    try:
        own = _bound(source)
        found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return []
    row: list[str] = []
    begins = True  # of a statement: a text that stands there alone is a docstring
    for it in found:
        if it.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL):
            begins = True
        elif it.type != tokenize.COMMENT and it.string:
            if not (begins and it.type == tokenize.STRING):
                row.append("name" if it.string in own else it.string)
            begins = False
    return row


def _bound(source: str) -> set[str]:
    """The names that a program gives to its own variables and arguments."""
    nodes = list(ast.walk(ast.parse(source)))
    stored = {it.id for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    return stored | {it.arg for it in nodes if isinstance(it, ast.arg)}


def pairs(exercise: str, answers: Mapping[str, str]) -> Iterator[Pair]:
    """The pairs of alike answers to one exercise, by learner; the most alike first."""
    each = {who: shingles(text) for who, text in answers.items()}
    counted = Counter(it for found in each.values() for it in found)
    most = max(2, min(COMMON * len(each), CROWD))
    rare = {who: {it for it in found if counted[it] <= most} for who, found in each.items()}
    holders: dict[Shingle, list[str]] = defaultdict(list)
    for who, found in rare.items():
        if len(found) >= LEAST:
            for it in found:
                holders[it].append(who)
    shared = Counter(pair for whos in holders.values() for pair in combinations(sorted(whos), 2))
    for (one, other), number in shared.most_common():
        likeness = number / len(rare[one] | rare[other])
        if likeness >= ALIKE:
            yield Pair(exercise, one, other, likeness, number)


def from_library(exercise: str, answers: Mapping[str, str], known: Iterable[str]) -> Iterator[Pair]:
    """The answers that are largely a function of the library.

    known: what says nothing, such as the released stub and the worked solution.
    """
    nothing = frozenset[Shingle]().union(*map(shingles, known))
    for who, text in answers.items():
        mine = shingles(text) - nothing
        if len(mine) < LEAST:
            continue
        places = Counter(place for it in mine for place in _library().get(it, ()))
        place, number = min(places.items(), key=lambda it: (-it[1], it[0]), default=("", 0))
        if number >= ALIKE * len(mine):
            yield Pair(exercise, who, place, number / len(mine), number)


@cache
def _library() -> Mapping[Shingle, tuple[str, ...]]:
    """The library's functions by their shingles."""
    found: dict[Shingle, set[str]] = defaultdict(set)
    top = Path(tensorkit.__path__[0])
    for file in sorted(top.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                own = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                place = f"{file.relative_to(top.parent).as_posix()}: {node.name}"
                for it in shingles(textwrap.dedent(own)):
                    found[it].add(place)
    return {it: tuple(sorted(places)) for it, places in found.items()}
