"""What a learner's process may see and do, under each profile.

    namespaces+seccomp   a root of its own with the files of `Sandbox.readable` and one folder to
                         write; no network, no other process in sight; the filter of system calls
    landlock+seccomp     the machine's root, where only those files can be opened; the same filter
    unsafe               a plain process of the grader's own user; only limits

Limits on memory, time, files hold in all of them. The warm process calls `prepare` once; each
process that it forks for a submission calls `enter` before it runs anything of the learner's.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course.sandbox import landlock, linux, namespaces, seccomp

NAMESPACES, LANDLOCK, UNSAFE = "namespaces+seccomp", "landlock+seccomp", "unsafe"
SAFE = (NAMESPACES, LANDLOCK)
"""The strongest first."""
CAP_DAC_READ_SEARCH = 1 << 2
"""The right to read any file, whatever its mode says."""


@dataclass(frozen=True)
class Limits:
    """How much one submission may use."""

    memory: int = 192 << 20
    """Bytes of address space, beyond what Python and the imports take on this machine."""
    written: int = 64 << 20
    """Bytes in files, together and each."""
    files: int = 128
    """Open files."""
    threads: int = 128
    stack: int = 8 << 20
    """Bytes of each thread's stack, which count as address space."""
    cell_seconds: float = 10.0
    """For one cell."""
    check_seconds: float = 5.0
    """For all cases of one check."""
    seconds: float = 60.0
    """Wall time for everything, restarts and the page included."""

    def beyond(self, taken: int) -> Limits:
        """The limits of a process in which Python and the imports take so many bytes."""
        return replace(self, memory=self.memory + taken)


@dataclass(frozen=True)
class Sandbox:
    """What the processes of one worker see and may use."""

    profile: str
    readable: tuple[str, ...]
    path: tuple[str, ...]
    """Where Python looks for modules."""
    folder: str
    """An empty folder, for the root or for what learners write."""
    uid: int
    """The user to become where the grader is root."""
    limits: Limits


def prepare(sandbox: Sandbox) -> None:
    """Prepare the warm process. It keeps the rights that `enter` needs."""
    if sandbox.profile == NAMESPACES:
        namespaces.make_root(sandbox.readable, sandbox.folder, sandbox.uid)
    elif sandbox.profile == LANDLOCK:
        _become_user(sandbox)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _become_user(sandbox: Sandbox) -> None:
    """Become the unprivileged user of the sandbox.

    The process keeps the right to read any file: Python's environment may lie in root's home.
    Later `enter` lets Landlock refuse all files but those of `readable`.
    """
    if os.getuid() != 0:
        linux.drop_capabilities()
        return
    os.chown(sandbox.folder, sandbox.uid, sandbox.uid)
    linux.prctl(linux.KEEPCAPS, 1)
    linux.become(sandbox.uid)
    linux.set_capabilities(CAP_DAC_READ_SEARCH)


def enter(sandbox: Sandbox, home: str) -> int | None:
    """Send this process, or a child of it, into the sandbox.

    home: the only writable folder, which becomes the current one; under namespaces that is
    `namespaces.HOME` instead. Gives None in the process inside, and in its parent the child's pid.
    """
    if sandbox.profile == NAMESPACES:
        child = namespaces.fork_inside(sandbox.limits.written)
        if child is not None:
            return child
        home = namespaces.HOME
    os.chdir(home)
    for number, value in limits_of_process(sandbox.limits, sandbox.profile).values():
        limit(number, value)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then raises OSError
    if sandbox.profile == LANDLOCK:
        devices = [name for name in linux.DEVICES if Path(name).exists()]
        landlock.restrict([*sandbox.readable, *devices[1:]], [home, *devices[:1]])
        linux.drop_capabilities(CAP_DAC_READ_SEARCH if os.getuid() == sandbox.uid else 0)
    linux.prctl(linux.PDEATHSIG, signal.SIGKILL)  # without its parent nobody could end it
    if sandbox.profile != UNSAFE:
        seccomp.restrict()  # this cannot be undone
    return None


