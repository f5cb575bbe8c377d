"""A fault of the machine is no learner's zero: the submission is ungraded, and that is said."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from classroom import (
    CHAPTER,
    FILE,
    LIMITS,
    PIXELS,
    ROOT,
    Class,
    School,
    cell_of,
    put_first,
    run,
)

from course.grading import asserts, batch, environment, judge, pool, server, session
from course.grading.batch import Ungraded
from course.grading.cells import CellRunner
from course.grading.intake import Submission
from course.grading.remote import Caller
from course.grading.result import Result, autograded_file
from course.grading.session import Died, MachineFault, Session, Warm
from course.notebook.matching import Source
from course.sandbox import profiles
from course.sandbox import warm as warm_program
from course.shared.errors import CourseError

NOBODY = 65534
DOCTOR = ("doctor", "--server")

# as a batch job starts, or a service of systemd: with hard limits of its own
LIMITED = """
import resource, sys
name, most = getattr(resource, sys.argv[1]), int(sys.argv[2])
resource.setrlimit(name, (most, most))
from course.cli.commands import main
sys.argv[1:] = {arguments}
main()
"""


def _course(
    school: School, limit: tuple[str, int], *arguments: str
) -> subprocess.CompletedProcess[str]:
    program = LIMITED.format(arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", program, limit[0], str(limit[1])],
        cwd=school.root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_graders_remove_what_a_killed_worker_left_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        tmp_path.joinpath(f"{session._PREFIX}{name}").mkdir()
    monkeypatch.setattr(session.tempfile, "gettempdir", lambda: str(tmp_path))
    remove = session.remove

    def with_the_other(_: Path) -> None:
        for folder in tmp_path.iterdir():
            remove(folder)

    monkeypatch.setattr(session, "remove", with_the_other)
    session._sweep()
    assert not any(tmp_path.iterdir())


def test_a_folder_is_kept_as_long_as_its_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # also where the other grader is in another container, and has a process of the same number
    monkeypatch.setattr(session.tempfile, "tempdir", str(tmp_path))
    worker = "from course.grading.session import Warm; print(Warm('unsafe').folder); input()"
    with subprocess.Popen(
        [sys.executable, "-c", worker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as running:
        assert running.stdout is not None
        folder = Path(running.stdout.readline().strip())
        session._sweep()
        assert folder.exists()
        running.kill()
        running.wait()
        session._sweep()
        assert not folder.exists()


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("RLIMIT_NOFILE", 100),
        ("RLIMIT_AS", 360_000_000),
        ("RLIMIT_FSIZE", 50_000_000),
        ("RLIMIT_NPROC", 100),
        pytest.param(
            *("RLIMIT_STACK", 4_000_000),
            marks=pytest.mark.skipif(os.getuid() == 0, reason="root may raise it"),
        ),
    ],
)
def test_a_limit_that_cannot_be_set_is_no_zero(
    school: School, half: bytes, name: str, most: int
) -> None:
    school.submit("bob", half)
    done = _course(school, (name, most), "grade", CHAPTER)
    assert done.returncode != 0
    given = int(done.stderr.partition("is given ")[2].partition(".")[0])
    taken = given - _given(name)  # of the address space Python and the imports take a part first
    assert taken > 100_000_000 if name == "RLIMIT_AS" else taken == 0
    assert "Ungraded because of this machine, not of the learners: bob." in done.stderr
    assert school.scores() == {}


def _given(name: str) -> int:
    import resource

    given = profiles.limits_of_process(profiles.Limits(), profiles.LANDLOCK)
    return dict(given.values())[getattr(resource, name)]


def test_less_memory_than_a_worker_needs_is_said_by_both(school: School, half: bytes) -> None:
    # with less of it a notebook would be refused that another machine grades
    school.submit("bob", half)
    limit = ("RLIMIT_DATA", 300_000 << 10)
    graded, examined = _course(school, limit, "grade", CHAPTER), _course(school, limit, *DOCTOR)
    sentence = "A process may have 300000 KB of data here (ulimit -d); grading needs 409600."
    assert sentence in graded.stderr
    assert "Traceback" not in graded.stderr
    assert sentence in examined.stdout
    assert "Nothing is graded on this machine" in examined.stdout
    assert school.scores() == {}


@pytest.mark.parametrize("profile", profiles.SAFE)
def test_a_grader_whose_new_files_are_private_has_a_sandbox(profile: str) -> None:
    if (reason := profiles.why_not(profile)) is not None:
        pytest.skip(reason)
    before = os.umask(0o077)
    try:
        with Warm(profile, LIMITS, number=6) as warm:
            warm.fork().end()
    finally:
        os.umask(before)


@pytest.mark.rest
def test_an_account_that_may_start_no_more_threads_is_a_fault_of_the_machine() -> None:
    sandbox = profiles.Sandbox(profiles.UNSAFE, (), (), "", os.getuid(), LIMITS)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:  # who has no such limit
                os.setuid(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            profiles.hello(sandbox)
        except RuntimeError as problem:
            status = 0 if "thread" in str(problem) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_doctor_tries_the_same(school: School) -> None:
    done = _course(school, ("RLIMIT_NOFILE", 100), *DOCTOR)
    assert "it does not start" in done.stdout
    assert "(ulimit -n) is 100 here" in done.stdout
    assert "Nothing is graded on this machine" in done.stdout
    assert done.returncode == 1


def test_a_submission_is_given_the_same_address_space_on_one_core_and_on_all() -> None:
    # a worker runs on one, and doctor on all of them, where NumPy's OpenBLAS might start threads
    cores, given = os.sched_getaffinity(0), []
    try:
        for used in (cores, {min(cores)}):
            os.sched_setaffinity(0, used)
            with Warm(profiles.UNSAFE) as warm:
                given.append(warm.given.memory)
    finally:
        os.sched_setaffinity(0, cores)
    assert max(given) - min(given) < 1 << 20


def test_a_full_temporary_folder_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(stage: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(environment, "lay_out", full)
    warm = Warm(profiles.UNSAFE)
    with pytest.raises(CourseError, match=r"\(No space left on device\).*set TMPDIR"), warm:
        raise AssertionError("it started")
    assert not warm.folder.exists()


def test_no_temporary_folder_with_room_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: str) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(session.tempfile, "mkdtemp", full)
    with pytest.raises(CourseError, match=r"found in \['/tmp'\]\. Make room there, or set TMPDIR"):
        Warm(profiles.UNSAFE)


def test_a_machine_without_a_sandbox_grades_nothing(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.submit("bob", half)
    monkeypatch.setattr(profiles, "why_not", "The kernel refuses {}.".format)
    with pytest.raises(CourseError, match=r"no sandbox .* nothing was graded(.*\n){3}.*--unsafe"):
        batch.grade(school.root, CHAPTER)
    assert server.NO_SANDBOX in list(server.examine())
    assert school.scores() == {}


FEW_BYTES = SimpleNamespace(f_bavail=30 << 10, f_frsize=1 << 10, f_files=1 << 20, f_favail=1 << 20)
FEW_FILES = SimpleNamespace(f_bavail=1 << 20, f_frsize=1 << 10, f_files=1 << 20, f_favail=3000)
FILES_UNCOUNTED = SimpleNamespace(f_bavail=1 << 20, f_frsize=1 << 10, f_files=0, f_favail=0)


@pytest.mark.parametrize("moment", ["before", "meanwhile", "at the end"])
@pytest.mark.parametrize("disk", [FEW_BYTES, FEW_FILES])
def test_a_disk_with_less_room_than_a_submission_may_write_is_said(
    klass: Class, monkeypatch: pytest.MonkeyPatch, moment: str, disk: Any
) -> None:
    found = [disk if moment == "before" else FILES_UNCOUNTED]
    monkeypatch.setattr(os, "statvfs", lambda _: found[-1])
    checks, ask = CellRunner.checks, Session.ask

    def then_full(self: CellRunner) -> Iterator[Any]:
        yield from checks(self)
        found.append(disk)

    def full_meanwhile(self: Session, *arguments: Any, **options: Any) -> Any:
        found.append(disk)  # as another submission fills it, whose files are removed soon
        reply = ask(self, *arguments, **options)
        found.pop()
        return reply

    if moment == "at the end":
        monkeypatch.setattr(CellRunner, "checks", then_full)
    elif moment == "meanwhile":
        monkeypatch.setattr(Session, "ask", full_meanwhile)
    notebook = klass.honest()
    answer = cell_of(notebook, "pixels")
    answer["source"] = answer["source"].replace(
        '"""\n', '"""\n    __import__("time").sleep(0.3)\n', 1
    )
    result = klass.grade(notebook)
    if klass.warm.profile == profiles.NAMESPACES:  # it brings a disk of its own
        assert result.score == 20
    else:
        assert (result.status, result.exercises) == ("ungraded", ())
        assert "has less room than the 64 MB and 4096 files" in result.sentence


@pytest.mark.parametrize("profile", profiles.SAFE)
@pytest.mark.parametrize("own", ["{}", "def fail(): {}"])
def test_a_write_that_fails_for_want_of_room_is_no_zero(
    source: Source, profile: str, own: str
) -> None:
    if (reason := profiles.why_not(profile)) is not None:
        pytest.skip(reason)
    fails = "raise OSError(122, 'Disk quota exceeded')"  # as of a quota of the sandbox's user
    with Warm(profile, LIMITS, number=6) as warm:
        klass = Class(warm, source)
        notebook = put_first(klass.honest(), own.format(fails))
        if own != "{}":
            answer = cell_of(notebook, "pixels")
            answer["source"] = answer["source"].replace('"""\n', '"""\n    fail()\n', 1)
        result = klass.grade(notebook)
    if profile == profiles.NAMESPACES:  # the only disk is one of the learner's own
        assert result.status == "graded"
    else:
        assert (result.status, result.exercises) == ("ungraded", ())
        assert "or the quota of its user has" in result.sentence


def test_what_a_submission_has_written_is_no_lack_of_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm = Warm(profiles.UNSAFE)
    try:
        for disk in (FEW_BYTES, FEW_FILES):
            monkeypatch.setattr(os, "statvfs", lambda _, disk=disk: disk)
            warm.check_room(40 << 20, 2000)
    finally:
        warm.close()


@pytest.mark.parametrize("profile", profiles.SAFE)
def test_threads_take_no_more_memory_where_the_limit_of_stacks_is_large(profile: str) -> None:
    if (reason := profiles.why_not(profile)) is not None:
        pytest.skip(reason)
    most, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, hard))
    try:
        with Warm(profile, LIMITS, number=6) as warm:
            session = warm.fork()
            together = "import threading\nmet = threading.Barrier(9)\n"
            together += "for _ in range(8): threading.Thread(target=met.wait).start()\nmet.wait(3)"
            run(session, together)
            session.end()
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (most, hard))


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({}, "did not say"),
        ({"hello": {"its profile": "none"}}, "its profile is none here"),
        ({"hello": {"its profile": profiles.LANDLOCK}}, "(ulimit -v) is None here"),
    ],
)
def test_a_process_that_is_not_as_it_should_be_is_refused(said: Any, wrong: str) -> None:
    found = profiles.refused_hello(said, profiles.LANDLOCK, profiles.Limits())
    assert found is not None
    assert wrong in found


def test_a_warm_process_that_somebody_ended_is_no_zero(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = CellRunner._fresh

    def ended(runner: CellRunner) -> Session:
        made = fresh(runner)
        assert runner.warm._process is not None
        runner.warm._process.kill()
        runner.warm._process.wait()
        return made

    with monkeypatch.context() as patch:
        patch.setattr(CellRunner, "_fresh", ended)
        result = klass_once.grade(klass_once.honest())
    assert (result.status, result.exercises) == ("ungraded", ())
    assert "ended by somebody" in result.sentence
    assert klass_once.grade(klass_once.honest()).score == 20, "the next one finds a new one"


def test_a_warm_process_that_somebody_ends_while_it_starts_is_no_end_of_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = socket.socket.send

    def end_it(self: socket.socket, content: bytes) -> int:
        assert warm._process is not None
        warm._process.kill()
        return send(self, content)

    monkeypatch.setattr(session.socket.socket, "send", end_it)
    warm = Warm(profiles.UNSAFE)
    with pytest.raises(MachineFault, match="was ended by somebody, or by the kernel"), warm:
        raise AssertionError("it started")


def innermost(pid: int) -> int:
    """The process that runs learners' code, which has a parent of its own under namespaces."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return int(children[0]) if children else pid


