"""Answers that are alike: a hint to look, never a verdict.

The measure: an answer's program becomes a row of tokens in which comments, layout and docstrings
are gone and every name that the answer itself binds is the same sign, so that renaming changes
nothing. Its *shingles* are the runs of `LENGTH` tokens. Two kinds of shingles say nothing and are
left out: those of the code that belongs to the exercise (`given_code`), and those that occur in
many different rows. Of the others, the rare ones, the share that two answers have in common is
their likeness. Answers with few rare shingles are not compared: there are few ways to write three
lines.

Answers with the same row count once where shingles are counted: twenty renamed copies of one
unusual answer do not make it usual. What many learners think of by themselves is usual, because
each writes it a little otherwise.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path

import tensorkit
from course.notebook.exercise import Exercise

LENGTH = 6
COMMON, CROWD = 0.1, 50
"""What more than this share of the different rows have (and more than two), or this many, is
common."""
LEAST, ALIKE = 24, 0.6
"""Rare shingles that an answer must have to be compared, and the likeness from which on."""
MOST = 20_000
"""Characters of one answer that are read."""

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
def shingles(source: str, bound: frozenset[str] = frozenset()) -> frozenset[Shingle]:
    """The runs of tokens of a program; none for a text that is no program.

    bound: names that count as the program's own, besides those that it binds.

    >>> shingles("def f(a, b):\\n  return a + b * 2") == shingles("def f(x, y): return x+y*2  # !")
    True
    """
    row = _row(source, bound)
    return frozenset(row[at : at + LENGTH] for at in range(len(row) - LENGTH + 1))


def given_code(definition: Exercise, cells: Iterable[str] = ()) -> frozenset[Shingle]:
    """The shingles of all code that belongs to an exercise, which many learners write.

    That is the released answer, the worked solution, code in the hints, the usual mistakes, and the
    code `cells` of the released notebook.
    """
    solution = definition.solution_source
    fragments = [code for hint in definition.hints for code in re.findall(r"`+([^`]+)`", hint)]
    own = frozenset(_bound(ast.parse(solution)))
    mistakes = [
        textwrap.dedent(inspect.getsource(answer))
        for answer, *_ in definition.usual_mistakes.values()
        if inspect.isfunction(answer)
    ]
    texts = (definition.released_source, solution, *mistakes, *cells)
    programs = [shingles(text) for text in texts]
    return frozenset().union(*programs, *(shingles(text.strip(), own) for text in fragments))


@lru_cache(100_000)
def _row(source: str, bound: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The tokens of a program, its own names replaced; none for a text that is no program."""
    try:
        tree = ast.parse(source[:MOST])
        text = ast.unparse(tree)  # the same text for every layout
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = _bound(tree) | bound
    return tuple("name" if token in names else token for token in _tokens(text))


def _tokens(source: str) -> list[str]:
    """The tokens of a program without comments, layout and docstrings."""
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    row: list[str] = []
    begins = True  # of a statement: a text that stands there alone is a docstring
    for token in found:
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL):
            begins = True
        elif token.type != tokenize.COMMENT and token.string:
            if not (begins and token.type == tokenize.STRING):
                row.append(token.string)
            begins = False
    return row


def _bound(tree: ast.Module) -> set[str]:
    """The names that a program gives to its own functions, variables and arguments."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias) and node.asname:
            names.add(node.asname)
    return names


def pairs(
    exercise: str, answers: Mapping[str, str], given: Set[Shingle] = frozenset()
) -> Iterator[Pair]:
    """The pairs of alike answers to one exercise, by learner; the most alike first.

    Of the learners whose answers have the same row of tokens each makes a pair with the first.

    given: the shingles that say nothing, of `given_code`.
    """
    learners: dict[tuple[str, ...], list[str]] = defaultdict(list)
    unusual: dict[str, frozenset[Shingle]] = {}  # by the first learner with an answer
    for who, text in answers.items():
        equal = learners[_row(text)]
        equal.append(who)
        if len(equal) == 1:
            unusual[who] = shingles(text) - given
    counted = Counter(shingle for found in unusual.values() for shingle in found)
    most = max(2, min(COMMON * len(unusual), CROWD))
    rare = {
        who: {shingle for shingle in found if counted[shingle] <= most}
        for who, found in unusual.items()
    }
    rare = {who: found for who, found in rare.items() if len(found) >= LEAST}
    for first, *others in learners.values():
        if first in rare:
            yield from (Pair(exercise, first, other, 1.0, len(rare[first])) for other in others)
    holders: dict[Shingle, list[str]] = defaultdict(list)
    for who, found in rare.items():
        for shingle in found:
            holders[shingle].append(who)
    shared = Counter(pair for whos in holders.values() for pair in combinations(sorted(whos), 2))
    for (one, other), number in shared.most_common():
        likeness = number / len(rare[one] | rare[other])
        if likeness >= ALIKE:
            yield Pair(exercise, one, other, likeness, number)


def from_library(
    exercise: str, answers: Mapping[str, str], given: Set[Shingle] = frozenset()
) -> Iterator[Pair]:
    """The answers that are largely a function of the library.

    given: the shingles that say nothing, of `given_code`.
    """
    for who, text in answers.items():
        unusual = shingles(text) - given
        if len(unusual) < LEAST:
            continue
        places = Counter(place for shingle in unusual for place in _library().get(shingle, ()))
        place, number = min(
            places.items(), key=lambda counted: (-counted[1], counted[0]), default=("", 0)
        )
        if number >= ALIKE * len(unusual):
            yield Pair(exercise, who, place, number / len(unusual), number)


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
                for shingle in shingles(textwrap.dedent(own)):
                    found[shingle].add(place)
    return {shingle: tuple(sorted(places)) for shingle, places in found.items()}
