"""Answers that are alike: a hint to look, never a verdict.

The measure: an answer's program becomes a row of tokens without comments, layout and docstrings.
Every name that the answer itself binds becomes the same sign, so that renaming changes nothing. Its
*shingles* are the runs of `LENGTH` tokens. Code that belongs to the exercise (`given_code`) says
nothing, and its shingles are left out. So are those that many others have, because many
learners think of them by themselves. Learners with a *near* answer do not count among these others:
many copies of one unusual answer do not make that answer usual. The shingles that are left are
*rare*. The likeness of two answers is the share of their rare shingles that both have.

Two learners who never met write the same short program, such as two loops and a sum. So an answer
with few rare shingles is like another only if the names are equal too. One with fewer is like
another only if the programs are equal and the texts, comments too, have words that stand in no
other answer; one with very few is like none. `LEAST` and `ALIKE` were chosen so that no two of the
right answers in `tests/course/answers/` are a pair: beginners typed those independently.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path

import tensorkit
from course.notebook.exercise import Exercise

LENGTH = 6
COMMON = 0.1
"""A shingle that more than this share of the others have, and more than two of them, is common."""
LEAST, ALIKE = 60, 0.5
"""Rare shingles that one of two alike answers has at least, and the likeness from which on."""
USUAL = 1 / 3
"""An answer that is near those of more than this share of the class, and of more than `FEW`
learners, is the usual one, which has no rare shingles."""
FEW = 5
LEAST_OF_EQUAL, ODD_WORDS = 15, 2
"""What an answer that is the same short program as another has at least: shingles of its own, words
that both texts have and no other answer."""
WORD = re.compile(r"[^\W\d_]\w{2,}")
MOST = 20_000
"""Characters of one answer that are read."""

Shingle = tuple[str, ...]
Answer = frozenset[Shingle]
"""What is compared of an answer: its shingles without those of the exercise's own code."""


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
    """The runs of tokens of a program without its magics; none for a text that is no program.

    bound: names that count as the program's own, besides those that it binds.

    >>> shingles("def f(a, b):\\n  return a + b * 2") == shingles("def f(x, y): return x+y*2  # !")
    True
    >>> shingles("%%time\\nreturn_value = [1, 2, 3, 4]") == shingles("a = [1, 2, 3, 4]")
    True
    """
    try:
        tree = _parsed(source)
        _give_one_name(tree, _bound(tree) | bound)
        text = ast.unparse(tree)  # the same text for every layout
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    row = tuple(_tokens(text))
    return frozenset(row[at : at + LENGTH] for at in range(len(row) - LENGTH + 1))


def _parsed(source: str) -> ast.Module:
    """The tree of a program without its magics."""
    return ast.parse(re.sub(r"(?m)^[%!].*$", "", source[:MOST]))


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
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias) and node.asname:
            names.add(node.asname)
    return names


