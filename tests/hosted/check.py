"""Run the hosted copies of all chapters on the versions that Colab ships: `make hosted-check`.

    1. An environment with the packages of `colab-pythonX.Y.txt` is made in `.venv-hosted/`.
    2. The copies are written as for GitHub, and served from this machine in GitHub's place.
    3. The first cell installs the course there. Every file of the environment that was there before
       must be as it was.
    4. Each chapter runs as it is released: no error, and every check says "not started".
    5. Each chapter runs with the answers of `solutions/`: the outputs are the committed ones, and
       every check gives full points.
    6. A learner errs three times, sees the solution, passes, and finds the points again in another
       kernel.

The kernels are Colab's; this program runs in `.venv` and talks to them.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from course.authoring import hosted
from course.notebook import exercise
from course.notebook.record import FILE
from course.shared import paths

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REPOSITORY = "owner/name"
OWN = re.compile(r"(^|/)(tensorkit|course|tensorkit_course-[^/]*\.dist-info)/|(^|/)bin/course$")
"""Files of the wheel, within an environment."""

Names = Mapping[str, str]


class Wrong(Exception):
    """What does not hold, as a sentence."""


@dataclass(frozen=True)
class Host:
    """An environment like Colab's, and the variables of its kernels."""

    folder: Path
    variables: Names

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *arguments: str) -> str:
        command = [str(self.python), "-m", "pip", *arguments, "--disable-pip-version-check"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Check everything; the exit status is 1 if something does not hold."""
    parser = argparse.ArgumentParser(description="Run the hosted copies on Colab's versions.")
    parser.add_argument("--python", help="an interpreter of Python 3.12 or 3.13")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hosted-check-") as name:
        folder = Path(name).resolve()
        try:
            host = made_host(found_python(options.python), folder)
            cells = checked(host, folder)
        except Wrong as problem:
            sys.exit(f"hosted-check: {problem}")
    print(f"hosted-check: all holds; {cells} cells ran in {time.monotonic() - begun:.0f} s.")


def checked(host: Host, folder: Path) -> int:
    """Everything that is checked on one host; how many cells of code ran."""
    copies = hosted.write(ROOT, to=folder / "copies", repository=REPOSITORY)
    with served(copies) as address:
        install(host, copies, address, folder / "install")
    cells = 0
    for chapter in paths.released_chapters(ROOT):
        begun = time.monotonic()
        released = read_copy(copies, chapter)
        ran = run(host, released, folder / "released")
        states = {id: note["state"] for id, note in notes(folder / "released").items()}
        wanted = dict.fromkeys(exercise.load(chapter), "not started")
        compare(f"{chapter}: the states of its checks", part(states, wanted), wanted)
        solved = with_answers(released, chapter)
        run(host, solved, folder / "solved")
        compare_outputs(chapter, solved)
        points = {id: note["points"] for id, note in notes(folder / "solved").items()}
        full = {id: definition.points for id, definition in exercise.load(chapter).items()}
        compare(f"{chapter}: the points of its checks", part(points, full), full)
        cells += 2 * ran
        print(
            f"{chapter}: {ran} cells twice, {len(full)} checks; {time.monotonic() - begun:.1f} s",
            flush=True,
        )
    learn(host, read_copy(copies, "00_start"), folder / "learner")
    print("A learner erred, saw the solution, passed, and found the points in another kernel.")
    return cells


# the host


def found_python(named: str | None) -> str:
    """An interpreter for which there is a list of Colab's packages."""
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    names = [named] if named else ["python3.12", "python3.13", sys.executable]
    for name in names:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            if packages_of(version_of(name)).is_file():
                return name
    raise Wrong(
        f"Colab runs Python 3.12 or 3.13; found is {named or here}. "
        "Name one: make hosted-check HOSTED_PYTHON=/path/to/python3.12"
    )


def version_of(python: str) -> str:
    """Such as 3.12."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def packages_of(version: str) -> Path:
    return HERE / f"colab-python{version}.txt"


def made_host(python: str, folder: Path) -> Host:
    """The environment, made if its list of packages is new, without the course."""
    version = version_of(python)
    packages = packages_of(version)
    environment = ROOT / ".venv-hosted" / version
    stamp, digest = environment / "packages", hashlib.sha256(packages.read_bytes()).hexdigest()
    host = Host(environment, variables(environment, folder))
    if not stamp.is_file() or stamp.read_text() != digest:
        print(f"Installing what Colab ships, into {environment.relative_to(ROOT)}", flush=True)
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        host.pip("install", "--quiet", "--requirement", str(packages))
        stamp.write_text(digest)
    if any(line.startswith(paths.DISTRIBUTION) for line in host.pip("freeze").splitlines()):
        host.pip("uninstall", "--quiet", "--yes", paths.DISTRIBUTION)
    return host


def variables(environment: Path, folder: Path) -> Names:
    """Nothing of this machine's own settings, and a pip that looks nothing up in an index."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COURSE_", "JUPYTER", "PYTHON", "IPYTHON", "PIP_", "MPL"))
    }
    return {
        **kept,
        "HOME": str(folder / "home"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PATH": os.pathsep.join([str(environment / "bin"), os.environ.get("PATH", os.defpath)]),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONHASHSEED": "0",  # as when the chapters were built
        "TENSORKIT_DOT": "0",
    }


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server that gives the files of a folder, in the place of GitHub's."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def install(host: Host, copies: Path, address: str, folder: Path) -> None:
    """Run the first cell of a copy, and look at what it did to the environment."""
    before, frozen = snapshot(host), host.pip("freeze").splitlines()
    begun = time.monotonic()
    copy = read_copy(copies, "00_start")
    cell = copy.cells[0]
    there = hosted.address_of(REPOSITORY, "")
    if there not in cell.source:
        raise Wrong("The first cell does not name the address of the wheel.")
    cell.source = cell.source.replace(there, f"{address}/")
    copy.cells = [cell]
    run(host, copy, folder)
    seconds = time.monotonic() - begun
    after = snapshot(host)
    changed = [path for path in before if after.get(path) != before[path]]
    foreign = [path for path in after.keys() - before.keys() if not OWN.search(path)]
    compare("files of the host that were changed or removed", changed, [])
    compare("files that were added beside the course", foreign, [])
    new = [line for line in host.pip("freeze").splitlines() if line not in frozen]
    if len(new) != 1 or not new[0].startswith(paths.DISTRIBUTION):
        raise Wrong(f"pip freeze has other new lines than the course: {new}.")
    print(
        f"The first cell installed the course in {seconds:.1f} s. Of the host's {len(before)} "
        f"files and {len(frozen)} packages none has changed.",
        flush=True,
    )


def snapshot(host: Host) -> dict[str, tuple[int, int]]:
    """Size and time of every file of the environment, without what Python compiled."""
    return {
        file.relative_to(host.folder).as_posix(): (file.lstat().st_size, file.lstat().st_mtime_ns)
        for file in host.folder.rglob("*")
        if not file.is_dir() and "__pycache__" not in file.parts
    }


# notebooks


def read_copy(copies: Path, chapter: str) -> NotebookNode:
    return nbformat.read(paths.notebook_in(copies, chapter), as_version=4)


def with_answers(copy: NotebookNode, chapter: str) -> NotebookNode:
    """The copy with the answers of the worked solution in its cells."""
    answers = {cell.id: cell.source for cell in solution(chapter).cells if is_answer(cell)}
    solved = nbformat.from_dict(json.loads(json.dumps(copy)))
    for cell in solved.cells:
        if is_answer(cell):
            cell.source = answers[cell.id]
    return solved


def solution(chapter: str) -> NotebookNode:
    return nbformat.read(paths.notebook_in(paths.solutions(ROOT), chapter), as_version=4)


def is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def run(host: Host, notebook: NotebookNode, folder: Path) -> int:
    """Execute a notebook in place, in a kernel of the host; how many cells of code ran.

    Raises Wrong at the first cell that raises, unless it is one that shows an error.
    """
    folder.mkdir(exist_ok=True)
    client = NotebookClient(
        notebook,
        kernel_name=kernel(host),
        timeout=300,
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,
    )
    try:
        client.execute(env=dict(host.variables))
    except CellExecutionError as problem:
        raise Wrong(f"A cell raises {problem.ename}: {problem.evalue}\n{problem}") from None
    return sum(cell.cell_type == "code" for cell in notebook.cells)


def kernel(host: Host) -> str:
    """The name of the host's kernel, made known to this process."""
    specs = Path(host.variables["HOME"]) / "jupyter"
    folder = specs / "kernels" / "hosted"
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(host.python), "-Xfrozen_modules=off", "-m", "ipykernel_launcher"]
    spec = {
        "argv": [*command, "-f", "{connection_file}"],
        "display_name": "hosted",
        "language": "python",
    }
    (folder / "kernel.json").write_text(json.dumps(spec))
    os.environ["JUPYTER_PATH"] = str(specs)
    return "hosted"


