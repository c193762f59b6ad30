"""What a competitor may see of an official report: scores and counts, no texts, no times.

A submission sees the hidden world, and its author sees the report. So the report keeps back what a
submission can choose freely, such as how it fails: that would carry a message to the author.
"""

import math
from typing import Final

from msgspec import structs

from tiltyard.isolation.host.failures import FailureKind
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.reporting.schema import BrokenMatch, DefensePart, OffensePart, Report

_COARSE: Final = 10
"""Figures of the arena that a guardrail can choose without losing points are multiples of this."""
WITHHELD: Final = "the match was broken off; the organizer's full report says why"


def restricted(report: Report) -> Report:
    """Return the competitor's version of an official report."""
    return structs.replace(
        report,
        offense=_restrict_offense(report.offense),
        defense=_restrict_defense(report.defense),
        arena=_restrict_arena(report.arena),
        failures=tuple(map(_restrict_failure, report.failures)),
        notes=(),
        setting=structs.replace(report.setting, seeds=(), scenarios=()),
        output={},
        # The minutes between two runs would tell how long the first one took.
        started=report.started.partition("T")[0],
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
        understood=None,
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


def _restrict_arena(part: ArenaPart | None) -> ArenaPart | None:
    if part is None:
        return None
    # Every cell costs a guardrail the same, whatever loses it. So it could choose freely how it
    # loses a cell, or change a call without an effect, and the counts could carry a message. Nor
    # does it matter for the score which cells it loses, or whether it loses public ones: so these
    # figures are coarse.
    return structs.replace(
        part,
        low=math.floor(part.low / _COARSE) * _COARSE,
        high=math.ceil(part.high / _COARSE) * _COARSE,
        solved=None,
        breached=None,
        untouched=None,
        inconsistent=min(1, part.inconsistent),
        public_score=None if part.public_score is None else _coarse(part.public_score),
        by_pack=tuple(
            structs.replace(group, score=_coarse(group.score), solved=None, breached=None)
            for group in part.by_pack
        ),
        by_way=(),
        faults=(),
        lost=(),
        digest="",
    )


def _coarse(score: float) -> float:
    return float(round(score / _COARSE) * _COARSE)


def _restrict_failure(failure: BrokenMatch) -> BrokenMatch:
    """Keep the track alone. A guest chooses how, when and in which world it fails."""
    return BrokenMatch(FailureKind.WITHHELD, WITHHELD, track=failure.track)
