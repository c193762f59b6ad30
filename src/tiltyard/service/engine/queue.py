"""The engine: DBOS delivers jobs to workers, with SQLite or PostgreSQL."""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

from tiltyard import __version__
from tiltyard.service.engine.dispatch import Running
from tiltyard.service.environment import (
    TIMEOUT_SECONDS,
    queue_url,
    session_options,
    sqlite_path,
)

QUEUE: Final = "judgings"
_ENDED: Final = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
_POLL_SECONDS: Final = 0.5


class Queue:
    """The jobs of all workers. `play` plays one judging, in a thread of this process."""

    def __init__(self, database: str, executor: str, at_once: int) -> None:
        url = queue_url(database)
        path = sqlite_path(url)
        kwargs: dict[str, Any] = {"pool_pre_ping": True}
        if path is not None:
            _set_up(str(path))
            kwargs["connect_args"] = {"timeout": TIMEOUT_SECONDS}
        else:
            kwargs["connect_args"] = {"options": session_options(database)}
        config: DBOSConfig = {
            "name": "tiltyard",
            "system_database_url": url,
            "db_engine_kwargs": kwargs,
            "executor_id": executor,
            "application_version": __version__,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "ERROR",
            "enable_otlp": False,
            "use_listen_notify": False,
        }
        self._at_once = at_once
        DBOS(config=config)

    def launch(self, play: Callable[[int, str], str]) -> None:
        """Begin to take jobs. `play` gets the judging and the name of the job."""

        @DBOS.step(name="play")
        def step(judging: int) -> str:
            return play(judging, str(DBOS.workflow_id))

        @DBOS.workflow(name="judge")
        def judge(judging: int) -> str:
            return step(judging)

        DBOS.launch()
        DBOS.register_queue(
            QUEUE, worker_concurrency=self._at_once, polling_interval_sec=_POLL_SECONDS
        )

    def close(self) -> None:
        DBOS.destroy(destroy_registry=True)

    def start(self, job: str, judging: int, engine: str) -> None:
        options: Any = {
            "workflow_name": "judge",
            "queue_name": QUEUE,
            "workflow_id": job,
            "app_version": engine,
        }
        DBOS.enqueue_workflow_with_options(options, judging)

    def taken(self) -> Iterable[Running]:
        return DBOS.list_workflows(
            status="PENDING", queue_name=QUEUE, load_input=False, load_output=False
        )

    def ended(self, jobs: list[str]) -> set[str]:
        if not jobs:
            return set()
        known = DBOS.list_workflows(workflow_ids=jobs, load_input=False, load_output=False)
        going_on = {one.workflow_id for one in known if one.status not in _ENDED}
        return {*jobs} - going_on

    def drop(self, job: str) -> None:
        DBOS.cancel_workflow(job)


def _set_up(path: str) -> None:
    """Let readers and writers of the file work at the same time. The file remembers it."""
    with sqlite3.connect(path, timeout=TIMEOUT_SECONDS) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
