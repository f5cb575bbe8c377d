"""What a learner's code does not reach: files, network, other processes, the next submission."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest
from attacked import REPOSITORY

from course.grading.session import FIRST_UID, Died, Session, Warm
from course.sandbox import profiles
from course.sandbox.wire import Message

# What they may reach: each cell sets `reached` to what it got, or raises.

REACHES = {
    "the gradebook": f"reached = open({str(REPOSITORY / 'course' / 'cli.py')!r}).read()",
    "the sources": f"import os; reached = os.listdir({str(REPOSITORY / 'solutions')!r})",
    "the bundle's definitions": "import course.notebook.exercise as reached",
    "the grading code of the checker": "import course.grading.judge as reached",
    "passwords": "reached = open('/etc/passwd').read()",
    "the processes": "import os; reached = os.listdir('/proc')",
    "the grader's environment": "import os; reached = open(f'/proc/{os.getppid()}/environ').read()",
    "loopback": "import socket; reached = socket.create_connection(('127.0.0.1', PORT), 2)",
    "a udp socket": "import socket; reached = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "dns": "import socket; reached = socket.gethostbyname('example.com')",
    "a unix socket": "import socket; reached = socket.socket(socket.AF_UNIX)",
    "a new process": "import os; reached = os.fork() or os._exit(0)",
    "a program": "import subprocess; reached = subprocess.run(['/bin/true'])",
    "a shell": "reached = !ls\nassert reached and 'denied' not in str(reached)",
    "an exec": "import os; os.execv('/bin/sh', ['sh'])",
    "a user namespace": (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "reached = libc.unshare(0x10000000) == 0 or 1 / 0"
    ),
    "a mount": (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        "reached = libc.mount(b'tmpfs', b'/', b'tmpfs', 0, None) == 0 or 1 / 0"
    ),
    "ptrace": "import ctypes; reached = ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0 or 1 / 0",
    "bpf": "import ctypes; reached = ctypes.CDLL(None).syscall(321, 0, 0, 0) >= 0 or 1 / 0",
    "keys": "import ctypes; reached = ctypes.CDLL(None).syscall(250, 0, -3, 1) >= 0 or 1 / 0",
    "io_uring": "import ctypes; reached = ctypes.CDLL(None).syscall(425, 1, 0) >= 0 or 1 / 0",
    "the calls of another architecture": (
        "import ctypes; reached = ctypes.CDLL(None).syscall(0x40000000 + 57) >= 0 or 1 / 0"
    ),
    "a signal to its parent": "import os; reached = os.kill(os.getppid(), 0) is None",
    "a signal to all": "import os; reached = os.kill(-1, 0) is None",
    "the limits of its parent": (
        "import os, resource\n"
        "reached = resource.prlimit(os.getppid() or 2, resource.RLIMIT_CPU, (30, 30))"
    ),
    "the cores of its parent": (
        "import os; reached = os.sched_setaffinity(os.getppid() or 2, {0}) is None"
    ),
    "signals about a file": "import fcntl, os; reached = fcntl.fcntl(3, fcntl.F_SETOWN, 2) == 0",
    "watching folders": "import ctypes; reached = ctypes.CDLL(None).inotify_init1(0) >= 0 or 1 / 0",
    "flags of a file": (
        "import fcntl, numpy\n"
        "reached = fcntl.ioctl(open(numpy.__file__), 0x80086601, bytes(8)) or 1"
    ),
    "writing the library": "import tensorkit; open(tensorkit.__file__, 'a').write(''); reached = 1",
    "writing NumPy": "import numpy; open(numpy.__file__, 'a').write(''); reached = 1",
    "writing the root": "open('/mark', 'w').write(''); reached = 1",
    "a device": "import os; os.mknod('d', 0o666 | 0o20000, os.makedev(1, 1)); reached = 1",
    "root": "import os; os.setuid(0); reached = 1",
    "another descriptor": (
        "import os\n"
        "found = []\n"
        "for n in range(4, 256):\n"
        "    try: os.fstat(n); found.append(n)\n"
        "    except OSError: pass\n"
        "reached = found or 1 / 0"
    ),
}


def shares_the_user(warm: Warm) -> bool:
    """Whether learners' code runs as the grader: only root, or a namespace, makes another."""
    return warm.profile == profiles.LANDLOCK and os.getuid() != 0


