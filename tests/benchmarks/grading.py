"""What grading costs, beside nbgrader's own API on the same submissions of a real chapter.

    python tests/benchmarks/grading.py [--write]      # what `make bench-grading` calls

Rounds alternate, stock and course, each in a fresh copy of the course, because the machine's speed
changes while one measures. CPU is that of all processes together, killed ones included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import synthetic
from traitlets.config import Config

from course.grading import batch
from course.sandbox import linux
from course.sandbox.profiles import Limits

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "grading.md"
CHAPTER = "01_tensors"
NAMES = {
    "start": "two submissions, for what the start costs",
    "start two": "the same with two workers",
    "command": "`nbgrader autograde`, once for each learner",
    "stock": "nbgrader's API, one process",
    "one": "`course grade`, one worker",
    "two": "`course grade`, two workers",
    "troubled": "two workers, 5 % loops, crashes, floods",
}


@dataclass
class Cost:
    """Seconds and megabytes of one round."""

    wall: float
    cpu: float
    count: int
    peak: float = 0.0
    learners: float = 0.0
    """CPU seconds in learners' own cells."""


def measured(work: Callable[[], Any], count: int) -> Cost:
    """The cost of one round, of this process and of those that it has waited for."""
    before, begun = _cpu(), time.perf_counter()
    work()
    wall, cpu = time.perf_counter() - begun, _cpu() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Cost(wall, cpu, count, peak)


def _cpu() -> float:
    with contextlib.suppress(ChildProcessError):  # those that a sandbox's end left to this process
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, who))


def adopt() -> None:
    """Have orphans of all processes that this one starts handed to it: their CPU time counts."""
    linux.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def two_loops() -> float:
    """How many times as fast as one loop two of them at once are: all that two workers could be."""

    def loop() -> None:
        sum(n * n % 7 for n in range(3_000_000))

    begun = time.perf_counter()
    loop()
    alone = time.perf_counter() - begun
    begun = time.perf_counter()
    for _ in range(2):
        if os.fork() == 0:
            loop()
            os._exit(0)
    os.wait(), os.wait()
    return 2 * alone / (time.perf_counter() - begun)


def copied(template: Path, learners: Iterable[str] | None = None) -> tuple[Path, Config]:
    """A fresh copy of a course, with these learners' submissions; nbgrader's configuration."""
    root = Path(tempfile.mkdtemp(dir=template.parent))
    own = ("graded", "autograded", "submitted") if learners is not None else ()
    shutil.copytree(template, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*own))
    for name in learners or ():
        where = Path("course", "submitted", name)
        shutil.copytree(template / where, root / where)
    os.environ["COURSE_ROOT"] = str(root)
    config = Config()
    config.CourseDirectory.update(
        root=str(root),
        db_url=f"sqlite:///{root}/course/gradebook.db",
        source_directory="solutions",
        release_directory="notebooks",
        submitted_directory="course/submitted",
        autograded_directory="course/autograded",
    )
    return root, config


class Round:
    """A fresh copy of the course for each measurement."""

    def __init__(self, folder: Path, count: int, troubled: int = 0) -> None:
        self.template, self.count = Path(tempfile.mkdtemp(dir=folder)), count
        (self.template / "notebooks").mkdir()
        synthetic.school(self.template, CHAPTER)
        synthetic.submit(self.template, CHAPTER, count, troubled=troubled)

    def course(self, workers: int) -> Cost:
        return self._in_copy(
            lambda root, config: batch.grade(root, CHAPTER, workers=workers, config=config)
        )

    def stock(self) -> Cost:
        return self._in_copy(stock)

    def command(self) -> Cost:
        return self._in_copy(_command)

    def _in_copy(self, work: Callable[[Path, Config], Any]) -> Cost:
        root, config = copied(self.template)
        cost = measured(lambda: work(root, config), self.count)
        timings = root.glob("course/graded/*/*.timings.json")
        cost.learners = sum(json.loads(file.read_text()).get("cpu", 0.0) for file in timings)
        shutil.rmtree(root)
        return cost


def _command(root: Path, config: Config) -> None:
    """A program for each learner, with none of this course's configuration."""
    options = [
        f"--CourseDirectory.{name}={value}" for name, value in config.CourseDirectory.items()
    ]
    environment = {**os.environ, "JUPYTER_NO_CONFIG": "1", "JUPYTER_CONFIG_DIR": str(root / "none")}
    for learner in sorted(folder.name for folder in (root / "course" / "submitted").iterdir()):
        program = [sys.executable, "-m", "nbgrader", "autograde", CHAPTER, f"--student={learner}"]
        subprocess.run(
            [*program, *options], env=environment, cwd=root, check=True, capture_output=True
        )


