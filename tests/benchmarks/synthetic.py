"""A made-up class: a course folder, its gradebook, and as many submissions as one likes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import FunctionType
from typing import Any

from traitlets.config import Config

from course.authoring.release import nbgrader_config
from course.cli.demo_learners import _as_typed
from course.notebook import exercise
from course.notebook.exercise import Exercise

ROOT = Path(__file__).parents[2]
LOOP = "while True: pass"
TROUBLES = (LOOP, "import os\nos._exit(1)", "print('x' * 200_000_000)")
_FORGE = (
    "import course.sandbox.learner as learner\n"
    "own = learner.Learner._run_cell\n"
    "learner.Learner._run_cell = lambda *a: own(*a) | dict({})"
)
HOSTILE = (
    LOOP + "\n",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "import os\nos._exit(1)",
    (
        "import threading, numpy as np\nx = np.ones((900, 900))\n"
        "def work():\n    while True: x @ x\n"
        "for _ in range(60): threading.Thread(target=work, daemon=True).start()"
    ),
    "taken = [bytearray(50_000_000) for _ in range(60)]",
    _FORGE.format("source='x = 1;' * 1_300_000"),
    _FORGE.format("outputs=[{}] * 2_000_000"),
    _FORGE.format("outputs=[dict(output_type='stream', text='<' * 7_000_000)]"),
    "from IPython.display import HTML, display\ndisplay(HTML('<b>' * 1_000_000))",
    "x = " + "-" * 60_000 + "1",
)
"""Programs that take what they can: time, threads, memory, and the grader's reading and writing."""


def school(folder: Path, chapter: str, *, db_url: str | None = None) -> Config:
    """A course with this one chapter, whose gradebook knows it; nbgrader's configuration for it."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    for name in ("notebooks", "solutions"):
        shutil.copytree(ROOT / name / chapter, folder / name / chapter)
    (folder / "course").mkdir()
    config = nbgrader_config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.db_url = db_url or f"sqlite:///{folder}/course/gradebook.db"
    config.CourseDirectory.assignment_id = chapter
    directory = CourseDirectory(config=config)
    GenerateAssignment(coursedir=directory, config=config, force=True).start()
    return config


def submit(
    folder: Path,
    chapter: str,
    count: int,
    *,
    troubled: int = 0,
    programs: Sequence[str] = TROUBLES,
    seed: int = 0,
) -> None:
    """Answers in `count` notebooks; each of the last `troubled` begins with one of `programs`."""
    released = json.loads((folder / "notebooks" / chapter / f"{chapter}.ipynb").read_text())
    exercises = exercise.load(chapter)
    for number in range(count):
        rng = random.Random(seed * 100_000 + number)
        notebook = deepcopy(released)
        answers = {cell["id"]: cell for cell in notebook["cells"] if cell["id"] in exercises}
        for id, cell in answers.items():
            text = answer(exercises[id], rng)
            cell["source"] = f"# {number}\n{text}" if text else cell["source"]
        if number >= count - troubled:
            first = next(iter(answers.values()))
            first["source"] = programs[number % len(programs)]
        to = folder / "course" / "submitted" / f"learner-{number:04}" / chapter
        to.mkdir(parents=True)
        (to / f"{chapter}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def answer(definition: Exercise, rng: random.Random) -> str:
    """A right answer, a usual mistake, or none."""
    mistakes = [_typed(definition, mistake.answer) for mistake in definition.mistakes()]
    return rng.choices(
        [definition.solution_source, rng.choice([text for text in mistakes if text] or [""]), ""],
        weights=(0.7, 0.2, 0.1),
    )[0]


def _typed(definition: Exercise, function: Any) -> str:
    is_plain = isinstance(function, FunctionType) and function.__name__ != "<lambda>"
    return _as_typed(function, definition.name) if is_plain else ""
