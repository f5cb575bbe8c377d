"""Answers that are alike: a hint to look, never a verdict.

The measure: an answer's program becomes a row of tokens without comments, layout and docstrings.
Every name that the answer itself binds becomes the same sign, so that renaming changes nothing. Its
*shingles* are the runs of `LENGTH` tokens. Code that belongs to the exercise (`given_code`) says
nothing, and its shingles are left out. So are those that many others have, because many
learners think of them by themselves. Learners with a *near* answer do not count among these others:
many copies of one unusual answer do not make that answer usual. The shingles that are left are
*rare*. The likeness of two answers is the share of their rare shingles that both have.

Two learners who never met write the same short program, such as two loops and a sum. So an answer
with few rare shingles is like another only if the programs are equal, names aside, and *unusual*.
What is unusual does not depend on the class: tokens that stand in no run which the exercise's code
or the library has. `LEAST`, `LEAST_UNUSUAL` and `ALIKE` were chosen so that no two of the answers
in `tests/course/answers/` are a pair: beginners typed those independently.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import tensorkit
from course import exercises, notebook
from course.notebook.exercise import Exercise
from course.notebook.history import without_magics

LENGTH = 6
"""Tokens of a shingle."""
COMMON = 0.1
"""A shingle that more than this share of the others have, and more than two of them, is common."""
LEAST, ALIKE = 70, 0.5
"""Two answers are alike if one has at least so many rare shingles, and their likeness is at least
this. With 60 shingles, or with 0.45, two answers that were typed independently would be a pair."""
USUAL = 1 / 3
"""An answer that is near those of more than this share of the class, and of more than `FEW`
learners, is the usual one, which has no rare shingles."""
FEW = 5
LEAST_OF_EQUAL = 60
"""Two answers that are the same program, names aside, are alike if it has at least so many rare
shingles. The longest such program that two beginners typed independently has 50."""
LEAST_UNUSUAL = 20
"""Two answers that are the same short program are alike if it has at least so many unusual tokens.
The most unusual such program that two beginners typed independently has 12."""
MANY, ODD_WORDS = 6, 2
"""At least so many learners with the same short program are alike if all their texts have so many
words, comments included, that nobody else wrote and that no text of the course has. One word, or
fewer learners, may be a name that friends chose together."""
CROWD, SHARE_OF_CROWD = 12, 0.09
"""Learners with the same program are a crowd from this number on, and this share of the class."""
LEAST_OF_CROWD, UNUSUAL_OF_CROWD = 45, 12
"""A crowd is alike if its program has at least so many shingles, or unusual tokens. Programs
that such a share of beginners typed independently have at most 22, and 6."""
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
WORD = re.compile(r"[^\W\d_]{3,}")
LEAST_OF_RUN = 3
"""Tokens of the shortest code in a hint that is looked for in an answer."""
MOST = 20_000
"""Characters of one answer that are read."""

Shingle = tuple[str, ...]
Answer = frozenset[Shingle]
"""What is compared of an answer: its shingles without those of the exercise's own code."""
NONE: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class Pair:
    """Two answers to one exercise, or an answer and a function of the library."""

    exercise: str
    learner: str
    source: str
    likeness: float
    shared: int


def shingles(source: str, given: Answer = NONE) -> Answer:
    """The runs of tokens of a program without its magics; none for a text that is no program.

    given: what `given_code` gives; its statements and its runs are left out.

    >>> shingles("def f(a, b):\\n  return a + b * 2") == shingles("def f(x, y): return x+y*2  # !")
    True
    >>> shingles("%%time\\nreturn_value = [1, 2, 3, 4]") == shingles("a = [1, 2, 3, 4]")
    True
    """
    row = _row(source, given=given)
    return frozenset(row[at : at + LENGTH] for at in range(len(row) - LENGTH + 1)) - given


