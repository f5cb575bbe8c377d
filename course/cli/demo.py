"""`course demo`: a rehearsal, in which three made-up learners take all steps of nbgrader.

    build, generate_assignment, release_assignment            the instructor
    fetch_assignment, answer, submit                          each learner
    collect, autograde, generate_feedback, release_feedback   the instructor
    fetch_feedback                                            each learner
    export                                                    the instructor

Everything happens in one temporary folder: `class/` is the instructor's course with a gradebook of
its own, `exchange/` the exchange, `learners/NAME/` a learner's course, `logs/` what each program
said. The learners, and what they should get, stand in `demo_learners`.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.cli.demo_learners import Learner, are_enough, class_of, fill_in
from course.notebook import exercise
from course.shared import paths
from course.shared.errors import CourseError

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

Watch = Callable[[str], None]
"""Called with the name of each step when it begins."""


@dataclass
class Rehearsal:
    """How the class went: where everything lies, what nbgrader counted, how long it took."""

    folder: Path
    chapter: str
    learners: Sequence[Learner]
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by step, in order."""
    points: dict[str, dict[str, float]] = field(default_factory=dict)
    """What stands in the gradebook: points by exercise id, for each learner."""
    feedback: dict[str, Path] = field(default_factory=dict)
    """The feedback page that each learner fetched."""

    @property
    def course(self) -> Path:
        """The instructor's course folder."""
        return self.folder / "class"

    @property
    def exchange(self) -> Path:
        return self.folder / "exchange"

    @property
    def grades(self) -> Path:
        """The table that `nbgrader export` wrote."""
        return self.folder / "grades.csv"

    def home(self, learner: Learner) -> Path:
        """A learner's course folder."""
        return self.folder / "learners" / learner.name

    def exported(self) -> dict[str, tuple[float, float]]:
        """Points and possible points by learner, as exported."""
        with self.grades.open(encoding="utf-8", newline="") as table:
            return {
                row["student_id"]: (float(row["score"]), float(row["max_score"]))
                for row in csv.DictReader(table)
                if row["assignment"] == self.chapter
            }

    def surprises(self) -> list[str]:
        """A sentence for everything that came out otherwise than the definitions say."""
        sentences = []
        exported = self.exported()
        for learner in self.learners:
            counted = self.points[learner.name]
            sentences += [
                f"{learner.name}: {id} got {counted.get(id)} points; expected are {expected:g}."
                for id, expected in learner.expected.items()
                if not _is_close(counted.get(id), expected)
            ]
            total = sum(learner.expected.values())
            if not _is_close(exported[learner.name][0], total):
                sentences.append(
                    f"{learner.name}: {exported[learner.name][0]:g} points were exported; "
                    f"expected are {total:g}."
                )
        return sentences


