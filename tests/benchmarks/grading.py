"""What grading costs, beside nbgrader's own API on the same submissions of a real chapter.

    python tests/benchmarks/grading.py [--write]      # what `make bench-grading` calls

Rounds alternate, stock and ours, each in a fresh copy of the course, because the machine's speed
changes while one measures. CPU is that of all processes together.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import re
import resource
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import synthetic
from traitlets.config import Config

from course.grading import batch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "grading.md"
CHAPTER = "01_tensors"
NAMES = {
    "start": "two submissions, for what the start costs",
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
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(it.ru_utime + it.ru_stime for it in map(resource.getrusage, who))


class Round:
    """A fresh copy of the course for each measurement."""

    def __init__(self, folder: Path, count: int, troubled: int = 0) -> None:
        self.template, self.count = folder / f"of-{count}-{troubled}", count
        (self.template / "notebooks").mkdir(parents=True)
        synthetic.school(self.template, CHAPTER)
        synthetic.submit(self.template, CHAPTER, count, troubled=troubled)

    def ours(self, workers: int) -> Cost:
        return self._in_copy(
            lambda root, config: batch.grade(root, CHAPTER, workers=workers, config=config)
        )

    def stock(self) -> Cost:
        return self._in_copy(_stock)

    def _in_copy(self, work: Callable[[Path, Config], Any]) -> Cost:
        root = Path(tempfile.mkdtemp(dir=self.template.parent))
        shutil.copytree(self.template, root, dirs_exist_ok=True)
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
        cost = measured(lambda: work(root, config), self.count)
        timings = root.glob("course/graded/*/*.timings.json")
        cost.learners = sum(json.loads(it.read_text()).get("cpu", 0.0) for it in timings)
        shutil.rmtree(root)
        return cost


def _stock(root: Path, config: Config) -> None:
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    said, quiet = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # each kernel warns of its transport
    try:
        for learner in sorted(it.name for it in (root / "course" / "submitted").iterdir()):
            api.autograde(CHAPTER, learner)
    finally:
        os.dup2(said, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/grading.md")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="course-bench-") as name:
        folder = Path(name)
        plain, small = Round(folder, given.count), Round(folder, 2)
        troubled = Round(folder, given.count, troubled=max(1, given.count // 20))
        small.ours(1), small.stock()  # what is done once: imports, caches
        found: dict[str, list[Cost]] = {name: [] for name in NAMES}
        for number in range(given.rounds):
            found["start"].append(small.ours(1))
            found["one"].append(plain.ours(1))
            found["stock"].append(plain.stock())
            found["two"].append(plain.ours(2))
            found["troubled"].append(troubled.ours(2))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    text = table(found)
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        marks = r"(<!-- measured -->\n).*?(<!-- end -->)"
        PAGE.write_text(re.sub(marks, rf"\1{text}\2", page, flags=re.DOTALL), encoding="utf-8")


def table(found: dict[str, list[Cost]]) -> str:
    """The rounds' medians, as a table for the page."""

    def each(name: str, what: str) -> float:
        return statistics.median(getattr(it, what) / it.count for it in found[name])

    base = each("stock", "wall")
    lines = ["| | wall | CPU | times nbgrader's | peak of a process |", "|---|---:|---:|---:|---:|"]
    for name, words in NAMES.items():
        if name == "start":
            continue
        wall, cpu = (1000 * each(name, it) for it in ("wall", "cpu"))
        peak = "" if name == "stock" else f"{max(it.peak for it in found[name]):.0f} MB"
        lines.append(
            f"| {words} | {wall:.0f} ms | {cpu:.0f} ms | {1000 * base / wall:.1f} | {peak} |"
        )
    count, rounds = found["one"][0].count, len(found["one"])
    speed = each("one", "wall") / each("two", "wall")
    load = os.getloadavg()[0]
    few, many = found["start"], found["one"]
    rise = [
        statistics.median(getattr(it, what) for it in many)
        - statistics.median(getattr(it, what) for it in few)
        for what in ("wall", "cpu", "learners")
    ]
    wall, cpu, own = (1000 * it / (many[0].count - few[0].count) for it in rise)
    note = (
        f"Per submission, start of the workers included; {count} submissions of {CHAPTER}, "
        f"median of {rounds} interleaved rounds. Without the start, one more submission costs one "
        f"worker {wall:.0f} ms, {cpu:.0f} ms of CPU, of which {own:.0f} ms in the learner's own "
        f"cells. Two workers: {speed:.2f} times one. "
        f"{_machine()}, {os.cpu_count()} shared cores, Python {platform.python_version()}; "
        f"load at the end {load:.1f}."
    )
    return "\n".join([*lines, "", note, ""])


def _machine() -> str:
    names = re.findall(r"(?m)^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text())
    return names[0].replace("(R)", "") if names else platform.machine()


if __name__ == "__main__":
    main()
