"""Make the report of a run from the outcomes of its tracks."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from tiltyard import __version__
from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.tracks import CLASSES, TRACK_OF, Track
from tiltyard.isolation.host.limits import Level
from tiltyard.reporting import builder
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.reporting.match_parts import KeptTrace, digest_of
from tiltyard.reporting.schema import (
    BrokenMatch,
    DefensePart,
    Isolation,
    OffensePart,
    Report,
    Setting,
    Submitted,
)
from tiltyard.rulesets.packages import installed_packages
from tiltyard.runs.job import Game, Job

PLANTED: Final = "planted content"
"""The name of the arena's own attacks."""


class TrackOutcome(Struct, frozen=True):
    """The result of one track: a part of the report, or a failure."""

    track: Track
    part: OffensePart | DefensePart | ArenaPart | None = None
    notes: tuple[str, ...] = ()
    traces: tuple[KeptTrace, ...] = ()
    failure: BrokenMatch | None = None
    output: str = ""
    """What the submission printed. Empty in official runs."""
    seconds: float = 0.0


class Evaluation(Struct, frozen=True):
    """The report of a job, and the traces of its findings."""

    report: Report
    traces: tuple[KeptTrace, ...]


def conclude(
    job: Job, games: Sequence[Game], outcomes: Sequence[TrackOutcome], isolation: Isolation
) -> Evaluation:
    """Make the report of a job from the outcomes of its tracks."""
    parts = [one.part for one in outcomes if one.part is not None]
    failures = tuple(one.failure for one in outcomes if one.failure is not None)
    reasons = [*_incomparable_because(isolation), *job.departures()]
    reasons += (f"the {failure.track} match was broken off" for failure in failures)
    reasons += (reason for part in parts for reason in inconsistencies(part))
    # Not how they failed: an official report shows the digest too.
    failed = sorted(failure.track for failure in failures)
    report = Report(
        run_id=job.run_id,
        digest=digest_of([[part.digest for part in parts], failed]),
        final_score=None if failures else fsum(part.score for part in parts),
        offense=next((part for part in parts if isinstance(part, OffensePart)), None),
        defense=next((part for part in parts if isinstance(part, DefensePart)), None),
        arena=next((part for part in parts if isinstance(part, ArenaPart)), None),
        isolation=isolation,
        comparable=not reasons,
        not_comparable_because=tuple(reasons),
        ruleset=job.ruleset.id,
        setting=_setting(job, games),
        submission=_submitted(job),
        engine=__version__,
        formula=builder.build_formula(job.rules),
        failures=failures,
        notes=(*_notes(job), *(note for one in outcomes for note in one.notes)),
        output={one.track: one.output for one in outcomes if one.output},
        seconds={one.track: one.seconds for one in outcomes},
    )
    return Evaluation(report, tuple(trace for one in outcomes for trace in one.traces))


def _incomparable_because(isolation: Isolation) -> Iterator[str]:
    if isolation.unsafe:
        yield "it was played without a jail"
    elif isolation.level != Level.A.value:
        yield f"the isolation level is {isolation.level}, and only A is comparable"


def inconsistencies(part: OffensePart | DefensePart | ArenaPart) -> Iterator[str]:
    """Yield why a report is not comparable, if guests did not behave the same both times."""
    if not part.inconsistent:
        return
    if isinstance(part, OffensePart):
        yield "the attack returned something else when it was run again"
    elif isinstance(part, ArenaPart):
        yield "a fresh guardrail decided sampled cells differently"
    else:
        yield "a fresh guardrail decided sampled chains differently"


def _setting(job: Job, games: Sequence[Game]) -> Setting:
    agent = job.agent if "offense" in job.tracks else AgentChoice()
    return Setting(
        ruleset=job.ruleset.id,
        ruleset_digest=job.ruleset.digest,
        budget=job.budget,
        seeds=job.seeds,
        scenarios=tuple(game.scenario.digest for game in games),
        agent=agent.name,
        offense_opponent=job.guardrail_opponent.name,
        defense_opponent=job.attack_opponent.name if job.ruleset.arena is None else PLANTED,
        packages=installed_packages(job.ruleset),
        key=job.worlds.fingerprint,
        official_seeds=0 if job.worlds.key is None else max(1, len(games)),
    )


def _submitted(job: Job) -> Submitted:
    submission = job.submission
    files = {file.path: file.size for file in submission.files}
    return Submitted(submission.name, submission.digest, files, job.tracks)


def _notes(job: Job) -> Iterator[str]:
    """Yield what the author should know before the notes of the matches."""
    submission = job.submission
    for part, name in CLASSES.items():
        has_file = any(file.path == f"{part}.py" for file in submission.files)
        if has_file and part not in submission.modules:
            yield f"{part}.py has no class {name}, so {TRACK_OF[part]} was not played."
    if "defense" in job.tracks and not job.agent.is_default:
        yield (
            "A defense match always has the deterministic agent. To try a guardrail with another, "
            "use `tiltyard probe --agent`."
        )