def rehearse(chapter: str | None = None, keep: Path | None = None) -> None:
    """Hold the rehearsal class and print its grades, its feedback pages and its times.

    chapter: by default the first that has exercises enough.
    keep: a new or empty folder; by default a temporary one.

    Raises CourseError if a program of nbgrader fails, or if a grade is not what it should be.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    root = paths.course_root()
    written = paths.written_chapters(root)
    if not written:
        raise CourseError("A rehearsal needs an author's text, solutions/NN_topic.py.")
    chosen = (
        first_for_a_class(written) if chapter is None else paths.chapter_named(chapter, written)
    )
    folder = _empty_folder(keep)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("begin")
        rehearsal = hold_class(
            root, chosen, folder, watch=lambda step: bar.update(task, description=step)
        )
    _show(rehearsal, Console())
    if surprises := rehearsal.surprises():
        raise CourseError("\n".join(["Grades are not what they should be:", *surprises]))


def first_for_a_class(chapters: Sequence[str]) -> str:
    """The first chapter with exercises enough for the troubles of a class, else the first."""
    return next(
        (chapter for chapter in chapters if are_enough([*exercise.load(chapter).values()])),
        chapters[0],
    )


def hold_class(
    root: Path, chapter: str, folder: Path, *, watch: Watch = lambda step: None
) -> Rehearsal:
    """Take all steps with a chapter of the course `root`, in `folder`; nothing else is changed.

    Raises CourseError with nbgrader's own words if one of its programs fails.
    """
    rehearsal = Rehearsal(folder, chapter, class_of(list(exercise.load(chapter).values())))
    paths.notebooks(rehearsal.course).mkdir(parents=True)
    _copy_text(root, rehearsal.course, chapter)
    rehearsal.exchange.mkdir()
    for learner in rehearsal.learners:
        paths.notebooks(rehearsal.home(learner)).mkdir(parents=True)

    steps = Steps(rehearsal, watch)
    with steps.step("build"):
        _build(rehearsal)
    steps.instructor("generate_assignment", chapter, "--force")
    steps.instructor("release_assignment", chapter)
    steps.learners("fetch_assignment", chapter)
    with steps.step("answer"):
        for learner in rehearsal.learners:
            fill_in(paths.notebook_in(paths.work(rehearsal.home(learner)), chapter), learner)
    steps.learners("submit", chapter)
    # the three are one user of this machine, which nbgrader would report
    steps.instructor("collect", chapter, "--ExchangeCollect.check_owner=False")
    steps.instructor("autograde", chapter)
    steps.instructor("generate_feedback", chapter)
    steps.instructor("release_feedback", chapter)
    steps.learners("fetch_feedback", chapter)
    steps.instructor("export", f"--to={rehearsal.grades}")

    for learner in rehearsal.learners:
        rehearsal.points[learner.name] = _points_in_gradebook(rehearsal, learner)
        rehearsal.feedback[learner.name] = _feedback_page(rehearsal, learner)
    return rehearsal


class Steps:
    """Runs the steps of a rehearsal one after the other and takes their times."""

    def __init__(self, rehearsal: Rehearsal, watch: Watch = lambda step: None) -> None:
        self.rehearsal, self.watch = rehearsal, watch

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.watch(name)
        begun = time.perf_counter()
        yield
        self.rehearsal.seconds[name] = time.perf_counter() - begun

    def instructor(self, program: str, *options: str) -> None:
        """One program of nbgrader's in the instructor's course."""
        with self.step(program):
            running = self._start(self.rehearsal.course, "instructor", program, *options)
            self._wait(program, [running])

    def learners(self, program: str, *options: str) -> None:
        """The same program for all learners at once, each in their own course."""
        with self.step(program):
            self._wait(
                program,
                [
                    self._start(
                        self.rehearsal.home(learner),
                        learner.name,
                        program,
                        *options,
                        f"--student={learner.name}",
                    )
                    for learner in self.rehearsal.learners
                ],
            )

    def _start(self, home: Path, login: str, program: str, *options: str) -> tuple[Any, Path]:
        log = self.rehearsal.folder / "logs" / f"{program}-{login}.txt"
        log.parent.mkdir(exist_ok=True)
        environment = _environment(home, self.rehearsal.exchange)
        process = _processes().Process(
            target=_nbgrader, args=([program, *options], environment, home, log)
        )
        process.start()
        return process, log

    def _wait(self, program: str, running: Sequence[tuple[Any, Path]]) -> None:
        for process, _ in running:
            process.join()
        for process, log in running:
            if process.exitcode != 0:
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
                raise CourseError("\n".join([f"nbgrader {program} failed ({log}):", *said]))


def _nbgrader(arguments: list[str], environment: dict[str, str], home: Path, log: Path) -> None:
    """The program `nbgrader` with these arguments; runs in a process of its own."""
    with log.open("ab") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(home)
    sys.argv = ["nbgrader", *arguments]
    from nbgrader.apps.nbgraderapp import main

    main()


@cache
def _processes() -> ForkServerContext:
    """The context in which nbgrader's programs are started.

    Each `nbgrader X` spends two seconds on its imports before it does anything. These processes are
    forked from one that has done them already; apart from that each is a program of its own.
    """
    if sys.platform == "win32":
        raise CourseError("nbgrader's exchange, and so the rehearsal, needs Linux or macOS.")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nbgrader.apps.nbgraderapp"])
    return context


def _environment(home: Path, exchange: Path) -> dict[str, str]:
    """The variables of a program in the course `home`: nothing of the user's own settings."""
    prefixes = ("COURSE_", "JUPYTER", "IPYTHON", "NBGRADER", "MPLBACKEND")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(prefixes)},
        "COURSE_ROOT": str(home),
        "COURSE_EXCHANGE": str(exchange),
        # this package's configuration, also where the package is not installed with its data
        "JUPYTER_CONFIG_PATH": str(Path(__file__).parents[1] / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(home / ".jupyter" / "config"),
        "JUPYTER_DATA_DIR": str(home / ".jupyter" / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / ".jupyter" / "runtime"),
        "IPYTHONDIR": str(home / ".jupyter" / "ipython"),
    }


