"""A hostile submission, graded and then opened in Formgrader and as a feedback page, in Chromium.

Stock nbgrader 0.9.6 runs the script of a markdown cell on Formgrader's page, from where a learner
opened a terminal on the instructor's server and listed the gradebook.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from course.cli.demo import first_for_a_class
from course.grading.result import stored
from course.notebook import matching
from course.sandbox import profiles
from course.shared import paths

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install playwright"
)
pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
CHAPTER = first_for_a_class(paths.released_chapters(ROOT))

SCRIPT = "window.pwned = 1; fetch('/pwned')"
TAGS = [
    f"<script>{SCRIPT}</script>",
    f'<img src="x" onerror="{SCRIPT}">',
    f'<svg onload="{SCRIPT}"><script>{SCRIPT}</script><title>t</title></svg>',
    f'<iframe srcdoc="<script>parent.{SCRIPT}</script>"></iframe>',
    f'<details open ontoggle="{SCRIPT}"><summary>x</summary></details>',
    f'<a href="javascript:{SCRIPT}" id="bait">x</a>',
    f"[x](javascript:{SCRIPT})",
    f'$<img src=x onerror="{SCRIPT}">$',
    f"$\\text{{<script>{SCRIPT}</script>}}$ $\\href{{javascript:{SCRIPT}}}{{x}}$",
    "`a` <style>@import '/pwned'</style>",
    "<b style='background: url(/pwned)'>x</b>",
    "![x](/pwned)",
    f'<div>\n\n<img src=x onerror="{SCRIPT}">\n\n</div>',
]
SHOWS = f"""
from IPython.display import HTML, SVG, Javascript, Markdown, Latex, display
tags = {TAGS!r}
for tag in tags:
    display(HTML(tag), Markdown(tag), Latex(tag))
    print(tag)
    png = '" onerror="{SCRIPT}'
    display({{"text/html": tag, "image/svg+xml": tag, "image/png": png}}, raw=True)
display(Javascript({SCRIPT!r}), SVG(data=tags[2]))
raise ValueError(tags[0])
"""
ANSWER = f"def checkerboard(rows, columns):\n    return {TAGS[1]!r}"


@dataclass
class Opened:
    """What a page did when it was opened."""

    text: str
    is_pwned: bool
    asked: list[str]
    dialogs: list[str]


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with a hostile submission, graded, with its feedback."""
    if profiles.best() is None:
        pytest.skip("this machine has no sandbox")
    root = tmp_path_factory.mktemp("school")
    for folder in ("notebooks", "solutions"):
        shutil.copytree(ROOT / folder / CHAPTER, root / folder / CHAPTER)
    _nbgrader(root, "generate_assignment", "--force")
    folder = root / "course" / "submitted" / "eve" / CHAPTER
    folder.mkdir(parents=True)
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(_hostile()), encoding="utf-8")
    command = [sys.executable, "-m", "course", "grade", CHAPTER]
    subprocess.run(command, env=_environment(root), check=True, capture_output=True)
    _nbgrader(root, "generate_feedback")
    return root


def _hostile() -> dict[str, object]:
    notebook = deepcopy(matching.source_of(ROOT, CHAPTER).released)
    own = [
        *({"cell_type": "markdown", "source": tag} for tag in TAGS),
        *({"cell_type": "raw", "source": tag} for tag in TAGS[:2]),
        {"cell_type": "code", "source": SHOWS, "outputs": [
            {"output_type": "display_data", "data": {"text/html": TAGS[0]}, "metadata": {}}]},
    ]  # fmt: skip
    for number, cell in enumerate(own):
        cell.update(metadata={"trusted": True, "x": TAGS[1]}, id=f'"><i{number}')
    for cell in notebook["cells"]:
        if cell["id"] == "checkerboard":
            cell["source"] = ANSWER
    notebook["cells"][3:3] = own
    notebook["metadata"] = {"title": TAGS[0], "kernelspec": {"display_name": TAGS[1]}}
    return notebook


def _environment(root: Path) -> dict[str, str]:
    jupyter = root.parent / "jupyter"
    return {
        **os.environ,
        "COURSE_ROOT": str(root),
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_PATH": str(ROOT / "course" / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(jupyter / "config"),
        "JUPYTER_DATA_DIR": str(jupyter / "data"),
        "JUPYTER_RUNTIME_DIR": str(jupyter / "runtime"),
    }


