"""`tiltyard scenario`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tiltyard.world.fixtures import load_scenario

TILTYARD = Path(sys.executable).with_name("tiltyard")


def tiltyard(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TILTYARD, *args], capture_output=True, text=True, check=False)


def test_generate_writes_a_scenario_of_the_wanted_size(tmp_path: Path) -> None:
    out = tmp_path / "world"
    done = tiltyard("scenario", "generate", "--seed", "7", "--pages", "300", "--out", out)
    assert done.returncode == 0, done.stderr
    scenario = load_scenario(out, cache=None)
    assert len(scenario.pages) == 300
    assert scenario.labels.seed == 7
    shown = tiltyard("scenario", "show", out)
    assert scenario.digest[:16] in shown.stdout


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["scenario", "generate", "--pages", "3", "--out", "{tmp}/x"], "at least"),
        (["scenario", "generate", "--out", "{tmp}"], "not empty"),
        (["scenario", "show", "{tmp}/none"], "does not exist"),
        (["scenario", "show", "{tmp}"], "web_corpus.json"),
    ],
)
def test_errors_are_one_sentence(tmp_path: Path, args: list[str], word: str) -> None:
    (tmp_path / "something").write_text("there", encoding="utf-8")
    done = tiltyard(*(arg.format(tmp=tmp_path) for arg in args))
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
