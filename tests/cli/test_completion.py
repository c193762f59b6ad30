"""Shell completion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiltyard.runs.store import REPORT, load_report, save


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_runs_opponents_and_findings(
    closed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / ".tiltyard" / "runs" / "0123456789abcdef", {}, load_report(closed_run / REPORT))
    report = load_report(closed_run / REPORT)
    assert report.defense is not None
    failed = next(trial.id for trial in report.defense.trials if trial.false_positive)
    monkeypatch.setenv("_TILTYARD_COMPLETE", f"complete_{shell}")
    for typed, offered in (
        ("tiltyard hist", "history"),
        ("tiltyard compare 01", "0123456789abcdef"),
        ("tiltyard evaluate mine --opponent data", "data-flow"),
        ("tiltyard evaluate mine --opponent base", "baseline"),
        ("tiltyard replay A", "A1"),
        ("tiltyard replay b", failed.lower()),
    ):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        assert offered in _completed()


def _completed() -> str:
    line = [Path(sys.executable).with_name("tiltyard")]
    return subprocess.run(line, capture_output=True, text=True, check=True, env=os.environ).stdout
