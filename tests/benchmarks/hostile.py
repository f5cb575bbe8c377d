"""What 20 hostile submissions among 220 cost the others, beside 220 honest ones.

    python tests/benchmarks/hostile.py [--count 220] [--hostile 20] [--rounds 1]

Rounds of both classes alternate. Raises AssertionError if a hostile submission takes more than its
bound, if an honest one has other points beside them, or if a page is larger than one may be.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import grading
import synthetic

from course.grading import batch
from course.sandbox.profiles import Limits

SECONDS, PAGE = Limits().seconds, 5_000_000
"""What one submission may take, with its page; bytes of that page."""


def graded(template: Path) -> tuple[float, dict[str, float], dict[str, float], int]:
    """Seconds of a batch by two workers; points and seconds of each learner; the largest page."""
    root, config = grading.copied(template)
    begun = time.perf_counter()
    results = batch.grade(root, grading.CHAPTER, workers=2, config=config)
    seconds = time.perf_counter() - begun
    timings = {
        path.parent.name: json.loads(path.read_text()).get("total", 0.0)
        for path in root.glob("course/graded/*/*.timings.json")
    }
    pages = root.glob("course/autograded/*/*/*.ipynb")
    largest = max(page.stat().st_size for page in pages)
    shutil.rmtree(root)
    return seconds, {result.learner: result.score for result in results}, timings, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=220, help="submissions")
    parser.add_argument("--hostile", type=int, default=20, help="of them")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    n_honest = given.count - given.hostile
    honest_seconds, mixed_seconds, added, slowest, largest = [], [], [], 0.0, 0
    with tempfile.TemporaryDirectory(prefix="course-hostile-") as name:
        templates = []
        for n_hostile in (0, given.hostile):
            template = Path(tempfile.mkdtemp(dir=name))
            (template / "notebooks").mkdir()
            synthetic.school(template, grading.CHAPTER)
            synthetic.submit(
                template,
                grading.CHAPTER,
                given.count,
                troubled=n_hostile,
                programs=synthetic.HOSTILE,
            )
            templates.append(template)
        for _ in range(given.rounds):
            alone, points, _, _ = graded(templates[0])
            mixed, beside, timings, page = graded(templates[1])
            honest = [f"learner-{number:04}" for number in range(n_honest)]
            assert len(beside) == given.count, "lost"
            assert {learner: points[learner] for learner in honest} == {
                learner: beside[learner] for learner in honest
            }
            own = [seconds for learner, seconds in timings.items() if learner not in honest]
            assert max(own) < SECONDS, max(own)
            honest_seconds.append(alone)
            mixed_seconds.append(mixed)
            added.append(sum(own))
            slowest, largest = max(slowest, *own), max(largest, page)
    assert largest < PAGE, largest
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    alone, mixed, own = map(statistics.median, (honest_seconds, mixed_seconds, added))
    print(
        f"{given.count} honest: {alone:.0f} s. {n_honest} honest and {given.hostile} hostile: "
        f"{mixed:.0f} s, {mixed / alone:.1f} times that; the hostile ones took {own:.0f} s of two "
        f"workers, the slowest {slowest:.0f} s; their bounds are "
        f"{given.hostile * Limits().seconds:.0f} s. The honest ones have the same points. The "
        f"largest notebook that was written has {largest / 1e6:.1f} MB, a process {peak:.0f} MB at "
        f"its peak. {grading.machine()}, {os.cpu_count()} shared cores, load at the end "
        f"{os.getloadavg()[0]:.1f}."
    )


if __name__ == "__main__":
    main()
