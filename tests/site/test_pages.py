"""The built site, as `make site` leaves it: links, answers, and every page in Chromium."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import test_staging

import tensorkit

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
axe = pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python")

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))
AXE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not PAGES, reason="needs the built site: make site"),
]


class Page(HTMLParser):
    """A page's links, the names that links can lead to, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to and which name it has."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text += data


@cache
def read(path: Path) -> Page:
    return Page(path)


def broken(name: str) -> list[str]:
    """The links of a page that lead to no file or to no place in it."""
    found = []
    for link in read(SITE / name).links:
        parts = urlsplit(urljoin(f"http://site/{name}", link))
        if parts.netloc != "site" or parts.scheme != "http":
            continue
        path = SITE / unquote(parts.path).lstrip("/")
        path = path / "index.html" if path.is_dir() else path
        place = unquote(parts.fragment)
        if not path.is_file() or (place and place not in read(path).anchors):
            found.append(link)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_every_link_inside_leads_somewhere(name: str) -> None:
    assert broken(name) == []


def test_what_the_site_is_for_is_there() -> None:
    wanted = [f"notebooks/{chapter}/{chapter}.html" for chapter in test_staging.CHAPTERS]
    guides = ["gallery", "learners", "instructors", "grading", "glossary"]
    wanted += [f"docs/{guide}.html" for guide in guides]
    assert {*wanted, "index.html", "search.html", "api/index.html"} <= set(PAGES)


def library_lines() -> set[str]:
    """The lines of tensorkit's source."""
    files = Path(tensorkit.__file__).parent.rglob("*.py")
    return {line.strip() for path in files for line in path.read_text("utf-8").splitlines()}


@pytest.mark.parametrize("chapter", test_staging.CHAPTERS)
def test_no_page_shows_an_answer(chapter: str) -> None:
    own = read(SITE / f"notebooks/{chapter}/{chapter}.html").text
    # a chapter ends with a piece of the library; a short line of it may stand in an answer too
    own_lines = {line.strip() for line in own.splitlines()} - library_lines()
    everywhere = [(page, read(SITE / page).text) for page in PAGES if page.startswith("notebooks/")]
    for line in test_staging.answer_lines(chapter):
        assert line not in own_lines
        for name, text in everywhere:
            assert len(line) < 30 or line not in text, f"{name}: {line}"


@pytest.mark.parametrize("chapter", test_staging.CHAPTERS)
def test_a_page_shows_what_its_teaching_cells_print(chapter: str) -> None:
    page = SITE / f"notebooks/{chapter}/{chapter}.html"
    text, html = read(page).text, page.read_text(encoding="utf-8")
    n_pictures = 0
    for cell in test_staging.notebook("notebooks", chapter)["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                assert "".join(output["text"]).strip() in text
            elif "text/html" in output["data"]:
                n_pictures += "".join(output["data"]["text/html"]).count("data:image/svg+xml")
    assert html.count("data:image/svg+xml;base64") == n_pictures > 0


# in Chromium


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.fail("The site is checked in Chromium, which is not here: apt install chromium")
    options = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=options)
        yield started
        started.close()


def serious(page: playwright.Page) -> list[str]:
    """What axe finds wrong with a page, if it is serious or critical."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{violation['id']} ({violation['impact']}): {violation['nodes'][0]['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_narrow_and_wide_light_and_dark_and_asks_nobody_else(
    name: str, address: str, browser: playwright.Browser
) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    problems: list[str] = []
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            page.goto(address + name)
            page.wait_for_load_state("networkidle")
            problems += [f"{width}, {scheme}: {problem}" for problem in serious(page)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{width}, {scheme}: the page is wider than the screen")
    page.close()
    assert problems == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_axe_finds_a_picture_without_words(browser: playwright.Browser) -> None:
    page = browser.new_page()
    page.set_content("<html lang='en'><title>x</title><main><img src='data:,'></main></html>")
    assert any("image-alt" in problem for problem in serious(page))
    page.close()


def test_the_search_finds_a_word(address: str, browser: playwright.Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    page.goto(address)
    field = page.get_by_role("searchbox").or_(page.get_by_placeholder("Search")).first
    field.fill("unbroadcast")
    field.press("Enter")
    page.locator("#search-results a").first.wait_for()
    found = [link.get_attribute("href") for link in page.locator("#search-results li a").all()]
    assert any("05_autograd" in (url or "") for url in found)
    page.close()


def test_the_colours_follow_the_system_and_the_button(
    address: str, browser: playwright.Browser
) -> None:
    def brightness() -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    page = browser.new_page(viewport={"width": 1280, "height": 844}, color_scheme="dark")
    page.goto(address)
    assert brightness() < 200
    page.emulate_media(color_scheme="light")
    assert brightness() > 600
    seen = set()
    for _ in range(3):
        page.locator(".theme-toggle:visible").first.click()
        seen.add(brightness() > 300)
    assert seen == {True, False}
    page.close()
