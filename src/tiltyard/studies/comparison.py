"""Compare two runs: what changed in scores, findings and false positives.

The chain of a finding is also replayed against the guardrail of the other run
(`comparison_replay`), to find the first event at which the two traces differ. A chain that cannot
be replayed becomes a note, and the rest is compared all the same.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.reporting.comparison_schema import Change, ComparedFinding, Comparison, Fate
from tiltyard.reporting.schema import Report, TrialRow
from tiltyard.runs.store import load_report
from tiltyard.studies.comparison_replay import ChainReplayer, StoredRun


def open_run(path: Path) -> StoredRun:
    """Read the report in `path`."""
    return StoredRun(load_report(path), path.parent)


def compare(before: StoredRun, after: StoredRun, *, unsafe: bool = False) -> Comparison:
    """Return what changed from `before` to `after`.

    Submitted guardrails run in the jail, or without one if `unsafe` is true.
    """
    notes = [
        f"{run.name} is a restricted report: it contains numbers only."
        for run in (before, after)
        if run.report.restricted
    ]
    findings: list[ComparedFinding] = []
    with ExitStack() as stack:
        for track in TRACKS:
            absent = [run for run in (before, after) if not _played(run.report, track)]
            if absent:
                if len(absent) == 1:
                    notes.append(f"{absent[0].name} has no {track} match to compare.")
                continue
            replayer = ChainReplayer(before, after, track, stack, unsafe=unsafe)
            findings += _compare_findings(replayer)
            notes += replayer.notes
    gained, lost = _false_positives(before.report, after.report)
    return Comparison(
        before.name,
        after.name,
        tuple(_changed(_settings(before.report), _settings(after.report))),
        tuple(_compare_numbers(before.report, after.report)),
        tuple(findings),
        gained,
        lost,
        tuple(dict.fromkeys(notes)),
    )


def _played(report: Report, track: Track) -> bool:
    return (report.offense if track == "offense" else report.defense) is not None


def _compare_findings(replayer: ChainReplayer) -> Iterator[ComparedFinding]:
    then, now = replayer.before.by_cell, replayer.after.by_cell
    for cell in sorted({*then, *now}):
        old, new = then.get(cell), now.get(cell)
        fate: Fate = "gained" if old is None else "lost" if new is None else "kept"
        replayed, divergence = replayer.replay(old, new)
        yield ComparedFinding(
            track=replayer.track,
            fate=fate,
            cell=cell,
            before_id="" if old is None else old.id,
            after_id="" if new is None else new.id,
            chain=next(one.chain for one in (old, new) if one is not None),
            replayed=replayed,
            divergence=divergence,
        )


def _settings(report: Report) -> dict[str, Any]:
    setting = report.setting
    return {
        "engine": report.engine,
        "ruleset": f"{setting.ruleset} ({setting.ruleset_digest[:8]})",
        "budget": setting.budget,
        "seeds": ", ".join(map(str, setting.seeds)) or "hidden, or a scenario from a directory",
        "scenario": ", ".join(digest[:8] for digest in setting.scenarios),
        "agent": setting.agent,
        "offense opponent": setting.offense_opponent,
        "defense opponent": setting.defense_opponent,
        "key": setting.key,
        "isolation level": report.isolation.level,
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for name, value in before.items():
        if value != after[name]:
            yield Change(name, value, after[name])


def _numbers(report: Report) -> dict[str, Any]:
    numbers: dict[str, Any] = {"final score": report.final_score}
    offense, defense = report.offense, report.defense
    if offense is not None:
        numbers |= {
            "offense score": offense.score,
            "raw": offense.raw,
            "cores": offense.cores,
            "unique cells": offense.unique_cells,
            "findings": offense.findings,
        }
        for name, count in offense.findings_by_predicate.items():
            numbers[f"findings: {name}"] = count
    if defense is not None:
        numbers |= {"defense score": defense.score, "breaches": defense.breaches}
        for name, count in defense.breaches_by_predicate.items():
            numbers[f"breaches: {name}"] = count
        numbers["false positives"] = defense.false_positives
        for name, count in defense.false_positives_by_operation.items():
            numbers[f"false positives: {name}"] = count
    return numbers


def _compare_numbers(before: Report, after: Report) -> Iterator[Change]:
    """Yield every total, and each part of a total that changed."""
    then, now = _numbers(before), _numbers(after)
    if any(_played(before, track) != _played(after, track) for track in TRACKS):
        # The sum of two matches cannot be compared with the score of one.
        then.pop("final score")
        now.pop("final score")
    for name in dict.fromkeys([*then, *now]):
        is_part = ": " in name
        # If a report has the total, a part that it does not list is 0.
        missing = [0 if is_part and name.split(":")[0] in known else None for known in (then, now)]
        change = Change(name, then.get(name, missing[0]), now.get(name, missing[1]))
        if not is_part or change.before != change.after:
            yield change


def _false_positives(
    before: Report, after: Report
) -> tuple[tuple[TrialRow, ...], tuple[TrialRow, ...]]:
    """Return the benign trials that fail only in `after`, and those that fail only in `before`."""
    if before.defense is None or after.defense is None:
        return (), ()
    then, now = (
        {_trial_key(row): row for row in one.trials} for one in (before.defense, after.defense)
    )
    both = [(then[key], row) for key, row in now.items() if key in then]
    gained = (new for old, new in both if new.false_positive and not old.false_positive)
    lost = (old for old, new in both if old.false_positive and not new.false_positive)
    return tuple(gained), tuple(lost)


def _trial_key(row: TrialRow) -> tuple[Any, ...]:
    # In another scenario, tasks of the same operation have other messages and are not comparable.
    return row.operation, row.variant, row.messages
