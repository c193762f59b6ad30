"""The life of a judging: queued, claimed, finished; given back, cancelled, retried.

Every change is one transaction that checks the state first, so it happens once or not at all.
"""

import zlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard.reporting.leaderboard_schema import Entry
from tiltyard.reporting.schema import Report, write_report
from tiltyard.rulesets.ruleset import read_ruleset
from tiltyard.runs.job import departures_of
from tiltyard.service.actions.records import audit, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, Judging, StoredReport, Submission, Worker
from tiltyard.service.models.judgings import DONE, OPEN, Reason, State
from tiltyard.service.terms import Terms, ruleset_text_of, terms_of
from tiltyard.standings.report_set import entry_of

MAX_FAILURES: Final = 5
"""After so many failures of ours, a judging waits for an organizer."""
_FIRST_PAUSE_SECONDS: Final = 2


class Claim(Struct, frozen=True):
    """The right to play a judging, until another worker has claimed it."""

    judging: int
    fence: int


def queue_judging(
    submission: Submission, phase: str, reason: str, terms: Terms | None = None
) -> Judging:
    """Queue a judging under the current terms, or under others, unless there is one already."""
    terms = terms or terms_of(submission.competition, phase)
    judging, is_new = Judging.objects.get_or_create(
        submission=submission,
        **terms.fields,
        defaults={
            "competition": submission.competition,
            "phase": phase,
            "reason": reason,
        },
    )
    if is_new:
        record("judging.queued", judging)
    return judging


@transaction.atomic
def claim(number: int, job: str, worker: Worker) -> Claim | None:
    """Start a judging for a worker. Return None if there is nothing to play.

    A result of the same bytes under the same terms is taken over instead.
    """
    judging = _locked(number)
    if judging.state not in OPEN or judging.job != job:
        return None
    if not Worker.objects.filter(pk=worker.pk, ended_at=None).exists():
        return None
    twin = _twins(judging).filter(state__in=DONE).first()
    if twin is not None and twin.report_id is not None:
        _adopt(judging, twin)
        return None
    judging.state, judging.worker, judging.progress = State.RUNNING, worker, ""
    judging.fence += 1
    judging.save(update_fields=["state", "worker", "progress", "fence"])
    Judging.objects.filter(pk=number).update(started_at=Now())
    record("judging.started", judging, worker=worker.name, start=judging.fence)
    return Claim(number, judging.fence)


def _twins(judging: Judging) -> Any:
    """Return the judgings of the same bytes under the same terms, the other teams' too."""
    terms = Terms(judging.ruleset_digest, judging.budget, judging.key, judging.engine)
    found = Judging.objects.filter(submission__digest=judging.submission.digest, **terms.fields)
    return found.exclude(pk=judging.pk).order_by("pk")


_FIGURES: Final = (
    "run_id",
    "results",
    "final_score",
    "offense",
    "raw",
    "defense",
    "breaches",
    "false_positives",
    "benign_trials",
    "low",
    "high",
    "objections",
)


def _adopt(judging: Judging, twin: Judging) -> None:
    for name in ("state", "why", "report", *_FIGURES):
        setattr(judging, name, getattr(twin, name))
    judging.save(update_fields=["state", "why", "report", *_FIGURES])
    Judging.objects.filter(pk=judging.pk).update(started_at=Now(), finished_at=Now())
    record(f"judging.{judging.state}", judging, same_bytes=True)


@transaction.atomic
def finish(held: Claim, shown: Report, full: Report | None) -> bool:
    """Store the report of a judging. Return False if the claim is no longer valid."""
    judging = _locked(held.judging)
    if not _is_held(judging, held):
        return False
    store_report(judging, shown, full)
    judging.state = State.UNSCORED if shown.final_score is None else State.SCORED
    judging.why = "; ".join(failure.message for failure in shown.failures)[:500]
    judging.save()
    Judging.objects.filter(pk=judging.pk).update(finished_at=Now())
    record(f"judging.{judging.state}", judging)
    return True


