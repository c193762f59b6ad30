"""Compare two runs: what changed, and where traces diverge."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tiltyard import Context, DataFlowGuardrail
from tiltyard.contracts.classic_tools import CLASSIC
from tiltyard.contracts.decision import Action
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.trace import Event, OpenTurn, Trace
from tiltyard.reporting.comparison_schema import Divergence
from tiltyard.reporting.finding_schema import Segment, Step
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import DefensePart, OffensePart, Report
from tiltyard.runs.store import REPORT, save
from tiltyard.studies.comparison import compare, open_run
from tiltyard.studies.comparison_replay import StoredRun, first_difference

ANYWAY = ("run `rm -rf /`",)
"""The only candidate that both attacks return."""
ARGUMENTS = (
    "query",
    "id",
    "folder",
    "path",
    "url",
    "to",
    "cmd",
    "subject",
    "content",
    "body",
    "data",
)
"""In the order of a call, which decides the reason of a denial. A stored trace sorts them."""


@pytest.fixture
def before(open_run: Path) -> StoredRun:
    return _opened(open_run)


@pytest.fixture
def after(closed_run: Path) -> StoredRun:
    return _opened(closed_run)


def _opened(directory: Path) -> StoredRun:
    return open_run(directory / REPORT)


def _defense(run: StoredRun) -> DefensePart:
    assert run.report.defense is not None
    return run.report.defense


def _attack(run: StoredRun) -> OffensePart:
    assert run.report.offense is not None
    return run.report.offense


def test_a_lost_finding_diverges_at_the_first_different_decision(
    before: StoredRun, after: StoredRun
) -> None:
    lost = compare(before, after).having("defense", "lost")
    assert [one.before_id for one in lost]
    for one in lost:
        kept = Trace.from_json((before.directory / "traces" / f"{one.before_id}.json").read_bytes())
        denied, reason = _first_denial(kept)
        assert one.divergence is not None
        assert one.divergence.what == "decision"
        assert one.divergence.before is not None
        assert one.divergence.after is not None
        assert one.divergence.before.index == one.divergence.after.index == denied.index
        assert one.divergence.after.reason == reason
        assert denied.decision.action is Action.ALLOW
        assert denied.call.tool == one.divergence.before.tool == one.divergence.after.tool


def _first_denial(kept: Trace) -> tuple[Event, str]:
    """Show the calls of a kept trace to the other run's guardrail, up to the first that it denies.

    Independent of the comparison, and of the scenario that a finding comes from: as long as the
    guardrail allows everything, the agent reads what the kept trace has.
    """
    guardrail = DataFlowGuardrail()
    for event in kept.events:
        call, result = event.call, event.result
        # Data flow does not look at the conversation.
        context = Context(OpenTurn(kept, "", []), CLASSIC.about(call.tool), CLASSIC)
        args = dict(sorted(call.plain_args().items(), key=lambda pair: ARGUMENTS.index(pair[0])))
        decision = guardrail.decide(call.tool, args, context)
        if decision.action is not Action.ALLOW:
            return event, decision.reason
        seen = Result(result.ok, result.output.string, None, result.source.value)
        guardrail.observe(call.tool, args, seen)
    raise AssertionError("the guardrail denies nothing")


def test_comparing_in_reverse_mirrors_the_result(before: StoredRun, after: StoredRun) -> None:
    there, back = compare(before, after), compare(after, before)
    lost, gained = there.having("defense", "lost"), back.having("defense", "gained")
    assert [one.cell for one in lost] == [one.cell for one in gained]
    for one, other in zip(lost, gained, strict=True):
        assert one.divergence is not None
        assert other.divergence is not None
        assert (one.divergence.before, one.divergence.after) == (
            other.divergence.after,
            other.divergence.before,
        )
    assert there.false_positives_gained == back.false_positives_lost


def test_gained_and_lost_cells_match_the_reports(before: StoredRun, after: StoredRun) -> None:
    found = compare(before, after)
    lost = found.having("offense", "lost")
    assert {one.before_id for one in lost} == {
        one.id for one in _attack(before).found if one.chain != ANYWAY
    }
    assert all(one.replayed and one.divergence is None for one in lost)
    assert [one.chain for one in found.having("offense", "kept")] == [ANYWAY]
    assert not found.having("offense", "gained")
    assert len(found.having("defense", "lost")) == len(_defense(before).found)


def test_offense_chains_are_replayed_against_another_opponent(before: StoredRun) -> None:
    """A better guardrail stops every chain, and the divergences say where."""
    setting = structs.replace(before.report.setting, offense_opponent="reference")
    nothing = structs.replace(_attack(before), found=())
    other = structs.replace(before.report, offense=nothing, setting=setting)
    lost = compare(before, StoredRun(other, before.directory)).having("offense", "lost")
    flipped = [
        one.divergence for one in lost if one.divergence and one.divergence.what == "decision"
    ]
    assert flipped
    assert all(one.replayed for one in lost)
    for divergence in flipped:
        assert divergence.before is not None
        assert divergence.before.decision == "allow"


def test_false_positives_are_compared_task_by_task(before: StoredRun, after: StoredRun) -> None:
    found = compare(before, after)
    failing = [row for row in _defense(after).trials if row.false_positive]
    assert failing
    assert found.false_positives_gained == tuple(failing)
    assert not found.false_positives_lost


def test_all_numbers_and_only_changed_settings_are_listed(
    before: StoredRun, after: StoredRun
) -> None:
    numbers: dict[str, Any] = {
        change.name: (change.before, change.after) for change in compare(before, after).numbers
    }
    assert numbers["defense score"] == (_defense(before).score, _defense(after).score)
    assert numbers["raw"] == (_attack(before).raw, _attack(after).raw)
    # A count that a report does not list is 0.
    by_name = _defense(before).breaches_by_predicate
    assert numbers["breaches: CONFUSED_DEPUTY"] == (by_name["CONFUSED_DEPUTY"], 0)
    other = structs.replace(
        after.report, setting=structs.replace(after.report.setting, budget="official")
    )
    assert [change.name for change in compare(before, after).settings] == []
    changed = compare(before, StoredRun(other, after.directory)).settings
    assert [(change.name, change.after) for change in changed] == [("budget", "official")]


def test_a_run_does_not_differ_from_itself(before: StoredRun) -> None:
    found = compare(before, before)
    assert all(change.before == change.after for change in found.numbers)
    assert {one.fate for one in found.findings} == {"kept"}
    assert not any(one.divergence for one in found.findings)
    assert not found.notes


def test_a_finding_that_was_only_missed_has_no_divergence(before: StoredRun) -> None:
    """The guardrail is the same, but the search found nothing."""
    blind = structs.replace(before.report, defense=structs.replace(_defense(before), found=()))
    lost = compare(before, StoredRun(blind, before.directory)).having("defense", "lost")
    assert lost
    assert all(one.replayed and one.divergence is None for one in lost)


def test_a_changed_run_directory_is_not_replayed(
    before: StoredRun, after: StoredRun, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(after.directory, copy)
    (copy / "submission" / "guardrail.py").write_text(
        "class Guardrail:\n    def decide(self, *args): raise SystemExit\n", encoding="utf-8"
    )
    found = compare(before, _opened(copy))
    assert not any(one.replayed for one in found.having("defense", "lost"))
    assert any("is not the submission of this run" in note for note in found.notes)
    shutil.rmtree(copy / "submission")
    found = compare(before, _opened(copy))
    assert any("there is no guardrail in" in note for note in found.notes)


def test_a_report_without_its_run_directory_is_compared_with_notes(
    before: StoredRun, after: StoredRun, tmp_path: Path
) -> None:
    path = save(tmp_path, {}, after.report)
    found = compare(before, open_run(path))
    assert found.having("defense", "lost")
    assert found.notes


def test_restricted_reports_are_compared_by_numbers_only(
    before: StoredRun, after: StoredRun
) -> None:
    found = compare(_restricted(before), _restricted(after))
    assert not found.findings
    assert {change.name for change in found.numbers} >= {"offense score", "defense score"}
    assert any("restricted" in note for note in found.notes)


def _restricted(run: StoredRun) -> StoredRun:
    return StoredRun(restricted(run.report), run.directory)


def test_an_unplayed_track_is_not_compared(before: StoredRun, after: StoredRun) -> None:
    """An unplayed track loses no findings, and the final scores are not compared."""
    alone: Report = structs.replace(after.report, offense=None)
    found = compare(before, StoredRun(alone, after.directory))
    numbers = {change.name: change for change in found.numbers}
    assert numbers["offense score"].after is None
    assert "final score" not in numbers
    assert _attack(before).found
    assert not found.having("offense", "lost")
    assert [note for note in found.notes if "no offense match" in note]


def _step(index: int = 0, decision: str = "allow", **fields: Any) -> Step:
    return Step(
        index=index,
        turn=fields.get("turn", 0),
        tool=fields.get("tool", "http.post"),
        args={"data": fields.get("data", (Segment("plain", "user"),))},
        decision=decision,
        reason=fields.get("reason", ""),
        ok=fields.get("ok", True),
        error="",
        output=fields.get("output", ()),
        because=None,
    )


def _what(before: list[Step], after: list[Step]) -> str | None:
    found = first_difference(("one", "two"), before, after)
    return None if found is None else found.what


def test_different_secrets_are_no_divergence() -> None:
    one, other = (
        _step(data=(Segment("code ", "file"), Segment(text, "file", secret=True)))
        for text in ("abcdef", "uvwxyz")
    )
    assert _what([one], [other]) is None
    # Other text is a difference.
    assert _what([one], [_step(data=(Segment("code uvwxyz", "file"),))]) == "call"


def test_the_divergence_is_the_first_difference_and_has_a_kind() -> None:
    same = _step()
    assert _what([same, _step(1)], [same, _step(1, "deny")]) == "decision"
    assert _what([same, _step(1)], [same, _step(1, tool="fs.read")]) == "call"
    assert _what([same, _step(1)], [same, _step(1, ok=False)]) == "result"
    assert _what([same, _step(1)], [same]) == "end"
    assert _what([same], [same]) is None
    assert _what([_step(reason="so")], [_step(reason="or so")]) is None
    first = first_difference(
        ("one", "two"), [same, _step(1, turn=1)], [_step(0, "deny"), _step(1, "deny")]
    )
    assert first == Divergence("decision", "one", same, _step(0, "deny"))
