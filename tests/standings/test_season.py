"""The season that the organizers' page shows everything with: real reports of real submissions."""

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.standings.leaderboard import make_leaderboard
from tiltyard.standings.monitoring import monitor
from tiltyard.standings.report_set import gather
from tiltyard.submissions import open_submission

DOCS: Final = Path(__file__).parents[2] / "docs"
SEASON: Final = DOCS / "season"


@pytest.mark.parametrize("source", sorted((SEASON / "submissions").iterdir()), ids=lambda p: p.name)
def test_its_reports_are_of_its_submissions(tmp_path: Path, source: Path) -> None:
    (run,) = gather([SEASON / "reports" / f"{source.name}.json"]).runs
    assert run.submission == open_submission(source, tmp_path / "opened").digest
    assert bool(run.why_not) == (source.name == "pages"), "make season"


def test_every_strategy_is_in_it() -> None:
    (board,) = make_leaderboard(gather([SEASON / "reports"])).boards
    fared = {one.strategy: one.count for one in monitor(board).strategies}
    assert min(fared.values()) >= 1


def test_the_page_shows_what_the_command_prints() -> None:
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
