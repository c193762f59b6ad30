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
from tiltyard.reporting.comparison_schema import (
    Cell,
    Chain,
    Change,
    ComparedCell,
    ComparedFinding,
    Comparison,
    Fate,
)
from tiltyard.reporting.schema import Report, TrialRow
from tiltyard.runs.store import load_report
from tiltyard.studies.comparison_replay import ChainReplayer, StoredRun, found_by_cell


def open_run(path: Path) -> StoredRun:
    """Read the report in `path`."""
    return StoredRun(load_report(path), path.parent)


def compare(before: StoredRun, after: StoredRun, *, unsafe: bool = False) -> Comparison:
    """Return what changed from `before` to `after`.

    Submitted guardrails run in the jail, or without one if `unsafe` is true.
    """
    notes = _restricted_notes(before, after)
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
    return _compared(before, after, findings, notes)


def compare_reports(before: Report, after: Report) -> Comparison:
    """Return what changed between two reports, without playing anything again."""
    runs = StoredRun(before, Path()), StoredRun(after, Path())
    findings = [
        ComparedFinding(track, fate, cell, old, new, chain, replayed=False)
        for track in TRACKS
        if _played(before, track) and _played(after, track)
        for fate, cell, old, new, chain in _fates(before, after, track)
    ]
    return _compared(*runs, findings, _restricted_notes(*runs))


def _compared(
    before: StoredRun, after: StoredRun, findings: list[ComparedFinding], notes: list[str]
) -> Comparison:
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
        tuple(_compare_cells(before.report, after.report)),
    )


def _restricted_notes(*runs: StoredRun) -> list[str]:
    return [
        f"{run.name} is a restricted report: it contains numbers only."
        for run in runs
        if run.report.restricted
    ]


def _fates(
    before: Report, after: Report, track: Track
) -> Iterator[tuple[Fate, Cell, str, str, Chain]]:
    """Yield each cell of both reports with its fate, the ids of its findings, and its chain."""
    then, now = (found_by_cell(report, track) for report in (before, after))
    for cell in sorted({*then, *now}):
        old, new = then.get(cell), now.get(cell)
        fate: Fate = "gained" if old is None else "lost" if new is None else "kept"
        chain = next(one.chain for one in (old, new) if one is not None)
        yield fate, cell, "" if old is None else old.id, "" if new is None else new.id, chain


def _played(report: Report, track: Track) -> bool:
    return (report.offense if track == "offense" else report.defense) is not None


def _compare_findings(replayer: ChainReplayer) -> Iterator[ComparedFinding]:
    reports = replayer.before.run.report, replayer.after.run.report
    for fate, cell, old, new, chain in _fates(*reports, replayer.track):
        pair = replayer.before.by_cell.get(cell), replayer.after.by_cell.get(cell)
        replayed, divergence = replayer.replay(*pair)
        yield ComparedFinding(
            track=replayer.track,
            fate=fate,
            cell=cell,
            before_id=old,
            after_id=new,
            chain=chain,
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
    arena = report.arena
    if arena is not None:
        numbers |= {
            "arena score": arena.score,
            "cells": arena.cells,
            "solved": arena.solved,
            "untouched": arena.untouched,
            "breached": arena.breached,
        }
        for group in arena.by_pack:
            numbers[f"arena score: {group.name}"] = group.score
        for group in arena.by_way:
            numbers[f"arena score: planted as {group.name}"] = group.score
    return numbers


def _compare_cells(before: Report, after: Report) -> Iterator[ComparedCell]:
    """Yield the cells of the arena that one run loses, or both for different reasons."""
    if before.arena is None or after.arena is None or before.restricted or after.restricted:
        return
    worlds = ("ruleset", "budget", "seeds", "scenario", "key")
    then, now = _settings(before), _settings(after)
    if any(then[name] != now[name] for name in worlds) or before.arena.cells != after.arena.cells:
        return
    old, new = ({one.cell: one for one in arena.lost} for arena in (before.arena, after.arena))
    for cell in dict.fromkeys([*old, *new]):
        lost, loses = old.get(cell), new.get(cell)
        was, now_is = (lost.lost if lost else ""), (loses.lost if loses else "")
        if was != now_is:
            yield ComparedCell(
                cell, lost.id if lost else "", was, loses.id if loses else "", now_is
            )


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