@pytest.mark.parametrize(
    ("number", "whom"),
    [
        (signal.SIGKILL, innermost),
        (signal.SIGKILL, int),
        (signal.SIGTERM, int),
        (signal.SIGSTOP, innermost),
    ],
)
def test_a_process_that_somebody_ended_or_stopped_is_no_zero(
    klass: Class, monkeypatch: pytest.MonkeyPatch, number: int, whom: Callable[[int], int]
) -> None:
    # as an administrator does, or the kernel for lack of memory
    ask = Session.ask

    def ended(self: Session, message: Any, *arguments: Any, **options: Any) -> Any:
        if message["do"] == "call":
            os.kill(whom(self.pid), number)
        return ask(self, message, *arguments, **options)

    monkeypatch.setattr(Session, "ask", ended)
    result = klass.grade(klass.honest())
    assert (result.status, result.exercises) == ("ungraded", ())
    reason = "ended by somebody, or by the kernel because this machine has no"
    assert ("Somebody stopped" if number == signal.SIGSTOP else reason) in result.sentence


@pytest.mark.parametrize(
    "own",
    [
        "import os; os._exit(137)",
        "import os; os.close(3)",
        "import ctypes; ctypes.string_at(0)",
        "import signal, threading; signal.pthread_kill(threading.get_ident(), 9)",
        "import signal; signal.raise_signal(15)",
        "import signal; signal.raise_signal(19)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    ],
)
def test_who_ends_their_own_process_is_graded(klass: Class, own: str) -> None:
    result = klass.grade(put_first(klass.honest("pixels"), f"{own}\nwhile True: pass"))
    assert (result.status, result.score) == ("graded", PIXELS)


def test_sigkill_counts_as_somebodys_unless_the_processor_time_is_up() -> None:
    program = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    for seconds, number in ((0.9, 0), (9.0, signal.SIGKILL)):
        child = subprocess.Popen([sys.executable, "-c", program])
        assert warm_program._ended_by(child.pid, seconds) == number
        child.returncode = 0  # it was waited for


@pytest.mark.rest
def test_what_no_worker_can_grade_is_tried_twice_and_keeps_its_grade(
    school: School, half: bytes, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.submit("bob", half)
    batch.grade(school.root, CHAPTER, workers=1)
    before = school.scores()
    tried = _broken_for(monkeypatch, "bob")
    school.submit("ada", honest)
    with pytest.raises(Ungraded, match=r"learners: bob\. The disk is full") as raised:
        batch.grade(school.root, CHAPTER, workers=1, force=True, unsafe=True)
    assert tried == ["bob", "bob"]
    assert [result.learner for result in raised.value.results] == ["ada"]
    assert school.scores() == {**before, "ada": 20}


@pytest.mark.rest
@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The disk is full", r"2 others were not tried\. The disk is full\."),
        # what one learner's notebook does may be in three others, too
        (pool.WORKER_ENDED, r"ada, bob, cem, dan, eve\. The process that was to grade it"),
    ],
)
def test_after_three_in_a_row_no_others_are_tried(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch, sentence: str, words: str
) -> None:
    names = ["ada", "bob", "cem", "dan", "eve"]
    for name in names:
        school.submit(name, half)
    _broken_for(monkeypatch, *names, sentence=sentence)
    with pytest.raises(Ungraded, match=words):
        batch.grade(school.root, CHAPTER, workers=1, unsafe=True)
    assert school.scores() == {}


