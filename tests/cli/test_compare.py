"""`tiltyard compare`."""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from tiltyard.runs.store import REPORT, load_report, save

Command = Callable[..., Result]


def test_compare_prints_the_decision_that_changed(
    tiltyard: Command, played: Path, open_run: Path, closed_run: Path
) -> None:
    done = tiltyard("compare", open_run.name[:8], closed_run, "--store", played)
    assert done.exit_code == 0, done.output
    lost = done.stdout.split("Defense, findings lost")[1].split("False positives gained")[0]
    assert "the traces differ at call" in lost
    assert "before: allow" in lost
    assert "after:  deny: " in lost
    assert "after untrusted input" in lost
    gained = done.stdout.split("False positives gained")[1]
    assert "stopped: " in gained
    scores = next(line for line in done.stdout.splitlines() if line.startswith("defense score"))
    before, after = (load_report(at / REPORT).defense for at in (open_run, closed_run))
    assert before is not None
    assert after is not None
    assert f"{after.score - before.score:+.2f}" == scores.split()[-1]


def test_compare_takes_the_newest_runs(
    tiltyard: Command, refusal: Callable[..., str], played: Path, open_run: Path, closed_run: Path
) -> None:
    named = tiltyard("compare", open_run, closed_run, "--json").stdout
    assert tiltyard("compare", "--store", played, "--json").stdout == named
    assert tiltyard("compare", open_run, "--store", played, "--json").stdout == named
    alone = played.parent / "alone"
    save(alone / "runs" / closed_run.name, {}, load_report(closed_run / REPORT))
    assert "only one finished run" in refusal("compare", "--store", alone)


def test_compare_as_json(tiltyard: Command, open_run: Path, closed_run: Path) -> None:
    told = json.loads(tiltyard("compare", open_run, closed_run, "--json").stdout)
    lost = [one for one in told["findings"] if one["fate"] == "lost" and one["track"] == "defense"]
    assert {one["divergence"]["what"] for one in lost} == {"decision"}
