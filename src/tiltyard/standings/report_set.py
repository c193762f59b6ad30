"""Read many reports, and find out which of them can be compared.

Report files get copied, edited and mixed up. This module therefore checks every report once, for
all commands that compare reports. An entry that is not comparable carries the reasons.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice
from tiltyard.isolation.host.limits import Level
from tiltyard.reporting.leaderboard_schema import Entry, League, Unread
from tiltyard.reporting.schema import Report, ReportError
from tiltyard.runs.store import REPORT, has_record, load_report

ROUNDING: Final = 6
"""Scores are compared with this many decimals, because the last bits of a sum are noise."""


class ReportSetError(ValueError):
    """There is no report to compare; the message says what to do."""


class ReportSet(Struct, frozen=True):
    """Each run once, in an order that does not depend on where the reports are."""

    runs: tuple[Entry, ...]
    unread: tuple[Unread, ...] = ()
    files: dict[str, Path] = {}
    """The report file of each run, by run id."""

    @property
    def comparable(self) -> tuple[Entry, ...]:
        return tuple(run for run in self.runs if not run.why_not)

    @property
    def not_comparable(self) -> tuple[Entry, ...]:
        return tuple(run for run in self.runs if run.why_not)


def gather(paths: Sequence[Path]) -> ReportSet:
    """Read reports from files, directories of runs, directories of reports, and stores.

    A path to a file must be a report. In a directory, other files go to `unread`.
    """
    files: dict[Entry, Path] = {}
    unread: set[Unread] = set()
    for path in paths:
        if not path.exists():
            raise ReportSetError(f"{path} does not exist; name reports or directories of runs")
        named = path.is_file()
        for file in [path] if named else _reports_in(path):
            try:
                run = entry_of(load_report(file), recorded=has_record(file))
                files.setdefault(run, file)
            except ReportError as error:
                if named:
                    raise ReportSetError(str(error)) from None
                unread.add(Unread(str(file), str(error).removeprefix(f"{file}: ")))
    if not files:
        found = f": {min(unread).path}: {min(unread).reason}" if unread else ""
        where = ", ".join(map(str, paths))
        raise ReportSetError(f"no report in {where}{found}; `tiltyard evaluate` makes one")
    runs = tuple(_once_each(files))
    by_id = {run.run_id: file for run, file in files.items()}
    by_id |= {run.run_id: files[run] for run in runs if run in files}
    return ReportSet(runs, tuple(sorted(unread)), by_id)


def _reports_in(directory: Path) -> list[Path]:
    """Return the report files of a run, of a store, or of a directory of runs or reports."""
    if (directory / REPORT).is_file():
        return [directory / REPORT]
    if (directory / "runs").is_dir():
        directory = directory / "runs"
    found = [*directory.glob(f"*/{REPORT}"), *directory.glob("*.json")]
    return sorted(path for path in found if path.is_file())


def entry_of(report: Report, *, recorded: bool = False) -> Entry:
    """Return the entry of a report, with the reasons if it is not comparable.

    `recorded` says whether the record of a language model's answers is there. Without the record, a
    match with a language model cannot be checked.
    """
    offense, defense, setting = report.offense, report.defense, report.setting
    defended = defense or report.arena
    return Entry(
        name=report.submission.name,
        run_id=report.run_id,
        submission=report.submission.digest,
        results=report.digest,
        league=League(setting.ruleset, setting.ruleset_digest, report.engine, setting.key),
        final_score=report.final_score,
        offense=None if offense is None else offense.score,
        raw=None if offense is None else offense.raw,
        defense=None if defended is None else defended.score,
        breaches=None if defense is None else defense.breaches,
        false_positives=None if defense is None else defense.false_positives,
        benign_trials=None if defense is None else defense.benign_trials,
        why_not=tuple(_objections(report, recorded=recorded)),
    )


def _objections(report: Report, *, recorded: bool) -> Iterator[str]:
    yield from report.not_comparable_because
    if report.not_comparable_because:
        return
    parts = [
        part.score for part in (report.offense, report.defense, report.arena) if part is not None
    ]
    agent = AgentChoice(report.setting.agent).traits
    if not report.comparable:
        yield "the report says that it is not comparable, but gives no reason"
    elif report.isolation.level != Level.A.value or report.isolation.unsafe:
        yield f"the isolation level is {report.isolation.level}; only level A is comparable"
    elif report.final_score is None or not parts:
        yield "the report has no final score"
    elif agent.recorded and not recorded:
        yield "the agent is a model, and the record of its answers is not next to the report"
    elif not agent.pure and not agent.recorded:
        yield "the agent is the submitter's own"
    elif not all(isfinite(number) for number in (report.final_score, *parts)):
        yield "its scores are not finite numbers"
    elif round(report.final_score - sum(parts), ROUNDING):
        yield "the final score is not the sum of its matches: the report was changed"


def _once_each(runs: Iterable[Entry]) -> Iterator[Entry]:
    """Yield every run once, although several copies of its report may exist.

    The same inputs give the same results. If two reports of a run disagree, neither counts.
    """
    by_id: dict[str, list[Entry]] = {}
    for run in runs:
        by_id.setdefault(run.run_id, []).append(run)
    for _, copies in sorted(by_id.items()):
        # A run that was also played at a lower isolation level stays comparable at level A.
        copies.sort(key=lambda run: (len(run.why_not), run.why_not, structs.astuple(run)[:4]))
        first = copies[0]
        results = {(run.results, run.final_score) for run in copies if not run.why_not}
        if len(results) > 1:
            first = structs.replace(first, why_not=("two reports of this run disagree",))
        yield first


def leagues_of(runs: Iterable[Entry]) -> dict[League, list[Entry]]:
    """Return the runs of each league, in the order of the leagues."""
    found: dict[League, list[Entry]] = {}
    for run in runs:
        found.setdefault(run.league, []).append(run)
    return dict(sorted(found.items()))
