"""The command line, as a user meets it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tiltyard.world.fixtures import load_scenario

TILTYARD = Path(sys.executable).with_name("tiltyard")


def tiltyard(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TILTYARD, *args], capture_output=True, text=True, check=False)


def test_demo_tells_of_harm_done_and_of_harm_stopped() -> None:
    told = tiltyard("demo").stdout
    first, *_ = told.split("A mail is in a hurry.")
    obeyed, stopped = first.split("DataFlowGuardrail")
    assert "=> protected content went to" in obeyed
    assert "denied" in stopped
    assert "=> stopped" in stopped
    missed = told.split("A file came from outside")[1].split("And an honest task.")[0]
    assert missed.count("because a document said so") + missed.count("went to") >= 2


def test_a_scenario_is_generated_in_the_size_asked_for(tmp_path: Path) -> None:
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
def test_what_goes_wrong_is_one_sentence(tmp_path: Path, args: list[str], word: str) -> None:
    (tmp_path / "something").write_text("there", encoding="utf-8")
    done = tiltyard(*(arg.format(tmp=tmp_path) for arg in args))
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_help_shows_an_example() -> None:
    assert (
        "tiltyard scenario generate --seed 7" in tiltyard("scenario", "generate", "--help").stdout
    )
