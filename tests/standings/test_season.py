"""docs/season: the reports and submissions that the organizers' page uses as its example."""

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tiltyard.cli.app import app
from tiltyard.standings.leaderboard import make_leaderboard
from tiltyard.standings.monitoring import monitor
from tiltyard.standings.report_set import gather
from tiltyard.submissions import open_submission

DOCS: Final = Path(__file__).parents[2] / "docs"
SEASON: Final = DOCS / "season"


@pytest.mark.parametrize("source", sorted((SEASON / "submissions").iterdir()), ids=lambda p: p.name)
def test_each_report_belongs_to_its_submission(tmp_path: Path, source: Path) -> None:
    (run,) = gather([SEASON / "reports" / f"{source.name}.json"]).runs
    assert run.submission == open_submission(source, tmp_path / "opened").digest
    assert bool(run.why_not) == (source.name == "pages"), "make season"


def test_the_season_has_every_strategy() -> None:
    (board,) = make_leaderboard(gather([SEASON / "reports"])).boards
    fared = {one.strategy: one.count for one in monitor(board).strategies}
    assert min(fared.values()) >= 1


def test_the_organizers_page_shows_the_printed_leaderboard() -> None:
    args = [
        "leaderboard",
        str(SEASON / "reports"),
        "--disqualified",
        str(SEASON / "disqualified.toml"),
        "--markdown",
    ]
    printed = CliRunner().invoke(app, args).stdout
    table = [line for line in printed.splitlines() if line.startswith("|")]
    page = (DOCS / "running-a-competition.md").read_text(encoding="utf-8")
    assert len(table) == 2 + 6
    assert "\n".join(table) in page
    assert (SEASON / "disqualified.toml").read_text(encoding="utf-8").splitlines()[1] in page
