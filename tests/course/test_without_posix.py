"""The learner's half where an operating system lacks what POSIX has, as Windows does.

No test here runs on Windows, and none of this makes Linux be Windows: in a process of its own,
`PRELUDE` takes away from Python's standard library what its documentation says Windows lacks, after
other people's packages are imported, which know Windows themselves.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from course.authoring import bundle

pytestmark = pytest.mark.rest

PRELUDE = """
import asyncio, ctypes, os, shutil, signal, subprocess, sys, tempfile
import IPython, matplotlib.pyplot, nbformat, nbgrader.utils, numpy, rich, typer

for name in '''
    O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC
    chown fchmod fchown fork forkpty getegid geteuid getgid getpgid getpgrp getsid getuid
    killpg lchown mkfifo mknod nice sched_getaffinity sched_setaffinity setgid setpgid setresuid
    setsid setuid sysconf uname wait wait3 wait4 WNOHANG
'''.split():
    vars(os).pop(name, None)
for name in '''
    SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGXCPU ITIMER_REAL
    alarm getitimer pause pthread_kill pthread_sigmask setitimer sigwait
'''.split():
    vars(signal).pop(name, None)
for name in "fcntl grp posix pty pwd resource syslog termios tty".split():
    sys.modules[name] = None
os.supports_dir_fd.clear()
os.supports_fd.clear()

_open = os.open

def open_files(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return _open(path, flags, mode)

os.open = open_files
"""


def _without_posix(code: str, folder: Path, **variables: str) -> str:
    """What a program prints whose standard library has lost what only POSIX has."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def course(tmp_path: Path, repository: Path) -> Path:
    """A course folder with one released chapter."""
    released = tmp_path / "course" / "notebooks" / "01_tensors"
    released.mkdir(parents=True)
    notebook = repository / "notebooks" / "01_tensors" / "01_tensors.ipynb"
    (released / notebook.name).write_bytes(notebook.read_bytes())
    return tmp_path / "course"


def test_something_was_taken_away(tmp_path: Path) -> None:
    code = """
        print(hasattr(os, "fork"), hasattr(signal, "setitimer"))
        os.open(".", os.O_RDONLY)
    """
    with pytest.raises(AssertionError, match=r"(?s)False False.*PermissionError"):
        _without_posix(code, tmp_path)


def test_every_module_of_the_learners_half_can_be_imported(
    tmp_path: Path, repository: Path
) -> None:
    home = repository / "course"
    files = [
        path.relative_to(home) for path in home.glob("*/*.py") if path.parent.name != "jupyter"
    ]
    travelling = [
        file for file in files if not {file.as_posix(), file.parts[0]} & set(bundle.AUTHORS_ONLY)
    ]
    modules = sorted(
        f"course.{file.parts[0]}.{file.stem}" for file in travelling if file.stem[0] != "_"
    )
    code = f"""
        import pkgutil, tensorkit, {", ".join(modules)}
        for module in pkgutil.walk_packages(tensorkit.__path__, "tensorkit."):
            __import__(module.name)
        print("imported")
    """
    assert _without_posix(code, tmp_path) == "imported\n"


def test_the_doctor_reads_a_notebook(course: Path) -> None:
    code = """
        from course.cli import doctor, copies
        from pathlib import Path
        root = Path.cwd()
        copies.make_copies(root)
        folder = root / "work" / "01_tensors"
        for finding in doctor.read_through(folder, doctor.source_for(root, "01_tensors")):
            print(finding)
        (folder / "01_tensors.ipynb").rename(folder / "mine.ipynb")
        print(*doctor.read_through(folder, doctor.source_for(root, "01_tensors")), sep="\\n")
        (folder / "mine.ipynb").unlink()
        print(*doctor.read_through(folder, doctor.source_for(root, "01_tensors")), sep="\\n")
        folder.rmdir()
        print(*doctor.read_through(folder, doctor.source_for(root, "01_tensors")), sep="\\n")
    """
    whole, renamed, found, empty, gone = _without_posix(code, course).splitlines()
    assert whole.startswith("look      Answer cells without an answer, ")
    assert found.startswith("repaired  The notebook was called 'mine.ipynb'")
    assert renamed == whole
    assert empty.startswith("wrong     It cannot be graded. There is no notebook")
    assert gone.startswith("wrong     The folder cannot be read")


def test_a_loop_without_end_is_stopped(tmp_path: Path) -> None:
    code = """
        from course.notebook.check import judge
        from course.notebook.exercise import load

        def loop(*_):
            while True:
                pass

        report = judge(load("01_tensors")["strides-of"], loop, seconds=0.5)
        print(report.rows[0].tip)
    """
    said = _without_posix(code, tmp_path)
    assert "did not end within 0.5 seconds" in said


def test_the_verbs_of_a_learner_answer(course: Path) -> None:
    code = """
        from course.cli import commands, lab
        from course.notebook.exercise import load

        class Loop:
            add_callback = staticmethod(lambda function: function())

        class Server:
            port, io_loop = 8888, Loop
            start = staticmethod(lambda: print("started"))

        def prepared(options):
            print("served", *options)
            return Server

        lab._prepared = prepared
        first = next(iter(load("01_tensors")))
        verbs = "lab --browser none", f"reset 1 {first}", "update 1", "progress", "doctor"
        for verb in verbs:
            print(commands.app(verb.split(), standalone_mode=False))
    """
    said = _without_posix(code, course, COURSE_ROOT=str(course))
    assert "served --ServerApp.root_dir=" in said
    assert "--ServerApp.allow_root=False" in said
    assert "is as it was released" in said
    assert "newest release already" in said
    assert re.search(r"01_tensors +0 of 20 ", said)
    assert "01_tensors:\n  look      Answer cells without an answer" in said
