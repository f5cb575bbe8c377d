"""`course lab`: JupyterLab on the course folder, opened on the learner's first chapter.

The other settings of JupyterLab and nbgrader stand in `jupyter/`.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from course.cli import copies
from course.shared import paths
from course.shared.errors import CourseError
from course.shared.settings import settings

OWN_MACHINE = "127.0.0.1"
FIRST_PORT = 8888
MORE_PORTS = 99  # tried one after the other, while FIRST_PORT and those before are taken
INSTRUCTOR_TOOLS = ("create-assignment", "course-list", "formgrader")  # nbgrader's, in JupyterLab


def start(*, port: str | None = None, browser: str | None = None, ip: str = OWN_MACHINE) -> None:
    """Make the learner's copies, find a port, print the address and serve until Ctrl-C.

    port: by default the next free one from 8888. browser: one to open, or "none". ip: where the
    server listens; by default only this machine reaches it. A container listens on 0.0.0.0, and
    whoever publishes its port decides who reaches that.

    Raises CourseError if `port` is taken, or if a folder cannot be written.
    """
    root = paths.course_root()
    copies.make_copies(root)
    _check_folders_of_jupyter()
    number = 0 if port is None else _number(port)
    if browser not in (None, "none"):
        os.environ["BROWSER"] = str(browser)  # read by Python's webbrowser module
    has_browser = browser != "none" and _has_browser()
    workspaces = paths.work(root) / ".workspaces"
    if workspaces.exists() and not workspaces.is_dir():
        raise CourseError(
            f"{workspaces} is a file, but JupyterLab keeps its open tabs in a folder of that name. "
            "Rename it, then use the same command again."
        )
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(24)
    page = _first_page(root)
    paths.scripts_on_path()
    os.chdir(root)
    lock = _start_lock()
    try:
        _check_address(ip, number)
    except CourseError:
        os.close(lock)
        raise
    server = _prepared(
        [
            f"--ServerApp.root_dir={root}",
            f"--ServerApp.ip={ip}",
            f"--ServerApp.port={port or FIRST_PORT}",
            f"--ServerApp.port_retries={0 if port else MORE_PORTS}",
            f"--ServerApp.open_browser={has_browser}",
            f"--ServerApp.allow_root={_is_root()}",
            f"--IdentityProvider.token={token}",
            f"--LabApp.default_url={page}",
            # the tabs that were open are those of this course, not of another copy of it
            f"--LabApp.workspaces_dir={workspaces}",
            "--Application.log_level=WARN",
            "--ServerApp.answer_yes=True",  # the first Ctrl-C stops, without a question
        ]
    )

    def ready() -> None:
        os.close(lock)
        address = f"http://127.0.0.1:{server.port}{page}"
        mark = "&" if "?" in page else "?"
        print(f"The course opens at {address}{mark}token={token}", flush=True)
        if browser != "none" and not has_browser:
            print("No browser was found here: copy this address into yours.", flush=True)
        print("Ctrl-C stops it; your work stays in work/.", flush=True)

    server.io_loop.add_callback(ready)  # runs after the server's own, which takes the port
    server.start()


def _start_lock() -> int:
    """The descriptor of a file that one start at a time can lock, until it closes the file.

    Jupyter looks for a free port and takes it later, when its loop runs; another start in between
    would find the same one. Windows has no such locks.
    """
    from jupyter_core.paths import jupyter_runtime_dir

    file = os.open(Path(jupyter_runtime_dir(), "course-lab.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _prepared(options: list[str]) -> Any:
    """JupyterLab's server, which has found a free port and takes it when its loop runs."""
    from jupyterlab.labapp import LabApp

    return LabApp.initialize_server(argv=options)


def page_config(handler: Any, page_config: dict[str, Any]) -> dict[str, Any]:
    """JupyterLab's page without the tools of nbgrader that a learner has no use for.

    Those for instructors are left out where the extra `teach` is not installed, and Validate, which
    looks at a notebook before it is submitted, where the exchange has no folder of this course.
    """
    if find_spec("nh3") is None:  # of the extra `teach` alone
        tools = [*INSTRUCTOR_TOOLS, *([] if _has_an_exchange() else ["validate-assignment"])]
        disabled = page_config.setdefault("disabledExtensions", [])
        disabled += [f"@jupyter/nbgrader:{tool}" for tool in tools]
    return page_config


def _has_an_exchange() -> bool:
    try:
        return (paths.course_root() / settings().exchange / settings().course_id).is_dir()
    except (CourseError, OSError):
        return False


def _first_page(root: Path) -> str:
    notebook = copies.notebook_saved_last(root)
    if notebook is None:
        return "/lab"
    # the file list shows all chapters; JupyterLab's own choice is the folder of the notebook
    work = paths.work(root).relative_to(root).as_posix()
    return f"/lab/tree/{notebook.relative_to(root).as_posix()}?file-browser-path=/{work}"


def _check_folders_of_jupyter() -> None:
    """Raises CourseError if Jupyter could not keep its settings, as with a read-only home."""
    from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir, jupyter_runtime_dir

    for name in (jupyter_config_dir(), jupyter_data_dir(), jupyter_runtime_dir()):
        folder = Path(name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_writable = os.access(folder, os.W_OK)
        except OSError:
            is_writable = False
        if not is_writable:
            raise CourseError(
                f"JupyterLab needs a folder for its settings, but {folder} cannot be written. "
                "Name another home folder: HOME=/some/folder make lab"
            )


def _has_browser() -> bool:
    """Whether there is a browser to open: the one that is named, or any."""
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _number(port: str) -> int:
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise CourseError(f"{port} is not a port: choose a number from 1 to 65535.")
    if int(port) < 1024 and os.name != "nt" and not _is_root():
        raise CourseError(f"Port {port} belongs to the system: choose one from 1024 on.")
    return int(port)


def _check_address(ip: str, port: int) -> None:
    """Raises CourseError if nothing can listen there; port 0 stands for any free one."""
    with socket.socket() as probe:
        # as the server does it: a port that was just closed counts as free, except on Windows,
        # where this option would call every port free
        if os.name != "nt":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise CourseError(
                    f"Nothing can listen on {ip} here ({problem.strerror}): leave the address out, "
                    "or name one of this machine, such as 0.0.0.0."
                ) from None
            raise CourseError(
                f"Port {port} is taken, perhaps by a course that is still open: "
                "stop that one, or choose another port (course lab --port, make lab PORT=)."
            ) from None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