def notes(folder: Path) -> dict[str, Any]:
    """What the checks noted beside the chapters' folders."""
    values: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return values


def part(values: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the names that are wanted."""
    return {id: values.get(id) for id in wanted}


def compare(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise Wrong(f"{what} should be {wanted}, and are {found}.")


# outputs


def compare_outputs(chapter: str, ran: NotebookNode) -> None:
    """Raises Wrong where a cell printed or showed what its committed outputs do not say."""
    committed = {cell.id: cell for cell in solution(chapter).cells}
    for cell in ran.cells:
        if cell.cell_type != "code" or cell.id == hosted.CELL_ID:
            continue
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            continue
        found, wanted = comparable(cell.outputs), comparable(committed[cell.id].outputs)
        if found != wanted:
            raise Wrong(
                f"{chapter}, cell {cell.id}: here {json.dumps(found)[:1500]}, "
                f"committed {json.dumps(wanted)[:1500]}."
            )


def comparable(outputs: list[NotebookNode]) -> list[Any]:
    """What outputs say, without pixels, coordinates and the frames of tracebacks."""
    return [SAYS[output.output_type](output) for output in outputs]


SAYS: dict[str, Callable[[NotebookNode], Any]] = {
    "stream": lambda output: [output.name, output.text],
    "error": lambda output: [output.ename, output.evalue],
    "display_data": lambda output: without_pixels(output.data),
    "execute_result": lambda output: without_pixels(output.data),
}


def without_pixels(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: re.sub('base64,([^"]+)', without_coordinates, value)
        for kind, value in data.items()
        if not kind.startswith("image/")
    }


def without_coordinates(picture: re.Match[str]) -> str:
    """The elements and texts of an SVG. From Python 3.12 on `sum` adds floats more precisely, and
    moves an edge by a tenth of a pixel."""
    return re.sub('="[^"]*"', "", base64.b64decode(picture[1]).decode())


# a learner


def learn(host: Host, copy: NotebookNode, folder: Path) -> None:
    """Err three times, look at the solution, pass, and come back in another kernel."""
    first, imports = [cell.source for cell in copy.cells if cell.cell_type == "code"][:2]
    tries = ["return fahrenheit - 32", "return fahrenheit / 1.8", "return fahrenheit * 2"]
    right = "return (fahrenheit - 32) / 1.8"
    cells = [first, imports, 'check("celsius")', 'hint("celsius")']
    for text in (*tries, right):
        cells += [
            f"def celsius(fahrenheit):\n    {text}",
            'check("celsius")',
            'solution("celsius")',
        ]
    said = texts(host, cells, folder)
    for number, words in {
        2: "0",
        3: "Hint 1 of",
        6: "so far 1",
        9: "so far 2",
        12: "One way to write",
        14: "1.0",
    }.items():
        if words not in said[number]:
            raise Wrong(f"{cells[number]} says {said[number]!r}, not {words!r}.")
    again = texts(host, [first, imports, 'progress("00_start")'], folder)
    if "1 of 1" not in again[2] or "done" not in again[2]:
        raise Wrong(f"In another kernel progress() says {again[2]!r}.")


def texts(host: Host, cells: list[str], folder: Path) -> list[str]:
    """What each of these cells shows, as plain text."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells]
    )
    run(host, notebook, folder)
    shown = []
    for cell in notebook.cells:
        results = [output for output in cell.outputs if output.output_type == "execute_result"]
        shown.append(results[-1].data["text/plain"] if results else "")
    return shown


if __name__ == "__main__":
    main()
