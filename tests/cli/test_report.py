"""`tiltyard report`, and how every command refuses runs that it cannot read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tiltyard.foundation.files import write_whole
from tiltyard.runs.store import REPORT, load_report, save

Command = Callable[..., Result]
Refusal = Callable[..., str]


def test_a_page_is_written_again(
    tiltyard: Command, played: Path, closed_run: Path, tmp_path: Path
) -> None:
    kept = (closed_run / "report.html").read_bytes()
    done = tiltyard("report", closed_run.name, "--store", played, "--out", tmp_path / "a" / "page")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "page").read_bytes() == kept
    # Without --out, the run's own page is written.
    copy = save(tmp_path / "copy", {}, load_report(closed_run / REPORT))
    assert tiltyard("report", copy.parent).stdout.strip() == str(copy.with_name("report.html"))
    assert copy.with_name("report.html").read_bytes() == kept


def test_a_practice_page_speaks_of_no_means(closed_run: Path) -> None:
    page = (closed_run / "report.html").read_text(encoding="utf-8")
    assert "How the score is calculated" in page
    assert "means over" not in page


def test_without_a_run_the_newest_page_is_written(
    tiltyard: Command, closed_run: Path, open_run: Path, tmp_path: Path
) -> None:
    for run in (open_run, closed_run):
        path = save(tmp_path / ".tiltyard/runs" / run.name, {}, load_report(run / REPORT))
        age = {open_run: 100, closed_run: 0}[run]
        os.utime(path, (1_000_000_000 - age,) * 2)
    done = tiltyard("report")
    assert done.stdout.strip() == f".tiltyard/runs/{closed_run.name}/report.html"


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


def test_unknown_and_ambiguous_runs_are_refused(
    refusal: Refusal, played: Path, closed_run: Path, tmp_path: Path
) -> None:
    for command in (["report", "zz"], ["compare", "zz", "zz"], ["replay", "zz:A1"]):
        said = refusal(*command, "--store", played)
        assert said.startswith("there is no report 'zz'")
        assert "tiltyard history" in said
    for name in ("report", "compare"):
        assert "no finished runs" in refusal(name)
    # Two runs begin with these digits.
    for name in ("ab1", "ab2"):
        save(tmp_path / "twice" / "runs" / name, {}, load_report(closed_run / REPORT))
    said = refusal("report", "ab", "--store", tmp_path / "twice")
    assert said == "'ab' could be any of ab1, ab2; give more digits"


def test_files_that_are_not_reports_are_refused(
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


def test_an_unwritable_directory_is_refused(refusal: Refusal, closed_run: Path) -> None:
    # Nobody can write there, root included.
    said = refusal("report", closed_run, "--out", "/proc/nobody/page.html")
    assert "cannot write /proc/nobody/page.html" in said
    assert "--out" in said
