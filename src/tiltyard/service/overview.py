"""What organizers see at a glance: the queue, its workers, failures, and rejudgings.

Figures of judgings are for organizers alone here, so every function that returns one asks for the
viewer.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, F, Q
from msgspec import Struct

from tiltyard.reporting.leaderboard_schema import League
from tiltyard.service.actions.rejudging import missing_from, terms_of_before
from tiltyard.service.models import Event, Judging, Rejudging, Worker
from tiltyard.service.models.judgings import DONE, OPEN, Phase, State
from tiltyard.service.terms import terms_of_rejudging
from tiltyard.service.visible import Viewer, ranked

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_SHOWN_FAILURES: Final = 2_000
_KINDS: Final = (
    ("the worker stopped", "worker stopped"),
    ("the evaluation ended with code", "evaluation ended"),
    ("the evaluation left no report", "no report"),
    ("No space left", "disk full"),
    ("another ruleset", "another ruleset"),
    ("another key", "another key"),
)


class WorkerView(Struct, frozen=True):
    name: str
    engine: str
    started_at: datetime
    heartbeat_seconds: float
    """The age of the last heartbeat, in the database's time."""
    playing: tuple[int, ...]
    """The judgings that it plays."""


class Glance(Struct, frozen=True):
    """The state of the server. No score is in it."""

    queued: int
    running: int
    broken: int
    oldest_seconds: float | None
    """How long the first judging of the queue has waited."""
    waited_seconds: float | None
    """The median time from the queue to the start, in the last hour."""
    done_hour: int
    done_day: int
    failures: tuple[tuple[str, int], ...]
    """What failed in the last 24 hours on the server's side, and how often."""
    stranded: tuple[tuple[str, int], ...]
    """Versions of Tiltyard that judgings wait for and no worker has, with their number."""
    workers: tuple[WorkerView, ...]


def glance() -> Glance:
    """Return the state of the queue and of the workers."""
    now = _database_time()
    workers = _workers(now)
    open_ones = Judging.objects.filter(state=State.QUEUED)
    first = open_ones.order_by("queued_at").values_list("queued_at", flat=True).first()
    counts = Judging.objects.aggregate(
        queued=Count("pk", filter=Q(state=State.QUEUED)),
        running=Count("pk", filter=Q(state=State.RUNNING)),
        broken=Count("pk", filter=Q(state=State.BROKEN)),
        done_hour=Count("pk", filter=Q(state__in=DONE, finished_at__gt=now - _HOUR)),
        done_day=Count("pk", filter=Q(state__in=DONE, finished_at__gt=now - _DAY)),
    )
    there = {one.engine for one in workers}
    waiting = Counter(open_ones.values_list("engine", flat=True))
    return Glance(
        **counts,
        oldest_seconds=None if first is None else (now - first).total_seconds(),
        waited_seconds=_waited(now),
        failures=_failures(now),
        stranded=tuple(sorted((one, n) for one, n in waiting.items() if one not in there)),
        workers=workers,
    )


