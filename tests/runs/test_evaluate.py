"""Evaluations: what is played, stored and reported."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from small_runs import ATTACK, GUARDRAIL, request, small_rules, submission
from tiltyard.isolation.host import jailed_attack as jailed
from tiltyard.isolation.host.failures import Phase
from tiltyard.matches.acceptance import conversations
from tiltyard.matches.opponents import OpponentError
from tiltyard.runs import evaluate as evaluating
from tiltyard.runs.evaluate import Finished, Unplayed, evaluate, evaluate_all
from tiltyard.runs.store import Store
from tiltyard.submissions import SubmissionError
from tiltyard.world.generate import generate


def test_a_report_adds_up_both_matches(played_run: tuple[Finished, Store, Path]) -> None:
    report = played_run[0].report
    assert report.offense is not None
    assert report.defense is not None
    assert report.final_score == report.offense.score + report.defense.score
    assert {finding.predicate for finding in report.offense.found} >= {"UNTRUSTED_TO_ACTION"}
    cores = {(found.predicate, found.source, found.sink) for found in report.offense.found}
    weights = small_rules().attack.weights
    cells = len(report.offense.found)
    assert report.offense.raw == sum(weights[core[0]] for core in cores) + 2 * cells
    assert report.offense.raw == sum(found.points for found in report.offense.found)
    assert report.isolation.level == "A"
    assert not report.comparable  # the ruleset is not a shipped one


def test_a_finished_run_comes_from_the_store(played_run: tuple[Finished, Store, Path]) -> None:
    first, store, path = played_run
    again = evaluate(request(path), store)
    assert again.from_store
    assert again.report == first.report
    fresh = evaluate(request(path), store, fresh=True)
    assert not fresh.from_store
    assert fresh.report.digest == first.report.digest
    assert fresh.report.run_id == first.report.run_id


def test_the_run_id_hashes_the_input_and_the_digest_the_results(
    played_run: tuple[Finished, Store, Path], tmp_path: Path
) -> None:
    first, store, _ = played_run
    commented = submission(tmp_path / "other", guardrail=f"{GUARDRAIL}\n# a remark\n")
    other = evaluate(request(commented), store)
    assert other.report.run_id != first.report.run_id
    assert other.report.digest == first.report.digest


def test_one_track_can_be_played_alone(tmp_path: Path, store: Store) -> None:
    both = submission(tmp_path / "both")
    report = evaluate(request(both, "defense"), store).report
    assert report.offense is None
    assert report.defense is not None
    assert report.final_score == report.defense.score
    alone = tmp_path / "alone.py"
    alone.write_text(ATTACK, encoding="utf-8")
    report = evaluate(request(alone), store).report
    assert report.defense is None
    with pytest.raises(SubmissionError, match="no class Guardrail"):
        evaluate(request(alone, "defense"), store)


def test_a_note_names_a_file_without_its_class(tmp_path: Path, store: Store) -> None:
    renamed = GUARDRAIL.replace("class Guardrail", "class MyGuardrail")
    report = evaluate(request(submission(tmp_path / "mine", guardrail=renamed)), store).report
    assert report.defense is None
    assert "guardrail.py has no class Guardrail, so defense was not played." in report.notes


def test_the_opponent_can_be_a_rung_or_a_submission(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine")
    rung = structs.replace(request(mine, "offense"), opponent="Allow-All")
    report = evaluate(rung, store).report
    assert report.offense is not None
    assert report.offense.opponent == "allow-all"
    assert any("allow-all" in reason for reason in report.not_comparable_because)
    theirs = submission(tmp_path / "theirs", attack="", guardrail=GUARDRAIL)
    strict = GUARDRAIL.replace('== "http.post"', '!= "fs.read"').replace('"secret"', '"read"')
    stricter = submission(tmp_path / "stricter", attack="", guardrail=strict)
    jailed = evaluate(structs.replace(rung, opponent=str(theirs)), store).report
    assert jailed.offense is not None
    assert jailed.offense.opponent == "theirs"
    # This guardrail stops none of the attack's calls.
    assert jailed.offense.raw == report.offense.raw
    stopped = evaluate(structs.replace(rung, opponent=str(stricter)), store).report
    assert stopped.offense is not None
    assert stopped.offense.raw == 0
    attacked = structs.replace(request(mine, "defense"), opponent="simple prompts")
    defended = evaluate(attacked, store).report
    assert defended.defense is not None
    assert defended.defense.cells == 0
    with pytest.raises(OpponentError, match="simple rules"):
        evaluate(structs.replace(rung, opponent="nobody"), store)


def test_a_match_that_fails_has_no_score_and_a_reason(tmp_path: Path, store: Store) -> None:
    raising = submission(tmp_path / "raising", attack=ATTACK.replace("= [],", "= [1 / 0],"))
    report = evaluate(request(raising), store).report
    assert report.final_score is None
    assert report.offense is None
    assert report.defense is not None  # the other match is still played
    (failure,) = report.failures
    assert failure.kind == "run"
    assert failure.exception == "ZeroDivisionError"
    assert (failure.phase, failure.file) == (Phase.RUN, "attack.py")
    assert failure.line
    assert "attack.py" in failure.traceback


@pytest.mark.parametrize(
    ("attack", "note"),
    [
        ("return []", "returned no candidates"),
        ("return [[]] * 3 if config.max_steps > 60 else []", "Every candidate was refused"),
        ("return [['good morning']]", "No candidate broke anything"),
    ],
)
def test_notes_explain_an_attack_without_findings(
    attack: str, note: str, tmp_path: Path, store: Store
) -> None:
    source = f"class AttackAlgorithm:\n    def run(self, env, config):\n        {attack}\n"
    mine = submission(tmp_path / "mine", attack=source, guardrail="")
    report = evaluate(request(mine), store).report
    assert [line for line in report.notes if note in line]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("return Decision.deny('no')", "does it deny everything"),
        ("raise KeyError('where')", "KeyError"),
        ("return 'yes'", "not a Decision"),
    ],
)
def test_notes_explain_a_guardrail_that_stops_every_task(
    body: str, note: str, tmp_path: Path, store: Store
) -> None:
    """It knows the tasks of the check before the match, and behaves there."""
    known = [message for messages in conversations(generate(123)) for message in messages]
    source = (
        f"from tiltyard import Decision\nKNOWN = {known!r}\nclass Guardrail:\n"
        "    def decide(self, tool_name, tool_args, context):\n"
        f"        if context.last_user in KNOWN:\n            return Decision.deny('no')\n"
        f"        {body}\n"
    )
    mine = submission(tmp_path / "mine", attack="", guardrail=source)
    report = evaluate(request(mine), store).report
    assert report.defense is not None
    assert report.defense.false_positives == report.defense.benign_trials
    assert any(note in line for line in report.notes)


def test_all_guests_of_a_match_share_its_deadline(tmp_path: Path, store: Store) -> None:
    """Many guests, each only a little late, reach the deadline together."""
    waits = "lock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire(True, 1.0)\n"
    late = f"import _thread\n{waits}{GUARDRAIL}"
    rules = small_rules(300)
    limits = structs.replace(rules.limits, defense_seconds=6)
    mine = submission(tmp_path / "mine", attack="", guardrail=late)
    report = evaluate(request(mine, rules=structs.replace(rules, limits=limits)), store).report
    assert [failure.kind for failure in report.failures] == ["deadline"]
    assert report.final_score is None


def test_candidates_over_the_size_limit_are_dropped(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jailed, "MAX_FOUND_CHARS", 100_000)
    source = """