def run_there(session: Session, source: str) -> Message:
    """What a cell came to in the sandbox."""
    ran, _ = session.ask({"do": "cells", "sources": [source], "seconds": 5}, seconds=5)
    return ran


@pytest.fixture
def port() -> object:
    """A server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("name", REACHES)
def test_learners_code_does_not_reach(warm: Warm, name: str, port: int) -> None:
    session = warm.fork()
    try:
        source = "reached = None\n" + REACHES[name].replace("PORT", str(port))
        run_there(session, "ready = 1")
        ran = run_there(session, source)
        assert ran["error"] is not None, ran
    finally:
        session.end()


def test_modes_and_times_of_the_graders_files_stay(warm: Warm, tmp_path: Path) -> None:
    # stock: whatever the instructor may do. Landlock alone does not look at these calls.
    file = tmp_path / "gradebook.db"
    file.touch(0o600)
    if os.getuid() == 0:
        os.chown(file, FIRST_UID + 7, -1)
    before = file.stat()
    session = warm.fork()
    try:
        calls = [f"os.{call}" for call in ("chmod(it, 0o666)", "utime(it, (1, 1))")]
        calls += ["os.setxattr(it, 'user.x', b'1')", "os.fchmod(os.open(it, os.O_PATH), 0)"]
        for call in calls:
            source = f"import os; it = {str(file)!r}; {call}"
            run_there(session, source)
    finally:
        session.end()
    after = file.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert os.listxattr(file) == []


def test_a_home_is_removed_whatever_is_in_it(warm: Warm) -> None:
    session = warm.fork()
    source = (
        "import os\n"
        "os.mkdir('closed', 0o300); open('closed/x', 'w').close(); os.mkdir('shut', 0)\n"
        "for n in range(2000): os.mkdir('d'); os.chdir('d')"
    )
    # a grader who may not look into a closed folder takes it for too large, and ends the process
    with contextlib.suppress(Died) if shares_the_user(warm) else contextlib.nullcontext():
        assert run_there(session, source)["error"] is None
    session.end()
    assert not list(warm.folder.glob("home-*"))


def test_files_without_a_name_have_a_size_too(warm: Warm) -> None:
    session = warm.fork()
    source = (
        "import os, time; kept = []\n"
        "for n in range(20):\n"
        "    kept.append(open('x', 'wb')); os.unlink('x'); kept[-1].write(bytes(20_000_000))\n"
        "time.sleep(1)"
    )
    try:
        ran = run_there(session, source)
        assert ran["error"] == "OSError"
    except Died:
        pass
    finally:
        session.end()


def test_learners_code_runs_as_nobody_of_this_machine(warm: Warm) -> None:
    session = warm.fork()
    try:
        source = "import os; print(os.getuid(), dict(os.environ).keys())"
        ran = run_there(session, source)
    finally:
        session.end()
    text = ran["outputs"][0]["text"]
    assert text.startswith(f"{os.getuid()} ") == shares_the_user(warm)
    assert "PATH" not in text
    assert "COURSE" not in text


def test_nothing_stays_from_one_submission_to_the_next(warm: Warm) -> None:
    first = warm.fork()
    source = "open('left', 'w').write('x'); import numpy; numpy.left = 1"
    ran = run_there(first, source)
    assert ran["error"] is None
    first.end()
    second = warm.fork()
    try:
        source = "import os, numpy; print(os.path.exists('left'), hasattr(numpy, 'left'))"
        ran = run_there(second, source)
    finally:
        second.end()
    assert ran["outputs"][0]["text"] == "False False\n"
    assert not list(warm.folder.rglob("left"))
