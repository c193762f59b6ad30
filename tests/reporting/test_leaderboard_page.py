"""The leaderboard's page in a real browser, and its columns in every format."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import expect

from tiltyard.reporting.leaderboard_page import COLUMNS, markdown, page, rows
from tiltyard.reporting.leaderboard_schema import Leaderboard
from tiltyard.standings.leaderboard import make_leaderboard, read_disqualified
from tiltyard.standings.report_set import ReportSet, gather

Show = Callable[..., Any]
SEASON = Path(__file__).parents[2] / "docs/season"
HOSTILE = "</noscript></script><img src=x onerror=alert(1)>| *b* \u202e"


@cache
def season() -> Leaderboard:
    reasons = read_disqualified(SEASON / "disqualified.toml")
    return make_leaderboard(gather([SEASON / "reports"]), reasons)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_every_column_and_run(show: Show, scheme: str) -> None:
    shown = show(page(season()), color_scheme=scheme)
    standings = shown.page.locator("#league-1 table").first
    titles = standings.locator("thead th").all_inner_texts()
    assert titles == [column.title for column in COLUMNS]
    (board,) = season().boards
    assert standings.locator("tbody tr").count() == len(board.standings)
    expect(shown.page.locator("#league-1")).to_contain_text(board.disqualified[0].reason)
    expect(shown.page.locator("#apart")).to_contain_text("the budget is quick")
    shown.check_quiet()


@pytest.mark.parametrize("width", [390, 768, 1200])
def test_the_page_fits_every_screen(show: Show, width: int) -> None:
    shown = show(page(season()), width=width)
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_names_are_shown_as_text(show: Show, *, scripts: bool) -> None:
    runs = tuple(structs.replace(run, name=HOSTILE) for run in gather([SEASON / "reports"]).runs)
    shown = show(page(make_leaderboard(ReportSet(runs))), java_script_enabled=scripts)
    expect(shown.page.locator("img")).to_have_count(0)
    expect(shown.page.locator("table").first).to_contain_text("<img src=x")
    shown.check_quiet()


def test_markdown_has_the_same_columns() -> None:
    (board,) = season().boards
    table = [line for line in markdown(season()).splitlines() if line.startswith("|")]
    assert table[0] == f"| {' | '.join(column.title for column in COLUMNS)} |"
    assert table[2] == f"| {' | '.join(rows(board)[0])} |"
    assert len(table) == 2 + len(board.standings)