class AttackAlgorithm:
    def run(self, env, config):
        return [["good morning " * 100]] * 1500
"""
    mine = submission(tmp_path / "mine", attack=source, guardrail="")
    report = evaluate(request(mine), store).report
    assert report.offense is not None
    assert report.offense.candidates < 1500


def test_a_report_names_the_same_bytes_by_the_path_they_came_from(
    tmp_path: Path, store: Store
) -> None:
    alice = evaluate(request(submission(tmp_path / "alice", guardrail="")), store).report
    bob = evaluate(request(submission(tmp_path / "bob", guardrail="")), store).report
    assert (alice.submission.name, bob.submission.name) == ("alice", "bob")
    assert alice.digest == bob.digest


@pytest.mark.parametrize("at_once", [1, 2])
def test_copies_of_a_submission_are_one_run(tmp_path: Path, store: Store, at_once: int) -> None:
    for place in ("a", "b", "c"):
        (tmp_path / place).mkdir()
    paths = [submission(tmp_path / place / "red", guardrail="") for place in ("a", "b", "c")]
    results = evaluate_all([request(path) for path in paths], store, at_once=at_once)
    assert [isinstance(one, Finished) for one in results] == [True] * 3
    assert len([*store.runs.glob("*/report.json")]) == 1


def test_a_killed_process_stops_no_other_submission(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate_or_die(asked: Any, *rest: Any, **options: Any) -> Finished:
        if asked.submission.endswith("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        return evaluate(asked, *rest, **options)

    monkeypatch.setattr(evaluating, "evaluate", evaluate_or_die)
    paths = [submission(tmp_path / name, guardrail="") for name in ("dies", "lives")]
    dead, alive = evaluate_all([request(path) for path in paths], store, at_once=2)
    assert isinstance(dead, Unplayed)
    assert "was ended by SIGKILL" in dead.reason
    assert isinstance(alive, Finished)
    assert alive.report.final_score is not None
