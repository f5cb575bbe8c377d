"""The notebooks' part of the course needs NumPy and nothing else that has to be installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

NUMPY_ALONE = """\
import sys

class NumPyAlone:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first in ("numpy", "tensorkit", "course") or first in sys.stdlib_module_names:
            return None
        raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, NumPyAlone())
"""
"""Every import of another package fails from here on."""


def _run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = f"{NUMPY_ALONE}\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_another_package_cannot_be_imported(tmp_path: Path) -> None:
    """The test of the tests."""
    done = _run("import nbformat", tmp_path)
    assert "ModuleNotFoundError: nbformat is not installed" in done.stderr


def test_every_check_gives_full_points_to_the_reference(tmp_path: Path) -> None:
    program = """\
from course.notebook.check import judge
from course.notebook.exercise import load
for exercise in load().values():
    report = judge(exercise, exercise.reference)
    report._repr_mimebundle_()
    assert report.score == exercise.points, (exercise.id, report.message)
print(len(load()))
"""
    done = _run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 70


def test_a_notebook_s_five_names_answer(tmp_path: Path) -> None:
    program = """\
from course import check, hint, progress, solution, transplant
import tensorkit as tk
print(hint("celsius"))
check("celsius")
def celsius(fahrenheit):
    return fahrenheit - 32
check("celsius")
print(solution("celsius"))
print(progress())
def contiguous_by_hand(shape, strides):
    return True
with transplant(contiguous_by_hand) as asked:
    tk.zeros(2, 3).T.is_contiguous()
print(asked)
"""
    done = _run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("Hint 1 of", "nothing to check", "0 of 4 cases", "so far 1", "tensorkit asked"):
        assert said in done.stdout, said
