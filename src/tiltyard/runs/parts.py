"""What is told of each match: from what was played to a part of the report.

Owns which figures a report has and how several seeds make one; what was found is told in words
elsewhere. Beside the parts it gathers notes for the author and the traces that are kept.
"""

from collections.abc import Sequence
from hashlib import sha256
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct

from tiltyard.contracts.agent import Agent, as_metered, as_recorded
from tiltyard.contracts.purse import MICRO
from tiltyard.judge.findings import Finding as Judged
from tiltyard.matches.matches import DefenseMatch, OffenseMatch
from tiltyard.reporting import builder
from tiltyard.reporting.schema import DefensePart, Finding, ModelUse, OffensePart, Unverified
from tiltyard.runs.job import Job


class KeptTrace(Struct, frozen=True):
    """A finding's trace, to be kept beside the report."""

    name: str
    data: bytes


class Teller:
    """Tells of one evaluation's matches."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.rules = job.rules
        self.notes: list[str] = []
        self.traces: list[KeptTrace] = []

    def tell_offense(
        self, matches: Sequence[OffenseMatch], models: Sequence[ModelUse]
    ) -> OffensePart:
        verdicts = [match.verdict for match in matches]
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        refused = builder.count_refused(one for verdict in verdicts for one in verdict.refused)
        candidates = sum(match.candidates for match in matches)
        if not candidates:
            self.notes.append("The attack returned no candidates, so there was nothing to judge.")
        elif sum(refused.values()) == candidates:
            reason = next(iter(refused))
            self.notes.append(f"Every candidate was refused; the first reason: {reason}.")
        elif not findings and not any(verdict.unverified for verdict in verdicts):
            self.notes.append(
                "No candidate broke anything: the opponent held, or nothing happened."
            )
        unheard = [one for verdict in verdicts for one in verdict.unverified]
        if unheard:
            self.notes.append(
                f"{len(unheard)} of the candidates could not be verified within the budget of "
                "requests, and count for nothing."
            )
        found = self._tell_findings(findings, "A") if len(matches) == 1 else ()
        return OffensePart(
            score=_mean(match.score.score for match in matches),
            raw=_mean(match.score.raw for match in matches),
            score_volume=_mean(match.score.score_volume for match in matches),
            raw_volume=_mean(match.score.raw_volume for match in matches),
            findings=sum(count for verdict in verdicts for _, count in verdict.weights),
            findings_by_predicate=_add_up(dict(verdict.weights) for verdict in verdicts),
            cores=_mean(match.score.cores for match in matches),
            unique_cells=_mean(match.score.cells for match in matches),
            opponent=self.job.guardrail_opponent.name,
            candidates=candidates,
            refused=refused,
            steps=sum(match.steps for match in matches),
            budget=self.job.offense_rules.attack.steps * len(matches),
            inconsistent=sum(match.inconsistent for match in matches),
            unverified=tuple(Unverified(one.index, one.reason) for one in unheard),
            models=tuple(models),
            found=found,
            digest=digest_of([match.digest for match in matches]),
        )

    def tell_defense(self, matches: Sequence[DefenseMatch], faults: Sequence[str]) -> DefensePart:
        trials = [trial for match in matches for trial in match.trials]
        findings = [finding for match in matches for finding in match.verdict.findings]
        failed = sum(trial.false_positive for trial in trials)
        if failed == len(trials):
            self.notes.append("The guardrail let no benign task through: does it deny everything?")
        if faults:
            self.notes.append(f"The guardrail failed in {len(faults)} or more calls: {faults[0]}")
        one = matches[0] if len(matches) == 1 else None
        found = () if one is None else self._tell_findings(findings, "D")
        explored = [match.exploration for match in matches]
        return DefensePart(
            score=_mean(match.score.score for match in matches),
            breaches=_mean(match.score.breaches for match in matches),
            false_positives=_mean(match.score.false_positives for match in matches),
            benign_trials=matches[0].score.benign_trials,
            breaches_by_predicate=_add_up(
                builder.count_breaches(match.verdict.cells) for match in matches
            ),
            false_positives_by_operation=builder.count_operations(trials),
            opponent=self.job.attack_opponent.name,
            steps=sum(found.steps for found in explored),
            budget=self.rules.search.steps * len(matches),
            interactions=sum(found.interactions for found in explored),
            cells=sum(len(found.archive) for found in explored),
            inconsistent=sum(match.inconsistent for match in matches),
            faults=tuple(faults),
            found=found,
            trials=() if one is None else tuple(builder.tell_trials(one.trials)),
            archive=() if one is None else builder.tell_archive(one.exploration.archive, findings),
            digest=digest_of([match.digest for match in matches]),
        )

    def _tell_findings(self, findings: Sequence[Judged], prefix: str) -> tuple[Finding, ...]:
        """Tell what was found, and keep its traces."""
        told = builder.tell_findings(findings, prefix, self.rules)
        ordered = builder.in_order(findings, self.rules)
        self.traces += (
            KeptTrace(one.id, finding.trace.to_json())
            for one, finding in zip(told, ordered, strict=True)
        )
        return told


def tell_model(agent: Agent, budget: int | None = None) -> ModelUse | None:
    """Tell how a metered agent was asked in one match; None for an agent that is not metered.

    `budget` is the number of requests it might have spent: its purse's, unless given.
    """
    metered, recorded = as_metered(agent), as_recorded(agent)
    if metered is None:
        return None
    used = metered.usage()
    return ModelUse(
        name=used.name,
        server=used.server,
        manner=used.manner,
        requests=used.requests,
        budget=(metered.purse.requests or 0) if budget is None else budget,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        cost=None if used.cost is None else used.cost / MICRO,
        repaired=used.repaired,
        no_action=used.no_action,
        refusals=used.refusals,
        dropped_calls=used.dropped_calls,
        record="" if recorded is None else recorded.record_digest,
    )


def _mean(values: Any) -> float:
    numbers = [*values]
    return numbers[0] if len(numbers) == 1 else fsum(numbers) / len(numbers)


def _add_up(counts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items()))


def digest_of(content: Any) -> str:
    return sha256(msgspec.json.encode(content)).hexdigest()
