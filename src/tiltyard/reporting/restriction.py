"""What a competitor may see of an official report: scores and counts, no texts, no times.

A submission sees the hidden world, and its author sees the report. So the report keeps back what a
submission can choose freely, such as how it fails: that would carry a message to the author.
"""

from typing import Final

from msgspec import structs

from tiltyard.isolation.host.failures import FailureKind
from tiltyard.reporting.schema import BrokenMatch, DefensePart, OffensePart, Report

WITHHELD: Final = "the match was broken off; the organizer's full report says why"


def restricted(report: Report) -> Report:
    """Return the competitor's version of an official report."""
    return structs.replace(
        report,
        offense=_restrict_offense(report.offense),
        defense=_restrict_defense(report.defense),
        failures=tuple(map(_restrict_failure, report.failures)),
        notes=(),
        setting=structs.replace(report.setting, seeds=(), scenarios=()),
        seconds={},
        restricted=True,
    )


def _restrict_offense(part: OffensePart | None) -> OffensePart | None:
    if part is None:
        return None
    # The attack chooses how many steps it spends, how many candidates it returns and how often it
    # repeats a finding, so these numbers could carry a message about the hidden world.
    return structs.replace(
        part,
        found=(),
        findings=0,
        findings_by_predicate={},
        raw_volume=0,
        score_volume=0,
        refused={},
        candidates=0,
        steps=0,
        unverified=(),
        models=(),
        inconsistent=min(1, part.inconsistent),
        digest="",
    )


def _restrict_defense(part: DefensePart | None) -> DefensePart | None:
    if part is None:
        return None
    # The figures of the search describe the hidden world. The figures that are not scored, and the
    # number of inconsistent chains, cost the guardrail nothing to choose.
    return structs.replace(
        part,
        found=(),
        trials=(),
        curve=(),
        archive=(),
        faults=(),
        steps=0,
        interactions=0,
        cells=0,
        inconsistent=min(1, part.inconsistent),
        extended=None,
        under_attack=None,
        digest="",
    )


def _restrict_failure(failure: BrokenMatch) -> BrokenMatch:
    """Keep the track alone. A guest chooses how, when and in which world it fails."""
    return BrokenMatch(FailureKind.WITHHELD, WITHHELD, track=failure.track)