def _row(source: str, bound: Set[str] = NONE, given: Set[Shingle] = NONE) -> Shingle:
    """The tokens of a program, its names replaced; none for a text that is no program.

    bound: names that count as the program's own, besides those that it binds. given: statements
    that are left out.
    """
    try:
        tree = ast.parse(without_magics(source[:MOST]))
        tree.body = [line for line in tree.body if not given or (ast.unparse(line),) not in given]
        _give_one_name(tree, _bound(tree) | bound)
        return tuple(_tokens(ast.unparse(tree)))  # the same text for every layout
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def statements(source: str) -> tuple[str, ...]:
    """The statements of a program in one layout each; none of a text that is no program."""
    try:
        return tuple(map(ast.unparse, ast.parse(without_magics(source[:MOST])).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _n_unusual(source: str, given: Set[Shingle]) -> int:
    """How many tokens of an answer stand in no run that the exercise or the library has."""
    row = _row(source, given=given)
    ordinary: set[int] = set()
    for length in range(LEAST_OF_RUN, LENGTH + 1):
        for at in range(len(row) - length + 1):
            run = row[at : at + length]
            if run in given or run in _library():
                ordinary.update(range(at, at + length))
    return len(row) - len(ordinary)


def given_code(definition: Exercise, cells: Iterable[str] = ()) -> frozenset[Shingle]:
    """The shingles of all code that belongs to an exercise, and code in hints that is shorter.

    That is the released answer, the worked solution, the examples of the exercise's text, code in
    the hints, the usual mistakes, and the code `cells` of the released notebook. Besides the
    shingles there are all statements of this code, each as one text.
    """
    solution = definition.solution_source
    fragments = [code for hint in definition.hints for code in re.findall(r"`+([^`]+)`", hint)]
    bound = [_bound(ast.parse(text)) for text in (solution, definition.released_source)]
    mistakes = [
        textwrap.dedent(inspect.getsource(answer))
        for answer, *_ in definition.usual_mistakes.values()
        if inspect.isfunction(answer) or inspect.isclass(answer)
    ]
    # an example calls the answer, whose name is the solution's own
    examples = [f"{solution}\n{code}" for code in EXAMPLE.findall(definition.statement)]
    texts = (definition.released_source, solution, *mistakes, *examples, *cells)
    programs = [shingles(text) | {(line,) for line in statements(text)} for text in texts]
    hinted = [_row(text.strip(), names) for text in fragments for names in bound]
    runs = {row[at : at + LENGTH] for row in hinted for at in range(max(1, len(row) - LENGTH + 1))}
    return frozenset(runs).union(*programs)


def _tokens(source: str) -> list[str]:
    """The tokens of a program without comments, layout and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    row: list[str] = []
    begins = True  # of a statement: a text that stands there alone is a docstring
    for token in tokens:
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


def pairs(exercise: str, answers: Mapping[str, str], given: Answer = NONE) -> Iterator[Pair]:
    """The pairs of alike answers to one exercise, by learner; the most alike first.

    Of the learners with the same shingles each makes a pair with the first.

    given: the shingles of `given_code`, which are left out.
    """

    def equal(answer: Answer) -> list[str]:
        """The learners with the same program, names aside, if it or their words are unusual."""
        group = learners[answer]
        if len(group) < 2 or len(rare.get(answer, ())) >= LEAST_OF_EQUAL:
            return group
        if not answer or _is_usual(near.get(answer, {answer}), numbers):
            return []
        is_crowd = len(group) >= max(CROWD, SHARE_OF_CROWD * len(answers))
        least = UNUSUAL_OF_CROWD if is_crowd else LEAST_UNUSUAL
        is_unusual = _n_unusual(answers[group[0]], given) >= least
        if is_unusual or (is_crowd and len(answer) >= LEAST_OF_CROWD):
            return group
        return _with_odd_words(group, answers)

    learners: dict[Answer, list[str]] = defaultdict(list)
    for learner, text in answers.items():
        learners[shingles(text, given)].append(learner)
    numbers = {answer: len(group) for answer, group in learners.items()}
    near = _near([answer for answer in numbers if len(answer) >= ALIKE * LEAST])
    rare = _rare(near, numbers)
    alike = []
    for answer in learners:
        first, *copies = equal(answer) or [""]
        size = len(rare.get(answer, answer))
        alike += [Pair(exercise, first, copy, 1.0, size) for copy in copies]
    for a, b in combinations(rare, 2):
        if b in near[a] and max(len(rare[a]), len(rare[b])) >= LEAST:
            likeness, shared = _likeness(rare[a], rare[b]), len(rare[a] & rare[b])
            if likeness >= ALIKE:
                alike.append(Pair(exercise, learners[a][0], learners[b][0], likeness, shared))
    yield from sorted(alike, key=lambda pair: (-pair.likeness, -pair.shared))


def _with_odd_words(group: Sequence[str], answers: Mapping[str, str]) -> list[str]:
    """The learners of a group who share words that are in no other answer and no text of ours."""
    words = {learner: set(WORD.findall(text[:MOST])) for learner, text in answers.items()}
    usual = set().union(*(words[learner] for learner in answers.keys() - {*group}), _our_words())
    counted = Counter(word for learner in group for word in words[learner] - usual)
    odd = {word for word, number in counted.items() if number >= MANY}
    sharing = [learner for learner in group if len(words[learner] & odd) >= ODD_WORDS]
    return sharing if len(sharing) >= MANY else []


@cache
def _our_words() -> Set[str]:
    """The words in the source of the exercises, of what notebooks call, and of the library."""
    tops = (Path(package.__path__[0]) for package in (tensorkit, exercises, notebook))
    files = (file for top in tops for file in top.rglob("*.py"))
    return {word for file in files for word in WORD.findall(file.read_text(encoding="utf-8"))}


def _near(answers: Sequence[Answer]) -> dict[Answer, set[Answer]]:
    """The answers that are alike, common shingles included; each is near itself."""
    near = {answer: {answer} for answer in answers}
    for a, b in combinations(answers, 2):
        if ALIKE * len(a) <= len(b) <= len(a) / ALIKE and _likeness(a, b) >= ALIKE:
            near[a].add(b)
            near[b].add(a)
    return near


def _rare(
    near: Mapping[Answer, set[Answer]], numbers: Mapping[Answer, int]
) -> dict[Answer, Answer]:
    """The rare shingles of the answers that have enough of them to be like another.

    numbers: how many learners have each answer.
    """
    counted = _counted(numbers, numbers)
    rare = {}
    for answer, neighbours in near.items():
        if not _is_usual(neighbours, numbers):
            nearby = _counted(neighbours, numbers)
            n_others = sum(numbers[distant] for distant in numbers.keys() - neighbours)
            limit = max(2, COMMON * n_others)
            uncommon = frozenset(part for part in answer if counted[part] - nearby[part] <= limit)
            if len(uncommon) >= ALIKE * LEAST:
                rare[answer] = uncommon
    return rare


def _is_usual(neighbours: Set[Answer], numbers: Mapping[Answer, int]) -> bool:
    """Whether so many learners have an answer or one near to that, that this is the usual one."""
    n_near = sum(numbers[neighbour] for neighbour in neighbours)
    return n_near > max(FEW, USUAL * sum(numbers.values()))


def _counted(answers: Iterable[Answer], numbers: Mapping[Answer, int]) -> Counter[Shingle]:
    """How many learners have each shingle of some answers."""
    return Counter(part for answer in answers for part in answer for _ in range(numbers[answer]))


def _likeness(a: Answer, b: Answer) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def from_library(exercise: str, answers: Mapping[str, str], given: Answer = NONE) -> Iterator[Pair]:
    """The answers that are largely a function of the library.

    given: the shingles of `given_code`, which are left out.
    """
    for learner, text in answers.items():
        unusual = shingles(text, given)
        places = Counter(place for shingle in unusual for place in _library().get(shingle, ()))
        place, number = max(sorted(places.items()), key=lambda item: item[1], default=("", 0))
        if number >= max(LEAST, ALIKE * len(unusual)):
            yield Pair(exercise, learner, place, number / len(unusual), number)


@cache
def _library() -> Mapping[Shingle, tuple[str, ...]]:
    """The library's functions by their shingles."""
    by_shingle: dict[Shingle, set[str]] = defaultdict(set)
    top = Path(tensorkit.__path__[0])
    for file in sorted(top.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                place = f"{file.relative_to(top.parent).as_posix()}: {node.name}"
                for shingle in shingles(ast.unparse(node)):
                    by_shingle[shingle].add(place)
    return {shingle: tuple(sorted(places)) for shingle, places in by_shingle.items()}
