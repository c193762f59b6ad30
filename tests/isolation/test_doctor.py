"""`tiltyard doctor`. The tests require a machine with level A."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot start the jail with so few")
def test_machine_with_too_few_threads_for_a_guest_is_not_at_level_a() -> None:
    line = ["prlimit", "--nproc=10", str(TILTYARD), "doctor", "--json"]
    found = findings(subprocess.run(line, capture_output=True, text=True, check=False))
    assert found["level"] in {"B", "C"}
    (layer,) = (each for each in found["layers"] if each["name"] == "guest in namespaces")
    assert not layer["works"]
    assert layer["detail"] == "a guest can have 10 threads here, not 16"
    assert "ulimit -u" in layer["remedy"]


def test_level_b_lists_the_leaks_that_it_leaves_open(judge: Any) -> None:
    """A leak on the list is real: a test that no longer finds it asks for a shorter list."""
    found = judge.ask(doctor="without bubblewrap")
    open_leaks = {each["name"].strip() for each in found["layers"] if not each["works"]}
    assert {"other paths", "access times", "processes"} <= open_leaks
    assert ("threads" in open_leaks) == (judge.uid != 0)
    stats = "import os\ndef probe(given): return os.stat(given['outside']).st_ctime > 0"
    assert judge.run(stats, "B")["result"] is True
    assert judge.run(stats, "A")["outcome"] == "ENOENT"