def test_a_full_disk_of_the_course_is_said_once() -> None:
    class Full:
        """A writer that finds no room for any learner's files."""

        def is_applied(self, result: Result) -> bool:
            return False

        def apply(self, result: Result) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", f"graded/{result.learner}")

    writer: Any = Full()
    sink = batch.ResultSink(writer, lambda *_: None, 2, force=False)
    for name in ("ada", "bob"):
        assert not sink(Result(name, CHAPTER))
    said = str(Ungraded([], sink.faults, 0))
    assert said.count("A result was not written (No space left on device)") == 1
    assert "ada, bob" in said


def _broken_for(
    monkeypatch: pytest.MonkeyPatch, *names: str, sentence: str = "The disk is full."
) -> list[str]:
    """Let this machine fail at the submissions of some learners; gives who was tried."""
    tried: list[str] = []
    readable, writable = os.pipe()
    os.write(writable, b"ready")

    class Here(pool.Worker):
        """A worker in this process."""

        def start(self) -> None: ...

        def take(self, job: pool.Job) -> None:
            self.job = job

        def close(self) -> None: ...

        def fileno(self) -> int:
            return readable

        def finish(self) -> Result | None:
            job, self.job = self.job, None
            assert job is not None
            if job.submission.learner not in names:
                with Warm(self.profile) as warm:
                    return judge.grade(warm, self.source, job.submission, job.seed)
            tried.append(job.submission.learner)
            return judge.ungraded(self.source, job.submission, job.seed, sentence)

    monkeypatch.setattr(pool, "Worker", Here)
    return tried


