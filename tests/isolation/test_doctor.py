"""`tiltyard doctor`. The tests require a machine with level A."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TILTYARD = Path(sys.executable).with_name("tiltyard")


def doctor(*args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": os.environ["PATH"] if path is None else path}
    return subprocess.run(
        [TILTYARD, "doctor", *args], capture_output=True, text=True, check=False, env=environment
    )


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_this_machine_gives_level_a() -> None:
    done = doctor("--json")
    found = findings(done)
    assert found["level"] == "A", found
    assert done.returncode == 0
    assert all(layer["works"] for layer in found["layers"])


def test_the_table_names_each_layer() -> None:
    told = doctor().stdout
    for word in ("Landlock", "seccomp", "bubblewrap", "namespaces", "limits", "Level A"):
        assert word in told


def test_without_bubblewrap_it_says_how_to_get_it() -> None:
    done = doctor(path="/nowhere")
    assert done.returncode == 1
    assert "apt-get install bubblewrap" in done.stdout
    assert "tiltyard[bwrap]" in done.stdout
    found = findings(doctor("--json", path="/nowhere"))
    assert found["level"] in {"B", "C"}
    missing = [layer["name"] for layer in found["layers"] if not layer["works"]]
    assert missing[0] == "bubblewrap"
