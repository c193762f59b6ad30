"""A real browser for the tests of pages."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

# Long enough for a slow machine.
PATIENCE_MILLISECONDS = 60_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return Chromium. It ends with the module: its event loop would disturb other modules."""
    path = shutil.which("chromium")
    assert path, "pages are tested in Chromium, and there is none: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()