def test_doctor_says_why_a_sandbox_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Warm) -> Iterator[Session]:
        raise MachineFault("The process for a submission does not start: no room.")

    monkeypatch.setattr(Warm, "start", lambda self: None)
    monkeypatch.setattr(Warm, "fork", broken)
    monkeypatch.setattr(profiles, "why_not", lambda profile: None)
    said = list(server.examine())
    assert any("but it does not start: The process" in each for each in said)
    assert "Nothing is graded on this machine, until that is mended." in said


@pytest.mark.parametrize("profile", profiles.SAFE)
def test_modules_that_are_closed_to_the_user_of_the_sandbox_are_said(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (reason := profiles.why_not(profile)) is not None:
        pytest.skip(reason)
    closed = tmp_path / "closed.py"
    closed.touch(mode=0)
    readable, path = environment.readable(), environment.import_path()
    monkeypatch.setattr(environment, "readable", lambda: (*readable, str(closed)))
    monkeypatch.setattr(environment, "import_path", lambda: [*path, str(tmp_path)])
    if os.getuid() == 0 and profile == profiles.LANDLOCK:  # which keeps root's right to read
        Warm(profile, LIMITS, number=5).__enter__().close()
        return
    with pytest.raises(CourseError, match=r"so nothing was graded \(PermissionError") as raised:
        Warm(profile, LIMITS, number=5).__enter__()
    assert str(closed) in str(raised.value)
    assert "chmod -R a+rX" in str(raised.value)
    assert "Traceback" not in str(raised.value)


@pytest.mark.parametrize(
    ("package", "as_python_sees_it"),
    [
        ("numpy", "raise PermissionError"),
        ("numpy", "__file__ = None"),
        ("typer", "raise PermissionError"),
    ],
)
def test_an_environment_that_its_user_may_not_read_is_said(
    tmp_path: Path, package: str, as_python_sees_it: str
) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(as_python_sees_it, encoding="ascii")
    done = subprocess.run(
        [sys.executable, "-m", "course", *DOCTOR],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("course: ")
    assert f"needs {package}, readable for you: " in done.stderr
    assert done.stderr.endswith("or chmod -R a+rX where it is installed.\n")


def test_doctor_counts_the_sandbox_that_grading_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "why_not", lambda profile: None)
    tried = {profiles.NAMESPACES: (False, "does not start"), profiles.LANDLOCK: (True, "works")}
    monkeypatch.setattr(server, "_tried", tried.get)
    assert server.NO_SANDBOX in list(server.examine())


@pytest.mark.parametrize("fault", [MachineFault("No memory."), OSError(24, "Too many open files")])
def test_a_fault_while_an_answer_is_checked_is_no_zero(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    ask = Session.ask

    def fail(self: Session, message: Any, *arguments: Any, **options: Any) -> Any:
        if message["do"] == "call":
            raise fault
        return ask(self, message, *arguments, **options)

    monkeypatch.setattr(Session, "ask", fail)
    result = klass_once.grade(klass_once.honest())
    assert (result.status, result.exercises) == ("ungraded", ())
    assert str(fault) in result.sentence


@pytest.mark.parametrize(
    "fault", [MachineFault("No memory."), OSError(24, "Too many open files"), MemoryError()]
)
def test_a_fault_while_an_instructors_own_check_runs_is_no_zero(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise fault

    marks = {"nbgrader": {"solution": True}}
    answer = {"cell_type": "code", "source": "answer = lambda: 1", "metadata": marks}
    caller = Caller(klass_once.warm.fork())
    monkeypatch.setattr(Session, "ask", fail)
    with pytest.raises(type(fault)):
        asserts.judge(caller, "assert answer() == 1", "own", 1.0, [answer])
    caller.session.end()


@pytest.mark.parametrize("place", ["check_with", "run_case"])
@pytest.mark.parametrize("is_short", [False, True])
def test_memory_that_a_check_lacks_is_the_machines_fault_only_if_it_stays_short(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, place: str, is_short: bool
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    notebook = klass_once.honest("pixels")
    monkeypatch.setattr(f"course.grading.judge.{place}", fail)
    if is_short:
        monkeypatch.setattr(judge, "needs_memory", fail)
        with pytest.raises(MemoryError):  # for which the worker ends
            klass_once.grade(notebook)
    else:
        result = klass_once.grade(notebook)
        assert (result.status, result.score) == ("graded", 0)
        reports = {each.cell: each.report for each in result.exercises}
        assert "fills the memory that a check has" in reports["check-pixels"].message


def test_data_that_cannot_be_written_is_no_zero(
    warm_once: Warm, source: Source, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Session, message: Any, *_: Any, **__: Any) -> Any:
        raise Died(f"{message['do']} did not stop in time and was ended.")

    monkeypatch.setattr(Session, "ask", fail)
    with_data = replace(source, files={"data.csv": b"1"})
    result = judge.grade(warm_once, with_data, Submission("ada", CHAPTER, honest), "seed")
    assert (result.status, result.exercises) == ("ungraded", ())
    assert "files did not stop" in result.sentence


@pytest.mark.parametrize(("where", "name"), [(Caller, "call"), (judge, "run_case")])
def test_a_grader_that_stood_still_takes_no_points(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    monkeypatch.setattr(judge, "STALL_LIMIT_S", 1.5)
    called, naps = getattr(where, name), iter([LIMITS.check_seconds + 0.1])

    def call_late(*arguments: Any, **options: Any) -> Any:
        time.sleep(next(naps, 0.0))  # as Ctrl-Z does, or a laptop that is closed
        return called(*arguments, **options)

    monkeypatch.setattr(where, name, call_late)
    result = klass_once.grade(klass_once.honest())
    assert (result.status, result.exercises) == ("ungraded", ())
    assert "Grading stood still" in result.sentence
    assert klass_once.grade(klass_once.honest()).score == 20


def test_waiting_for_a_learner_is_not_standing_still(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "STALL_LIMIT_S", 0.9)
    notebook = put_first(klass_once.honest("pixels"), "while True: pass")
    result = klass_once.grade(notebook)
    assert (result.status, result.score) == ("graded", PIXELS)


@pytest.mark.parametrize(("held_up", "status"), [(1.2, "graded"), (5.0, "ungraded")])
def test_a_time_limit_is_no_learners_where_other_programs_took_most_of_the_time(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, held_up: float, status: str
) -> None:
    monkeypatch.setattr(judge, "STALL_LIMIT_S", 0.9)
    monkeypatch.setattr(session, "_held_up", lambda _: held_up)
    notebook = put_first(klass_once.honest("pixels"), "while True: pass")
    put_first(notebook, "while True: pass")["cells"][0]["id"] = "another"  # two seconds in all
    assert klass_once.grade(notebook).status == status


@pytest.mark.parametrize("others", ["processes", "threads"])
def test_a_process_is_held_up_by_others_and_not_by_its_own_threads(others: str) -> None:
    core = min(os.sched_getaffinity(0))
    spin = (
        f"import os, threading; os.sched_setaffinity(0, {{{core}}})\ndef spin():\n while 1: pass\n"
    )
    threads = "for _ in range(3): threading.Thread(target=spin, daemon=True).start()\n"
    learners = spin + (threads if others == "threads" else "") + "spin()"
    programs = [learners, *([spin + "spin()"] * 3 if others == "processes" else [])]
    running = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    try:
        time.sleep(2.0)
        held_up = session._held_up(running[0].pid)
        ran, ready, _ = map(int, Path(f"/proc/{running[0].pid}/schedstat").read_text().split())
    finally:
        for process in running:
            process.kill()
            process.wait()
    by_itself = ready / 1e9 - held_up
    assert (by_itself > ran / 1e9) is (others == "threads")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("closed", ["bob", f"bob/{CHAPTER}", f"bob/{CHAPTER}/{FILE}"])
def test_what_the_grader_may_not_read_is_no_zero_and_stops_nobody(
    source: Source, half: bytes, closed: str
) -> None:
    with tempfile.TemporaryDirectory() as name:  # the one of pytest is closed to others
        school = School(Path(name))
        school.root.chmod(0o755)
        for learner in ("ada", "bob"):
            school.submit(learner, half)
        (school.root / "course" / "submitted" / closed).chmod(0)
        os.seteuid(NOBODY)
        try:
            found = batch.submissions(school.root, CHAPTER)
            ada, bob = (batch.taken_in(learner, path, source) for learner, path in found)
        finally:
            os.seteuid(0)
    assert isinstance(ada, Submission)
    assert isinstance(bob, Result)
    assert bob.status == "ungraded"
    assert "cannot be read by you (Permission denied)" in bob.sentence


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_a_page_that_the_grader_may_not_read_counts_as_not_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        result = Result("bob", CHAPTER, autograded=hashlib.sha256(b"").hexdigest())
        page = autograded_file(Path(name), "bob", CHAPTER)
        page.parent.mkdir(parents=True)
        page.touch()
        assert result.has_page(Path(name))
        os.seteuid(NOBODY)
        try:
            assert not result.has_page(Path(name))
        finally:
            os.seteuid(0)
