"""JupyterLab as a learner and an instructor meet it, driven by keyboard and mouse in Chromium.

Run by `make browser-test`; the screenshots go to the folder that COURSE_SCREENSHOTS names. The
fixtures are the stages of one visit, each seen once: `lab` opens the first chapter, `run_all` runs
it, `answered` types two answers, `validated` presses Validate, `teaching` opens nbgrader's tabs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from course.cli.demo import first_for_a_class
from course.cli.demo_learners import mistaken_in
from course.notebook import exercise
from course.notebook.check import judge
from course.notebook.exercise import Exercise, Prediction
from course.shared import paths
from course.shared.settings import settings

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install playwright"
)

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
CHAPTER = first_for_a_class(paths.released_chapters(ROOT))
EXERCISES = exercise.load(CHAPTER)
WRONG = mistaken_in(list(EXERCISES.values()))
RIGHT = next(
    definition
    for definition in EXERCISES.values()
    if definition is not WRONG.exercise
    and definition.points
    and not isinstance(definition, Prediction)
)
STARTED = (RIGHT.id, WRONG.exercise.id)

OPTIONS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
)
SECONDS = 1000
"""Playwright counts in milliseconds."""


@dataclass
class Lab:
    """The page on which JupyterLab is open, and what was noticed on the way."""

    page: playwright.Page
    screenshots: Path
    cells: Mapping[str, int]
    """Position of a cell in the notebook by its grade id: `strides-of`, `check-strides-of`."""
    asked: set[str] = field(default_factory=set)
    """Hosts that the browser asked for anything."""
    complaints: list[str] = field(default_factory=list)
    """Errors in the browser's console."""

    def cell(self, grade_id: str) -> playwright.Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.cells[grade_id])

    def output(self, grade_id: str) -> playwright.Locator:
        return self.cell(grade_id).locator(".jp-OutputArea-output")

    def run(self, grade_id: str) -> None:
        """Run one cell with the keyboard and wait for it."""
        cell = self.cell(grade_id)
        before = cell.locator(".jp-InputPrompt").inner_text()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputPrompt")
        playwright.expect(prompt).not_to_have_text(before, timeout=20 * SECONDS)
        playwright.expect(prompt).to_have_text(NUMBERED, timeout=20 * SECONDS)

    def type_into(self, grade_id: str, source: str) -> None:
        """Replace the text of a cell, key by key."""
        editor = self.cell(grade_id).locator(".cm-content")
        editor.click()
        keyboard = self.page.keyboard
        keyboard.press("Control+A")
        for number, line in enumerate(source.splitlines()):
            if number:
                keyboard.press("Enter")
                keyboard.press("Shift+Home")  # over the indentation that the editor has made
            keyboard.type(line) if line else keyboard.press("Delete")
        typed = [line.rstrip() for line in editor.locator(".cm-line").all_inner_texts()]
        assert typed == [line.rstrip() for line in source.splitlines()]

    def choose(self, *names: str) -> None:
        """Choose from the menu bar: a menu, its entry, the entry's entry."""
        menu, *entries = names
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        for entry in entries:
            shown = self.page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True)
            shown.last.click()

    def shoot(self, name: str) -> None:
        self.page.mouse.move(640, 5)  # nothing hovers
        self.page.screenshot(path=self.screenshots / f"{name}.png")


