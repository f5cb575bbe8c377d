"""The checker's end of the wire: a warm process, and one sandboxed process per submission.

`Warm` starts the warm program with an environment that holds nothing of the grader's, and asks it
for processes. A `Session` is one such process: it is asked, waited for, killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from course.grading import environment
from course.sandbox import profiles
from course.sandbox.wire import Closed, Message, Wire, WireError
from course.shared.errors import CourseError

FIRST_UID = 61_000
MEMORY = 400 << 20
"""Bytes of memory for a worker: what was imported, and what reading one submission takes."""
START_SECONDS, GRACE = 120.0, 1.0
MOST_FILES = 4096


class Died(Exception):
    """The learner's process is gone: it ended, or it was killed because its time was up."""


class MachineFault(BaseException):
    """This machine, not the learner, is why a submission cannot be graded; the text says what.

    It is a BaseException, so that no `except Exception` takes it for an error of an answer.
    """


def needs_memory() -> None:
    """Raises MemoryError where not a submission, but this machine is why a worker has too little.

    To be called where what a learner returned is gone.
    """
    gc.collect()  # exceptions and the values in their frames refer to each other
    np.empty(MEMORY // 8, np.uint8)


class Warm:
    """The warm process of one worker.

    number: the worker's. Where the grader is root, each worker runs learners' code as another user.
    Raises what `start` raises.
    """

    def __init__(
        self, profile: str, limits: profiles.Limits | None = None, *, number: int = 0
    ) -> None:
        self.profile, self.limits = profile, limits or profiles.Limits()
        try:
            _sweep()
            made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
        except OSError as problem:
            raise CourseError(f"{problem.strerror or problem}. {_MAKE_ROOM}") from None
        # `_sweep` of another grader removes folders that begin with `_PREFIX` and are not locked:
        # this one has another name until it is locked, which it is as long as this worker runs
        made.chmod(0o755)
        self._lock = os.open(made, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.folder = made.rename(made.with_name(made.name[1:]))
        self._number = number
        self.waited = 0.0
        """Seconds spent waiting for its processes, and on ending them."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Warm:
        try:
            self.start()
        except BaseException:
            self.close()  # its folder may have filled the disk
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the program and wait until it has imported everything.

        Raises MachineFault if somebody ends it meanwhile, CourseError if it cannot start.
        """
        _, limit = resource.getrlimit(resource.RLIMIT_DATA)
        if limit != resource.RLIM_INFINITY and limit < MEMORY:
            raise CourseError(
                f"A process may have {limit >> 10} KB of data here (ulimit -d); grading needs "
                f"{MEMORY >> 10}. Raise the hard limit where this job or service is started."
            )
        stage = self.folder / "stage"
        if not stage.exists():
            try:
                environment.lay_out(stage)
            except OSError as problem:
                needs = f"The sandbox needs some megabytes in {tempfile.gettempdir()}"
                raise CourseError(f"{needs} ({problem.strerror}). {_MAKE_ROOM}") from None
        home = self.folder / "root"
        home.mkdir(exist_ok=True)
        own_end, learners_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        begin = (
            f"import sys; sys.path.insert(0, {str(stage)!r}); "
            "from course.sandbox.warm import main; main()"
        )
        with (self.folder / "warm.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-S", "-P", "-B", "-c", begin],
                stdin=learners_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=_ENVIRONMENT,
                cwd="/",
                # the size of a thread's stack is what this limit is when the program begins
                preexec_fn=lambda: profiles.limit(resource.RLIMIT_STACK, self.limits.stack),
            )
        learners_end.close()
        self._control = own_end
        sandbox = profiles.Sandbox(
            self.profile,
            readable=(*environment.readable(), str(stage)),
            path=(str(stage), *environment.import_path()),
            folder=str(home),
            uid=FIRST_UID + self._number,
            limits=self.limits,
        )
        own_end.settimeout(START_SECONDS)
        try:
            own_end.send(json.dumps(asdict(sandbox)).encode())
            self.given = self.limits.beyond(int(own_end.recv(100)))
            return
        except (OSError, ValueError):  # the program has ended
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        if self._process.returncode in (-signal.SIGKILL, -signal.SIGTERM):
            self.stop()
            raise MachineFault(f"The process that starts sandboxes was ended {BY_WHOM}")
        said = (self.folder / "warm.log").read_text(encoding="utf-8", errors="replace")
        self.stop()
        reason = said.strip().rpartition("\n")[2][-500:] or "it ended, and said nothing"
        raise CourseError(
            f"The sandbox {self.profile} did not start, so nothing was graded ({reason}). Where it "
            "may not read a file of Python's, make all of them readable: chmod -R a+rX"
        )

    def fork(self) -> Session:
        """A process for one submission; the warm one is started again if it is gone.

        Raises MachineFault unless it says that it runs under the limits it is given.
        """
        self.check_room()
        if self.is_gone:
            self.stop()
            self.start()
        own_end, learners_end = socket.socketpair()
        home = tempfile.mkdtemp(prefix="home-", dir=self.folder)
        if os.getuid() == 0 and self.profile == profiles.LANDLOCK:
            os.chown(home, FIRST_UID + self._number, -1)
        try:
            socket.send_fds(self._control, [home.encode()], [learners_end.fileno()])
            session = Session(self, int(self._control.recv(100)), own_end.detach(), Path(home))
        except (OSError, ValueError):
            own_end.close()
            self.stop()
            raise MachineFault("The warm process makes no processes any more.") from None
        finally:
            learners_end.close()
        session.greet()
        return session

    def check_room(self, written: int = 0, files: int = 0, *, is_full: bool = False) -> None:
        """Raises MachineFault where a learner's write could fail for want of room on this disk.

        written, files: how many bytes and files the learner's process has there already. is_full:
        whether a write has failed, because of the disk or of the quota of its user.
        """
        if self.profile == profiles.NAMESPACES:  # its folder has a size of its own
            return
        disk, limit = os.statvfs(self.folder), self.limits.written
        more_files = disk.f_favail if disk.f_files else MOST_FILES  # some disks do not count files
        is_full |= disk.f_bavail * disk.f_frsize < limit - written
        if is_full or more_files < MOST_FILES - files:
            raise MachineFault(
                f"{self.folder.parent} has less room than the {limit >> 20} MB and {MOST_FILES} "
                "files that a submission may write, or the quota of its user has. Make room there, "
                "or set TMPDIR to a folder elsewhere"
            )

    @property
    def is_gone(self) -> bool:
        """Whether somebody ended it."""
        return self._process is None or self._process.poll() is not None

    def ended_by(self, pid: int) -> int:
        """The signal that ended a process of its own; 0 if none did, or nobody knows any more."""
        try:
            self._control.send(b"%d" % pid)
            return int(self._control.recv(100))
        except (OSError, ValueError):
            self.stop()
            return 0

    def stop(self) -> None:
        """End the warm process; it is started again when needed."""
        if self._process is not None:
            self._control.close()
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End the warm process and remove its folder."""
        self.stop()
        remove(self.folder)
        os.close(self._lock)


_PREFIX = "tensorkit-grading-"
_MAKE_ROOM = "Make room there, or set TMPDIR to a folder on another disk."


def _sweep() -> None:
    """Remove the folders of killed workers. Another grader may do so at the same moment.

    It may be one in another container, which sees other processes and the same folders.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is removed, or another user's
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    remove(folder)
            finally:
                os.close(lock)


def remove(folder: Path) -> None:
    """Remove a folder, however deep it is and whatever modes its folders have."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():  # these programs follow no link and go to any depth
        for program in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*program, folder], stderr=subprocess.DEVNULL, check=False)


# a thread with an arena of its own would take 64 MB of address space beside its stack
_ONE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX")
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", **dict.fromkeys(_ONE, "1")}


Reply = tuple[Message, list[np.ndarray]]
CalledBack = Callable[[Message, list[np.ndarray]], Reply]


class Session:
    """One learner's process."""

    def __init__(self, warm: Warm, pid: int, descriptor: int, home: Path) -> None:
        self.warm, self.pid, self.home = warm, pid, home
        self._process = os.pidfd_open(pid)
        self.deadline = float("inf")
        """When the submission's time is up, by the monotonic clock."""
        self._wire: Wire | None = Wire(descriptor, self._watch)
        self._asked = int.from_bytes(os.urandom(6), "big")
        self.death = ""
        """Why it ended while it was asked, as a sentence."""

    def greet(self) -> None:
        """Receive the process's `hello`, before anything of the learner's runs.

        Raises MachineFault for a wrong one.
        """
        assert self._wire is not None
        hello: Message = {}
        with contextlib.suppress(Closed, WireError, TimeoutError):
            hello, _ = self._wire.receive(until=time.monotonic() + START_SECONDS)
        wrong = hello.get("problem") or profiles.refused_hello(
            hello, self.warm.profile, self.warm.given
        )
        if wrong is not None:
            self.end()
            raise MachineFault(f"The process for a submission does not start: {wrong}.")

    def ask(self, message: Message, blocks: list[Any] | None = None, **options: Any) -> Reply:
        """The reply to a request. options: those of `replies`, which says what is raised."""
        return next(self.replies(message, 1, blocks, **options))

    def replies(
        self,
        message: Message,
        count: int,
        blocks: list[Any] | None = None,
        *,
        seconds: float,
        called_back: CalledBack | None = None,
    ) -> Iterator[Reply]:
        """The replies to a request, `count` of them, as they come.

        seconds: the time for each. called_back: answers requests of the other side meanwhile.
        Raises Died if there is no reply; WireError if there is one of another kind.
        """
        if self._wire is None:
            raise Died("Its process had ended before.")
        self._asked += 1
        asked = self._asked
        until = min(time.monotonic() + seconds + GRACE, self.deadline)
        try:
            self._wire.send({**message, "n": asked}, blocks or [], until=until)
            for _ in range(count):
                until = min(time.monotonic() + seconds + GRACE, self.deadline)
                while True:
                    reply, arrays = self._wire.receive(until=until)
                    if reply.get("n") == asked:
                        break
                    if called_back is None or "callback" not in reply:
                        raise WireError("A reply came that nobody asked for.")
                    back, sent = called_back(reply, arrays)
                    self._wire.send(back, sent, until=until)
                if reply.get("errno") in (errno.ENOSPC, errno.EDQUOT):
                    self._watch(is_full=True)
                yield reply, arrays
        except TimeoutError:
            raise self.end_because("It did not stop in time and was ended.") from None
        except (Closed, WireError) as problem:
            ended_by = self.end(GRACE if isinstance(problem, Closed) else 0.0)
            # the filter refuses a learner both; without it they can end the warm process, too
            was_killed = ended_by in (signal.SIGKILL, signal.SIGTERM)
            if was_killed or (self.warm.is_gone and self.warm.profile != profiles.UNSAFE):
                raise MachineFault(f"The process of a submission was ended {BY_WHOM}") from None
            raise self.end_because(ENDED) from None

    def _watch(self, *, is_full: bool = False) -> None:
        """Called while this side waits for the process, and where a write failed (`is_full`)."""
        state = b""
        with contextlib.suppress(OSError):  # the process is gone
            _, _, state = Path(f"/proc/{_innermost(self.pid)}/stat").read_bytes().rpartition(b") ")
        written, files = _size(self.home)
        written += _size_without_names(self.pid)
        if written > self.warm.limits.written:
            raise TimeoutError
        try:
            if state.startswith(b"T"):  # by SIGSTOP, which the filter refuses a learner
                raise MachineFault("Somebody stopped the process of a submission (kill -STOP)")
            self.warm.check_room(written, files, is_full=is_full)
        except MachineFault:
            self.end()
            raise

    def end_because(self, reason: str) -> Died:
        """End it for what it did or sent, which a sentence says; the exception to be raised."""
        self.end()
        self.death = reason
        return Died(reason)

    def end(self, seconds: float = 0.0) -> int:
        """Kill the process and remove what it wrote.

        Gives the signal that had ended it before, or within so many seconds; 0 if none had.
        """
        if self._wire is None:
            return 0
        begun = time.monotonic()
        waited, held_up = self._wire.waited, _held_up(self.pid)
        self.warm.waited += max(0.0, waited - held_up) if held_up > _HELD_UP * waited else waited
        os.close(self._wire.descriptor)
        self._wire = None
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        had_ended = poll.poll(seconds * 1000)
        with contextlib.suppress(OSError):  # the process is gone
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        poll.poll(START_SECONDS * 1000)
        ended_by = self.warm.ended_by(self.pid)
        os.close(self._process)
        remove(self.home)
        self.warm.waited += time.monotonic() - begun  # removing the folder waits for the disk
        return ended_by if had_ended else 0


_HELD_UP = 0.75
"""A share of the time of a learner's core. Where other programs had more than that, a time limit is
the machine's fault: the time counts as if the grader had stood still."""


def _held_up(pid: int) -> float:
    """Seconds that a process was ready to run, while other processes had its core.

    Only its main thread counts, and not what the process's other threads took meanwhile: those are
    the learner's own.
    """
    with contextlib.suppress(OSError, ValueError):  # the process is gone
        process = _innermost(pid)
        ran, ready, _ = map(int, Path(f"/proc/{process}/schedstat").read_text().split())
        of_process = (~process << 3) | 2  # its clock, as clock_getcpuclockid(3) gives it
        return (ready + ran) / 1e9 - time.clock_gettime(of_process)
    return 0.0


def _innermost(pid: int) -> int:
    """The process that runs learners' code: in namespaces the one child of this one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


ENDED = "It ended its process, filled its memory, or crashed (as endless recursion does)."
BY_WHOM = (
    "by somebody, or by the kernel because this machine has no memory left. Give fewer "
    "`--workers`, or end other programs"
)


def _size(folder: Path) -> tuple[int, int]:
    """Bytes and number of files in a folder.

    Bytes above any limit where there is more, or deeper, than anyone needs.
    """
    total, number, waiting = 0, 0, [str(folder)]
    while waiting:
        try:
            for entry in os.scandir(waiting.pop()):
                number += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue  # the learner has removed it
        except OSError:  # a path that is too long, a folder that is closed
            return 1 << 62, number
        if number > MOST_FILES:
            return 1 << 62, number
    return total, number


def _size_without_names(pid: int) -> int:
    """Bytes in the files that a process has open and has removed from their folders."""
    total = 0
    with contextlib.suppress(OSError):  # the process is gone, or of another user
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = entry.stat()
                total += status.st_size if status.st_nlink == 0 else 0
    return total
