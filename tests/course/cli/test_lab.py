"""`course lab`: a server that answers soon, with nbgrader's tools in it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import tiny
from tiny import DOUBLE, HALF

from course.authoring import build
from course.cli import lab
from course.shared.errors import CourseError


@dataclass(frozen=True)
class Server:
    course: Path
    page: str
    base: str
    token: str
    get: Callable[[str], str]
    post: Callable[[str], str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`course lab` on the tiny course, started from another folder."""
    folder = tmp_path_factory.mktemp("lab")
    course = tiny.write_course(folder / "course")
    with pytest.MonkeyPatch.context() as patch:
        tiny.register(patch, DOUBLE, HALF)
        build.build(course, ["01_numbers"])
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "lab", "--browser", "none", "--port", str(_free_port())],
        cwd=folder,
        env={**os.environ, "COURSE_ROOT": str(course)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        address = re.search(r"(http://127\.0\.0\.1:\d+)(/\S+)[?&]token=(\S+)", first)
        assert address, first + process.stdout.read()
        base, page, token = address.groups()

        def ask(path: str, method: str) -> str:
            request = urllib.request.Request(
                base + path, headers={"Authorization": f"token {token}"}, method=method
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                return str(answer.read().decode())

        get, post = partial(ask, method="GET"), partial(ask, method="POST")
        _wait_for(lambda: get("/api/status"))
        yield Server(course, page, base, token, get, post)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        process.stdout.close()


def _wait_for(answer: Callable[[], str]) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            answer()
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_it_opens_the_first_chapter_of_the_learner(server: Server) -> None:
    assert server.page == "/lab/tree/work/01_numbers/01_numbers.ipynb?file-browser-path=/work"
    assert (server.course / "work/01_numbers/01_numbers.ipynb").is_file()
    page = server.get(server.page)
    assert '"news": {"disabled": true}' in page
    assert '"name": "read-only"' in page, "the extension manager would ask the package index"


@pytest.mark.skipif(os.name == "nt", reason="PowerShell is no login shell")
def test_the_terminal_finds_the_command_where_nobody_sees_the_servers_output(
    server: Server,
) -> None:
    """A login shell would take PATH anew from /etc/profile, on Debian without this environment."""
    from tornado.ioloop import IOLoop

    name = json.loads(server.post("/api/terminals"))["name"]
    address = f"{server.base.replace('http', 'ws', 1)}/terminals/websocket/{name}"
    command = "command -v course"
    said = IOLoop().run_sync(lambda: _said_in_a_terminal(address, server.token, command), 30)
    assert f"{Path(sysconfig.get_path('scripts'), 'course')}" in said


async def _said_in_a_terminal(address: str, token: str, command: str) -> str:
    """What a terminal shows until `command` has ended."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    headers = {"Authorization": f"token {token}"}
    terminal = await websocket_connect(HTTPRequest(address, headers=headers))
    await terminal.write_message(json.dumps(["stdin", f"{command}; echo end $((1 + 1))\r"]))
    said = ""
    while "end 2" not in said:
        message = await terminal.read_message()
        assert message is not None, said
        kind, *text = json.loads(message)
        said += text[0] if kind == "stdout" else ""
    terminal.close()
    return said


@pytest.mark.rest
def test_formgrader_answers(server: Server) -> None:
    assert "formgrade" in server.get("/formgrader/manage_assignments")
    assert [
        assignment["name"] for assignment in json.loads(server.get("/formgrader/api/assignments"))
    ] == ["01_numbers"]
    assert json.loads(server.get("/formgraders"))["value"][0]["course_id"] == "tensorkit"


def test_assignment_list_and_course_list_answer(server: Server) -> None:
    assert json.loads(server.get("/assignments?course_id=tensorkit")) == {
        "success": True,
        "value": [],
    }
    assert json.loads(server.get("/courses")) == {"success": True, "value": []}


def test_a_learner_sees_no_tool_of_an_instructor_and_validate_only_with_an_exchange(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = {
        f"@jupyter/nbgrader:{name}" for name in ("create-assignment", "formgrader", "course-list")
    }
    validate = "@jupyter/nbgrader:validate-assignment"
    monkeypatch.setattr(lab.paths, "course_root", lambda: tmp_path)
    assert not lab.page_config(None, {}).get("disabledExtensions")  # the instructor's own
    monkeypatch.setattr(lab, "find_spec", lambda package: None)
    page = lab.page_config(None, {"disabledExtensions": ["other"]})
    assert {*page["disabledExtensions"]} == {"other", validate, *tools}
    Path(tmp_path, lab.settings().exchange, lab.settings().course_id).mkdir(parents=True)
    assert {*lab.page_config(None, {})["disabledExtensions"]} == tools


def test_the_tabs_that_were_open_are_those_of_this_course(server: Server) -> None:
    workspaces = server.course / "work" / ".workspaces"
    workspaces.mkdir(exist_ok=True)
    (workspaces / "a.jupyterlab-workspace").write_text('{"data": {}, "metadata": {"id": "mine"}}')
    assert json.loads(server.get("/lab/api/workspaces"))["workspaces"]["ids"] == ["mine"]


def test_the_news_are_off(server: Server) -> None:
    settings = json.loads(
        server.get("/lab/api/settings/@jupyterlab/apputils-extension:notification")
    )
    assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"


def test_a_port_that_is_taken_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(tiny.write_course(tmp_path / "course")))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CourseError, match=f"Port {port} is taken, perhaps by a course"):
            lab.start(port=str(port), browser="none")


def test_a_number_that_is_no_port_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(tiny.write_course(tmp_path / "course")))
    for port in ("99999", "abc"):
        with pytest.raises(CourseError, match=f"{port} is not a port"):
            lab.start(port=port)


def test_an_address_of_another_machine_is_said_in_a_sentence(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(server.course))
    for address in ("8.8.8.8", "no address"):
        with pytest.raises(CourseError, match=f"Nothing can listen on {address} here"):
            lab.start(ip=address, browser="none")


@pytest.mark.parametrize("blocked", ["work", "work/01_numbers"])
def test_a_file_where_a_folder_belongs_is_kept_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocked: str
) -> None:
    course = tiny.write_course(tmp_path / "course")
    with pytest.MonkeyPatch.context() as patch:
        tiny.register(patch, DOUBLE, HALF)
        build.build(course, ["01_numbers"])
    monkeypatch.setenv("COURSE_ROOT", str(course))
    (course / blocked).parent.mkdir(exist_ok=True)
    (course / blocked).write_text("mine")
    with pytest.raises(CourseError, match=f"{blocked} is a file, but a folder of yours"):
        lab.start(browser="none")
    assert (course / blocked).read_text() == "mine"


def test_a_home_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(tiny.write_course(tmp_path / "course")))
    (tmp_path / "home").write_text("a file, in which even root can make no folder")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home" / "jupyter"))
    with pytest.raises(CourseError, match=r"but .*home/jupyter cannot be written"):
        lab.start(browser="none")


@pytest.mark.rest
@pytest.mark.parametrize("is_named", [False, True])
def test_a_second_start_at_once_takes_the_next_port_or_says_that_its_own_is_taken(
    server: Server, is_named: bool
) -> None:
    port = str(_free_port())
    command = [sys.executable, "-m", "course", "lab", "--browser", "none"]
    command += ["--port", port] * is_named
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, "COURSE_ROOT": str(server.course)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    said = []
    try:
        addresses = [process.stdout.readline() for process in started if process.stdout is not None]
        ports = {address.partition("127.0.0.1:")[2].partition("/")[0] for address in addresses}
        assert len(ports - {""}) == 2 - is_named
    finally:
        for process in started:
            process.send_signal(signal.SIGINT)
            said.append(process.communicate(timeout=30)[1])
    if is_named:
        assert any(each.startswith(f"course: Port {port} is taken") for each in said), said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux calls all of 127.* its own")
@pytest.mark.rest
@pytest.mark.parametrize(("options", "is_reached"), [([], False), (["--ip", "0.0.0.0"], True)])
def test_other_addresses_reach_it_only_where_it_listens_to_them(
    server: Server, options: list[str], is_reached: bool
) -> None:
    """127.0.0.2 stands for the address by which a container is reached."""
    started = subprocess.Popen(
        [sys.executable, "-m", "course", "lab", "--browser", "none", *options],
        env={**os.environ, "COURSE_ROOT": str(server.course)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert started.stdout is not None
        found = re.search(
            r"http://127\.0\.0\.1:(\d+)/\S+[?&]token=(\S+)", started.stdout.readline()
        )
        assert found
        port, token = found.groups()
        _wait_for(lambda: str(_status(f"http://127.0.0.1:{port}/api/status")))
        there = f"http://127.0.0.2:{port}/api/status"
        if not is_reached:
            with pytest.raises(urllib.error.URLError, match="refused"):
                _status(there)
            return
        assert _status(there) == 403
        assert _status(f"{there}?token={token}") == 200
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=30)


def _status(address: str) -> int:
    """The number with which a server answers; the connection is closed."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code
