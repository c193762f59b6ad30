"""A worker: takes judgings from the queue and plays them, until a signal ends it.

Workers share nothing but the database. Each start is a new worker with a new name in the queue, so
that two workers can never be taken for one.
"""

import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from django.db import DatabaseError, close_old_connections, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard import __version__
from tiltyard.foundation.printable import printable
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import probe
from tiltyard.rulesets.ruleset import RulesetError, read_ruleset
from tiltyard.service.actions.judgings import Claim, claim, finish, give_back, note_progress
from tiltyard.service.actions.records import record
from tiltyard.service.engine.database import patient
from tiltyard.service.engine.dispatch import dispatch, take_from_ended_jobs, take_from_the_dead
from tiltyard.service.engine.evaluation import Brief, EvaluationError, StoppedError, play
from tiltyard.service.engine.heartbeat import Heartbeat, give_up_silent_workers
from tiltyard.service.engine.messenger import Messenger
from tiltyard.service.engine.queue import Queue
from tiltyard.service.models import Judging, Upload, Worker
from tiltyard.service.terms import key_of, ruleset_text_of

_TICK_SECONDS: Final = 0.5
_LOOK_AT_ALL_JOBS_EVERY: Final = 20.0
_REST_SECONDS: Final = 5.0
_MOST_REST_SECONDS: Final = 60.0


class WorkerError(Exception):
    """A worker cannot start here; the message says why and what to do."""


class MachineError(Exception):
    """Results of this machine are not comparable, so it must not play submissions."""


class Post(Struct, frozen=True):
    """Where a worker works."""

    database: str
    directory: Path
    name: str = ""
    at_once: int = 1
    """How many judgings it plays at the same time."""


def check_machine() -> None:
    """Raise unless results of this machine are comparable."""
    level = probe().level
    if level is not Level.A:
        raise MachineError(
            f"This machine offers isolation level {level}, and a worker needs level A. "
            "Run `tiltyard doctor` to see what is missing."
        )


def check_schema() -> None:
    """Raise unless the tables of the database are those of this version."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise WorkerError(
            "The database does not have the tables of this version. "
            "Start `tiltyard serve` with the same --database first."
        )


def work(post: Post) -> None:
    """Work until SIGTERM or Ctrl-C. A worker that the others gave up begins anew."""
    check_machine()
    check_schema()
    with _own_directory(post.directory) as directory:
        running = _Running(post, directory)
        lost = running.run()
    if lost:
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this very command


@contextmanager
def _own_directory(root: Path) -> Iterator[Path]:
    """Yield a directory that no other living worker uses, and the batteries of earlier ones."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(1, 1_000):
        place = root / f"slot-{number}"
        place.mkdir(exist_ok=True, mode=0o700)
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                yield place
            finally:
                os.close(handle)
            return
        os.close(handle)
    raise WorkerError(f"Every directory in {root} is in use; choose another with --directory.")


class _Running:
    """One start of a worker."""

    def __init__(self, post: Post, directory: Path) -> None:
        self._directory = directory
        self._over = threading.Event()
        self._lost = False
        self._ended = False
        self._worker = Worker.objects.create(
            name=printable(post.name or socket.gethostname(), limit=100),
            engine=__version__,
            level=Level.A.value,
        )
        self._heartbeat = Heartbeat(self._worker, self._give_up)
        self._queue = Queue(post.database, self._worker.pk.hex, post.at_once)
        self._messenger = Messenger()
        self._looked_at_all = 0.0
        self._failed = 0
        """How many evaluations failed here since the last one that did not."""

    def run(self) -> bool:
        """Work until the end. Return whether to begin anew, because the others gave it up."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end())
        record("worker.started", None, worker=self._worker.name)
        self._heartbeat.start()
        self._messenger.start()
        self._queue.launch(self._play)
        print(f"worker {self._worker.name} is ready", file=sys.stderr, flush=True)  # noqa: T201
        try:
            while not self._over.wait(_TICK_SECONDS):
                self._tick()
        finally:
            self._over.set()
            self._leave()
        return self._lost and not self._ended

    def _end(self) -> None:
        self._ended = True
        self._over.set()

    def _give_up(self) -> None:
        self._lost = True
        self._over.set()

    def _leave(self) -> None:
        self._heartbeat.stop()
        self._messenger.stop()
        self._queue.close()
        with suppress(DatabaseError):
            close_old_connections()
            Worker.objects.filter(pk=self._worker.pk, ended_at=None).update(ended_at=Now())

    def _tick(self) -> None:
        """Look after the queue. What fails because the database is away is tried again."""
        try:
            close_old_connections()
            if self._heartbeat.is_steady:
                give_up_silent_workers()
            take_from_the_dead(self._queue)
            if time.monotonic() - self._looked_at_all > _LOOK_AT_ALL_JOBS_EVERY:
                take_from_ended_jobs(self._queue)
                self._looked_at_all = time.monotonic()
            dispatch(self._queue)
        except DatabaseError:
            connection.close()
        except Exception as error:  # noqa: BLE001 - the engine's errors have no common class
            print(f"the queue is not available: {error}", file=sys.stderr)  # noqa: T201

    def _play(self, number: int, job: str) -> str:
        """Play one judging, in a thread of the engine. Return how it ended."""
        held = patient(claim)(number, job, self._worker)
        if held is None:
            return "nothing to play"
        try:
            brief = patient(_brief)(number)
            played = play(brief, self._directory, lambda stage: self._look(held, stage))
            self._failed = 0
            return "stored" if patient(finish)(held, played.shown, played.full) else "too late"
        except StoppedError:
            patient(give_back)(held, "the worker stopped", failed=False)
            return "stopped"
        except (EvaluationError, OSError, RulesetError) as error:
            patient(give_back)(held, str(error))
            self._rest()
            return "given back"
        finally:
            connection.close()

    def _rest(self) -> None:
        """Take no job for a while: on a machine that fails, the whole queue would fail."""
        self._failed += 1
        self._over.wait(min(_MOST_REST_SECONDS, _REST_SECONDS * self._failed))

    def _look(self, held: Claim, stage: str) -> bool:
        """Show the stage. Return whether to go on; without the database, go on."""
        if self._over.is_set():
            return False
        try:
            close_old_connections()
            return note_progress(held, stage)
        except DatabaseError:
            connection.close()
            return True


@transaction.atomic
def _brief(number: int) -> Brief:
    """Return what to play. Raise if this version has another ruleset than the competition."""
    judging = Judging.objects.select_related("submission", "competition").get(pk=number)
    competition = judging.competition
    text = ruleset_text_of(judging)
    rules = read_ruleset(text)
    if rules.digest != judging.ruleset_digest:
        raise EvaluationError(
            f"Tiltyard {__version__} reads another ruleset {rules.id} than the one of this judging"
        )
    key = key_of(competition, judging.phase)
    if judging.key != ("" if key is None else key.fingerprint):
        raise EvaluationError("the competition has another key than the one of this judging")
    content = bytes(Upload.objects.get(pk=judging.submission_id).content)
    return Brief(
        judging.pk,
        judging.submission.digest,
        content,
        text,
        judging.budget,
        "" if key is None else key.secret,
    )
