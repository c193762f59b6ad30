"""The monitor's page in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import expect

from tiltyard.reporting.monitor_page import page
from tiltyard.standings.leaderboard import make_leaderboard
from tiltyard.standings.monitoring import monitor
from tiltyard.standings.report_set import ReportSet, gather

Show = Callable[..., Any]
SEASON = Path(__file__).parents[2] / "docs/season/reports"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_draws_without_errors(show: Show, scheme: str) -> None:
    field = gather([SEASON])
    (board,) = make_leaderboard(field).boards
    shown = show(page([monitor(board)], ["A remark."]), color_scheme=scheme)
    expect(shown.page.locator(".canvas")).to_have_count(4)
    # One point for each run that played both matches, over the frames of four strategies.
    played_both = [run for run in field.comparable if None not in (run.offense, run.defense)]
    points = shown.page.locator(".canvas .mark-symbol.role-mark path")
    expect(points).to_have_count(len(played_both))
    expect(shown.page.locator(".canvas .mark-rect.role-mark path").first).to_be_visible()
    expect(shown.page.locator("#remarks-0, #remarks")).to_contain_text("A remark.")
    shown.check_quiet()


@pytest.mark.parametrize("width", [360, 768, 900, 1200])
def test_nothing_is_cut_or_overflows(show: Show, width: int) -> None:
    (board,) = make_leaderboard(gather([SEASON])).boards
    browser = show(page([monitor(board)]), width=width).page
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    wider = browser.locator("main .table, nav ul, .subtitle, .lead").evaluate_all(
        "(all) => all.filter((one) => one.scrollWidth > one.clientWidth)"
        ".map((one) => one.className)"
    )
    assert wider == []
    expect(browser.locator("header .more, .lead .more")).to_have_count(0)
    cut = browser.locator(".canvas").evaluate_all(
        "(all) => all.flatMap((one) => [...one.querySelectorAll('text')].filter((text) =>"
        " text.getBoundingClientRect().right > one.getBoundingClientRect().right + 1)"
        ".map((text) => text.textContent))"
    )
    assert cut == []


def test_markup_in_a_name_is_shown_as_text(show: Show) -> None:
    name = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    runs = tuple(structs.replace(run, name=name) for run in gather([SEASON]).comparable)
    (board,) = make_leaderboard(ReportSet(runs)).boards
    shown = show(page([monitor(board)]))
    expect(shown.page.locator("img")).to_have_count(0)
    shown.check_quiet()
