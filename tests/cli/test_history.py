"""`tiltyard history`."""

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from typer.testing import Result

from tiltyard.runs.store import REPORT, load_report

Command = Callable[..., Result]


def test_history_has_the_newest_run_first(
    tiltyard: Command, played: Path, closed_run: Path
) -> None:
    head, *rows = tiltyard("history", "--store", played).stdout.splitlines()
    columns = "run  date (UTC)  submission  final  offense  defense  opponent  comparable  ruleset"
    assert head.split() == f"{columns}  budget".split()
    report = load_report(closed_run / REPORT)
    assert report.defense is not None
    newest = rows[0].split()
    day, time = report.started.removesuffix("Z").split("T")
    assert newest[:4] == [closed_run.name, day, time, "closed"]
    assert newest[6] == f"{report.defense.score:.2f}".removesuffix(".00")
    assert newest[7:] == ["data", "flow,", "baseline", "no", "design-2", "quick"]
    assert rows[1].split()[3] == "open"


def test_history_fits_80_columns(played: Path, closed_run: Path) -> None:
    shown = _in_a_terminal("history", "--store", played)
    assert max(map(len, shown.splitlines())) <= 80
    report = load_report(closed_run / REPORT)
    for text in (closed_run.name, report.started[:10], "closed", "data flow", "baseline"):
        assert text in shown
    assert "design-2" not in shown
    assert "Left out, because the terminal is narrow: comparable, ruleset, budget." in shown


def test_a_longer_name_cuts_no_opponent(played: Path, closed_run: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(played, store)
    report = store / "runs" / closed_run.name / REPORT
    named = report.read_text(encoding="utf-8").replace('"closed"', '"my-second-submission"')
    report.write_text(named, encoding="utf-8")
    words = _in_a_terminal("history", "--store", store).split()
    assert {"opponent", "baseline"} <= set(words)


def _in_a_terminal(*args: object) -> str:
    """Run a command in a terminal of 80 columns, and return what it prints."""
    ours, theirs = pty.openpty()
    env = os.environ | {"COLUMNS": "80", "TERM": "dumb"}
    line = [str(Path(sys.executable).with_name("tiltyard")), *map(str, args)]
    with subprocess.Popen(line, stdin=theirs, stdout=theirs, env=env):
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # The terminal closes with its last program.
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    return shown.decode().replace("\r", "")


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