def _database_time() -> datetime:
    """Return the time of the database: the one clock that all processes share."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            found: datetime = cursor.fetchone()[0]
            return found
    from django.utils import timezone  # noqa: PLC0415 - SQLite has the clock of this machine

    return timezone.now()


def _workers(now: datetime) -> tuple[WorkerView, ...]:
    found = Worker.objects.filter(ended_at=None).order_by("name", "started_at")
    playing: dict[Any, list[int]] = {}
    for pk, worker in Judging.objects.filter(state=State.RUNNING).values_list("pk", "worker"):
        playing.setdefault(worker, []).append(pk)
    return tuple(
        WorkerView(
            one.name,
            one.engine,
            one.started_at,
            max(0.0, (now - one.heartbeat_at).total_seconds()),
            tuple(sorted(playing.get(one.pk, ()))),
        )
        for one in found
    )


def _waited(now: datetime) -> float | None:
    started = Judging.objects.filter(started_at__gt=now - _HOUR, started_at__gte=F("queued_at"))
    rows = started.values_list("queued_at", "started_at").order_by("-started_at")[:_SHOWN_FAILURES]
    waits = sorted((late - early).total_seconds() for early, late in rows if late is not None)
    return waits[len(waits) // 2] if waits else None


def _failures(now: datetime) -> tuple[tuple[str, int], ...]:
    events = Event.objects.filter(
        at__gt=now - _DAY,
        kind__in=("judging.requeued", "judging.broken", "judging.taken_over", "worker.lost"),
    )
    found: Counter[str] = Counter()
    for kind, data in events.order_by("-pk").values_list("kind", "data")[:_SHOWN_FAILURES]:
        found[_kind_of(kind, str(data.get("why", "")))] += 1
    return tuple(found.most_common())


def _kind_of(kind: str, why: str) -> str:
    if kind in ("worker.lost", "judging.taken_over"):
        return {"worker.lost": "worker lost", "judging.taken_over": "taken over"}[kind]
    return next((name for words, name in _KINDS if words in why), "other")


class Difference(Struct, frozen=True):
    """What a rejudging changes for one submission."""

    team: str
    submission: str
    name: str
    before: float | None
    after: float | None
    state: str
    """The state under the new terms; empty if it is not judged again."""
    same: bool
    """Whether the results have the same digest."""

    @property
    def change(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before


class Changes(Struct, frozen=True):
    """The report of a rejudging, the largest change first."""

    rows: tuple[Difference, ...]
    same: int
    changed: int
    open: int
    missing: int
    """Submissions on the board that have no result under the new terms yet."""
    ranks: tuple[tuple[str, int | None, int | None], ...]
    """The teams whose rank changes, with the old and the new rank."""


def changes_of(rejudging: Rejudging, viewer: Viewer) -> Changes | None:
    """Return what a rejudging changes; None for all but organizers."""
    if not viewer.organizes:
        return None
    base = Judging.objects.filter(competition=rejudging.competition, phase=Phase.BOARD)
    base = base.filter(submission__cancelled_at=None).select_related("submission__team")
    old = {one.submission_id: one for one in base.filter(**terms_of_before(rejudging).fields)}
    new = {one.submission_id: one for one in base.filter(**terms_of_rejudging(rejudging).fields)}
    rows = [_difference(old.get(pk), judging) for pk, judging in new.items()]
    rows.sort(key=lambda one: (-abs(one.change or 0.0), one.team, one.name))
    ended = [one for one in rows if one.state in DONE]
    return Changes(
        tuple(rows),
        sum(one.same for one in ended),
        sum(not one.same for one in ended),
        sum(one.state in OPEN for one in rows),
        missing_from(rejudging).count() if rejudging.is_open else 0,
        _ranks(old, new),
    )


def _difference(old: Judging | None, new: Judging) -> Difference:
    return Difference(
        new.submission.team.name,
        str(new.submission_id),
        new.submission.name,
        None if old is None else old.final_score,
        new.final_score,
        new.state,
        old is not None and bool(old.results) and old.results == new.results,
    )


def _ranks(old: dict[Any, Judging], new: dict[Any, Judging]) -> tuple[Any, ...]:
    """Return the teams whose rank differs, as far as all of their submissions are judged again."""
    before, after = _places(old), _places({**old, **new})
    teams = sorted({*before, *after}, key=lambda team: (after.get(team) or 1 << 30, team))
    found = [(team, before.get(team), after.get(team)) for team in teams]
    return tuple(one for one in found if one[1] != one[2])


def _places(judgings: dict[Any, Judging]) -> dict[str, int]:
    scored = [one for one in judgings.values() if one.final_score is not None]
    board = ranked([one for one in scored if not one.objections], League("", "", "", ""))
    return {one.run.name: one.rank for one in board.standings}
