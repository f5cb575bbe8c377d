"""Many submissions, none lost, none doubled, whatever happens to the grader.

    python tests/benchmarks/many.py [--write]         # what `make grade-many` calls

1. 2,000 made-up submissions in one batch: each stands in the gradebook once, with its result's
   points.
2. Of the first 200, each with a seed of its own, every exercise has the points that the check in
   the notebook gives for the same answer and seed.
3. The first 200 once more, by a grader that is killed with -9 at 20 random moments and started
   again: the same results, byte for byte, and the same gradebook.
4. The same, while 20 times a process below the grader is killed with -9: a worker, a warm process,
   one that runs a learner's code.
5. Stock nbgrader, whose kernel runs the check in the notebook, gives the same points.

A part that does not hold raises AssertionError.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grading
import numpy as np
from traitlets.config import Config

import tensorkit as tk
from course.grading import batch
from course.grading.result import Result, autograded_file, result_file, stored
from course.notebook import exercise
from course.notebook.check import judge as check_here

CHAPTER = grading.CHAPTER


def book(root: Path) -> dict[str, Any]:
    """All that the gradebook holds of the submissions, without its numbers of rows."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root}/course/gradebook.db") as opened:
        found = opened.assignment_submissions(CHAPTER)
        names = [submission.student_id for submission in found]
        assert len(names) == len(set(names)), "a submission is doubled"
        return {
            entry.student_id: (
                entry.score,
                sorted(
                    (grade.name, grade.auto_score, grade.needs_manual_grade)
                    for grade in each.grades
                ),
                sorted((comment.name, comment.auto_comment) for comment in each.comments),
            )
            for entry in found
            for each in entry.notebooks
        }


def all_at_once(root: Path, config: Config, count: int) -> str:
    """Part 1."""
    begun = time.perf_counter()
    results = batch.grade(root, CHAPTER, workers=2, config=config, watch=_watch)
    seconds = time.perf_counter() - begun
    scores = {name: score for name, (score, *_) in book(root).items()}
    assert len(scores) == len(results) == count, "lost or doubled"
    assert scores == {result.learner: result.score for result in results}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    statuses = sorted({result.status for result in results})
    return (
        f"{count} submissions, two workers: none lost, none doubled ({', '.join(statuses)}), "
        f"{seconds:.0f} s, {1000 * seconds / count:.0f} ms each; at its peak a process of a "
        f"worker's has {worker:.0f} MB, the writer {peak:.0f} MB."
    )


def _watch(result: Result, done: int, total: int) -> None:
    if done % 100 == 0:
        print(f"{done} of {total}", file=sys.stderr)


def beside_the_notebook(root: Path, names: Iterable[str]) -> str:
    """Part 2."""
    exercises = exercise.load(CHAPTER)
    seeds, compared = set(), 0
    for name in names:
        result = stored(root, name, CHAPTER)
        assert result is not None
        seeds.add(result.seed)
        cells = {cell["id"]: cell for cell in result.cells}
        for graded in result.exercises:
            report = graded.report
            definition = exercises[report.exercise_id]
            if report.status == "not started":
                assert report.score == 0
                continue
            namespace: dict[str, Any] = {"np": np, "tk": tk}
            text = cells[definition.id]["source"]
            exec(text, namespace)
            value = namespace[definition.name]
            here = check_here(definition, value, seed=result.seed, source=text)
            assert (report.score, report.mistake) == (here.score, here.mistake), (
                name,
                definition.id,
            )
            assert [row.status for row in report.rows] == [row.status for row in here.rows]
            compared += 1
    return f"{len(seeds)} seeds: {compared} checks give the points of the check in the notebook."


