"""`history`, `compare` and `report`: what was played, what changed, and the page of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tiltyard.foundation.files import write_whole
from tiltyard.runs.store import REPORT, load_report, save

Command = Callable[..., Result]
Refusal = Callable[..., str]


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
    assert newest[5:] == ["no", "design-1", "quick"]
    assert rows[1].split()[1] == "open"


def test_history_as_json_has_whole_summaries(
    tiltyard: Command, played: Path, closed_run: Path
) -> None:
    told = json.loads(tiltyard("history", "--store", played, "--json").stdout)
    assert told[0]["run_id"] == closed_run.name
    assert told[0]["final_score"] == load_report(closed_run / REPORT).final_score


def test_where_nothing_was_played_history_says_how_to_begin(tiltyard: Command) -> None:
    done = tiltyard("history")
    assert done.exit_code == 0
    assert "tiltyard evaluate" in done.stdout


def test_compare_tells_where_a_decision_flipped(
    tiltyard: Command, played: Path, open_run: Path, closed_run: Path
) -> None:
    done = tiltyard("compare", open_run.name[:8], closed_run, "--store", played)
    assert done.exit_code == 0, done.output
    lost = done.stdout.split("Defense, findings lost")[1].split("False positives gained")[0]
    assert "they part at call" in lost
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


def test_compare_as_json(tiltyard: Command, open_run: Path, closed_run: Path) -> None:
    told = json.loads(tiltyard("compare", open_run, closed_run, "--json").stdout)
    lost = [one for one in told["findings"] if one["fate"] == "lost" and one["track"] == "defense"]
    assert {one["parting"]["what"] for one in lost} == {"decision"}


def test_a_page_is_written_again(
    tiltyard: Command, played: Path, closed_run: Path, tmp_path: Path
) -> None:
    kept = (closed_run / "report.html").read_bytes()
    done = tiltyard("report", closed_run.name, "--store", played, "--out", tmp_path / "a" / "page")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "page").read_bytes() == kept
    # Without --out it is the run's own.
    copy = save(tmp_path / "copy", {}, load_report(closed_run / REPORT))
    assert tiltyard("report", copy.parent).stdout.strip() == str(copy.with_name("report.html"))
    assert copy.with_name("report.html").read_bytes() == kept


def test_a_page_is_opened_in_a_browser(
    tiltyard: Command, closed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr("webbrowser.open", browse)
    line = "report", closed_run, "--out", tmp_path / "page.html", "--open"
    assert tiltyard(*line).exit_code == 0
    assert opened == [(tmp_path / "page.html").as_uri()]
    second = tiltyard(*line)
    assert second.exit_code == 2
    assert "no browser" in second.stderr


def test_the_schema_describes_every_report(tiltyard: Command) -> None:
    schema = json.loads(tiltyard("report", "--schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "run_id" in schema["$defs"]["Report"]["properties"]


def test_runs_that_cannot_be_had_are_refused_in_a_sentence(
    refusal: Refusal, played: Path, closed_run: Path, tmp_path: Path
) -> None:
    for command in (["report", "zz"], ["compare", "zz", "zz"], ["replay", "zz:A1"]):
        said = refusal(*command, "--store", played)
        assert said.startswith("there is no report 'zz'")
        assert "tiltyard history" in said
    assert "name a run" in refusal("report")
    # A run id that two runs begin with.
    for name in ("ab1", "ab2"):
        save(tmp_path / "twice" / "runs" / name, {}, load_report(closed_run / REPORT))
    said = refusal("report", "ab", "--store", tmp_path / "twice")
    assert said == "'ab' could be any of ab1, ab2; give more digits"


def test_files_that_are_no_reports_are_refused_in_a_sentence(
    refusal: Refusal, closed_run: Path, tmp_path: Path
) -> None:
    old = json.loads((closed_run / REPORT).read_bytes()) | {"schema_version": 0}
    write_whole(tmp_path / "old.json", json.dumps(old).encode())
    write_whole(tmp_path / "torn.json", (closed_run / REPORT).read_bytes()[:500])
    for command in (["report"], ["compare", closed_run], ["replay", "A1", "--run"]):
        said = refusal(*command, tmp_path / "old.json")
        assert "schema version 0" in said
        assert "tiltyard evaluate --fresh" in said
        assert "this is not a report" in refusal(*command, tmp_path / "torn.json")


def test_a_directory_that_cannot_be_written_to(refusal: Refusal, closed_run: Path) -> None:
    # Nobody can write there, root included.
    said = refusal("report", closed_run, "--out", "/proc/nobody/page.html")
    assert "/proc/nobody/page.html cannot be written" in said
    assert "--out" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_run_ids(
    closed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / ".tiltyard" / "runs" / "0123456789abcdef", {}, load_report(closed_run / REPORT))
    monkeypatch.setenv("_TILTYARD_COMPLETE", f"complete_{shell}")
    for typed, offered in (
        ("tiltyard hist", "history"),
        ("tiltyard compare 01", "0123456789abcdef"),
    ):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        assert offered in _completed()


def _completed() -> str:
    line = [Path(sys.executable).with_name("tiltyard")]
    return subprocess.run(line, capture_output=True, text=True, check=True, env=os.environ).stdout
