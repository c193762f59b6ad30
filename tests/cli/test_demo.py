"""`tiltyard demo`."""

import os
import subprocess
import sys
from pathlib import Path

TILTYARD = Path(sys.executable).with_name("tiltyard")


def tiltyard(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TILTYARD, *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80"},
    )


def test_demo_prints_harm_done_and_harm_stopped() -> None:
    told = tiltyard("demo").stdout
    first, *_ = told.split("A mail claims to be urgent.")
    obeyed, stopped = first.split("DataFlowGuardrail")
    assert "=> protected content went to" in obeyed
    assert "denied" in stopped
    assert "=> stopped" in stopped
    assert max(map(len, told.splitlines())) <= 80
    missed = told.split("A file comes from outside")[1].split("An honest task.")[0]
    assert missed.count("because a document said so") + missed.count("went to") >= 2
