"""`tiltyard history`."""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from tiltyard.runs.store import REPORT, load_report

Command = Callable[..., Result]


def test_history_has_the_newest_run_first(
    tiltyard: Command, played: Path, closed_run: Path
) -> None:
    head, *rows = tiltyard("history", "--store", played).stdout.splitlines()
    columns = "run", "submission", "final", "offense", "defense", "comparable", "ruleset", "budget"
    assert tuple(head.split()) == columns
    report = load_report(closed_run / REPORT)
    assert report.defense is not None
    newest = rows[0].split()
    assert newest[:2] == [closed_run.name, "closed"]
    assert newest[4] == f"{report.defense.score:.2f}".removesuffix(".00")
    assert newest[5:] == ["no", "design-2", "quick"]
    assert rows[1].split()[1] == "open"


def test_history_as_json_has_whole_summaries(
    tiltyard: Command, played: Path, closed_run: Path
) -> None:
    told = json.loads(tiltyard("history", "--store", played, "--json").stdout)
    assert told[0]["run_id"] == closed_run.name
    assert told[0]["final_score"] == load_report(closed_run / REPORT).final_score


def test_history_of_an_empty_store_says_how_to_begin(tiltyard: Command) -> None:
    done = tiltyard("history")
    assert done.exit_code == 0
    assert "tiltyard evaluate" in done.stdout
