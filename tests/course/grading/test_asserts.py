"""An instructor's own checks: plain asserts, graded apart from the learner's process."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest
from classroom import cell_of, run

from course.grading import asserts
from course.grading.agreement import check_definitions
from course.grading.remote import Caller
from course.grading.session import Session
from course.notebook.matching import Source
from course.notebook.runner import Budget
from course.shared.errors import CourseError

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
    # such errors name no line of the answer, and are no fault of this machine nonetheless
    ("import os\ndouble = os.listdir", "assert double('/none') == 6", 0.0),
    ("exec(\"def double(x): raise OSError('boo')\")", "assert double(3) == 6", 0.0),
]


@pytest.mark.parametrize(("answer", "check", "earned"), ASSERTS)
def test_plain_asserts_are_graded_apart(
    session: Session, answer: str, check: str, earned: float
) -> None:
    run(session, answer)
    caller = Caller(session, budget=Budget(1.0))
    cells = told("answer = double = x = f = said = path = None")
    report = asserts.judge(caller, check, "check-double", 2.0, cells)
    assert report.score == earned, str(report)


def test_asserts_count_where_python_leaves_them_out() -> None:
    program = (
        "import ast; from course.grading import asserts\nasserts._run(ast.parse('assert 0'), {})"
    )
    environment = {**os.environ, "PYTHONOPTIMIZE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert b"AssertionError" in done.stderr


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
