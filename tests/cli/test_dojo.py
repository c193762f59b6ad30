"""`tiltyard dojo`: tables, JSON, the page and the arena's scores."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from tiltyard.bridges.dojo import suites
from tiltyard.reporting.dojo_schema import Dojo

Command = Callable[..., Result]
Refusal = Callable[..., str]
BANKING = ("dojo", "--suites", "banking")

SUBMISSION = '''
class Guardrail:
    """Denies every call whose arguments contain an amount."""

    contract = 2

    def decide(self, tool_name, tool_args, context):
        from tiltyard import Decision

        paying = "amount" in context.tool.input_schema["properties"]
        return Decision.deny("no") if paying else Decision.allow()
'''


def test_results_are_printed_in_80_columns(tiltyard: Command) -> None:
    done = tiltyard(
        *BANKING, "--guardrail", "allow-all", "--guardrail", "Every value in the prompt"
    )
    assert done.exit_code == 0, done.output
    assert "16 user tasks" in done.stdout
    assert "143 of 144 hijacks succeed without a guardrail" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert max(map(len, rows)) <= 80
    assert "every value in the prompt" in rows[0]
    # Every pair is untouched and breached.
    assert rows[1].split("│")[1:4] == [" allow-all                 ", "       143 ", "      143 "]
    assert "banking" in done.stderr


def test_json_the_page_and_a_submission_in_the_sandbox(tiltyard: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SUBMISSION)
    (tmp_path / "arena.json").write_text(
        json.dumps(
            {
                "ruleset": "arena",
                "rows": [
                    {"name": "mine", "score": 400},
                    {"name": "deny-all", "score": 0},
                    {"name": "somebody else", "score": 1000},
                ],
            }
        )
    )
    chosen = ("--guardrail", "mine.py", "--guardrail", "deny-all")
    done = tiltyard(*BANKING, *chosen, "--arena", "arena.json", "--json", "--out", "a/b")
    assert done.exit_code == 0, done.output
    found = msgspec.json.decode(done.stdout, type=Dojo)
    mine, nothing = found.guardrails
    assert (mine.name, mine.family) == ("mine", "mine")
    assert (nothing.untouched, nothing.breached, nothing.share) == (0, 0, 0.0)
    # The users of some tasks pay nothing, and most injections ask for a payment.
    assert 0 < mine.breached < mine.untouched < mine.pairs == 143
    assert mine.share == sum(one.share * one.pairs for one in mine.suites) / mine.pairs
    assert found.concordance is not None
    assert (found.concordance.value, found.concordance.pairs) == (1.0, 1)
    assert (tmp_path / "a/b/dojo.json").read_text().strip() == done.stdout.strip()
    assert "deny-all" in (tmp_path / "a/b/dojo.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--suites", "bank"), "unknown suite 'bank'; expected some of banking, travel"),
        (("--guardrail", "nobody"), "there is no guardrail 'nobody'"),
        (("--arena", "nowhere.json"), "nowhere.json: No such file"),
    ],
)
def test_wrong_use_is_explained_in_one_sentence(
    refusal: Refusal, words: tuple[str, ...], said: str
) -> None:
    assert said in refusal("dojo", *words)


def test_a_file_for_the_results_is_refused_before_playing(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    told = refusal("dojo", "--out", "results")
    assert told == "--out results is a file; name a directory"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "expected the calibration.json"),
        ('{"rows": [{"name": "a"}]}', "`score`"),
        ('{"rows": [{"name": "a", "score": 1}, {"name": "a", "score": 2}]}', "twice"),
    ],
)
def test_a_wrong_table_of_scores_is_explained(
    refusal: Refusal, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "arena.json").write_text(text)
    assert said in refusal("dojo", "--arena", "arena.json")


def test_a_missing_extra_is_explained(tiltyard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentdojo", None)
    suites._native.cache_clear()
    done = tiltyard(*BANKING, "--guardrail", "allow-all")
    suites._native.cache_clear()
    assert done.exit_code == 2
    assert "pip install 'tiltyard[dojo]'" in done.stderr
