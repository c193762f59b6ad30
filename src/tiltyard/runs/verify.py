"""Verify a report: play its run again from its directory, and compare every figure."""

from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.failures import FailureKind
from tiltyard.matches.opponents import Opponent
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import Report
from tiltyard.runs.evaluate import check_jail
from tiltyard.runs.job import PUBLIC_TASKS, Job, Worlds, make_job
from tiltyard.runs.play import play_job
from tiltyard.runs.request import Request, read_request
from tiltyard.runs.stage import Places, Records
from tiltyard.runs.store import Store, StoreError, exchanges_in, full_report, load_report

_NOT_COMPARED: Final = (
    "isolation",
    "started",
    "output",
    "seconds",
    "notes",
    "restricted",
    "digest",
)
"""Fields that say where, when and how fast a run was played, what the submission printed, and the
digest, which `Verified` has."""


class Trust(Struct, frozen=True):
    """Which code of a run the caller lets run outside the jail."""

    unsafe: bool = False
    """True if the submissions may run outside the jail."""
    agent: str = ""
    """The user's own agent that may run outside the jail, as `package.module:Class`."""


NO_TRUST: Final = Trust()


class Verified(Struct, frozen=True):
    """The difference between a report and the same run, played again."""

    expected: str
    """The digest in the report."""
    found: str
    """The digest of the run played again."""
    different: tuple[str, ...]
    """Fields of the report with another value, whatever its digest says."""
    failures: tuple[str, ...] = ()
    """Why matches stopped before their end, if any did."""

    @property
    def same(self) -> bool:
        return self.expected == self.found and not self.different


def verify(
    path: Path,
    store: Store,
    *,
    worlds: Worlds | None = None,
    trust: Trust = NO_TRUST,
    progress: Progress = NO_PROGRESS,
) -> Verified:
    """Play the run of a report again from its directory, and compare.

    The directory may come from a stranger, so only the caller's `trust` lets code run unjailed.
    """
    worlds = worlds or Worlds()
    check_jail(unsafe=trust.unsafe)
    report = load_report(path)
    _check_verifiable(full_report(path.parent, report), worlds)
    store.prepare()
    with store.scratch() as scratch:
        request = read_request(path.parent)
        _check_agent(request, trust.agent)
        job = _job_again(path.parent, request, report, scratch, worlds)
        # A model would not answer the same again, so the match is played from its record alone.
        exchanges = exchanges_in(path.parent, official=worlds.key is not None)
        records = Records(exchanges, closed=True)
        done = play_job(
            job,
            places=Places(records=records, batteries=store.batteries),
            unsafe=trust.unsafe,
            progress=progress,
        ).report
    played = restricted(done) if report.restricted else done
    failures = tuple(failure.message for failure in done.failures)
    return Verified(report.digest, done.digest, _differences(report, played), failures)


def _check_verifiable(report: Report, worlds: Worlds) -> None:
    if any(failure.kind is FailureKind.AGENT for failure in report.failures):
        raise StoreError(
            "the agent failed in this match, so there is nothing to compare; run the same "
            "`tiltyard evaluate` again to continue it"
        )
    if report.setting.key and worlds.key is None:
        raise StoreError("this is an official run: verify it with the organizer's --key")
    if report.setting.key != worlds.fingerprint:
        played = report.setting.key or "no key"
        raise StoreError(f"the run was played with {played}, and this key is {worlds.fingerprint}")
    tasks = "" if report.arena is None else report.arena.tasks
    sealed = PUBLIC_TASKS if worlds.sealed is None else worlds.sealed.fingerprint
    if tasks and tasks != sealed:
        raise StoreError(
            f"this run was played with the tasks {tasks}, not {sealed}: verify it with the "
            "organizer's --sealed directory"
        )


def _check_agent(request: Request, agent: str) -> None:
    """Raise if the run has a user's own agent that the caller did not name."""
    played = request.agent
    if played.is_own and not agent:
        raise StoreError(
            f"this run was played with the agent {played.name}, whose code runs outside the "
            f"sandbox; if it is your own, name it: --agent {played.name}"
        )
    if agent and agent != played.name:
        raise StoreError(f"this run was played with the agent {played.name}, not {agent}")


def _job_again(
    directory: Path, request: Request, report: Report, scratch: Path, worlds: Worlds
) -> Job:
    """Return the job of a run, from the submissions in its directory."""
    opponent = next((str(one) for one in directory.glob("opposing-*")), request.opponent)
    again = structs.replace(request, submission=str(directory / "submission"), opponent=opponent)
    job = make_job(again, scratch, worlds)
    if job.submission.digest != report.submission.digest:
        raise StoreError(f"{directory / 'submission'} is not the submission of this report")
    # In a run's directory every submission has the same name. The report has the real ones.
    setting = report.setting
    return structs.replace(
        job,
        submission=structs.replace(job.submission, name=report.submission.name),
        guardrail_opponent=_renamed(job.guardrail_opponent, setting.offense_opponent),
        attack_opponent=_renamed(job.attack_opponent, setting.defense_opponent),
    )


def _renamed(opponent: Opponent, name: str) -> Opponent:
    """Give a submission the name in the report. A rung keeps its own, which says what it is."""
    return opponent if opponent.submission is None else structs.replace(opponent, name=name)


def _differences(report: Report, played: Report) -> tuple[str, ...]:
    """Return the names of all fields in which two reports of a run differ."""
    ignored = {*_NOT_COMPARED}
    if report.isolation.level != played.isolation.level:
        ignored |= {"comparable", "not_comparable_because"}
    if report.setting.packages != played.setting.packages:
        # This machine has other packages. They may explain a difference, and are not a forgery.
        ignored |= {"run_id", "setting.packages"}
    before, after = _fields(report), _fields(played)
    names = {*before, *after} - ignored
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def _fields(report: Report) -> dict[str, Any]:
    """Return the fields of a report, and those of its parts, as `offense.score`."""
    fields = structs.asdict(report)
    for name in ("offense", "defense", "arena", "setting"):
        part = fields.pop(name)
        if part is not None:
            fields |= {f"{name}.{field}": value for field, value in structs.asdict(part).items()}
    return fields
