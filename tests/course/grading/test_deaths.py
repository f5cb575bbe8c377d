"""A process that ends keeps the points it had earned, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from attacked import report_on
from classroom import Class, cell_of, put_first

from course.grading.session import Died

ODD_SIDES = "rows % 2 and columns % 2 and 1 < rows < columns"
"""True in the second case of the checkerboard alone, whatever is drawn."""


def test_points_earned_before_the_end_of_the_process_stand(klass: Class) -> None:
    notebook = klass.honest()
    solution = klass.exercises["checkerboard"].solution_source
    dies = solution.replace(
        "    board = ", f"    if {ODD_SIDES}: import os; os._exit(1)\n    board = ", 1
    )
    assert dies != solution
    cell_of(notebook, "checkerboard")["source"] = dies
    points = klass.points(notebook)
    assert 0 < points["checkerboard"] < klass.exercises["checkerboard"].points
    assert points["pixels"] == klass.exercises["pixels"].points


def test_they_stand_too_where_a_cell_of_the_learners_own_ended_it(klass_once: Class) -> None:
    # the check is asked once more without that cell, which the answer needs
    notebook = klass_once.honest()
    answer = cell_of(notebook, "checkerboard")
    helper = answer["source"].replace("checkerboard", "helper", 1)
    dies = helper.replace(
        "    board = ", f"    if {ODD_SIDES}: import os; os._exit(1)\n    board = ", 1
    )
    cell = {"cell_type": "code", "metadata": {}, "id": "mine", "source": dies}
    notebook["cells"].insert(notebook["cells"].index(answer), cell)
    answer["source"] = "def checkerboard(rows, columns):\n    return helper(rows, columns)"
    report = report_on("checkerboard", klass_once.grade(notebook))
    assert 0 < report.earned < report.possible
    assert "ended its process" in report.rows[1].got


def test_five_deaths_and_the_rest_is_graded_alone(klass: Class) -> None:
    notebook = klass.honest("private-copy", "pixels")
    for n in range(5):
        cell = {"cell_type": "code", "metadata": {}, "source": f"import os; os._exit({n})"}
        notebook["cells"].insert(3, cell)
    result = klass.grade(notebook)
    points = {exercise.report.exercise_id: exercise.report.score for exercise in result.exercises}
    for name in ("private-copy", "pixels"):
        assert points[name] == klass.exercises[name].points
    assert any("each on its own" in trouble for trouble in result.troubles)


def test_a_process_does_not_outlive_its_submission(klass: Class) -> None:
    before = processes_in(klass.warm.folder)
    klass.points(
        put_first(klass.blank(), "import threading; threading.Thread(target=input).start()")
    )
    assert not list(klass.warm.folder.glob("home-*"))
    assert processes_in(klass.warm.folder) == before


SLEEPS = (
    "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(99)"
)
REMAINS = {
    "a sleep without signals": SLEEPS,
    "no signal when the parent ends": f"import ctypes; ctypes.CDLL(None).prctl(1, 0); {SLEEPS}",
    "without its first thread": (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=[99]).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    ),
}


@pytest.mark.parametrize("name", REMAINS)
def test_a_process_cannot_remain_when_it_is_ended(klass: Class, name: str) -> None:
    # stock: the notebook's children live on, and edited the gradebook after grading: 14 of 14
    before = processes_in(klass.warm.folder)
    session = klass.warm.fork()
    with pytest.raises(Died):
        session.ask({"do": "cells", "sources": [REMAINS[name]], "seconds": 0.1}, seconds=0.1)
    for _ in range(20):
        if processes_in(klass.warm.folder) == before:
            break
        time.sleep(0.1)
    assert processes_in(klass.warm.folder) == before


def processes_in(folder: Path) -> set[int]:
    """The warm process of this folder and all that came of it: they share its command line."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if bytes(folder) in path.read_bytes():
                found.add(int(path.parent.name))
    return found
