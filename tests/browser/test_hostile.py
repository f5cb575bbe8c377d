"""A hostile submission, opened by the instructor in Formgrader and by whoever reads its feedback.

Each trick sets `window.ran` where a script gets to run. The same submission written without the
sanitiser does run scripts in Formgrader, which shows that these tests can fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from course import paths
from course.grading import batch, clean, sandbox
from course.release import nbgrader_config

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sandbox.best() is None, reason="this machine has no sandbox"),
]

ROOT = Path(__file__).parents[2]
CHAPTER = paths.released_chapters(ROOT)[0]
LEARNER = "eve"

RAN = "window.ran=1"
MARKDOWN = (
    f"<script>{RAN}</script>",
    f'<img src="x" onerror="{RAN}">',
    f'<svg onload="{RAN}"><circle r="4"/></svg>',
    f"<svg><script>{RAN}</script></svg><math><mtext><script>{RAN}</script></mtext></math>",
    f'<details open ontoggle="{RAN}">open</details>',
    f'<iframe srcdoc="<script>parent.{RAN}</script>"></iframe>',
    f'<body onload="{RAN}"><style onload="{RAN}">a{{}}</style>',
    f"$\\text{{<script>{RAN}</script><img src=x onerror={RAN}>}}$",
    f"<div>\n\n</div><img src=x onerror={RAN}>\n\n`<script>{RAN}</script>`",
    f'[press](javascript:{RAN}) <a href="javascript:{RAN}">here</a>',
)
CODE = (
    "from IPython.display import HTML, SVG, Javascript, display",
    *(f"display(HTML({it!r}))" for it in MARKDOWN),
    f"display(SVG(data={MARKDOWN[3][: MARKDOWN[3].index('<math')]!r}))",
    f"display(Javascript({RAN!r}))",
    f"display({{'text/latex': {MARKDOWN[1]!r}, 'text/markdown': {MARKDOWN[1]!r}}}, raw=True)",
    f"print({MARKDOWN[0]!r})",
    f"raise ValueError({MARKDOWN[1]!r})",
)


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course into which one notebook was handed in that is full of scripts."""
    root = tmp_path_factory.mktemp("hostile").resolve()
    for folder in ("notebooks", "solutions"):
        shutil.copytree(ROOT / folder / CHAPTER, root / folder / CHAPTER)
    notebook = json.loads(paths.notebook_in(root / "notebooks", CHAPTER).read_text())
    texts = [{"cell_type": "markdown", "metadata": {}, "source": it} for it in MARKDOWN]
    texts.append({"cell_type": "raw", "metadata": {}, "source": MARKDOWN[0]})
    shown = {"cell_type": "code", "metadata": {}, "source": "\n".join(CODE), "outputs": []}
    for number, cell in enumerate([*texts, shown]):
        notebook["cells"].insert(1, {**cell, "id": f"mine-{number}"})
    to = root / "course" / "submitted" / LEARNER / CHAPTER
    to.mkdir(parents=True)
    (to / f"{CHAPTER}.ipynb").write_text(json.dumps(notebook))
    config = _config(root)
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config, force=True).start()
    return root


def _config(root: Path) -> Config:
    config = nbgrader_config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/course/gradebook.db"
    config.CourseDirectory.assignment_id = CHAPTER
    return config


def _grade(root: Path) -> Path:
    """Grade, make the feedback, and say where its page lies."""
    config = _config(root)
    batch.grade(root, CHAPTER, workers=1, force=True, config=config)
    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config, force=True).start()
    return root / "course" / "feedback" / LEARNER / CHAPTER / f"{CHAPTER}.html"


@pytest.fixture(scope="module")
def formgrader(course_folder: Path) -> Iterator[Callable[[], str]]:
    """Gives the address of the submission's page in Formgrader."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"port": port, "root_dir": course_folder, "allow_root": True, "open_browser": False}
    command = [sys.executable, "-m", "jupyter", "server", "--IdentityProvider.token="]
    command += [f"--ServerApp.{name}={value}" for name, value in options.items()]
    jupyter = course_folder / ".jupyter"
    environment = {
        **os.environ,
        "COURSE_ROOT": str(course_folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "JUPYTER_CONFIG_PATH": str(ROOT / "course" / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(jupyter / "config"),
        "JUPYTER_DATA_DIR": str(jupyter / "data"),
        "JUPYTER_RUNTIME_DIR": str(jupyter / "runtime"),
    }
    log = course_folder / "server.txt"
    address = f"http://127.0.0.1:{port}"

    def page() -> str:
        with Gradebook(f"sqlite:///{course_folder}/course/gradebook.db") as book:
            entry = book.find_submission_notebook(CHAPTER, CHAPTER, LEARNER)
            return f"{address}/formgrader/submissions/{entry.id}/"

    with (
        log.open("w") as said,
        subprocess.Popen(
            command, env=environment, cwd=course_folder, stdout=said, stderr=said
        ) as server,
    ):
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{address}/api", timeout=2).close()
                    break
                except OSError:
                    time.sleep(0.2)
            else:
                pytest.fail(log.read_text())
            yield page
        finally:
            server.terminate()


@contextmanager
def _browser() -> Iterator[Any]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("needs Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def _opened(address: str, *, shot: str) -> tuple[bool, set[str], str]:
    """Whether a script of the learner's ran, the hosts that were asked, the page's text."""
    asked: set[str] = set()
    with _browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
        page.goto(address, wait_until="load")
        for link in page.locator("a", has_text=re.compile("^(press|here)$")).all():
            link.click(no_wait_after=True, force=True)
        page.wait_for_timeout(1500)
        ran = any(frame.evaluate("window.ran === 1") for frame in page.frames)
        text: str = page.inner_text("body")
        if folder := os.environ.get("COURSE_SCREENSHOTS"):
            page.screenshot(path=Path(folder, f"{shot}.png"), full_page=True)
    return ran, asked, text


def test_no_script_runs_in_formgrader(course_folder: Path, formgrader: Callable[[], str]) -> None:
    _grade(course_folder)
    ran, asked, text = _opened(formgrader(), shot="formgrader")
    assert "check-" in text, "the page of the submission is not there"
    assert "onerror" in text, "the learner's code is not shown"
    assert not ran
    assert {it.partition(":")[0] for it in asked} <= {"127.0.0.1", "cdnjs.cloudflare.com"}


def test_no_script_runs_in_the_feedback_and_nothing_is_loaded(course_folder: Path) -> None:
    ran, asked, text = _opened(_grade(course_folder).as_uri(), shot="feedback")
    assert "Score: " in text
    assert not ran
    assert asked == {""}


def test_without_the_sanitiser_the_same_submission_runs_scripts_in_formgrader(
    course_folder: Path, formgrader: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "clean_markdown", lambda text: text)
    monkeypatch.setattr(clean, "clean_outputs", lambda outputs: outputs)
    _grade(course_folder)
    assert _opened(formgrader(), shot="unsafe")[0]