def limits_of_process(limits: Limits, profile: str) -> dict[str, tuple[int, int]]:
    """The kernel's limits on the process of one submission: its number and value for each.

    They are named as a shell names them; `ulimit -v` and `-f` count kilobytes.
    """
    wanted = {
        "the address space in bytes (ulimit -v)": (resource.RLIMIT_AS, limits.memory),
        "processor time in seconds (ulimit -t)": (resource.RLIMIT_CPU, int(limits.seconds) + 1),
        "the size of a file in bytes (ulimit -f)": (resource.RLIMIT_FSIZE, limits.written),
        "the number of open files (ulimit -n)": (resource.RLIMIT_NOFILE, limits.files),
        "the number of processes (ulimit -u)": (resource.RLIMIT_NPROC, limits.threads),
        "the stack in bytes (ulimit -s)": (resource.RLIMIT_STACK, limits.stack),
        "locked memory in bytes (ulimit -l)": (resource.RLIMIT_MEMLOCK, 0),
    }
    if profile == UNSAFE:
        del wanted["the number of processes (ulimit -u)"]
    return wanted


def limit(number: int, value: int) -> None:
    """Set a limit of this process, unless it is lower for good: `hello` reports what it is."""
    with contextlib.suppress(ValueError):
        resource.setrlimit(number, (value, value))


def hello(sandbox: Sandbox) -> dict[str, object]:
    """What a learner's process reports about itself before it runs any code of the learner.

    RuntimeError if it cannot start a thread: those of the account's other processes count, too.
    """
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()  # an answer may fork this process: none of our threads may run then
    wanted = limits_of_process(sandbox.limits, sandbox.profile)
    kept = {name: resource.getrlimit(number)[1] for name, (number, _) in wanted.items()}
    return {"hello": {"its profile": sandbox.profile, **kept, "its versions": versions()}}


def refused_hello(message: dict[str, Any], profile: str, limits: Limits) -> str | None:
    """What is wrong with a process that reported this; None if nothing is."""
    stated = message.get("hello")
    if not isinstance(stated, dict):
        return "It did not say under which limits it runs"
    given = {name: value for name, (_, value) in limits_of_process(limits, profile).items()}
    for name, value in {"its profile": profile, **given, "its versions": versions()}.items():
        if stated.get(name) != value:
            return f"{name} is {stated.get(name)} here, and a submission is given {value}"
    return None


def versions() -> dict[str, str]:
    """What a result depends on."""
    import numpy as np

    import tensorkit

    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
        "tensorkit": tensorkit.__version__,
    }


def why_not(profile: str) -> str | None:
    """None if this machine has what the profile needs, else a sentence about what is missing.

    A process of its own tries to make the namespaces or the rules, and ends.
    """
    if profile == UNSAFE:
        return None
    if sys.platform != "linux":
        return f"Grading isolates learners' code by means of Linux; this is {sys.platform}."
    if not linux.KNOWN:
        return f"The system calls of {linux.MACHINE} are not known to the sandbox."
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, f"{_problem(profile) or ''}\n".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return f"The sandbox {profile} could not be tried."
    return text.strip() or None


def _problem(profile: str) -> str | None:
    try:
        if profile == NAMESPACES:
            if os.getuid() == 0:  # as in grading: a user without rights makes them
                linux.become(65534)
            namespaces.try_out()
        elif landlock.version() == 0:
            return "This kernel has no Landlock (Linux 5.13 or newer, switched on)."
        else:
            landlock.restrict([], [])
        seccomp.restrict()
    except OSError as problem:
        return f"The kernel refuses {profile} ({problem})."
    return None


def best() -> str | None:
    """The strongest profile that works here, or None."""
    return next((profile for profile in SAFE if why_not(profile) is None), None)