def killed(root: Path, undisturbed: Path, names: list[str], kills: int) -> str:
    """Part 3."""
    command, quiet = _grading(root)
    draw = random.Random(20)
    graded = root / "course" / "graded"
    reached = []
    while len(reached) < kills:
        started = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
        # a third of them at any moment, the others when it has begun to write
        before = len(list(graded.glob("*/*.json")))
        if len(reached) % 3:
            while len(list(graded.glob("*/*.json"))) == before and started.poll() is None:
                time.sleep(0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(draw.uniform(0.0, 2.5 if len(reached) % 3 == 0 else 0.8))
        assert started.poll() is None, "it was done before it was killed: take more submissions"
        started.kill()
        started.wait()
        reached.append(len(list(graded.glob(f"*/{CHAPTER}.json"))))
        print(f"killed after {reached[-1]} submissions", file=sys.stderr)
    _finish(root, undisturbed, names)
    return (
        f"{len(names)} submissions, killed with -9 at {kills} moments (after "
        f"{', '.join(map(str, reached))} submissions), ends in the same gradebook and the same "
        "bytes of results."
    )


def killed_below(root: Path, undisturbed: Path, names: list[str], kills: int) -> str:
    """Part 4."""
    command, quiet = _grading(root)
    draw = random.Random(21)
    ended = []
    while len(ended) < kills:
        with subprocess.Popen(command, **quiet, stderr=subprocess.PIPE, text=True) as started:  # type: ignore[call-overload]
            while len(ended) < kills and started.poll() is None:
                time.sleep(draw.uniform(0.1, 1.0))
                below = _below(started.pid)
                if below:
                    with contextlib.suppress(ProcessLookupError):  # it has just ended
                        os.kill(victim := draw.choice(below), signal.SIGKILL)
                        ended.append(victim)
            _, said = started.communicate()
        assert started.returncode == 0 or "Ungraded because of this machine" in said, said
        assert started.returncode or len(ended) == kills, "done before: take more submissions"
    _finish(root, undisturbed, names)
    return (
        f"{len(names)} submissions, while a process below the grader is killed {kills} times: the "
        "same again."
    )


def _grading(root: Path) -> tuple[list[str], dict[str, Any]]:
    """The command that grades a course with two workers, and options to run it with."""
    command = [sys.executable, "-m", "course", "grade", CHAPTER, "--workers", "2"]
    environment = {**os.environ, "COURSE_ROOT": str(root)}
    return command, {"env": environment, "stdout": subprocess.DEVNULL}


def _finish(root: Path, undisturbed: Path, names: list[str]) -> None:
    """Grade what is left of a course; all results must be those of the other course."""
    command, quiet = _grading(root)
    assert subprocess.run(command, **quiet, check=False).returncode == 0
    wanted = {name: entry for name, entry in book(undisturbed).items() if name in names}
    assert book(root) == wanted, "another gradebook"
    for name in names:
        for file in (result_file, autograded_file):
            one, other = (file(each, name, CHAPTER).read_bytes() for each in (root, undisturbed))
            assert one == other, name


def _below(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have started."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    own = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [*own, *(further for child in own for further in _below(child))]


def beside_stock(root: Path, config: Config, undisturbed: Path) -> str:
    """Part 5."""
    grading.stock(root, config)
    found, expected = book(root), book(undisturbed)
    points = {name: (entry[0], expected[name][0]) for name, entry in found.items()}
    other = {name: pair for name, pair in points.items() if pair[0] != pair[1]}
    assert not other, f"stock and course: {other}"
    return f"{len(points)} submissions have the points that stock `nbgrader autograde` gives."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the results into docs/grading.md")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stock", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="course-many-") as name:
        folder = Path(name)
        grading.Round(folder, given.count)
        whole, config = grading.copied(next(folder.iterdir()))
        batch.secret_of(whole)
        learners = sorted(folder.name for folder in (whole / "course" / "submitted").iterdir())
        again, _ = grading.copied(whole, learners[: given.seeds])
        third, _ = grading.copied(whole, learners[: given.seeds])
        few, its_config = grading.copied(whole, learners[: given.stock])
        said = []
        for part in (
            lambda: all_at_once(whole, config, given.count),
            lambda: beside_the_notebook(whole, learners[: given.seeds]),
            lambda: killed(again, whole, learners[: given.seeds], given.kills),
            lambda: killed_below(third, whole, learners[: given.seeds], given.kills),
            lambda: beside_stock(few, its_config, whole),
        ):
            said.append(part())
            print(said[-1], flush=True)
    machine = f"{grading.machine()}, {os.cpu_count()} shared cores, Python"
    load = f"load at the end {os.getloadavg()[0]:.1f}"
    said.append(f"Measured on {machine} {platform.python_version()}; {load}.")
    if given.write:
        grading.write("many", "".join(f"- {sentence}\n" for sentence in said))


if __name__ == "__main__":
    main()
