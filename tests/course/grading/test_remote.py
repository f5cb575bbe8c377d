"""What the checker sees of an answer that runs in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from classroom import run

import tensorkit as tk
from course.engine.measuring import launched, measured
from course.grading.judge import check_exercise
from course.grading.session import Session
from course.notebook.exercise import Case, Draw, Exercise, case
from course.notebook.report import Report


def made(observe: Callable[..., Any], *args: Any) -> Exercise:
    """An exercise about `answer` with one case, in which this is observed of it."""

    class Made(Exercise):
        """Made

        For a test.
        """

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
    return check_exercise(session, definition, [], "seed", seconds)


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


def test_how_an_answer_computes_is_measured_there(session: Session) -> None:
    run(session, "def answer(x):\n  y = x.clone().requires_grad_()\n  y.sum().backward()")
    walks = made(lambda f: measured(f, tk.ones(3))[1]["walks"] == 1)
    assert graded(session, walks).status == "passed"


def test_what_an_answer_launches_is_counted_there(session: Session) -> None:
    kernel = "@cuda.kernel\ndef k(x):\n  for i in range(cuda.threadIdx.x, 5, 4): x[i] = 1.0\n"
    run(session, f"from tensorkit import cuda\n{kernel}def answer(x):\n  k[1, 4](x.cuda())")
    counted = made(lambda f: launched(f, tk.zeros(5))[1] == [(4, 5, 2)])
    with tk.cuda.simulate():
        assert graded(session, counted).status == "passed"


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
        "agent._shared = lambda owners, blocks: []\n"
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
    ("answer = lambda: sum(iter(int, 1))", "It did not stop in time and was ended."),
    ("answer = lambda: np.broadcast_to(np.zeros(1), (1 << 40,))", "Ended"),
    ("answer = lambda: [[0] * 9999] * 9999", "no answer"),
    ("def answer():\n  x = [0] * 9\n  for _ in range(9): x = [x] * 9\n  return x", "no answer"),
]


@pytest.mark.parametrize(("source", "words"), ENDLESS)
def test_data_without_end_are_not_waited_for(session: Session, source: str, words: str) -> None:
    run(session, source)
    seconds = 10.0 if words in ("Ended", "more data than a check looks at") else 1.0
    report = graded(session, made(lambda f: list(f())), seconds=seconds)
    assert report.status == "failed"
    assert words in report.rows[0].got


def test_a_number_that_no_float_holds_is_wrong_and_no_more(session: Session) -> None:
    run(session, "answer = lambda: [10**1000]")
    definition = made(lambda f: f())
    definition.expected = lambda *_: [1.5]  # type: ignore[method-assign]
    assert graded(session, definition).status == "failed"
