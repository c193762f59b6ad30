"""The leaderboard's page in a real browser, and its columns in every format."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import expect
from typer.testing import CliRunner

from tiltyard.cli.app import app
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.leaderboard_page import COLUMNS, markdown, page, rows
from tiltyard.reporting.leaderboard_schema import Leaderboard
from tiltyard.reporting.page import relative_link
from tiltyard.reporting.schema import Report, write_report
from tiltyard.runs.store import save_run
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


def column(shown: Any, title: str) -> list[str]:
    at = 1 + [one.title for one in COLUMNS].index(title)
    cells = shown.page.locator(f"#league-1 table >> nth=0 >> tbody tr:visible td:nth-child({at})")
    return [str(text) for text in cells.all_inner_texts()]


def test_the_page_can_be_searched(show: Show) -> None:
    shown = show(page(season()))
    search = shown.page.get_by_label("Search: Standings")
    search.fill("KNIGHT")
    assert column(shown, "name") == ["knights"]
    expect(shown.page.locator("#league-1 output").first).to_have_text("1 of 6")
    search.fill("wardens 315")
    assert column(shown, "name") == ["wardens"]
    search.fill("nobody")
    assert column(shown, "name") == []
    search.fill("")
    assert len(column(shown, "name")) == len(season().boards[0].standings)
    shown.check_quiet()


def test_a_title_sorts_the_page_and_missing_numbers_come_last(show: Show) -> None:
    shown = show(page(season()))
    scores = {one.run.name: one.run.offense for one in season().boards[0].standings}
    ranked = [*scores]
    assert column(shown, "name") == ranked
    played = [name for name in ranked if scores[name] is not None]
    missing = [name for name in ranked if scores[name] is None]
    assert missing
    title = shown.page.locator("#league-1 th", has_text="offense").first
    for direction, sign in (("ascending", 1), ("descending", -1)):
        title.get_by_role("button").click()
        expect(title).to_have_attribute("aria-sort", direction)
        wanted = sorted(played, key=lambda name: sign * (scores[name] or 0))
        assert column(shown, "name") == wanted + missing
    shown.page.locator("#league-1 th", has_text="name").first.get_by_role("button").click()
    assert column(shown, "name") == sorted(ranked)
    shown.check_quiet()


def test_a_phone_sorts_with_a_choice(show: Show) -> None:
    shown = show(page(season()), width=390)
    shown.page.get_by_label("Sort: Standings").select_option("name")
    names = [text.split("\n")[-1] for text in column(shown, "name")]
    assert names == sorted(one.run.name for one in season().boards[0].standings)


@pytest.mark.parametrize("scripts", [True, False])
def test_each_run_links_to_its_report(show: Show, tmp_path: Path, *, scripts: bool) -> None:
    """Names of directories may be hostile: a link must neither break out nor become a script."""
    place = tmp_path / 'javascript:alert(1)"><img src=x onerror=alert(2)>#?'
    place.mkdir()
    targets = {}
    for number, run in enumerate(gather([SEASON / "reports"]).runs):
        target = place / f"{number}.html"
        target.write_text(f"the report of {run.run_id}", encoding="utf-8")
        targets[run.run_id] = relative_link(target, tmp_path / "report.html")
    shown = show(page(season(), targets), java_script_enabled=scripts)
    expect(shown.page.locator("img")).to_have_count(0)
    assert shown.page.locator("table a").count() == len(targets)
    run_id = season().boards[0].standings[0].run.run_id
    shown.page.get_by_role("link", name=run_id).click()
    expect(shown.page.locator("body")).to_have_text(f"the report of {run_id}")
    assert shown.complaints == []


def test_the_command_links_to_the_page_of_a_run_or_to_its_report(
    show: Show, real: Report, tmp_path: Path
) -> None:
    paged, bare = tmp_path / "store/runs/one", tmp_path / "store/runs/two"
    save_run(paged, real)
    other = structs.replace(real, run_id="f" * 16)
    write_whole(bare / "report.json", write_report(other))
    html = tmp_path / "store/leaderboard.html"
    done = CliRunner().invoke(app, ["leaderboard", str(tmp_path / "store"), "--html", str(html)])
    assert done.exit_code == 0
    shown = show(html.read_text(encoding="utf-8"))
    links = {
        link.inner_text(): link.get_attribute("href")
        for link in shown.page.locator("table a").all()
    }
    assert links == {real.run_id: "./runs/one/report.html", "f" * 16: "./runs/two/report.json"}
