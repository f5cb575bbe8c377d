"""The exchange: nobody hands in for somebody else, and no name or moment stops the collecting."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, School

from course.authoring.release import nbgrader_config
from course.grading import batch
from course.grading.nbgrader_way import Collect
from course.sandbox import linux

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be several users")
# two users that every Linux has, as learners
ADA, EVE = "daemon", "games"


class Exchange:
    """A course's exchange, and the collector of a school."""

    def __init__(self, school: School) -> None:
        self.school = school
        self.config = nbgrader_config()
        self.config.CourseDirectory.root = str(school.root)
        self.config.CourseDirectory.db_url = f"sqlite:///{school.root}/course/gradebook.db"
        self.config.CourseDirectory.assignment_id = CHAPTER
        self.config.Exchange.root = str(school.root / "exchange")
        course = str(self.config.CourseDirectory.course_id)
        self.inbound = school.root / "exchange" / course / "inbound"
        self.inbound.mkdir(parents=True)
        (school.root / "exchange").chmod(0o777)

    def hand_in(
        self,
        name: str,
        content: bytes,
        owner: str | None = None,
        day: str = "2026-03-01 10:00:00.000000 UTC",
    ) -> Path:
        """A folder as `nbgrader submit` makes it, of the files of this owner."""
        folder = self.inbound / f"{name}+{CHAPTER}+{day}+random"
        folder.mkdir()
        (folder / f"{CHAPTER}.ipynb").write_bytes(content)
        if owner is not None:
            give(folder, owner)
        return folder

    def collect(self, **options: Any) -> None:
        from nbgrader.coursedir import CourseDirectory

        directory = CourseDirectory(config=self.config)
        Collect(coursedir=directory, config=self.config, update=True, **options).start()

    def collected(self) -> dict[str, bytes]:
        found = (self.school.root / "course" / "submitted").glob(f"*/{CHAPTER}/{CHAPTER}.ipynb")
        return {each.parts[-3]: each.read_bytes() for each in found}


def give(folder: Path, owner: str) -> None:
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, owner)


@pytest.fixture
def exchange(school: School) -> Exchange:
    return Exchange(school)


@needs_root
def test_what_somebody_else_hands_in_is_refused_and_the_own_stays(
    exchange: Exchange, caplog: pytest.LogCaptureFixture
) -> None:
    # stock: a warning, and eve's counts for ada, because its name says that it is newer
    exchange.hand_in(ADA, b"ada's", ADA)
    forged = exchange.hand_in(ADA, b"eve's", EVE, "2099-03-01 10:00:00.000000 UTC")
    exchange.hand_in("nobody", b"eve's", EVE)
    exchange.collect()
    assert exchange.collected() == {ADA: b"ada's"}
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == 2
    assert any(f"{forged.name!r} is not collected: it is in the name of '{ADA}'" in each
               for each in said)  # fmt: skip
    assert all(f"belongs to '{EVE}'" in each for each in said)
    exchange.collect(before_duedate=True)
    assert exchange.collected() == {ADA: b"ada's"}


def as_a_link(entry: Path) -> None:
    entry.symlink_to("/tmp")


def as_a_link_to_nothing(entry: Path) -> None:
    entry.symlink_to("nothing")


def as_a_full_folder(entry: Path) -> None:
    entry.mkdir()
    for number in range(1001):
        (entry / str(number)).touch()


