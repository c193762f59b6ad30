"""The heartbeat of a worker, in the database's time, and who has none."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.db import DatabaseError, close_old_connections, connection, transaction
from django.db.models.functions import Now

from tiltyard.service.actions.records import record
from tiltyard.service.models import Worker

BEAT_SECONDS: Final = 3.0
LOST_AFTER: Final = timedelta(seconds=15)


class Heartbeat:
    """Beats in a thread of its own, until the worker ends or was given up by the others."""

    def __init__(self, worker: Worker, when_lost: Callable[[], None]) -> None:
        self._worker = worker
        self._when_lost = when_lost
        self._stop = threading.Event()
        self._steady_since: float | None = None
        self._last = 0.0
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    @property
    def is_steady(self) -> bool:
        """Whether this worker has beaten without a gap for as long as others may be silent.

        After the database was away, or this process was frozen, every heartbeat looks old. Nobody
        may be given up because of that.
        """
        now, since = time.monotonic(), self._steady_since
        if since is None or now - self._last > 2 * BEAT_SECONDS:
            return False
        return now - since >= LOST_AFTER.total_seconds()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                close_old_connections()
                kept = Worker.objects.filter(pk=self._worker.pk, ended_at=None)
                if not kept.update(heartbeat_at=Now()):
                    self._when_lost()
                    return
            except DatabaseError:
                connection.close()
                self._steady_since = None
            else:
                self._note_beat()
            self._stop.wait(BEAT_SECONDS)
        connection.close()

    def _note_beat(self) -> None:
        now = time.monotonic()
        if self._steady_since is None or now - self._last > 3 * BEAT_SECONDS:
            self._steady_since = now
        self._last = now


@transaction.atomic
def give_up_silent_workers() -> int:
    """End the workers whose heartbeat has stopped. Return how many there are."""
    silent = list(
        Worker.objects.select_for_update().filter(
            ended_at=None, heartbeat_at__lt=Now() - LOST_AFTER
        )
    )
    for worker in silent:
        Worker.objects.filter(pk=worker.pk).update(ended_at=Now(), lost=True)
        record("worker.lost", None, worker=worker.name)
    return len(silent)