NUMBERED = re.compile(r"^\[\d+\]:$")


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder of its own, in which the chapter is released."""
    folder = tmp_path_factory.mktemp("course").resolve()
    for name in ("notebooks", "solutions"):
        shutil.copytree(ROOT / name, folder / name)
    command = [sys.executable, "-m", "nbgrader", "release_assignment", CHAPTER]
    subprocess.run(command, env=_environment(folder), check=True, capture_output=True)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    jupyter = folder / ".jupyter"
    return {
        **{name: value for name, value in os.environ.items() if name != "COURSE_EXCHANGE"},
        "COURSE_ROOT": str(folder),
        "JUPYTER_CONFIG_DIR": str(jupyter / "config"),
        "JUPYTER_DATA_DIR": str(jupyter / "data"),
        "JUPYTER_RUNTIME_DIR": str(jupyter / "runtime"),
        "IPYTHONDIR": str(jupyter / "ipython"),
    }


@pytest.fixture(scope="module")
def address(course_folder: Path) -> Iterator[str]:
    """The address that `course lab` prints, as `make lab` calls it, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "course", "lab", "--port", str(port), "--browser", "none"]
    log = course_folder / "server.txt"
    with (
        log.open("w", encoding="utf-8") as said,
        subprocess.Popen(
            command,
            env=_environment(course_folder),
            cwd=course_folder.parent,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            printed = next(
                (match[0] for line in lines if (match := re.search(r"http://\S+", line))), None
            )
            assert printed, log.read_text(encoding="utf-8")
            yield printed
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def lab(
    chromium: str, address: str, course_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """JupyterLab, open on CHAPTER at the address that `course lab` printed for the first one."""
    named = os.environ.get("COURSE_SCREENSHOTS")
    screenshots = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    screenshots.mkdir(parents=True, exist_ok=True)
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=[*OPTIONS, *(["--no-sandbox"] if is_root else [])]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        lab = Lab(page, screenshots, _positions(course_folder))
        page.context.on("request", lambda request: lab.asked.add(urlsplit(request.url).netloc))
        page.on("pageerror", lambda error: lab.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: lab.complaints.append(said.text) if said.type == "error" else None,
        )
        first = paths.released_chapters(course_folder)[0]
        assert first in address
        page.goto(address.replace(first, CHAPTER))
        playwright.expect(page.locator(".jp-Notebook .jp-Cell").first).to_be_visible(
            timeout=60 * SECONDS
        )
        playwright.expect(page.get_by_text("| Idle")).to_be_visible(timeout=60 * SECONDS)
        lab.shoot("1 opened")
        yield lab
        browser.close()


def _positions(course_folder: Path) -> dict[str, int]:
    released = paths.notebook_in(paths.notebooks(course_folder), CHAPTER)
    cells = json.loads(released.read_text(encoding="utf-8"))["cells"]
    marks = (cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells)
    return {grade_id: position for position, grade_id in enumerate(marks) if grade_id}


@dataclass(frozen=True)
class RunAll:
    """The page after Run All Cells: what each check says, and the errors in any output."""

    reports: Mapping[str, str]
    errors: list[str]


@pytest.fixture(scope="module")
def run_all(lab: Lab) -> RunAll:
    lab.choose("Run", "Run All Cells")
    prompts = lab.page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt")
    playwright.expect(prompts.last).to_have_text(NUMBERED, timeout=120 * SECONDS)
    playwright.expect(lab.page.get_by_text("| Idle")).to_be_visible(timeout=60 * SECONDS)
    assert all(NUMBERED.match(text) for text in prompts.all_text_contents())
    last = list(EXERCISES)[-1]
    playwright.expect(lab.output(f"check-{last}")).to_be_visible(timeout=60 * SECONDS)
    lab.shoot("2 run all")
    errors = lab.page.locator('.jp-Notebook [data-mime-type="application/vnd.jupyter.error"]')
    return RunAll(
        {id: lab.output(f"check-{id}").text_content() or "" for id in EXERCISES},
        errors.all_text_contents(),
    )


@pytest.fixture(scope="module")
def answered(lab: Lab, run_all: RunAll) -> Lab:
    """The page after one right answer and one usual mistake were typed, run and checked."""
    for definition, source in ((RIGHT, RIGHT.solution_source), (WRONG.exercise, WRONG.text)):
        lab.type_into(definition.id, source)
        lab.run(definition.id)
        lab.run(f"check-{definition.id}")
        lab.output(f"check-{definition.id}").scroll_into_view_if_needed()
        lab.shoot(f"3 {'right' if definition is RIGHT else 'wrong'} answer")
    _use_theme(lab, "JupyterLab Dark")
    lab.shoot("4 wrong answer, dark theme")
    _use_theme(lab, "JupyterLab Light")
    return lab


def _use_theme(lab: Lab, name: str) -> None:
    lab.choose("Settings", "Theme", name)
    body = lab.page.locator("body")
    playwright.expect(body).to_have_attribute("data-jp-theme-name", name, timeout=20 * SECONDS)
    lab.page.wait_for_timeout(500)  # the colours fade in


@pytest.fixture(scope="module")
def validated(answered: Lab) -> str:
    """The text of the dialog that Validate opens."""
    answered.page.get_by_text("Validate", exact=True).click()
    dialog = answered.page.get_by_role("dialog")
    playwright.expect(dialog).to_contain_text("Validat", timeout=90 * SECONDS)
    playwright.expect(dialog.get_by_role("button")).to_be_visible(timeout=90 * SECONDS)
    answered.page.wait_for_timeout(300)
    answered.shoot("5 validate")
    text: str = dialog.inner_text()
    dialog.get_by_role("button").last.click()
    return text


def test_the_file_list_shows_every_chapter(lab: Lab, course_folder: Path) -> None:
    shown = lab.page.locator(".jp-DirListing-item .jp-DirListing-itemName")
    playwright.expect(shown).to_have_text(paths.released_chapters(course_folder))


def test_run_all_meets_no_exception(run_all: RunAll) -> None:
    assert run_all.errors == []


@pytest.mark.parametrize("asked", EXERCISES.values(), ids=EXERCISES.keys())
def test_every_exercise_is_not_started_after_run_all(asked: Exercise, run_all: RunAll) -> None:
    points = f" (0 of {asked.points:g} point" if asked.points else ""
    assert f"not started{points}" in run_all.reports[asked.id]


CUT = """image => {
    const box = image.parentElement, hint = parseFloat(getComputedStyle(box, "::before").width)
    return (box.scrollWidth > box.clientWidth) != (hint > 100)
}"""
"""Whether a picture does not fit without a word, or fits and words say that it does not."""


@pytest.fixture
def narrow(lab: Lab, run_all: RunAll) -> Iterator[Lab]:
    """The page on a telephone, with the file list closed."""
    usual = lab.page.viewport_size
    lab.page.set_viewport_size({"width": 390, "height": 844})
    lab.choose("View", "Appearance", "Show Left Sidebar")
    lab.page.wait_for_timeout(500)
    yield lab
    lab.choose("View", "Appearance", "Show Left Sidebar")
    lab.page.set_viewport_size(usual)


def test_a_picture_that_is_wider_than_a_telephone_says_that_it_scrolls(narrow: Lab) -> None:
    pictures = narrow.page.locator("img.tk-picture")
    scrolled = pictures.locator("xpath=ancestor::*[contains(@class, 'tk-scroll')]")
    assert 0 < scrolled.count() < pictures.count()
    assert not any(picture.evaluate(CUT) for picture in pictures.all())


def _table(lab: Lab, asked: Exercise) -> playwright.Locator:
    """The table under an exercise's check, found by its accessible name."""
    name = asked.title.replace("`", "")
    return lab.cell(f"check-{asked.id}").get_by_role("table", name=name).first


def test_a_right_answer_gets_a_table_with_full_points(answered: Lab) -> None:
    table = _table(answered, RIGHT)
    points = f"{RIGHT.points:g} of {RIGHT.points:g} point"
    playwright.expect(table.locator("caption")).to_contain_text(points)
    cases = len(judge(RIGHT, RIGHT.reference).rows)
    assert table.get_by_role("rowheader", name="passed").count() == cases


def test_a_usual_mistake_is_named_above_its_table(answered: Lab) -> None:
    table = _table(answered, WRONG.exercise)
    points = f"{WRONG.points:g} of {WRONG.exercise.points:g} point"
    playwright.expect(table.locator("caption")).to_contain_text(points)
    message = WRONG.mistake.message.replace("`", "")
    playwright.expect(table.locator("caption")).to_contain_text(message)


def test_the_first_failing_case_is_unfolded_and_the_others_are_not(answered: Lab) -> None:
    cases = _table(answered, WRONG.exercise).locator("details")
    assert [case.get_attribute("open") is not None for case in cases.all()] == [
        position == 0 for position in range(cases.count())
    ]


def test_validate_lists_what_is_still_to_do(validated: str) -> None:
    listed = re.findall(r'check\("([\w-]+)"\)', validated)
    assert listed == [id for id in EXERCISES if id != RIGHT.id]
    assert validated.count(": not started") == len(EXERCISES) - len(STARTED)
    message = WRONG.mistake.message
    assert " ".join(message.split()) in " ".join(validated.split())


TABS = {
    "Formgrader": ("#formgrader", CHAPTER),
    "Assignment List": ("#nbgrader-assignment-list", CHAPTER),
    "Course List": ("#nbgrader-course-list", settings().course_id),
}
"""Entries of the menu Nbgrader, each with the tab that it opens and what is awaited there."""


@pytest.fixture(scope="module")
def teaching(lab: Lab, validated: str) -> Mapping[str, str]:
    """The texts of the tabs that the menu Nbgrader opens, once they have answered."""
    texts = {}
    for name, (tab, awaited) in TABS.items():
        lab.choose("Nbgrader", name)
        place = lab.page.locator(tab)
        inside = place.frame_locator("iframe").locator("body") if name == "Formgrader" else place
        link = inside.locator("a", has_text=awaited).first
        playwright.expect(link).to_be_visible(timeout=30 * SECONDS)
        lab.shoot(f"{6 + len(texts)} {name.lower()}")
        texts[name] = inside.inner_text()
    return texts


def test_formgrader_knows_the_released_chapter(teaching: Mapping[str, str]) -> None:
    row = re.search(rf"^{CHAPTER}\b.*", teaching["Formgrader"], re.MULTILINE)
    assert row is not None
    assert "released" in teaching["Formgrader"][row.start() :]


def test_assignment_list_offers_to_submit_the_chapter(teaching: Mapping[str, str]) -> None:
    fetched, _, _ = teaching["Assignment List"].partition("Submitted assignments")
    assert CHAPTER in fetched.partition("Downloaded assignments")[2]
    assert "Submit" in fetched.partition("Downloaded assignments")[2]


def test_course_list_knows_the_course(teaching: Mapping[str, str]) -> None:
    assert settings().course_id in teaching["Course List"]


def test_no_news_pop_up(teaching: object, lab: Lab) -> None:
    assert lab.page.locator(".Toastify__toast").all_inner_texts() == []


def test_the_browser_asks_this_machine_only(teaching: object, lab: Lab, address: str) -> None:
    assert lab.asked - {""} == {urlsplit(address).netloc}


def test_the_browsers_console_shows_no_error(teaching: object, lab: Lab) -> None:
    assert lab.complaints == []
