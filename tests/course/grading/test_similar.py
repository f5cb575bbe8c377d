"""Similar answers: every copy of a planted class is found, and no honest pair."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path

import pytest
from typed_answers import CHAPTERS, Typed, typed

from course.grading import similar
from course.grading.class_page import groups_of
from course.notebook import exercise
from course.notebook.exercise import Exercise, Prediction
from tensorkit import layout

EXERCISES = exercise.load()
ASKED = EXERCISES["linspace-by-hand"]

LONG = """\
def histogram(values, bins):
    low, high = min(values), max(values)
    width = (high - low) / bins or 1
    counted = [0] * bins
    for value in values:
        counted[min(int((value - low) // width), bins - 1)] += 1
    return [(low + width * at, number) for at, number in enumerate(counted)]
"""
RENAMED = re.sub(r"\bcounted\b", "c", LONG.replace("values", "xs")).replace("number", "k")
OTHER = """\
def histogram(values, bins):
    edges = sorted(values)
    first, step = edges[0], max(edges[-1] - edges[0], 1) / bins
    result = {}
    while edges:
        where = int((edges.pop() - first) / step)
        result[where] = result.get(where, 0) + 1
    return [(first + step * where, many) for where, many in sorted(result.items())]
"""
ODD = """\
def histogram(values, bins):
    left, found = list(values), [[] for _ in range(bins)]
    left.sort(reverse=True)
    for position, edge in zip(range(bins, 0, -1), left, strict=False):
        while left and left[-1] <= edge * position / bins:
            found[position - 1].append(left.pop())
    return [(len(part), position) for position, part in enumerate(found)]
"""

# how one who copies hides the copy


def laid_out_anew(source: str, number: int) -> str:
    """Without the author's comments and blank lines."""
    return ast.unparse(ast.parse(source))


def commented(source: str, number: int) -> str:
    return source.replace("\n", f"  # step {number}\n")


def renamed(source: str, number: int) -> str:
    """With other names for all arguments, variables and functions inside."""
    tree = ast.parse(source)
    outer = {tree.body[0], *getattr(tree.body[0], "body", ())}
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef) and node not in outer:
            names.add(node.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id += f"_{number}"
        elif isinstance(node, ast.arg) and node.arg in names:
            node.arg += f"_{number}"
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            node.name += f"_{number}"
    return ast.unparse(tree)


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list) and node is not tree:
            yield node.body


def _used(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def reordered(source: str, number: int) -> str:
    """With two assignments exchanged of which neither reads what the other sets."""
    tree = ast.parse(source)
    places = [
        (block, at)
        for block in _blocks(tree)
        for at, (one, other) in enumerate(itertools.pairwise(block))
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign)
        if not _used(one.targets[0]) & _used(other) and not _used(other.targets[0]) & _used(one)
    ]
    if places:
        block, at = places[number % len(places)]
        block[at], block[at + 1] = block[at + 1], block[at]
    return ast.unparse(tree)


def with_another_constant(source: str, number: int) -> str:
    tree = ast.parse(source)
    whole = [node for node in ast.walk(tree) if type(getattr(node, "value", None)) is int]
    if whole:
        whole[number % len(whole)].value += 1 + number % 3
    return ast.unparse(tree)


def with_a_temporary(source: str, number: int) -> str:
    """With a line more, which gives a value a name."""
    tree = ast.parse(source)
    places = [
        (block, at)
        for block in _blocks(tree)
        for at, statement in enumerate(block)
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.Return) and statement.value
    ]
    block, at = places[number % len(places)]
    block.insert(at, ast.Assign([ast.Name("helper", ast.Store())], block[at].value))
    block[at + 1].value = ast.Name("helper", ast.Load())
    return ast.unparse(ast.fix_missing_locations(tree))


EDITS: tuple[Callable[[str, int], str], ...] = (
    laid_out_anew,
    commented,
    renamed,
    reordered,
    with_another_constant,
    with_a_temporary,
)


def copies_of(source: str, n_copies: int) -> dict[str, str]:
    """An answer and its copies, each with an edit, and every other one renamed besides."""
    found = {"copy 0": source}
    for number in range(n_copies - 1):
        edited = EDITS[number % len(EDITS)](source, number // len(EDITS))
        found[f"copy {number + 1}"] = renamed(edited, number) if number % 2 else edited
    return found


# a class


def released(asked: Exercise) -> dict[str, str]:
    """Answers of learners who wrote nothing of their own."""
    codes = [code for hint in asked.hints for code in re.findall("`([^`]+)`", hint)]
    hinted = f"{asked.released_source}\n    return {max(codes, key=len, default='None')}"
    found = {f"untouched {n}": asked.released_source for n in range(15)}
    found |= {f"solution {n}": asked.solution_source for n in range(10)}
    return found | {f"hint {n}": hinted for n in range(5)}


def honest(number: int) -> str:
    """The steps that many think of, as one of them writes each; 96 ways."""
    choices = (
        ("low, high = min(values), max(values)", "low = min(values)\n    high = max(values)"),
        ("width = (high - low) / bins or 1", "width = max((high - low) / bins, 1e-9)"),
        ("counted = [0] * bins", "counted = [0 for at in range(bins)]", "counted = bins * [0]"),
        (
            "counted[min(int((value - low) // width), bins - 1)] += 1",
            "at = int((value - low) / width)\n        counted[min(at, bins - 1)] += 1",
        ),
        (
            "return [(low + width * at, number) for at, number in enumerate(counted)]",
            "return [(low + at * width, counted[at]) for at in range(bins)]",
            "return list(zip([low + at * width for at in range(bins)], counted))",
            "for at in range(bins):\n        counted[at] = low + width * at, counted[at]\n"
            "    return counted",
        ),
    )
    own = []
    for ways in choices:
        number, way = divmod(number, len(ways))
        own.append(ways[way])
    own.insert(3, "for value in values:")
    own[4] = f"    {own[4]}"
    return "def histogram(values, bins):\n    " + "\n    ".join(own) + "\n"


def right_answers(id: str) -> tuple[str, ...]:
    """The right ones of what beginners typed independently, for one exercise."""
    return typed_for(id, {True})


@cache
def _typed(chapter: str) -> list[Typed]:
    return list(typed(chapter))


def typed_for(id: str, is_right: Set[bool]) -> tuple[str, ...]:
    """What beginners typed independently, for one exercise."""
    own = [answer for answer in _typed(EXERCISES[id].chapter) if answer.exercise == id]
    return tuple(answer.source for answer in own if answer.is_right in is_right)


@cache
def given(id: str) -> frozenset[similar.Shingle]:
    return similar.given_code(EXERCISES[id])


WRITTEN = [
    id
    for id, asked in EXERCISES.items()
    if not isinstance(asked, Prediction) and asked.chapter in CHAPTERS
]


def groups(asked: Exercise, answers: dict[str, str]) -> set[frozenset[str]]:
    pairs = list(similar.pairs(asked.id, answers, given(asked.id)))
    return {frozenset(who) for _, who, _ in groups_of(pairs)}


@pytest.mark.parametrize("id", WRITTEN)
def test_no_two_answers_that_beginners_typed_independently_are_a_pair(id: str) -> None:
    asked = EXERCISES[id]
    beginners = enumerate(typed_for(id, {True, False}))
    typed_answers = {f"beginner {n}": answer for n, answer in beginners}
    assert groups(asked, typed_answers | released(asked)) == set()
    assert list(similar.from_library(id, typed_answers, given(id))) == []


def long_answers(is_long: bool = True) -> list[tuple[str, int]]:
    """The answers of beginners that have many shingles of their own, or that have few."""
    return [
        (id, at)
        for id in WRITTEN
        for at, answer in enumerate(right_answers(id))
        if (len(similar.shingles(answer) - given(id)) >= similar.LEAST) == is_long
    ]


def short_unusual_answers() -> list[tuple[str, int]]:
    """The answers of beginners that have few shingles of their own, and many unusual tokens."""

    def is_unusual(id: str, at: int) -> bool:
        answer = right_answers(id)[at]
        n_shingles = len(similar.shingles(answer) - given(id))
        n_unusual = similar._n_unusual(answer, given(id))
        return n_shingles >= similar.LEAST_OF_EQUAL or n_unusual >= similar.LEAST_UNUSUAL

    return [answer for answer in long_answers(False) if is_unusual(*answer)]


def planted(id: str, at: int, copies: Callable[[str], dict[str, str]]) -> dict[str, str]:
    """A class of 133: copies of one answer, what other beginners typed, and released code."""
    answers = copies(right_answers(id)[at]) | released(EXERCISES[id])
    answers |= {f"beginner {n}": own for n, own in enumerate(right_answers(id)) if n != at}
    more = {f"more {n}": EXERCISES[id].released_source for n in range(133 - len(answers))}
    return answers | more


@pytest.mark.parametrize("n_copies", [2, 20])
@pytest.mark.parametrize(("id", "at"), long_answers())
def test_every_edited_copy_of_a_long_answer_is_found_and_nobody_else(
    id: str, at: int, n_copies: int
) -> None:
    answers = planted(id, at, lambda answer: copies_of(answer, n_copies))
    assert groups(EXERCISES[id], answers) == {frozenset(who for who in answers if "copy" in who)}


@pytest.mark.parametrize(("id", "at"), short_unusual_answers())
def test_every_equal_copy_of_a_short_unusual_answer_is_found_and_nobody_else(
    id: str, at: int
) -> None:
    def copies(answer: str) -> dict[str, str]:
        edits = (laid_out_anew, commented, renamed)
        return {f"copy {n}": edits[n % 3](answer, n) for n in range(20)}

    answers = planted(id, at, copies)
    assert groups(EXERCISES[id], answers) == {frozenset(who for who in answers if "copy" in who)}


BRIGHTNESS = """\
def to_unit_range(image):
    height, width, _ = image.shape
    grey = tk.zeros(height, width)
    for colour in range(3):
        grey += image[:, :, colour].double().float() / 765.0
    return grey
"""


def small_class(asked: Exercise, n_learners: int, copies: dict[str, str]) -> dict[str, str]:
    """Copies, and others who wrote nothing or the worked solution."""
    texts = (asked.released_source, asked.solution_source)
    others = {f"more {n}": texts[n % 2] for n in range(n_learners - len(copies))}
    return copies | others


@pytest.mark.parametrize("edit", [laid_out_anew, commented, renamed])
@pytest.mark.parametrize(("n_copies", "n_learners"), [(2, 6), (2, 28), (20, 133)])
def test_copies_of_a_short_unusual_answer_are_found_whatever_their_names(
    edit: Callable[[str, int], str], n_copies: int, n_learners: int
) -> None:
    asked = EXERCISES["pixels"]
    assert len(similar.shingles(BRIGHTNESS) - given("pixels")) < similar.LEAST
    copies = {f"copy {n}": edit(BRIGHTNESS, n) for n in range(n_copies)}
    assert groups(asked, small_class(asked, n_learners, copies)) == {frozenset(copies)}


ORDINARY = {
    "pixels": """\
def to_unit_range(image):
    red = image[:, :, 0].float()
    green = image[:, :, 1].float()
    blue = image[:, :, 2].float()
    return (red + green + blue) / 3 / 255
""",
    "linspace-by-hand": """\
def evenly_spaced(start, end, n):
    if n == 1:
        return tk.tensor([start])
    step = (end - start) / (n - 1)
    return tk.arange(n) * step + start
""",
    "checkerboard": """\
def checkerboard(size):
    board = tk.zeros(size, size)
    for row in range(size):
        for column in range(size):
            if (row + column) % 2 == 1:
                board[row, column] = 1
    return board
""",
    "multiplication-table": """\
def multiplication_table(n):
    table = tk.zeros(n, n, dtype=tk.int64)
    for i in range(n):
        for j in range(n):
            table[i, j] = (i + 1) * (j + 1)
    return table
""",
    "strides-of": """\
def strides_of(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)
""",
    "promotion-layer": """\
def promoted(x, y):
    def rank(t):
        kind = 1
        if t.dtype.is_floating_point:
            kind = 2
        if t.dtype == tk.bool:
            kind = 0
        return (kind, t.ndim > 0, t.dtype.itemsize)
    dtype = max((x, y), key=rank).dtype
    return x.to(dtype), y.to(dtype)
""",
}


@pytest.mark.parametrize("n_learners", [6, 12, 28, 133])
@pytest.mark.parametrize("id", ORDINARY)
def test_short_ordinary_answers_are_no_pair_though_they_are_equal(id: str, n_learners: int) -> None:
    equal = {f"equal {n}": ORDINARY[id] for n in range(max(2, n_learners // 16))}
    assert groups(EXERCISES[id], small_class(EXERCISES[id], n_learners, equal)) == set()


@pytest.mark.parametrize("id", WRITTEN)
def test_code_of_the_hints_is_no_likeness_however_it_is_joined(id: str) -> None:
    asked = EXERCISES[id]
    codes = [code for hint in asked.hints for code in re.findall("`+([^`]+)`", hint)]
    for form in ("{code}", "step{n} = {code}"):
        lines = [form.format(n=n, code=code) for n, code in enumerate(codes)]
        joined = "\n    ".join([asked.released_source, *lines])
        assert groups(asked, {"ada": joined, "bob": joined, "eve": asked.released_source}) == set()


def test_a_usual_mistake_that_is_a_class_is_no_likeness() -> None:
    asked = EXERCISES["nested-no-grad"]
    wrong = inspect.getsource(asked.usual_mistakes["one memory for all"][0])
    assert similar.shingles(wrong) <= given("nested-no-grad")


PIGLETS = """\
def to_unit_range(image):
    # wee piglets, summed
    piglets = image.float().sum(2)
    return piglets / (3 * 255)
"""
PLAIN = PIGLETS.replace("    # wee piglets, summed\n", "").replace("piglets", "total")


@pytest.mark.parametrize(
    ("text", "others", "is_found"),
    [(PIGLETS, "", True), (PIGLETS, PIGLETS, False), (PLAIN, "", False)],
)
def test_many_copies_of_a_short_answer_are_found_if_nobody_else_has_its_words(
    text: str, others: str, is_found: bool
) -> None:
    asked = EXERCISES["pixels"]
    copies = {f"copy {n}": text for n in range(18)}
    copies |= {"copy 18": f"%%time\n{text}\n", "copy 19": f"{text}# unlike the others\n"}
    rest = {f"more {n}": asked.released_source for n in range(112)}
    # another program with the same words
    rest["other"] = others.replace(".sum(2)", ".mean(2)").replace("(3 * 255)", "255")
    found = groups(asked, copies | rest)
    assert found == ({frozenset(copies)} if is_found else set())


KAHN = """\
def backward_order(graph, root):
    count, seen, todo = {}, set(), [root]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for child in graph[node]:
            count[child] = count.get(child, 0) + 1
            todo.append(child)
    ready, order = [root], []
    while ready:
        node = ready.pop()
        order.append(node)
        for child in graph[node]:
            count[child] -= 1
            if count[child] == 0:
                ready.append(child)
    return order
"""


@pytest.mark.parametrize("n_copies", [similar.CROWD, 20])
def test_many_copies_of_a_textbook_answer_of_some_length_are_found(n_copies: int) -> None:
    copies = {f"copy {n}": KAHN for n in range(n_copies)}
    released = EXERCISES["backward-order"].released_source
    rest = {f"more {n}": released for n in range(133 - n_copies)}
    assert groups(EXERCISES["backward-order"], copies | rest) == {frozenset(copies)}


def test_the_documentation_has_the_limits_of_a_crowd() -> None:
    text = (Path(__file__).parents[3] / "docs" / "grading.md").read_text("utf-8")
    assert (
        f"and {similar.SHARE_OF_CROWD:.0%} of the class, with the same program are listed, too, if "
        f"{similar.LEAST_OF_CROWD} of its runs of six tokens are none of the exercise's code, or "
        f"{similar.UNUSUAL_OF_CROWD} of its tokens are unusual"
    ).replace("%", " %") in " ".join(text.split())


def test_few_copies_of_a_short_answer_are_no_pair() -> None:
    copies = {f"copy {n}": PIGLETS for n in range(similar.MANY - 1)}
    rest = {f"more {n}": EXERCISES["pixels"].released_source for n in range(100)}
    assert groups(EXERCISES["pixels"], copies | rest) == set()


@pytest.mark.parametrize("n_copies", [2, 7, 20])
def test_of_a_class_that_writes_alike_only_the_copies_are_found(n_copies: int) -> None:
    obvious = "    return start + (end - start) * tk.arange(steps) / max(steps - 1, 1)"
    heading = ASKED.released_source.split("\n")[0]
    others = released(ASKED) | {f"one line {n}": f"{heading}\n{obvious}" for n in range(10)}
    pair = {"one": ODD, "two": renamed(ODD, 2)}
    copies = copies_of(OTHER, n_copies)
    n_honest = 133 - len(others) - len(pair) - n_copies
    others |= {f"honest {n}": renamed(honest(n), n) for n in range(n_honest)}
    assert groups(ASKED, others | pair | copies) == {frozenset(copies), frozenset(pair)}


def test_what_everybody_writes_in_a_way_of_their_own_is_no_likeness() -> None:
    answers = {f"l{n}": renamed(honest(n), n) for n in range(96)}
    assert list(similar.pairs("histogram", answers)) == []


@pytest.mark.parametrize("n_copies", [2, 5])
def test_in_a_small_class_most_may_have_copied(n_copies: int) -> None:
    copies = copies_of(LONG, n_copies)
    assert groups(ASKED, copies | {"ada": OTHER, "bob": ODD}) == {frozenset(copies)}


def test_an_answer_of_half_a_class_is_the_usual_one() -> None:
    copies = copies_of(LONG, 20)
    others = {f"honest {n}": ASKED.released_source for n in range(20)}
    assert groups(ASKED, copies | others) == set()


@pytest.mark.parametrize("name", ["values", "dtype"])
def test_renaming_a_variable_that_is_called_as_an_attribute_changes_nothing(name: str) -> None:
    source = f"def f(a):\n    {name} = a.{name}\n    return g({name}={name})"
    assert similar.shingles(source) == similar.shingles(renamed(source, 1))


def test_code_of_the_released_notebook_is_no_likeness() -> None:
    asked = EXERCISES["linspace-by-hand"]
    answers = {"ada": OTHER, "bob": OTHER}
    assert len(list(similar.pairs(asked.id, answers))) == 1
    assert list(similar.pairs(asked.id, answers, similar.given_code(asked, [OTHER]))) == []


def pasted_examples(id: str) -> str:
    """The examples of an exercise's statement, as a learner pastes them below the answer."""
    return "\n".join(["", "", *re.findall(r"```python\n(.*?)```", EXERCISES[id].statement, re.S)])


@pytest.mark.parametrize("id", WRITTEN)
def test_an_example_of_the_statement_is_no_likeness(id: str) -> None:
    asked, example = EXERCISES[id], pasted_examples(id)
    beginners = enumerate(right_answers(id))
    answers = {f"beginner {n}": answer + example for n, answer in beginners}
    answers |= {f"stub {n}": asked.released_source + example for n in range(2)}
    answers |= {f"solved {n}": asked.solution_source + example for n in range(2)}
    others = {f"other {n}": f"def other_{n}(): return {n}" for n in range(26)}
    assert groups(asked, answers | others) == set()


def test_short_answers_are_not_compared() -> None:
    short = "def f(x):\n    return x + 1"
    assert list(similar.pairs("f", {"ada": short, "bob": short})) == []


def test_an_answer_from_the_librarys_source_is_found() -> None:

    source = inspect.getsource(layout.broadcast_shapes)
    (found,) = similar.from_library("x", {"ada": source, "bob": OTHER})
    assert found.learner == "ada"
    assert found.likeness > 0.9
    assert found.source.endswith(": broadcast_shapes")


@pytest.mark.parametrize("id", EXERCISES)
def test_who_wrote_nothing_is_like_nobody(id: str) -> None:
    asked = EXERCISES[id]
    cells = ["x = tk.arange(6)\nfor row in x:\n    print(row)", "print(x.reshape(2, 3) + 1)"]
    code = similar.given_code(asked, cells)
    answers = {f"other {n}": f"def other_{n}(): return {n}" for n in range(60)}
    pasted = "\n".join([*cells, asked.released_source])
    for n in range(10):
        answers |= {f"stub {n}": asked.released_source, f"pasted {n}": pasted}
        answers |= {f"comment {n}": f"{asked.released_source}\n# piglets, a wee thing"}
    assert list(similar.pairs(id, answers, code)) == []


SHORT = {
    "pixels": """\
def to_unit_range(image):
    rows = image.tolist()
    means = [[(r + g + b) / 765 for r, g, b in row] for row in rows]
    return tk.tensor(means, dtype=tk.float32)
""",
    "checkerboard": """\
def checkerboard(size):
    a = tk.arange(size)
    return ((a.reshape(-1, 1) ^ a) & 1).float()
""",
    "linspace-by-hand": """\
def evenly_spaced(start, end, n):
    values = []
    while len(values) < n:
        t = len(values) / (n - 1 or 1)
        values.append(start * (1 - t) + t * end)
    return tk.tensor(values)
""",
    "strides-of": """\
def strides_of(shape):
    if not shape:
        return ()
    rest = strides_of(shape[1:])
    return (max(shape[1], 1) * rest[0] if rest else 1, *rest)
""",
}


@pytest.mark.parametrize(("n_copies", "is_found"), [(20, True), (similar.CROWD - 1, False)])
@pytest.mark.parametrize("id", SHORT)
def test_a_short_answer_of_a_crowd_is_found_and_that_of_a_few_is_not(
    id: str, n_copies: int, is_found: bool
) -> None:
    copies = {f"copy {n}": SHORT[id] for n in range(n_copies)}
    answers = copies | {f"beginner {n}": own for n, own in enumerate(right_answers(id))}
    answers |= {f"more {n}": EXERCISES[id].released_source for n in range(133 - len(answers))}
    assert groups(EXERCISES[id], answers) == ({frozenset(copies)} if is_found else set())
