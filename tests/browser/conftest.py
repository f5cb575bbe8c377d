"""The browser of all these tests, which are skipped at once where there is none."""

import shutil

import pytest


@pytest.fixture(scope="session", autouse=True)
def chromium() -> str:
    """The program of the system's browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("needs Chromium: apt install chromium")
    return found