def stock(root: Path, config: Config) -> None:
    """Grade all submissions by nbgrader's API, in this process."""
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    said, quiet = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # each kernel warns of its transport
    try:
        for learner in sorted(folder.name for folder in (root / "course" / "submitted").iterdir()):
            api.autograde(CHAPTER, learner)
    finally:
        os.dup2(said, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/grading.md")
    parser.add_argument("--count", type=int, default=100, help="submissions")
    parser.add_argument("--rounds", type=int, default=5, help="stock gets a part of them in each")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    adopt()
    with tempfile.TemporaryDirectory(prefix="course-bench-") as name:
        folder = Path(name)
        plain, small = Round(folder, given.count), Round(folder, 2)
        part = Round(folder, max(2, given.count // given.rounds))
        troubled = Round(folder, given.count, troubled=max(1, given.count // 20))
        small.course(1), small.stock()  # what is done once: imports, caches
        found: dict[str, list[Cost]] = {name: [] for name in NAMES}
        possible = []
        for number in range(given.rounds):
            possible.append(two_loops())
            found["command"].append(small.command())
            found["start"].append(small.course(1))
            found["start two"].append(small.course(2))
            found["one"].append(plain.course(1))
            found["two"].append(plain.course(2))
            found["stock"].append(part.stock())
            if number == given.rounds // 2:  # it takes minutes
                found["troubled"].append(troubled.course(2))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    text = table(found, statistics.median(possible))
    print(text)
    if given.write:
        write("measured", text)


def write(mark: str, text: str) -> None:
    """Put a text into docs/grading.md, between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    marks = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
    PAGE.write_text(re.sub(marks, rf"\1{text}\2", page, flags=re.DOTALL), encoding="utf-8")


def table(found: dict[str, list[Cost]], possible: float) -> str:
    """The rounds' medians, as a table for the page."""

    def each(name: str, what: str) -> float:
        return statistics.median(getattr(cost, what) / cost.count for cost in found[name])

    def faster(than: str, name: str, what: str = "wall") -> str:
        return f"{each(than, what) / each(name, what):.1f}"

    lines = [
        "| | wall | CPU | faster than the API | than the command | peak of a process |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, words in NAMES.items():
        if name.startswith("start"):
            continue
        wall, cpu = (1000 * each(name, what) for what in ("wall", "cpu"))
        is_ours = name not in ("stock", "command")
        peak = f"{max(cost.peak for cost in found[name]):.0f} MB" if is_ours else ""
        lines.append(
            f"| {words} | {wall:.0f} ms | {cpu:.0f} ms | {faster('stock', name)} | "
            f"{faster('command', name)} | {peak} |"
        )
    count, rounds = found["one"][0].count, len(found["one"])
    load = os.getloadavg()[0]

    def rises(few: str, many: str, what: str) -> list[float]:
        """What one more submission cost, round by round, in milliseconds."""
        pairs = zip(found[few], found[many], strict=True)
        return [
            1000 * (getattr(more, what) - getattr(less, what)) / (more.count - less.count)
            for less, more in pairs
        ]

    def ratio(one: Iterable[float], two: Iterable[float]) -> float:
        """How many times the second the first is, within a round."""
        return statistics.median(a / b for a, b in zip(one, two, strict=True))

    wall, cpu, own = (
        statistics.median(rises("start", "one", what)) for what in ("wall", "cpu", "learners")
    )
    speed = ratio(rises("start", "one", "wall"), rises("start two", "two", "wall"))
    started = ratio(*([cost.wall for cost in found[name]] for name in ("one", "two")))
    by_cpu = [faster(what, "one", "cpu") for what in ("stock", "command")]
    longer = count * (each("troubled", "wall") - each("two", "wall"))
    troubled = max(1, count // 20)
    note = (
        f"Per submission, start of the workers included; {count} submissions of {CHAPTER}, "
        f"median of {rounds} interleaved rounds. Without the start, one more submission costs one "
        f"worker {wall:.0f} ms, {cpu:.0f} ms of CPU, of which {own:.0f} ms run the learner's own "
        f"cells: {cpu - own:.0f} ms on top. By CPU time one worker is {by_cpu[0]} times as fast as "
        f"the API and {by_cpu[1]} times as the command. Two workers: {speed:.2f} times one, "
        f"{started:.2f} times with their start; two plain loops at once: {possible:.2f} times one. "
        f"{troubled} of {count} with a loop, a crash or a flood lengthened the batch by "
        f"{longer:.0f} s; their wall limits together are {troubled * Limits().seconds:.0f} s. "
        f"{machine()}, {os.cpu_count()} shared cores, Python {platform.python_version()}; "
        f"load at the end {load:.1f}."
    )
    return "\n".join([*lines, "", note, ""])


def machine() -> str:
    """The processor's name."""
    names = re.findall(r"(?m)^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text())
    return names[0].replace("(R)", "") if names else platform.machine()


if __name__ == "__main__":
    main()
