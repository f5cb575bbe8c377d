"""The pages that grading writes, in Chromium: the report about a class, a learner's feedback."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.cli.demo import rehearse
from course.grading import class_files
from course.sandbox import profiles

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
axe = pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python")
pytestmark = pytest.mark.browser

AXE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[2]
CHAPTER = "01_tensors"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of the rehearsal class: its report, and the feedback of who is in trouble."""
    if profiles.best() is None:
        pytest.skip("this machine has no sandbox")
    folder = tmp_path_factory.mktemp("demo") / "school"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_ROOT", str(ROOT))
        rehearse(CHAPTER, folder)
        patch.setenv("COURSE_ROOT", str(folder / "class"))
        report, _ = class_files.write(folder / "class", CHAPTER)
    feedback = folder / "class" / "course" / "feedback" / "troubled" / CHAPTER
    return [report, feedback / f"{CHAPTER}.html"]


@pytest.mark.parametrize("number", [0, 1], ids=["report", "feedback"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
def test_a_page_is_accessible_narrow_and_wide_light_and_dark_and_asks_nobody(
    pages: list[Path], browser: playwright.Browser, number: int, scheme: str, width: int
) -> None:
    # axe is a script, which the page's own policy forbids
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[number].as_uri())
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [
        violation["id"] for violation in found if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    colours = "getComputedStyle(document.body).backgroundColor"
    assert (
        page.evaluate(colours) == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    )
    context.close()


def test_links_and_folded_parts_are_reached_by_keyboard(
    pages: list[Path], browser: playwright.Browser
) -> None:
    for path in pages:
        page = browser.new_page()
        page.goto(path.as_uri())
        reached = set()
        for _ in range(8):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.tagName"))
        assert reached & {"A", "SUMMARY"}
        page.close()


def test_a_link_leads_to_the_answer(pages: list[Path], browser: playwright.Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(pages[1].as_uri())
    link = page.locator("nav a").nth(2)
    id = (link.get_attribute("href") or "").removeprefix("#")
    link.click()
    box = page.locator(f"[id='{id}'] .input_area").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 200
    page.close()