def _give_one_name(tree: ast.Module, names: Set[str]) -> None:
    """Replace names of a program by the same sign; attributes and keywords stay as they are."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "name", "asname"):
            if getattr(node, field, None) in names and not isinstance(node, ast.keyword):
                setattr(node, field, "name")


def pairs(
    exercise: str, answers: Mapping[str, str], given: Set[Shingle] = frozenset()
) -> Iterator[Pair]:
    """The pairs of alike answers to one exercise, by learner; the most alike first.

    Of the learners with the same shingles each makes a pair with the first. Answers with half as
    many rare shingles as others need make a pair where their names are equal too.

    given: the shingles of `given_code`, which are left out.
    """

    def named(learner: str) -> str:
        """The program with its own names, the same for every layout."""
        return ast.unparse(_parsed(answers[learner]))

    learners: dict[Answer, list[str]] = defaultdict(list)
    for learner, text in answers.items():
        learners[shingles(text) - given].append(learner)
    numbers = {unusual: len(group) for unusual, group in learners.items()}
    near = _near([unusual for unusual in numbers if len(unusual) >= ALIKE * LEAST])
    rare = _rare(near, numbers)
    groups = [*_equal(learners, answers, named)]
    for unusual, own in rare.items():
        same = learners[unusual]
        divided = _divided(same, named) if len(own) < LEAST else [same]
        groups += [(len(own), group) for group in divided]
    found = [
        Pair(exercise, first, other, 1.0, number)
        for number, (first, *others) in groups
        for other in others
    ]
    for one, other in combinations(rare, 2):
        if other in near[one] and max(len(rare[one]), len(rare[other])) >= LEAST:
            likeness, shared = _likeness(rare[one], rare[other]), len(rare[one] & rare[other])
            if likeness >= ALIKE:
                found.append(Pair(exercise, learners[one][0], learners[other][0], likeness, shared))
    yield from sorted(found, key=lambda pair: (-pair.likeness, -pair.shared))


def _near(answers: Sequence[Answer]) -> dict[Answer, set[Answer]]:
    """The answers that are alike, common shingles included; each is near itself."""
    near = {answer: {answer} for answer in answers}
    for one, other in combinations(answers, 2):
        if ALIKE * len(one) <= len(other) <= len(one) / ALIKE and _likeness(one, other) >= ALIKE:
            near[one].add(other)
            near[other].add(one)
    return near


def _rare(
    near: Mapping[Answer, set[Answer]], numbers: Mapping[Answer, int]
) -> dict[Answer, Answer]:
    """The rare shingles of the answers that have enough of them to be like another.

    numbers: how many learners have each answer.
    """
    n_learners = sum(numbers.values())
    counted = _counted(numbers, numbers)
    rare = {}
    for answer, neighbours in near.items():
        n_near = sum(numbers[other] for other in neighbours)
        if n_near <= max(FEW, USUAL * n_learners):
            own = _counted(neighbours, numbers)
            most = max(2, COMMON * (n_learners - n_near))
            found = frozenset(each for each in answer if counted[each] - own[each] <= most)
            if len(found) >= ALIKE * LEAST:
                rare[answer] = found
    return rare


def _divided(learners: list[str], key: Callable[[str], str]) -> Iterable[list[str]]:
    """Learners by what `key` says of each."""
    groups: dict[str, list[str]] = defaultdict(list)
    for learner in learners:
        groups[key(learner)].append(learner)
    return groups.values()


def _equal(
    learners: Mapping[Answer, list[str]], answers: Mapping[str, str], named: Callable[[str], str]
) -> Iterator[tuple[int, list[str]]]:
    """Learners with the same short program and unusual words, and the number of its shingles."""
    words = {learner: set(WORD.findall(text[:MOST])) for learner, text in answers.items()}
    counted = Counter(word for own in words.values() for word in own)
    for own, group in learners.items():
        if LEAST_OF_EQUAL <= len(own) < ALIKE * LEAST:
            for equal in _divided(group, named):
                inside = Counter(word for learner in equal for word in words[learner])
                odd = {word for word, n in inside.items() if 1 < n == counted[word]}
                alike = [learner for learner in equal if len(words[learner] & odd) >= ODD_WORDS]
                if alike and len(alike) <= max(FEW, USUAL * len(answers)):
                    yield len(own), alike


def _counted(answers: Iterable[Answer], numbers: Mapping[Answer, int]) -> Counter[Shingle]:
    """How many learners have each shingle of some answers."""
    return Counter(each for answer in answers for each in answer for _ in range(numbers[answer]))


def _likeness(one: Answer, other: Answer) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def from_library(
    exercise: str, answers: Mapping[str, str], given: Set[Shingle] = frozenset()
) -> Iterator[Pair]:
    """The answers that are largely a function of the library.

    given: the shingles of `given_code`, which are left out.
    """
    for learner, text in answers.items():
        unusual = shingles(text) - given
        if len(unusual) < LEAST:
            continue
        places = Counter(place for shingle in unusual for place in _library().get(shingle, ()))
        place, number = min(
            places.items(), key=lambda counted: (-counted[1], counted[0]), default=("", 0)
        )
        if number >= ALIKE * len(unusual):
            yield Pair(exercise, learner, place, number / len(unusual), number)


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
