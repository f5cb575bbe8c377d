"""The checker's side: what it can grade of an answer that it never runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from classroom import PIXELS, ROOT, Class, cell_of

import tensorkit as tk
from course.cli import demo_learners
from course.grading import asserts
from course.grading.agreement import check_definitions
from course.grading.judge import check_exercise
from course.grading.remote import Caller
from course.grading.session import Session, Warm
from course.notebook import exercise, matching
from course.notebook.check import judge as check_here
from course.notebook.exercise import Case, Draw, Exercise, case
from course.notebook.matching import Source
from course.notebook.report import Report
from course.notebook.runner import Budget
from course.shared import paths
from course.shared.errors import CourseError


@pytest.fixture
def session(warm_once: Warm) -> Iterator[Session]:
    started = warm_once.fork()
    yield started
    started.end()


def run(session: Session, source: str) -> None:
    source = "import tensorkit as tk\nimport numpy as np\n" + source
    ran, _ = session.ask({"do": "cells", "sources": [source], "seconds": 5}, seconds=5)
    assert ran["error"] is None, ran


def made(observe: Callable[..., Any], *args: Any, changes: bool = False) -> Exercise:
    """An exercise about `answer` with one case, in which this is observed of it."""

    class Made(Exercise):
        """Made

        For a test.
        """

        changes_arguments = changes

        def is_answer(self, answer: Any) -> str | None:
            return None  # a class will do

        def cases(self, draw: Draw) -> Iterator[Case]:
            yield case(*args, label="the case")

        def run(self, answer: Any, *args: Any) -> Any:
            return observe(answer, *args)

        def expected(self, *args: Any) -> Any:
            return True

        def is_not_started(self, answer: Any, source: str | None) -> bool:
            return False

    definition = Made()
    definition.id, definition.chapter, definition.kind = "made", "", "write"
    definition.points, definition.without, definition.further = 1.0, (), False

    def answer() -> None: ...

    definition.reference = answer
    return definition


def graded(session: Session, definition: Exercise, seconds: float = 2.0) -> Report:
    return check_exercise(session, definition, [], "seed", seconds)[0]


SHAPES = [
    ("def answer(x): return x + 1", lambda f: f(1) == 2),
    ("def answer(x): return [x, (x, {'a': None})]", lambda f: f(1) == [1, (1, {"a": None})]),
    ("answer = lambda t: t.t()", lambda f: f(tk.arange(6).reshape(2, 3)).shape == (3, 2)),
    ("answer = lambda t: t.t()", lambda f: f(tk.arange(6).reshape(2, 3)).stride() == (1, 3)),
    ("answer = lambda a: a[::2]", lambda f: f(np.arange(5)).tolist() == [0, 2, 4]),
    ("answer = lambda: float('nan')", lambda f: f() != f()),
    ("answer = lambda: (tk.float16, tk.Size([2]), ..., 1j)", lambda f: f()[0] is tk.float16),
    ("answer = lambda f, x: f(x) + 1", lambda f: f(lambda x: 2 * x, 3) == 7),
    ("answer = lambda f, x: f(x)", lambda f: f(tk.exp, tk.zeros(2)).tolist() == [1.0, 1.0]),
    ("answer = lambda *a, key=0: len(a) + key", lambda f: f(1, 2, key=5) == 7),
    ("def answer(n):\n  for i in range(n): yield i", lambda f: list(f(3)) == [0, 1, 2]),
    ("def answer():\n  yield 1\n  raise ValueError", lambda f: next(iter(f())) == 1),
    (
        "class answer:\n  def __init__(self, n): self.n = n\n  def twice(self): return 2 * self.n",
        lambda f: (f(3).n, f(3).twice()) == (3, 6),
    ),
    (
        "class answer:\n  def __enter__(self): return 5\n  def __exit__(self, *a): self.left = 1",
        lambda f: left_after(f()) == (5, 1),
    ),
    ("answer = lambda: (lambda x: x * 2)", lambda f: f()(4) == 8),
    ("class answer:\n  def __getitem__(s, i): return i\n  def __len__(s): return 4",
     lambda f: (f()[3], len(f())) == (3, 4)),
]  # fmt: skip


def left_after(manager: Any) -> tuple[Any, Any]:
    with manager as entered:
        pass
    return entered, manager.left


@pytest.mark.parametrize(("source", "observe"), SHAPES)
def test_what_an_answer_is_and_returns(session: Session, source: str, observe: Any) -> None:
    run(session, source)
    report = graded(session, made(lambda f: bool(observe(f))))
    assert report.status == "passed", str(report)


def test_an_argument_that_holds_itself_ends_the_check(session: Session) -> None:
    run(session, "def answer(x): x[:] = [x] * 9999")
    report = graded(session, made(lambda f, x: f(x), [1]))
    assert report.status == "failed"


CHANGES: list[tuple[str, Callable[[Any], bool]]] = [
    ("def answer(t): t += 1", lambda f: changed(f, tk.zeros(2)).tolist() == [1.0, 1.0]),
    ("def answer(a): a[0] = 7", lambda f: changed(f, np.zeros(2)).tolist() == [7.0, 0.0]),
    ("def answer(x): x.append(3)", lambda f: changed(f, [1]) == [1, 3]),
    ("def answer(d): d['b'] = 2", lambda f: changed(f, {"a": 1}) == {"a": 1, "b": 2}),
    ("def answer(x): x[0] = x[1]", lambda f: same_tensors(f)),
    ("def answer(t): t.requires_grad_(False)",
     lambda f: not changed(f, tk.ones(2, requires_grad=True)).requires_grad),
    ("def answer(t): (t * 3).sum().backward()",
     lambda f: changed(f, tk.ones(2, requires_grad=True)).grad.tolist() == [3.0, 3.0]),
    ("def answer(t): t.data = t[:1] + 1", lambda f: changed(f, tk.zeros(2)).tolist() == [1.0]),
]  # fmt: skip


def changed(answer: Any, value: Any) -> Any:
    answer(value)
    return value


def same_tensors(answer: Any) -> bool:
    pair = [tk.ones(1), tk.zeros(1)]
    second = pair[1]
    answer(pair)
    return pair[0] is second


@pytest.mark.parametrize(("source", "observe"), CHANGES)
def test_what_an_answer_does_to_its_arguments(session: Session, source: str, observe: Any) -> None:
    run(session, source)
    assert graded(session, made(lambda f: observe(f))).status == "passed"


def shares(answer: Any) -> bool:
    array = np.ones(3)
    result = answer(array)
    array[...] = 5
    return bool(result.tolist() == [5.0, 5.0, 5.0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("answer = tk.from_numpy", True),
        ("answer = lambda a: tk.from_numpy(a).clone()", False),
        ("answer = lambda a: a", True),
        ("answer = lambda a: a[:]", True),
        ("answer = lambda a: a.copy()", False),
    ],
)
def test_sharing_memory_is_seen(session: Session, source: str, expected: bool) -> None:
    run(session, source)
    report = graded(session, made(lambda f: shares(f) is expected))
    assert report.status == "passed", str(report)


def test_a_claim_about_memory_is_tried_out(session: Session) -> None:
    # an agent that says the result shares no memory, although it does
    run(
        session,
        "import course.sandbox.learner as agent\n"
        "agent._same = lambda owners, blocks: []\n"
        "def answer(array): return tk.from_numpy(array)",
    )
    report = graded(session, made(lambda f, array: f(array) is not None, np.ones(3)))
    assert report.status == "failed"


def test_a_gradient_is_asked_of_the_other_side(session: Session) -> None:
    run(session, "def answer(x): return (x * x).sum()")

    def slope(answer: Any) -> bool:
        x = tk.tensor([1.0, 3.0], requires_grad=True)
        (answer(x) * 2).backward()
        return bool(x.grad.tolist() == [4.0, 12.0])

    assert graded(session, made(slope)).status == "passed"


@pytest.mark.parametrize("use", [bool, lambda x: x == 1, lambda x: x < 1, lambda x: x + 1, float])
def test_an_object_of_the_learners_has_no_value_here(session: Session, use: Any) -> None:
    run(
        session,
        "class Always:\n"
        "  __bool__ = __eq__ = __lt__ = lambda *a: True\n"
        "  __add__ = __float__ = lambda *a: 1.0\n"
        "answer = Always",
    )
    report = graded(session, made(lambda f: use(f()) is not None))
    assert report.status == "failed"
    assert "has no value here" in report.rows[0].got


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("raise ValueError('no')", "ValueError: no"),
        ("raise KeyError('k')", "KeyError: 'k'"),
        ("class Own(Exception): pass\n  raise Own('mine')", "Own: mine"),
        ("tk.zeros(2) @ tk.zeros(3)", "ShapeError"),
        ("exit()", "SystemExit"),
        ("raise ExceptionGroup('two', [KeyError(1), OSError()])", "ExceptionGroup: two"),
    ],
)
def test_an_exception_crosses_with_its_words(session: Session, source: str, kind: str) -> None:
    run(session, f"def answer():\n  {source}")
    report = graded(session, made(lambda f: f()))
    assert report.status == "failed"
    assert report.rows[0].got.startswith(kind), report.rows[0].got


def test_a_traceback_shows_no_file_of_this_machine(session: Session) -> None:
    source = "import tensorkit as tk\ntk.ones(3) + tk.ones(4)"
    ran, _ = session.ask({"do": "cells", "sources": [source], "seconds": 5}, seconds=5)
    (shown,) = ran["outputs"]
    text = "".join(shown["traceback"])
    assert "tk.ones(3) + tk.ones(4)" in text
    assert ".py" not in text


def test_an_endless_answer_is_stopped_and_the_session_goes_on(session: Session) -> None:
    run(session, "def answer():\n  while True: pass")
    report = graded(session, made(lambda f: f()), seconds=0.3)
    assert "did not end within 0.3 seconds" in str(report)
    run(session, "answer = lambda: True")
    assert graded(session, made(lambda f: f())).status == "passed"


ENDLESS = [
    ("def answer():\n  while True: yield 1", "no answer"),
    ("def answer():\n  while True: yield np.zeros(5_000_000)", "more data than a check looks at"),
    ("answer = lambda: np.broadcast_to(np.zeros(1), (1 << 40,))", "Ended"),
    ("answer = lambda: [[0] * 9999] * 9999", "no answer"),
    ("def answer():\n  x = [0] * 9\n  for _ in range(9): x = [x] * 9\n  return x", "no answer"),
]


@pytest.mark.parametrize(("source", "words"), ENDLESS)
def test_data_without_end_are_not_waited_for(session: Session, source: str, words: str) -> None:
    run(session, source)
    seconds = 1.0 if words == "no answer" else 10.0
    report = graded(session, made(lambda f: list(f())), seconds=seconds)
    assert report.status == "failed"
    assert words in report.rows[0].got


def test_what_only_the_learners_process_sees_is_worth_a_tenth_at_most(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_definitions(source)
    known = exercise.load(source.chapter)
    monkeypatch.setattr(known["which-dtype"], "witness", "inside")
    check_definitions(source)
    monkeypatch.setattr(known["pixels"], "witness", "inside")
    with pytest.raises(CourseError, match="7 of 20 points"):
        check_definitions(source)


# plain asserts

ASSERTS = [
    ("def double(n): return 2 * n", "assert double(3) == 6", 2.0),
    ("def double(n): return n", "assert double(3) == 6", 0.0),
    ("def double(n): return 2.5", "assert double(3) == 2.5\n1.5", 1.5),
    ("def double(n): return np.arange(9)", "sum(double(n) == 2 * n for n in range(4))", 0.0),
    ("def double(n): return 'x'", "max(double(1), double(2))", 0.0),
    ("def double(n): return 2 * n", "sum(double(n) == 2 * n for n in range(1))", 1.0),
    ("def double(n): return [n, n]", "assert double(3) == [3, 3]\ndouble(3)", 2.0),
    ("", "assert double(3) == 6", 0.0),
    ("x = tk.ones(3)", "assert x.sum().item() == 3", 2.0),
    ("x = 3", "np.testing.assert_allclose(x, 3.0)", 2.0),
    ("def f(): raise ValueError", "try:\n    f()\nexcept Exception: pass\nelse: assert False", 2.0),
    (
        "class Yes:\n  __eq__ = lambda *a: True\n  __bool__ = __eq__\nf = Yes",
        "assert f() == 6",
        0.0,
    ),
    ("def f():\n  while True: pass", "assert f() == 1", 0.0),
    ("import os\ndef f(): os._exit(0)", "f()", 0.0),
    ("f = lambda: float('nan')", "2 * f()", 0.0),
    ("f = lambda: 'x'", "2 * f()", 0.0),
    ("f = lambda: 1e9", "-f()", 0.0),
    ("f = lambda: 0", "np.float64(f() == 1)", 0.0),
    ("f = lambda: 0", "tk.tensor(0.5 * (f() == 0))", 0.5),
    ("f = lambda: 0", "assert f() == 0\nprint(f())", 2.0),
    ("said = '__import__(\"os\")._exit(7)'", "eval(said)", 0.0),
    ("path = '/etc/hostname'", "open(path).read()", 0.0),
    ("f = lambda: 'true'", "import os\nos.system(f())", 0.0),
]


@pytest.mark.parametrize(("mine", "check", "earned"), ASSERTS)
def test_plain_asserts_are_graded_apart(
    session: Session, mine: str, check: str, earned: float
) -> None:
    run(session, mine)
    caller = Caller(session, budget=Budget(1.0))
    cells = told("answer = double = x = f = said = path = None")
    report = asserts.judge(caller, check, "check-double", 2.0, cells)
    assert report.score == earned, str(report)


def told(*sources: str) -> list[dict[str, Any]]:
    """An instructor's cells; that which begins with `answer` is the learner's to write."""
    return [
        {
            "cell_type": "code",
            "source": source,
            "metadata": {"nbgrader": {"solution": True}} if source.startswith("answer") else {},
        }
        for source in sources
    ]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("assert answer(data) == data.sum()", "reads `data`, which learners can change"),
        ("assert close(answer(15), 15)", "reads `close`, which learners can change"),
        ("assert eval(answer()) == 4", "calls `eval`"),
        ("import os\nassert os.path.exists(answer())", "imports os"),
        ("%timeit answer()", "cannot be read"),
    ],
)
def test_a_check_that_learners_could_answer_otherwise_is_refused(
    source: Source, check: str, words: str
) -> None:
    helper = "def close(data, other): return data == other"
    cells = told("data = tk.arange(6)", helper, "answer = lambda data: 15")
    with pytest.raises(asserts.Broken, match=words):
        asserts.read(check, cells)
    solved = deepcopy(source.solved)
    cell_of(solved, "check-pixels")["source"] = check
    released = deepcopy(source.released)
    cell_of(released, "check-pixels")["source"] = check
    with pytest.raises(CourseError, match="check-pixels"):
        check_definitions(Source(source.chapter, released, solved))


def test_a_number_that_no_float_holds_is_wrong_and_no_more(session: Session) -> None:
    run(session, "answer = lambda: [10**1000]")
    definition = made(lambda f: f())
    definition.expected = lambda *_: [1.5]  # type: ignore[method-assign]
    assert graded(session, definition).status == "failed"


def test_a_check_that_fails_itself_costs_no_other_exercise(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise OverflowError

    known = exercise.load(klass_once.source.chapter)
    monkeypatch.setattr(known["pixels"], "is_not_started", fails)
    report = {
        each.report.exercise_id: each.report
        for each in klass_once.grade(klass_once.honest()).exercises
    }
    assert (report["pixels"].score, report["private-copy"].score) == (0, 6)
    assert "could not be checked" in report["pixels"].message


# the same points as in the notebook


@pytest.mark.parametrize("chapter", paths.released_chapters(ROOT))
def test_the_worked_solutions_get_full_marks(warm_once: Warm, chapter: str) -> None:
    klass = Class(warm_once, matching.source_of(ROOT, chapter))
    result = klass.grade(klass.honest())
    wrong = [
        str(each.report) for each in result.exercises if each.report.score != each.report.possible
    ]
    assert wrong == []
    assert result.possible > 0


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("import tensorkit as tk\nfrom course import check hint", "SyntaxError"),
        ("import torch as tk", "No module named 'torch'"),
        ("import os; os._exit(1)", "ended its own process"),
    ],
)
def test_imports_that_do_not_run_cost_no_exercise(
    klass_once: Class, setup: str, words: str
) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, klass_once.source.setup or "")["source"] = setup
    result = klass_once.grade(notebook)
    assert result.score == result.possible
    assert any(words in trouble for trouble in result.troubles)
    assert any("the imports are those that were released" in trouble for trouble in result.troubles)


def test_other_imports_that_run_are_left_alone(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, klass_once.source.setup or "")["source"] += "\nimport math"
    result = klass_once.grade(notebook)
    assert (result.score, result.troubles) == (result.possible, ())


@pytest.mark.parametrize("turn", range(4))
def test_points_are_those_of_the_check_in_the_notebook(klass_once: Class, turn: int) -> None:
    """Every exercise with one of its usual mistakes, on another draw each time."""
    notebook = klass_once.honest()
    texts: dict[str, str] = {}
    for asked in klass_once.exercises.values():
        texts[asked.id] = typed(asked, turn)
        cell_of(notebook, asked.id)["source"] = texts[asked.id]
    seed = f"seed {turn}"
    for found in klass_once.grade(notebook, seed).exercises:
        asked = klass_once.exercises[found.report.exercise_id]
        namespace: dict[str, Any] = {"np": np, "tk": tk}
        exec(texts[asked.id], namespace)
        here = check_here(asked, namespace[asked.name], seed=seed)
        if found.report.status == "not started":  # the mistake is the code as it was released
            continue
        assert (found.report.score, found.report.mistake) == (here.score, here.mistake), asked.id
        assert [row.status for row in found.report.rows] == [row.status for row in here.rows]


ANSWER = "def to_unit_range(image):\n    return {} / {}\n"
RIGHT = ANSWER.format("image.float().sum(2)", "(3 * 255)")
WRONG = ANSWER.format("image.float()", "2")
SUMMED = "def summed(image):\n    return image.float().sum(2)\n"


@pytest.mark.parametrize(
    ("above", "below", "is_right"),
    [
        ([RIGHT], [], True),
        ([], [RIGHT], True),
        ([], [SUMMED, ANSWER.format("summed(image)", "(3 * 255)")], True),
        ([], ["scale = 3 * 255", ANSWER.format("image.float().sum(2)", "scale")], True),
        ([SUMMED], ["%time scale = 765", ANSWER.format("summed(image)", "scale")], True),
        ([WRONG, RIGHT], [], True),
        ([RIGHT, WRONG], [], False),
        ([WRONG], [RIGHT], True),
        ([], [WRONG, RIGHT], True),
        ([RIGHT], [WRONG], False),
    ],
)
def test_an_answer_in_own_cells_has_the_points_of_its_check_in_the_notebook(
    klass_once: Class, above: list[str], below: list[str], is_right: bool
) -> None:
    notebook = klass_once.blank()
    cells, check = notebook["cells"], cell_of(notebook, "check-pixels")
    typed_in = [
        {"cell_type": "code", "id": f"mine-{n}", "metadata": {}, "source": text}
        for n, text in enumerate([*above, *below])
    ]
    at = cells.index(check)
    cells[at : at + 1] = [*typed_in[: len(above)], check, *typed_in[len(above) :]]
    setup = cell_of(notebook, klass_once.source.setup or "")
    run = [setup, *cells[cells.index(cell_of(notebook, "pixels")) :][: len(typed_in) + 2], check]
    assert ("6 of 6 points" in in_a_kernel(run)) is is_right
    assert klass_once.points(notebook)["pixels"] == (PIXELS if is_right else 0)


def in_a_kernel(cells: list[dict[str, Any]]) -> str:
    """What a learner reads who runs these cells."""
    program = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    print("# cell")
    shell.run_cell(cell["source"], store_history=True, cell_id=cell["id"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rpartition("# cell")[2]


def test_own_cells_that_came_along_run_where_they_stand_too(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, "pixels")["source"] = klass_once.source.by_id["pixels"]["source"]
    own = {"cell_type": "code", "metadata": {}}
    at = notebook["cells"].index(cell_of(notebook, "check-private-copy"))
    copy = cell_of(notebook, "private-copy")
    notebook["cells"].insert(at - 1, {**own, "id": "side", "source": "side = strides_of((2, 3))"})
    copy["source"] = "side\n" + copy["source"]
    notebook["cells"].append({**own, "id": "last", "source": RIGHT})
    points = klass_once.points(notebook)
    assert (points["pixels"], points["private-copy"]) == (PIXELS, 6)


def typed(asked: Exercise, turn: int) -> str:
    """The answer cell of a learner who makes the exercise's next usual mistake."""
    if isinstance(asked, exercise.Prediction):
        mistake = random.Random(turn).choice(asked.mistakes())
        return f"{asked.name} = {mistake.answer!r}"
    slips = [
        slip for one in asked.mistakes() if (slip := demo_learners.slip(asked, one)) is not None
    ]
    return slips[turn % len(slips)].text if slips else asked.solution_source