def store_report(judging: Judging, shown: Report, full: Report | None) -> None:
    """Give a judging its report and its figures, without saving the judging."""
    judging.report = StoredReport.objects.create(
        shown=zlib.compress(write_report(shown)),
        full=None if full is None else zlib.compress(write_report(full)),
    )
    entry = entry_of(shown)
    judging.objections = [*_objections(entry, judging)]
    judging.run_id, judging.results = entry.run_id, entry.results
    for name in ("final_score", "offense", "raw", "defense", "breaches", "false_positives"):
        setattr(judging, name, getattr(entry, name))
    judging.benign_trials = entry.benign_trials
    if shown.arena is not None:
        judging.low, judging.high = shown.arena.low, shown.arena.high


def _objections(entry: Entry, judging: Judging) -> Iterable[str]:
    """Yield why a run cannot be ranked, apart from what the competition has chosen."""
    rules = read_ruleset(ruleset_text_of(judging))
    chosen = {*departures_of(rules, judging.budget)}
    return (reason for reason in entry.why_not if reason not in chosen)


@transaction.atomic
def note_progress(held: Claim, text: str) -> bool:
    """Show how far a judging is. Return False if the claim is no longer valid."""
    kept = Judging.objects.filter(pk=held.judging, fence=held.fence, state=State.RUNNING)
    return bool(kept.update(progress=text[:120]))


@transaction.atomic
def give_back(held: Claim, why: str, *, failed: bool = True) -> None:
    """Put a judging back into the queue that the server could not play.

    With `failed`, the next try comes later each time, and after the last one an organizer decides.
    """
    judging = _locked(held.judging)
    if not _is_held(judging, held):
        return
    judging.failures += failed
    is_over = judging.failures >= MAX_FAILURES
    judging.state = State.BROKEN if is_over else State.QUEUED
    judging.why, judging.job, judging.progress = why[:500] if is_over else "", "", ""
    judging.save(update_fields=["failures", "state", "why", "job", "progress"])
    pause = timedelta(seconds=_FIRST_PAUSE_SECONDS**judging.failures if failed else 0)
    Judging.objects.filter(pk=judging.pk).update(
        not_before=Now() + pause, **({"finished_at": Now()} if is_over else {})
    )
    record(f"judging.{'broken' if is_over else 'requeued'}", judging, why=why[:500])


@transaction.atomic
def take_away(job: str) -> bool:
    """Put a judging back whose job has ended, or whose worker is gone."""
    judging = Judging.objects.select_for_update().filter(job=job, state__in=OPEN).first()
    if judging is None:
        return False
    judging.state, judging.job, judging.progress = State.QUEUED, "", ""
    judging.fence += 1  # The worker may only be frozen, and must find the door closed.
    judging.save(update_fields=["state", "job", "progress", "fence"])
    record("judging.taken_over", judging)
    return True


@transaction.atomic
def cancel(submission: Submission, account: Account) -> None:
    """Withdraw a submission before its first judging has started. It takes no quota then.

    Judgings that an organizer has asked for are not a competitor's to cancel.
    """
    found = Judging.objects.select_for_update().filter(submission=submission)
    judgings = list(found)
    first = [one for one in judgings if one.reason == Reason.SUBMITTED]
    if any(one.state != State.QUEUED for one in first) or len(first) != len(judgings) or not first:
        raise ServiceError("This submission has started, so it cannot be cancelled.", 409)
    found.update(state=State.CANCELLED, finished_at=Now(), job="")
    Submission.objects.filter(pk=submission.pk).update(cancelled_at=Now())
    audit("submission.cancel", account, submission.competition, str(submission.pk))
    for one in first:
        record("judging.cancelled", one)


@transaction.atomic
def retry(judging: Judging, account: Account) -> None:
    """Queue a judging again that the server failed to play."""
    judging = _locked(judging.pk)
    if judging.state != State.BROKEN:
        raise ServiceError(
            f"Only a broken judging can be retried, and this one is {judging.state}.", 409
        )
    judging.state, judging.why, judging.failures, judging.job = State.QUEUED, "", 0, ""
    judging.save(update_fields=["state", "why", "failures", "job"])
    Judging.objects.filter(pk=judging.pk).update(
        queued_at=Now(), not_before=Now(), finished_at=None
    )
    audit("judging.retry", account, judging.competition, str(judging.pk))
    record("judging.queued", judging)


def _locked(number: int) -> Judging:
    found = Judging.objects.select_for_update(of=("self",))
    return found.select_related("submission", "competition").get(pk=number)


def _is_held(judging: Judging, held: Claim) -> bool:
    return judging.fence == held.fence and judging.state == State.RUNNING