def _copy_text(root: Path, course: Path, chapter: str) -> None:
    """The author's text and the chapter's data files, without any built notebook."""
    source, target = paths.solutions(root), paths.solutions(course)
    target.mkdir()
    shutil.copy(source / f"{chapter}.py", target)
    if (source / chapter).is_dir():
        ignored = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
        shutil.copytree(source / chapter, target / chapter, ignore=ignored)


def _build(rehearsal: Rehearsal) -> None:
    from course.authoring.build import build

    build(rehearsal.course, [rehearsal.chapter])


def _points_in_gradebook(rehearsal: Rehearsal, learner: Learner) -> dict[str, float]:
    from nbgrader.api import Gradebook

    database = rehearsal.course / "course" / "gradebook.db"
    with Gradebook(f"sqlite:///{database}") as gradebook:
        notebook = gradebook.find_submission_notebook(
            rehearsal.chapter, rehearsal.chapter, learner.name
        )
        return {grade.name.removeprefix("check-"): grade.score for grade in notebook.grades}


def _feedback_page(rehearsal: Rehearsal, learner: Learner) -> Path:
    folder = paths.work(rehearsal.home(learner)) / rehearsal.chapter / "feedback"
    pages = sorted(folder.glob("*/*.html"))
    if not pages:
        raise CourseError(f"nbgrader fetch_feedback brought no page for {learner.name} ({folder}).")
    return pages[-1]


def _empty_folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="course-demo-")).resolve()
    keep = keep.expanduser().absolute()
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise CourseError(f"{keep} is not empty: name a new folder.")
    keep.mkdir(parents=True, exist_ok=True)
    return keep


def _is_close(points: float | None, expected: float) -> bool:
    return points is not None and abs(points - expected) < 0.005


# printing


def _show(rehearsal: Rehearsal, console: Any) -> None:
    """Grades, feedback pages and times."""
    from rich.table import Table

    names = [learner.name for learner in rehearsal.learners]
    exercises = exercise.load(rehearsal.chapter)
    table = Table(title=f"Grades of the rehearsal class, chapter {rehearsal.chapter}")
    table.add_column("Exercise")
    for name in ("possible", *names):
        table.add_column(name, justify="right")
    for id, asked in exercises.items():
        row = [f"{rehearsal.points[name][id]:g}" for name in names]
        table.add_row(id, f"{asked.points:g}", *row)
    table.add_section()
    exported = rehearsal.exported()
    possible = sum(exercise.points for exercise in exercises.values())
    table.add_row("exported", f"{possible:g}", *(f"{exported[name][0]:g}" for name in names))
    expected = [f"{sum(learner.expected.values()):g}" for learner in rehearsal.learners]
    table.add_row("expected", f"{possible:g}", *expected)
    console.print(table)
    for learner in rehearsal.learners:
        console.print(f"{learner.name}: {learner.story}", highlight=False)

    times = Table(title="Seconds")
    times.add_column("Step")
    times.add_column("s", justify="right")
    for step, seconds in rehearsal.seconds.items():
        times.add_row(step, f"{seconds:.1f}")
    times.add_section()
    times.add_row("in all", f"{sum(rehearsal.seconds.values()):.1f}")
    console.print(times)

    console.print("Feedback pages:")
    for page in rehearsal.feedback.values():
        print(f"  {page}")  # not through rich, which would break a long path
    root = shlex.quote(str(rehearsal.course))
    print("To write the report about this class:")
    print(f"  COURSE_ROOT={root} course report {rehearsal.chapter}")
    print(f"Everything lies in {rehearsal.folder}; remove the folder when you have seen it.")