@needs_root
@pytest.mark.parametrize("make", [as_a_link, as_a_link_to_nothing, os.mkfifo, as_a_full_folder])
def test_what_somebody_else_makes_of_another_kind_is_refused_and_the_own_stays(
    exchange: Exchange, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None]
) -> None:
    exchange.hand_in(ADA, b"ada's", ADA)
    forged = exchange.inbound / f"{ADA}+{CHAPTER}+2099-03-01 10:00:00.000000 UTC+x"
    make(forged)
    os.chown(forged, pwd.getpwnam(EVE).pw_uid, -1, follow_symlinks=False)
    exchange.collect()
    assert exchange.collected() == {ADA: b"ada's"}
    (said,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert said.startswith(f"{forged.name!r}")
    assert EVE in said


def test_a_folder_that_the_collector_cannot_read_is_named_and_what_came_before_stays(
    exchange: Exchange, caplog: pytest.LogCaptureFixture
) -> None:
    owner = ADA if os.getuid() == 0 else None
    exchange.hand_in(ADA, b"first", owner)
    newer = exchange.hand_in(ADA, b"second", owner, "2026-03-02 10:00:00.000000 UTC")
    exchange.hand_in(EVE, b"eve's", EVE if owner else None)
    newer.chmod(0)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            linux.drop_capabilities()  # with them root reads every folder
            exchange.collect()
            assert newer.name in caplog.text
            assert "Permission denied" in caplog.text
            assert exchange.collected() == {ADA: b"first", EVE: b"eve's"}
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    newer.chmod(0o700)  # so that pytest can remove it
    assert os.waitstatus_to_exitcode(status) == 0


@needs_root
def test_a_folder_in_which_somebody_else_put_a_file_is_refused(exchange: Exchange) -> None:
    # nbgrader lets everybody write in it who knows its name
    exchange.hand_in(ADA, b"first", ADA)
    folder = exchange.hand_in(ADA, b"second", ADA, "2026-03-02 10:00:00.000000 UTC")
    shutil.chown(folder / f"{CHAPTER}.ipynb", EVE)
    exchange.collect()
    assert exchange.collected() == {ADA: b"first"}


@needs_root
def test_a_folder_that_is_changed_while_it_is_collected_is_refused(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = exchange.hand_in(ADA, b"ada's", ADA)
    do_copy = Collect.do_copy

    def changed(collect: Collect, *arguments: Any) -> None:
        give(folder, EVE)
        do_copy(collect, *arguments)

    monkeypatch.setattr(Collect, "do_copy", changed)
    exchange.collect()
    assert exchange.collected() == {}
    assert f"It belongs to {EVE}." in caplog.text


@needs_root
def test_where_all_have_one_user_each_name_counts(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a hub of containers; only its own rules say who is who
    exchange.hand_in("ada", b"ada's", ADA)
    monkeypatch.setattr(os, "getuid", lambda: pwd.getpwnam(ADA).pw_uid)
    exchange.collect()
    assert exchange.collected() == {"ada": b"ada's"}


@needs_root
def test_the_check_of_owners_can_be_switched_off(exchange: Exchange) -> None:
    exchange.hand_in("ada", b"ada's", ADA)
    exchange.collect()
    assert exchange.collected() == {}
    exchange.config.ExchangeCollect.check_owner = False
    exchange.collect()
    assert exchange.collected() == {"ada": b"ada's"}


@pytest.mark.parametrize("moment", ["2026-02-30 10:00:00 UTC", "0001-01-01 00:00:00 UTC", "now"])
def test_a_folder_with_a_wrong_moment_stops_nobody(exchange: Exchange, moment: str) -> None:
    # stock: a traceback, and nothing of anybody is collected
    exchange.hand_in("ada", b"ada's")
    exchange.hand_in("eve", b"eve's", day=moment)
    exchange.collect()
    assert exchange.collected() == {"ada": b"ada's", "eve": b"eve's"}


def test_a_folder_that_names_nobody_is_named(
    exchange: Exchange, caplog: pytest.LogCaptureFixture
) -> None:
    folder = exchange.hand_in("", b"whose?")
    exchange.hand_in("ada", b"ada's")
    exchange.collect()
    assert exchange.collected() == {"ada": b"ada's"}
    assert f"{folder.name!r} is not collected: it names no learner." in caplog.text


@needs_root
@pytest.mark.parametrize(
    ("mode", "is_open"), [(0o777, True), (0o775, True), (0o2775, False), (0o755, False)]
)
def test_what_somebody_else_put_beside_the_collected_ones_is_left_out(
    school: School, half: bytes, mode: int, is_open: bool
) -> None:
    folder = school.submit(ADA, half)
    give(folder, EVE)
    (school.root / "course" / "submitted").chmod(mode)
    sentences = batch.left_out(school.root, CHAPTER)
    reason = f"it belongs to {EVE}, and others may write there (chmod -R go-w)"
    assert sentences == ([f"'{ADA}' is not graded: {reason}."] if is_open else [])
    folder.chmod(0o777)  # into which everybody may write, whatever lies above
    assert batch.left_out(school.root, CHAPTER) == [f"'{ADA}' is not graded: {reason}."]
    give(folder, ADA)
    assert batch.left_out(school.root, CHAPTER) == []
