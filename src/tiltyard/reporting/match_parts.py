"""Turn played matches into the parts of a report, with notes for the author and kept traces.

Several matches of one track, over official seeds, make one part: scores and counts are means, steps
and candidates are totals, and single findings are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct

from tiltyard.contracts.agent import Agent, as_metered, as_recorded
from tiltyard.contracts.purse import MICRO
from tiltyard.isolation.host.failures import GuardrailFault
from tiltyard.judge.findings import Finding as Judged
from tiltyard.matches.defense import DefenseMatch
from tiltyard.matches.offense import OffenseMatch
from tiltyard.matches.understanding import Understanding
from tiltyard.reporting import builder
from tiltyard.reporting.schema import (
    Battery,
    DefensePart,
    ModelUse,
    OffensePart,
    Point,
    Understood,
    Unverified,
)
from tiltyard.rulesets.ruleset import Ruleset


class KeptTrace(Struct, frozen=True):
    """The trace of a finding, stored beside the report under the finding's id."""

    name: str
    data: bytes


def build_offense_part(
    matches: Sequence[OffenseMatch], models: Sequence[ModelUse], opponent: str, ruleset: Ruleset
) -> OffensePart:
    """Build the report's offense part. `models` has one entry for each match with a model."""
    verdicts = [match.verdict for match in matches]
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    alone = len(matches) == 1
    return OffensePart(
        score=_mean(match.score.score for match in matches),
        raw=_mean(match.score.raw for match in matches),
        score_volume=_mean(match.score.score_volume for match in matches),
        raw_volume=_mean(match.score.raw_volume for match in matches),
        findings=_mean(sum(count for _, count in verdict.weights) for verdict in verdicts),
        findings_by_predicate=_means_by_name(dict(verdict.weights) for verdict in verdicts),
        cells_by_predicate=_means_by_name(
            builder.count_predicates(verdict.cells) for verdict in verdicts
        ),
        cores=_mean(match.score.cores for match in matches),
        unique_cells=_mean(match.score.cells for match in matches),
        opponent=opponent,
        candidates=sum(match.candidates for match in matches),
        refused=builder.count_refused(one for verdict in verdicts for one in verdict.refused),
        steps=sum(match.steps for match in matches),
        budget=ruleset.attack.steps * len(matches),
        inconsistent=sum(match.inconsistent for match in matches),
        unverified=tuple(
            Unverified(one.index, one.reason) for verdict in verdicts for one in verdict.unverified
        ),
        models=tuple(models),
        understood=_understood(matches[0].understanding) if alone else None,
        found=builder.build_findings(findings, "A", ruleset) if alone else (),
        digest=digest_of([match.digest for match in matches]),
    )


def _understood(heard: Understanding | None) -> Understood | None:
    return None if heard is None else Understood(heard.messages, heard.understood, heard.example)


def build_defense_part(
    matches: Sequence[DefenseMatch],
    faults: Sequence[GuardrailFault],
    opponent: str,
    ruleset: Ruleset,
    offending: Mapping[int, Sequence[str]],
) -> DefensePart:
    """Build the report's defense part. `faults` are errors inside the guardrail.

    `offending` names the arguments that the guardrail objects to, by the number of the trial.
    """
    findings = [finding for match in matches for finding in match.verdict.findings]
    explored = [match.exploration for match in matches]
    alone = matches[0] if len(matches) == 1 else None
    return DefensePart(
        score=_mean(match.score.score for match in matches),
        breaches=_mean(match.score.breaches for match in matches),
        false_positives=_mean(match.score.false_positives for match in matches),
        benign_trials=matches[0].score.benign_trials,
        breaches_by_predicate=_means_by_name(
            builder.count_breaches(match.verdict.cells) for match in matches
        ),
        false_positives_by_operation=_means(
            builder.count_operations(match.trials) for match in matches
        ),
        opponent=opponent,
        steps=sum(search.steps for search in explored),
        budget=ruleset.search.steps * len(matches),
        interactions=sum(search.interactions for search in explored),
        cells=sum(len(search.archive) for search in explored),
        battery=Battery(
            sum(len(match.battery.chains) for match in matches),
            sum(match.battery.steps for match in matches),
        ),
        inconsistent=sum(match.inconsistent for match in matches),
        faults=tuple(faults),
        found=()
        if alone is None
        else builder.build_findings(findings, "D", ruleset, alone.found_by),
        trials=() if alone is None else tuple(builder.build_trials(alone.trials, offending)),
        curve=tuple(
            Point(status.epoch, status.steps, status.interactions, status.cells, status.claims)
            for status in matches[-1].curve
        ),
        archive=() if alone is None else builder.build_archive(alone.exploration.archive, findings),
        digest=digest_of([match.digest for match in matches]),
    )


def note_offense(part: OffensePart) -> Iterator[str]:
    """Yield what the attack's author should look at."""
    if not part.candidates:
        yield "The attack returned no candidates, so there was nothing to judge."
    elif sum(part.refused.values()) == part.candidates:
        yield f"Every candidate was refused; the first reason: {next(iter(part.refused))}."
    elif not part.findings and not part.unverified:
        yield "No candidate broke anything: the opponent held, or nothing happened."
    if part.unverified:
        yield (
            f"{len(part.unverified)} of the candidates could not be verified within the judge's "
            "budget, and count for nothing."
        )


def note_defense(
    matches: Sequence[DefenseMatch], faults: Sequence[GuardrailFault]
) -> Iterator[str]:
    """Yield what the guardrail's author should look at."""
    if all(trial.false_positive for match in matches for trial in match.trials):
        yield "The guardrail let no benign task through: does it deny everything?"
    if faults:
        yield f"The guardrail failed in {len(faults)} or more calls: {faults[0].text}"


def keep_traces(
    matches: Sequence[OffenseMatch] | Sequence[DefenseMatch], ids: Sequence[str], ruleset: Ruleset
) -> tuple[KeptTrace, ...]:
    """Return the traces of the findings in a report, which are listed under `ids`."""
    if not ids:
        return ()
    findings: list[Judged] = [one for match in matches for one in match.verdict.findings]
    ordered = builder.in_order(findings, ruleset)
    return tuple(
        KeptTrace(name, finding.trace.to_json()) for name, finding in zip(ids, ordered, strict=True)
    )


def describe_model(agent: Agent, budget: int | None = None) -> ModelUse | None:
    """Describe what a metered agent spent in one match; None for an agent that is not metered.

    `budget` is the number of requests it could have spent: its purse's, unless given.
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


def digest_of(content: Any) -> str:
    return sha256(msgspec.json.encode(content)).hexdigest()


def _mean(values: Iterable[float]) -> float:
    numbers = [*values]
    return numbers[0] if len(numbers) == 1 else fsum(numbers) / len(numbers)


def _means(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """Return the mean of each count; a match that does not name it counts as 0."""
    listed = [*counts]
    names = dict.fromkeys(name for count in listed for name in count)
    return {name: _mean(count.get(name, 0) for count in listed) for name in names}


def _means_by_name(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    return dict(sorted(_means(counts).items()))
