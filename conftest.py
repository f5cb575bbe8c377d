"""What every test has: the names of the doctests, and a course folder and Jupyter of its own.

No test sees the real course by accident: COURSE_ROOT names an empty one, and the folders in which
Jupyter and nbgrader keep a person's settings and submissions are temporary.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbval.kernel
import pytest

_PRIVATE = Path(tempfile.mkdtemp(prefix="course-tests-")).resolve()
atexit.register(shutil.rmtree, _PRIVATE, ignore_errors=True)

(_PRIVATE / "course" / "notebooks").mkdir(parents=True)
os.environ.update(
    COURSE_ROOT=str(_PRIVATE / "course"),
    IPYTHONDIR=str(_PRIVATE / "ipython"),
    JUPYTER_CONFIG_DIR=str(_PRIVATE / "config"),
    JUPYTER_DATA_DIR=str(_PRIVATE / "data"),
    JUPYTER_RUNTIME_DIR=str(_PRIVATE / "runtime"),
    JUPYTER_PLATFORM_DIRS="1",
    TENSORKIT_DOT="0",  # the pictures of notebooks are compared: see tensorkit/viz/boxes.py
)
for name in ("COURSE_EXCHANGE", "NBGRADER_EXECUTION"):
    os.environ.pop(name, None)


def _started_again(start: Callable[..., Any]) -> Callable[..., Any]:
    """`start`, which is tried once more where the kernel died before it answered.

    A kernel is given ports that are free when it is started. Until it opens them, a second later,
    another process of the tests may take one; then the kernel dies.
    """

    def start_new_kernel(*args: Any, **options: Any) -> Any:
        try:
            return start(*args, **options)
        except RuntimeError as problem:
            if "Kernel died" not in str(problem):
                raise
            return start(*args, **options)

    return start_new_kernel


nbval.kernel.start_new_kernel = _started_again(nbval.kernel.start_new_kernel)

collect_ignore = [
    "course/jupyter",  # configuration files, which traitlets runs in a namespace of their own
    *(f"course/{name}" for name in ("exchange", "submitted", "autograded", "feedback", "solution")),
]
collect_ignore_glob = [
    *("solutions/*.py", "docs/*.py"),  # texts of chapters, not modules
    "*/conftest.py",  # several files of one name, of which only one could be imported for doctests
]


@pytest.fixture(autouse=True)
def _names_in_doctests(request: pytest.FixtureRequest) -> None:
    """`tk` and `np` stand for themselves in every docstring."""
    if isinstance(request.node, pytest.DoctestItem):
        import numpy as np

        import tensorkit as tk

        namespace: dict[str, object] = request.getfixturevalue("doctest_namespace")
        namespace.update(tk=tk, np=np)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that is tested; only to be read."""
    return Path(__file__).parent


@pytest.fixture
def environment() -> Mapping[str, str]:
    """The variables for a program that a test starts."""
    return os.environ.copy()