def _nbgrader(root: Path, *command: str) -> None:
    program = [sys.executable, "-m", "nbgrader", *command[:1], CHAPTER, *command[1:]]
    done = subprocess.run(program, env=_environment(root), cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def server(school: Path) -> Iterator[str]:
    """The instructor's JupyterLab: the address that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "course", "lab", "--port", str(port), "--browser", "none"]
    with subprocess.Popen(
        command,
        env=_environment(school),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout is not None
        lines = iter(running.stdout.readline, "")
        yield next(match[0] for line in lines if (match := re.search(r"http://\S+", line)))
        running.terminate()


def opened(page: playwright.Page, address: str) -> Opened:
    """Open a page, wait, press everything that can be unfolded, and note what it did."""
    asked: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    for frame in page.frames:
        for each in frame.locator("summary").all()[:10]:
            each.click(timeout=2000)
    page.wait_for_timeout(500)
    is_pwned = any(frame.evaluate("window.pwned === 1") for frame in page.frames)
    return Opened(page.content(), is_pwned, asked, dialogs)


def assert_harmless(seen: Opened) -> None:
    assert "checkerboard" in seen.text, "this is not the notebook"
    assert not seen.is_pwned
    assert not [address for address in seen.asked if "pwned" in address]
    assert seen.dialogs == []


def test_formgrader_runs_nothing_of_a_hostile_submission(
    server: str, school: Path, browser: playwright.Browser
) -> None:
    assert_harmless(in_formgrader(server, school, browser))


def in_formgrader(server: str, school: Path, browser: playwright.Browser) -> Opened:
    """The page of the submission in Formgrader."""
    with Gradebook(f"sqlite:///{school}/course/gradebook.db") as gradebook:
        number = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "eve").id
    page = visited(server, browser)
    return opened(page, f"{_origin(server)}/formgrader/submissions/{number}/?index=0")


def visited(server: str, browser: playwright.Browser) -> playwright.Page:
    """A page that has been at the address with the token, and may go on from there."""
    page = browser.new_page()
    for _ in range(100):  # the address is printed a moment before the server listens there
        try:
            page.goto(server)
            break
        except playwright.Error:
            page.wait_for_timeout(200)
    return page


def _origin(server: str) -> str:
    found = re.match(r"http://[^/]+", server)
    assert found is not None
    return found[0]


def test_formgraders_button_goes_the_same_way(
    server: str, school: Path, browser: playwright.Browser
) -> None:
    """Its autograde button, pressed: the points and the sandbox of `course grade`."""
    notebook = deepcopy(matching.source_of(ROOT, CHAPTER).solved)
    folder = school / "course" / "submitted" / "ada" / CHAPTER
    folder.mkdir(parents=True)
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page = visited(server, browser)
    page.goto(f"{_origin(server)}/formgrader/manage_submissions/{CHAPTER}")
    row = page.locator("tr", has=page.get_by_text("ada", exact=True))
    row.locator(".autograde a").click()
    page.locator(".modal", has_text="autograded").wait_for(timeout=120_000)
    with Gradebook(f"sqlite:///{school}/course/gradebook.db") as gradebook:
        entry = gradebook.find_submission(CHAPTER, "ada")
        assert entry.score == entry.max_score > 0
    result = stored(school, "ada", CHAPTER)
    assert result is not None
    assert result.profile == profiles.best()
    assert result.score == result.possible
    written = school / "course" / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    outputs = [cell.get("outputs") for cell in json.loads(written.read_text())["cells"]]
    assert "passed" in json.dumps(outputs)


def test_the_feedback_page_runs_nothing_of_a_hostile_submission(
    school: Path, browser: playwright.Browser
) -> None:
    page = school / "course" / "feedback" / "eve" / CHAPTER / f"{CHAPTER}.html"
    seen = opened(browser.new_page(), page.as_uri())
    assert_harmless(seen)
    assert [address for address in seen.asked if not address.startswith(("file:", "data:"))] == []


def test_a_page_that_runs_a_script_is_noticed(tmp_path: Path, browser: playwright.Browser) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"checkerboard {TAGS[1]}", encoding="utf-8")
    assert opened(browser.new_page(), page.as_uri()).is_pwned


def test_without_the_sanitiser_formgrader_runs_the_same_submission(
    server: str, school: Path, browser: playwright.Browser
) -> None:
    path = school / "course" / "autograded" / "eve" / CHAPTER / f"{CHAPTER}.ipynb"
    written = json.loads(path.read_text(encoding="utf-8"))
    written["cells"][3:3] = [
        {"cell_type": "markdown", "metadata": {}, "id": f"tag-{number}", "source": tag}
        for number, tag in enumerate(TAGS)
    ]
    path.write_text(json.dumps(written), encoding="utf-8")
    assert in_formgrader(server, school, browser).is_pwned
