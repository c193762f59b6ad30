"""The field: many reports, read from wherever they lie, and which of them may stand together.

A report is a file, and files are copied, edited and mixed up. So what a report says of itself is
looked at here once, for all who compare reports: a run that cannot stand beside others keeps the
reasons with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice
from tiltyard.isolation.host.limits import Level
from tiltyard.reporting.schema import Report, ReportError
from tiltyard.runs.store import REPORT, has_record, load_report

ROUNDING: Final = 6
"""Decimals in which scores are compared: a sum's last bits are nobody's merit."""


class FieldError(ValueError):
    """There is nothing to compare, and what to do about it."""


class League(Struct, frozen=True, order=True):
    """What runs must have in common to be ranked together."""

    ruleset: str
    ruleset_digest: str
    engine: str
    key: str
    """The fingerprint of the organizer's key; empty for the public seed."""

    @property
    def title(self) -> str:
        seeds = f"official seeds of key {self.key}" if self.key else "public seed"
        return f"ruleset {self.ruleset}, {seeds}, Tiltyard {self.engine}"


class Run(Struct, frozen=True):
    """What comparisons need of a report. A track that was not played is None."""

    name: str
    run_id: str
    submission: str
    """The digest of its bytes."""
    results: str
    """The digest of what it came to."""
    league: League
    final_score: float | None
    offense: float | None
    raw: float | None
    defense: float | None
    breaches: float | None
    false_positives: float | None
    benign_trials: int | None
    why_not: tuple[str, ...] = ()
    """Why it cannot be compared; empty if it can."""


class Unread(Struct, frozen=True, order=True):
    """A file that should have been a report."""

    path: str
    reason: str


class Field(Struct, frozen=True):
    """Each run once, in an order that has nothing to do with where they lay."""

    runs: tuple[Run, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def comparable(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.why_not)

    @property
    def apart(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.why_not)


def gather(paths: Sequence[Path]) -> Field:
    """Read reports: files, directories of runs or of reports, and stores.

    A file that was named must be a report; in a directory, what is none is told of.
    """
    runs: list[Run] = []
    unread: set[Unread] = set()
    for path in paths:
        if not path.exists():
            raise FieldError(f"there is no {path}; name reports, or directories of runs")
        named = path.is_file()
        for file in [path] if named else _reports_in(path):
            try:
                runs.append(run_of(load_report(file), recorded=has_record(file)))
            except ReportError as error:
                if named:
                    raise FieldError(str(error)) from None
                unread.add(Unread(str(file), str(error).removeprefix(f"{file}: ")))
    if not runs:
        found = f": {min(unread).path}: {min(unread).reason}" if unread else ""
        where = ", ".join(map(str, paths))
        raise FieldError(f"there is no report in {where}{found}; `tiltyard evaluate` makes one")
    return Field(tuple(_once_each(runs)), tuple(sorted(unread)))


def _reports_in(directory: Path) -> list[Path]:
    """Return the reports of a run, of a store, or of a directory with either kind in it."""
    if (directory / REPORT).is_file():
        return [directory / REPORT]
    if (directory / "runs").is_dir():
        directory = directory / "runs"
    found = [*directory.glob(f"*/{REPORT}"), *directory.glob("*.json")]
    return sorted(path for path in found if path.is_file())


def run_of(report: Report, *, recorded: bool = False) -> Run:
    """Return what comparisons need of a report, and whether it may be compared.

    A match with a language model can be checked by its record alone, so that must be there.
    """
    offense, defense, setting = report.offense, report.defense, report.setting
    return Run(
        name=report.submission.name,
        run_id=report.run_id,
        submission=report.submission.digest,
        results=report.digest,
        league=League(setting.ruleset, setting.ruleset_digest, report.engine, setting.key),
        final_score=report.final_score,
        offense=None if offense is None else offense.score,
        raw=None if offense is None else offense.raw,
        defense=None if defense is None else defense.score,
        breaches=None if defense is None else defense.breaches,
        false_positives=None if defense is None else defense.false_positives,
        benign_trials=None if defense is None else defense.benign_trials,
        why_not=tuple(_objections(report, recorded=recorded)),
    )


def _objections(report: Report, *, recorded: bool) -> Iterator[str]:
    yield from report.not_comparable_because
    if report.not_comparable_because:
        return
    parts = [part.score for part in (report.offense, report.defense) if part is not None]
    agent = AgentChoice(report.setting.agent).traits
    if not report.comparable:
        yield "it says that it is not comparable, and not why"
    elif report.isolation.level != Level.A.value or report.isolation.unsafe:
        yield f"the isolation level is {report.isolation.level}, and only A is comparable"
    elif report.final_score is None or not parts:
        yield "it has no final score"
    elif agent.recorded and not recorded:
        yield "its agent is a model, and the record of what it answered is not beside the report"
    elif not agent.pure and not agent.recorded:
        yield "its agent is one of the submitter's own"
    elif not all(isfinite(number) for number in (report.final_score, *parts)):
        yield "its scores are not numbers"
    elif round(report.final_score - sum(parts), ROUNDING):
        yield "its final score is not the sum of its matches: the report was changed"


def _once_each(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield every run once: a report may lie in several places, a competitor's beside the full one.

    The same inputs have the same results. Where two reports of a run disagree, neither counts.
    """
    by_id: dict[str, list[Run]] = {}
    for run in runs:
        by_id.setdefault(run.run_id, []).append(run)
    for _, copies in sorted(by_id.items()):
        # Played in a lesser jail as well, the run is still comparable where it was in a good one.
        copies.sort(key=lambda run: (len(run.why_not), run.why_not, structs.astuple(run)[:4]))
        first = copies[0]
        told = {(run.results, run.final_score) for run in copies if not run.why_not}
        if len(told) > 1:
            first = structs.replace(first, why_not=("two reports of this run disagree",))
        yield first


def leagues_of(runs: Iterable[Run]) -> dict[League, list[Run]]:
    """Return runs by what they have in common."""
    found: dict[League, list[Run]] = {}
    for run in runs:
        found.setdefault(run.league, []).append(run)
    return dict(sorted(found.items()))
