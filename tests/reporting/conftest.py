"""A real browser, and real reports to open in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs
from playwright.sync_api import Browser, Page

from small_browser import PATIENCE_MILLISECONDS
from tiltyard.isolation.host.failures import FailureKind, Phase
from tiltyard.reporting.report_page import render
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import BrokenMatch, Report, read_report


class Shown(Struct):
    """An open page, with its console messages, dialogs and network requests."""

    page: Page
    complaints: list[str]
    requests: list[str]

    def check_quiet(self) -> None:
        assert self.complaints == []
        assert self.requests == []


Show = Callable[..., Shown]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Return a function that opens HTML in a new page."""
    contexts = []

    def opened(html: str, *, width: int = 1200, **options: Any) -> Shown:
        file = tmp_path / "report.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = context.new_page()
        shown = Shown(page, [], [])
        page.on("console", lambda said: shown.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        page.on("dialog", lambda dialog: shown.complaints.append(f"dialog: {dialog.message}"))
        page.on("popup", lambda popup: shown.complaints.append(f"popup: {popup.url}"))
        page.on(
            "request",
            lambda request: (
                shown.requests.append(request.url) if request.url != file.as_uri() else None
            ),
        )
        page.goto(file.as_uri())
        page.wait_for_function(
            "[...document.querySelectorAll('.canvas')].every((plot) => plot.childElementCount)"
        )
        return shown

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def real() -> Report:
    return read_report((Path(__file__).parent / "real.json").read_bytes())


@pytest.fixture(scope="session")
def page_of_real(real: Report) -> str:
    return render(real)


@pytest.fixture(scope="session")
def official(real: Report) -> Report:
    """Return the restricted report of an official run over three seeds."""
    setting = structs.replace(real.setting, official_seeds=3, key="0123456789abcdef")
    assert real.offense is not None
    offense = structs.replace(real.offense, cores=6.67, unique_cells=9.33, found=())
    return restricted(structs.replace(real, setting=setting, offense=offense))


@pytest.fixture(scope="session")
def broken_off(real: Report) -> Report:
    """Return a report of a defense match that failed, without an offense match."""
    failure = BrokenMatch(
        track="defense",
        kind=FailureKind.RUN,
        message="the guardrail raised KeyError in decide",
        phase=Phase.DECIDE,
        tool="http.post",
        file="guardrail.py",
        line=7,
        traceback='  File "guardrail.py", line 7, in decide\n    tool_args["nope"]\nKeyError: nope',
        output="first call\nsecond call",
    )
    return structs.replace(
        real, offense=None, defense=None, final_score=None, failures=(failure,), comparable=False
    )
