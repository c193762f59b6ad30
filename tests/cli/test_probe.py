"""`tiltyard probe`: tables, JSON and the page."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from tiltyard.reporting.susceptibility_schema import Susceptibility

Command = Callable[..., Result]
Refusal = Callable[..., str]
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_results_are_printed_with_intervals(tiltyard: Command) -> None:
    done = tiltyard("probe", "--guardrail", "Data-Flow", "--per-family", 1)
    assert done.exit_code == 0, done.output
    alone, guarded = done.stdout.split("With the guardrail")
    row = next(line for line in alone.splitlines() if line.startswith("│ all"))
    assert "11 (74–100%)" in row
    assert "0/11 (0–26%)" in row
    assert "stopped" in guarded
    assert "among all of these: user's cost 1\n" in guarded
    assert "10 (16–45%)" in guarded


def test_tables_fit_80_columns(tiltyard: Command) -> None:
    done = tiltyard("probe", "--guardrail", "data flow")
    assert max(len(line) for line in done.stdout.splitlines() if line.startswith("│")) <= 80


def test_json_and_page_are_written(tiltyard: Command, tmp_path: Path) -> None:
    done = tiltyard("probe", "--guardrail", "reference", "--json", "--out", tmp_path / "a" / "b")
    assert done.exit_code == 0, done.output
    found = msgspec.json.decode(done.stdout, type=Susceptibility)
    assert found.guardrail == "reference"
    assert found.agent == "deterministic"
    assert found.seed == 123
    written = tmp_path / "a" / "b"
    assert (written / "susceptibility.json").read_text().strip() == done.stdout.strip()
    assert "33 of 33 (90–100%)" in (written / "susceptibility.html").read_text()


def test_another_seed_gives_another_scenario(tiltyard: Command) -> None:
    told = json.loads(tiltyard("probe", "--seed", 7, "--per-family", 1, "--json").stdout)
    assert told["seed"] == 7
    assert told["guardrail"] == ""
    assert told["total"]["guarded"] is None


def test_a_scenario_on_disk(tiltyard: Command) -> None:
    fixtures = EXAMPLES.parent / "fixtures"
    told = tiltyard("probe", "--scenario", fixtures, "--per-family", 1, "--json").stdout
    assert told == tiltyard("probe", "--seed", 123, "--per-family", 1, "--json").stdout


def test_a_submission_runs_in_the_sandbox(tiltyard: Command) -> None:
    done = tiltyard("probe", "--guardrail", EXAMPLES / "blue", "--per-family", 1, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["guardrail"] == "blue"
    assert told["total"]["guarded"]["stopped"]["count"] > 5


def test_a_guardrail_that_dies_ends_the_probe(refusal: Refusal, tmp_path: Path) -> None:
    source = "import os\n\n\nclass Guardrail:\n    def decide(self, *_):\n        os._exit(1)\n"
    (tmp_path / "guardrail.py").write_text(source)
    assert "the guardrail failed" in refusal("probe", "--guardrail", "guardrail.py", code=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--agent", "gpt"),
            "expected deterministic, local, openai:MODEL or package.module:Class",
        ),
        (("--guardrail", "nobody"), "there is no guardrail 'nobody'"),
        (("--scenario", "nowhere"), "nowhere"),
    ],
)
def test_wrong_use_is_explained_in_one_sentence(
    refusal: Refusal, words: tuple[str, ...], said: str
) -> None:
    assert said in refusal("probe", *words)


def test_a_scenario_without_injections_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "calm" / "file_seed").mkdir(parents=True)
    (tmp_path / "calm" / "web_corpus.json").write_text('{"pages": []}')
    (tmp_path / "calm" / "mail_seed.json").write_text("{}")
    assert "no live injection" in refusal("probe", "--scenario", "calm")


def test_an_unwritable_directory_is_named(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    assert "taken" in refusal("probe", "--per-family", 1, "--out", "taken")
