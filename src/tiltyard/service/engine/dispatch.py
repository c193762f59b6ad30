"""Keep the queue moving: every open judging has a job, and every job has a living worker.

The rows of judgings are the truth. The engine's workflows deliver them to workers, and may be lost,
end early or belong to a dead worker. This module compares both, in one worker at a time.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from tiltyard.service.actions.judgings import take_away
from tiltyard.service.actions.records import try_lock
from tiltyard.service.models import Judging, Worker
from tiltyard.service.models.judgings import OPEN, State

_AT_ONCE: Final = 200
_LOCK: Final = "dispatch"


class Running(Protocol):
    """A job that an executor has taken."""

    @property
    def workflow_id(self) -> str: ...

    @property
    def executor_id(self) -> str | None: ...


class Jobs(Protocol):
    """What the dispatcher needs of the engine."""

    def start(self, job: str, judging: int, engine: str) -> None:
        """Queue a job, unless there is one with this name."""

    def taken(self) -> Iterable[Running]:
        """Return the jobs that an executor has taken and not finished."""

    def ended(self, jobs: list[str]) -> set[str]:
        """Return which jobs have ended or do not exist."""

    def drop(self, job: str) -> None:
        """Cancel a job that nobody waits for."""


def dispatch(jobs: Jobs) -> int:
    """Give jobs to judgings that have none. Return how many were given."""
    with transaction.atomic():
        if not try_lock(_LOCK):
            return 0
        waiting = list(_without_job()[:_AT_ONCE])
        for judging in waiting:
            job = f"judging-{judging.pk}-{judging.jobs + 1}"
            jobs.start(job, judging.pk, judging.engine)
            Judging.objects.filter(pk=judging.pk).update(job=job, jobs=F("jobs") + 1)
        return len(waiting)


def _without_job() -> QuerySet[Judging]:
    """Return the queued judgings without a job, in order.

    Of equal bytes under equal terms, one is played. The others wait for its result.
    """
    same = {
        name: OuterRef(name)
        for name in ("submission__digest", "ruleset_digest", "budget", "key", "engine")
    }
    twins = Judging.objects.filter(**same, state__in=OPEN).exclude(pk=OuterRef("pk"))
    busy = twins.filter(~Q(job="") | Q(pk__lt=OuterRef("pk")))
    found = Judging.objects.filter(state=State.QUEUED, job="", not_before__lte=Now())
    return found.filter(~Exists(busy)).order_by("pk")


def take_from_the_dead(jobs: Jobs) -> int:
    """Put back judgings whose job a worker took that is gone. Return how many there are."""
    taken = list(jobs.taken())
    # Read the workers afterwards: one that starts meanwhile is registered before it takes a job.
    alive = {pk.hex for pk in Worker.objects.filter(ended_at=None).values_list("pk", flat=True)}
    dead = [one.workflow_id for one in taken if one.executor_id not in alive]
    for job in dead:
        jobs.drop(job)
    return sum(map(take_away, dead))


def take_from_ended_jobs(jobs: Jobs) -> int:
    """Put back judgings whose job has ended without their result. Return how many there are."""
    named = Judging.objects.filter(state__in=OPEN).exclude(job="")
    ended = jobs.ended(list(named.values_list("job", flat=True)))
    # A job that ended a moment ago has stored its result first, and `take_away` sees it.
    return sum(map(take_away, sorted(ended)))
