"""The learner's half of the course, tried on this machine as a learner uses it.

    python tests/release/learners_half.py [--notebooks FOLDER] [CHAPTER ...]

It needs an environment with `tensorkit-course[lab]` and nothing else: no pytest, no make, no
checkout beside the released notebooks. It runs on Linux, macOS and Windows, in a course folder of
its own that is removed at the end. Each step prints one line; the first that fails ends the run.

1. A chapter as it is released: every cell runs, every check answers that nothing is there yet.
2. The same with the worked solutions filled in: every check gives full points.
3. A loop without an end is stopped by the check.
4. `course doctor`, `progress`, `reset` and `update` answer.
5. `course lab` serves its page and a kernel, and stops.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ENDLESS = """\
def strides_of(shape):
    while True:
        pass
check("strides-of")"""
"""An answer to an exercise of chapter 01 that never returns."""


def main() -> None:
    options = argparse.ArgumentParser(description="Try the learner's half on this machine.")
    options.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="the released notebooks")
    options.add_argument("chapters", nargs="*", help="by default every chapter")
    given = options.parse_args()
    notebooks = given.notebooks.resolve()
    with tempfile.TemporaryDirectory(prefix="learner-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve() / "course"
        _use_only(root)
        os.chdir(folder)  # nothing is imported from a checkout
        shutil.copytree(notebooks, root / "notebooks")
        _try_all(root, given.chapters)


def _use_only(root: Path) -> None:
    """Let Jupyter and the course use this folder alone, nobody's settings and no other course."""
    for name in ("COURSE_EXCHANGE", "NBGRADER_EXECUTION", "COURSE_BUILD", "PYTHONPATH"):
        os.environ.pop(name, None)
    os.environ.update(
        COURSE_ROOT=str(root),
        IPYTHONDIR=str(root.parent / "ipython"),
        JUPYTER_CONFIG_DIR=str(root.parent / "config"),
        JUPYTER_DATA_DIR=str(root.parent / "data"),
        JUPYTER_RUNTIME_DIR=str(root.parent / "runtime"),
        JUPYTER_PLATFORM_DIRS="1",
        PYTHONUTF8="1",
    )


def _try_all(root: Path, wanted: list[str]) -> None:
    import tensorkit as tk
    from course.cli import copies
    from course.notebook import exercise
    from course.shared import paths

    print(f"Python {sys.version.split()[0]} on {sys.platform}, tensorkit in {tk.__path__[0]}")
    released = paths.released_chapters(root)
    copies.make_copies(root)
    for chapter in [paths.chapter_named(name, released) for name in wanted] or released:
        points = {
            definition.id: definition.points for definition in exercise.load(chapter).values()
        }
        with _step(f"{chapter}, as released"):
            _execute(root, chapter)
            _expect(dict.fromkeys(points, ("not started", 0.0)), _noted(root))
        with _step(f"{chapter}, with the worked solutions"):
            answers = {
                definition.id: definition.solution_source
                for definition in exercise.load(chapter).values()
            }
            _execute(root, chapter, answers)
            _expect({id: ("done", points[id]) for id in points}, _noted(root))
        with _step(f"{chapter}, looked at by the doctor"):
            assert "wrong  " not in _course("doctor", chapter)
    with _step("a loop without an end"):
        began = time.monotonic()
        said = _after_a_loop_without_an_end(root)
        assert "did not end within" in said, said
        assert time.monotonic() - began < 60
    with _step("progress, reset, update"):
        first = next(iter(exercise.load("01_tensors")))
        assert "01_tensors" in _course("progress")
        assert f"The exercise {first} is as it was released" in _course("reset", "1", first)
        assert "newest release already" in _course("update", "01_tensors")
    with _step("course lab"):
        _try_lab(root)
    print("The learner's half works here.")


@contextmanager
def _step(name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"ok  {name}: {time.monotonic() - began:.1f} s", flush=True)


def _execute(root: Path, chapter: str, answers: Mapping[str, str] | None = None) -> None:
    """Run the learner's copy of a chapter from top to bottom and save it; a cell's error raises."""
    import nbformat
    from nbclient import NotebookClient

    from course.shared import paths

    file = paths.notebook_in(paths.work(root), chapter)
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if answers is not None and marks.get("solution"):
            cell.source = answers[marks["grade_id"]]
    resources = {"metadata": {"path": str(file.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    nbformat.write(notebook, file)


def _noted(root: Path) -> dict[str, tuple[str, float]]:
    """What the checks wrote into the learner's record: state and points of each exercise."""
    notes = json.loads((root / "work" / ".course-progress.json").read_text(encoding="utf-8"))
    return {id: (note.get("state", ""), note.get("points", 0.0)) for id, note in notes.items()}


def _expect(wanted: Mapping[str, object], found: Mapping[str, object]) -> None:
    wrong = {id: found.get(id) for id in wanted if found.get(id) != wanted[id]}
    assert not wrong, f"Other answers than expected: {wrong}"


def _after_a_loop_without_an_end(root: Path) -> str:
    """What a check says of it, in a notebook of its own."""
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(source) for source in ("from course import check", ENDLESS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(root)}}  # no chapter's folder: nothing is recorded
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    return str(notebook.cells[-1].outputs)


def _course(*arguments: str) -> str:
    """What the command `course` prints; raises if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "course", *arguments],
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"course {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _try_lab(root: Path) -> None:
    command = [sys.executable, "-m", "course", "lab", "--browser", "none"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    assert server.stdout is not None
    try:
        first = server.stdout.readline()
        address = re.search(r"(http://127\.0\.0\.1:\d+)(/\S+)[?&]token=(\S+)", first)
        assert address, first + server.stdout.read()
        base, page, token = address.groups()

        def ask(path: str, method: str = "GET") -> str:
            headers = {"Authorization": f"token {token}"}
            request = urllib.request.Request(
                base + path, headers=headers, method=method, data=b"" if method == "POST" else None
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())

        _wait_for(lambda: ask("/api/status"), server)
        assert "jupyter-config-data" in ask(page)
        chapter = page.removeprefix("/lab/tree/").partition("?")[0]
        assert json.loads(ask(f"/api/contents/{chapter}?content=0"))["type"] == "notebook"
        kernel = json.loads(ask("/api/kernels", "POST"))
        assert kernel["name"] == "python3"
        ask(f"/api/kernels/{kernel['id']}", "DELETE")
        ask("/api/shutdown", "POST")
        server.wait(timeout=60)
    finally:
        server.kill()
        server.stdout.close()
        server.wait()


def _wait_for(answer: Callable[[], Any], server: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            answer()
            return
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None:
                ended = server.stdout.read() if server.stdout else ""
                raise AssertionError(f"course lab ended:\n{ended}") from None
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
