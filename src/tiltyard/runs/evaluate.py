"""Evaluate a submission: from a request to a directory with a report.

A finished run comes from the store and is not played again. An interrupted one continues.
"""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from tiltyard import __version__
from tiltyard.foundation.processes import Task, run_tasks
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.opponents import Opponent, OpponentError
from tiltyard.reporting.schema import Report
from tiltyard.runs.job import Job, Worlds, make_job
from tiltyard.runs.play import play_job
from tiltyard.runs.request import Request, write_request
from tiltyard.runs.stage import Places, Records
from tiltyard.runs.store import FULL, Store, StoreError, exchanges_in, full_report, save_run
from tiltyard.submissions import SubmissionError

LOGS: Final = "logs"
_MAY_PASS_NEXT_TIME: Final = ("deadline", "died", "agent")


class Finished(Struct, frozen=True):
    """A run in the store."""

    directory: Path
    report: Report
    """For an official run, the competitor's version."""
    from_store: bool = False
    """True if the run was played before."""


class Unplayed(Struct, frozen=True):
    """A submission that cannot be played, and why."""

    submission: str
    reason: str


def evaluate_all(  # noqa: PLR0913 - all but two have defaults
    requests: Sequence[Request],
    store: Store,
    *,
    worlds: Worlds | None = None,
    fresh: bool = False,
    progress: Progress = NO_PROGRESS,
    at_once: int = 1,
) -> list[Finished | Unplayed]:
    """Evaluate several submissions. The results are the same for any number `at_once`.

    Official runs come one after the other, and each plays its worlds at the same time: the first
    run builds the batteries of these worlds for all others. Practice runs play at the same time.
    """

    def play(request: Request, together: int, shown: Progress) -> Finished | Unplayed:
        shown = _NamedProgress(shown, Path(request.submission).name)
        try:
            return evaluate(
                request, store, worlds=worlds, fresh=fresh, progress=shown, at_once=together
            )
        except (SubmissionError, OpponentError, StoreError) as error:
            return Unplayed(request.submission, str(error))

    check_jail(unsafe=any(request.unsafe for request in requests))
    numbers = _first_of_equal_runs(requests, store, worlds)
    first = {number: requests[number] for number in dict.fromkeys(numbers)}
    if at_once == 1 or (worlds is not None and worlds.key is not None):
        results = [play(request, at_once, progress) for request in first.values()]
    else:
        tasks = [
            Task(
                Path(one.submission).name, partial(play, one, 1), partial(Unplayed, one.submission)
            )
            for one in first.values()
        ]
        results = run_tasks(tasks, at_once, progress)
    played = dict(zip(first, results, strict=True))
    return [
        structs.replace(done, submission=request.submission) if isinstance(done, Unplayed) else done
        for request, done in zip(requests, map(played.__getitem__, numbers), strict=True)
    ]


def _first_of_equal_runs(
    requests: Sequence[Request], store: Store, worlds: Worlds | None
) -> list[int]:
    """Return for each request the number of the first one that is the same run.

    Copies of a submission have the same run id, and two processes cannot play one run.
    """
    store.prepare()
    first: dict[str, int] = {}
    numbers: list[int] = []
    for number, request in enumerate(requests):
        try:
            with store.scratch() as scratch:
                whole = structs.replace(request, agent=request.agent.in_full())
                run_id = make_job(whole, scratch, worlds).run_id
        except (SubmissionError, OpponentError, StoreError):
            numbers.append(number)  # Playing it says what is wrong.
        else:
            numbers.append(first.setdefault(run_id, number))
    return numbers


class _NamedProgress:
    """Adds the name of a submission to each stage."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = name

    def begin(self, what: str, total: int) -> None:
        self._progress.begin(f"{self._name}: {what}", total)

    def step(self, done: int, note: str) -> None:
        self._progress.step(done, note)


def evaluate(  # noqa: PLR0913 - all but two have defaults
    request: Request,
    store: Store,
    *,
    worlds: Worlds | None = None,
    fresh: bool = False,
    progress: Progress = NO_PROGRESS,
    at_once: int = 1,
) -> Finished:
    """Play the matches of a submission, or return the run from the store.

    `fresh` ignores the store and plays again. An official run plays `at_once` of its worlds at the
    same time.
    """
    check_jail(unsafe=request.unsafe)
    request = structs.replace(request, agent=request.agent.in_full())
    store.prepare()
    with ExitStack() as stack:
        scratch = stack.enter_context(store.scratch())
        job = make_job(request, scratch, worlds)
        stack.enter_context(store.locked(job.run_id))
        found = None if fresh else _find_finished(store, job, unsafe=request.unsafe)
        if found is not None:
            return found
        if "offense" in job.tracks:
            job.agent.check_key()
        job = _move_to_store(job, store, fresh=fresh)
        return _play(request, job, store, progress, at_once)


def check_jail(*, unsafe: bool) -> None:
    """Raise if this machine has no jail, unless the user has chosen to play without one."""
    if not unsafe and probe().level is Level.C:
        raise NoJailError("this machine cannot confine the code of a submission")


def _find_finished(store: Store, job: Job, *, unsafe: bool) -> Finished | None:
    """Return the run if it was played before at the same isolation level."""
    report = store.finished(job.run_id)
    if report is None:
        return None
    # A late guest may be in time when it plays again. Every other failure would repeat.
    failures = full_report(store.directory(job.run_id), report).failures
    if any(one.kind in _MAY_PASS_NEXT_TIME for one in failures):
        return None
    if job.agent.is_own and "offense" in job.tracks:
        return None  # The same name may stand for other code by now.
    level = Level.C if unsafe else probe().level
    if report.isolation.level != level.value:
        return None
    return Finished(store.directory(job.run_id), report, from_store=True)


def _move_to_store(job: Job, store: Store, *, fresh: bool) -> Job:
    """Move the submissions from the scratch directory to the directory of the run."""
    root = store.adopt(job.run_id, job.submission.root, fresh=fresh)
    return structs.replace(
        job,
        submission=structs.replace(job.submission, root=root),
        guardrail_opponent=_move_beside(job.guardrail_opponent, root),
        attack_opponent=_move_beside(job.attack_opponent, root),
    )


def _move_beside(opponent: Opponent, root: Path) -> Opponent:
    if opponent.submission is None:
        return opponent
    kept = root.parent / opponent.submission.root.name
    shutil.rmtree(kept, ignore_errors=True)
    opponent.submission.root.rename(kept)
    return structs.replace(opponent, submission=structs.replace(opponent.submission, root=kept))


def _play(request: Request, job: Job, store: Store, progress: Progress, at_once: int) -> Finished:
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    directory = store.directory(job.run_id)
    write_request(request, directory)
    if job.worlds.key is not None:
        (directory / FULL).mkdir(mode=0o700, exist_ok=True)
    run_log = RunLog(directory / "run.log", progress)
    # A jailed run must not continue from what a guest without a jail has logged.
    logs = directory / (f"unsafe-{LOGS}" if request.unsafe else LOGS)
    logs.mkdir(exist_ok=True)
    records = Records(exchanges_in(directory, official=job.worlds.key is not None))
    done = play_job(
        job,
        places=Places(logs, records, store.batteries),
        unsafe=request.unsafe,
        progress=run_log,
        at_once=at_once,
    )
    run_log.write(f"final score {done.report.final_score}, digest {done.report.digest}")
    shown = save_run(directory, structs.replace(done.report, started=started), done.traces)
    shutil.rmtree(logs)
    return Finished(directory, shown)


class RunLog:
    """Writes the stages of a run to `run.log`, and passes all progress on."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._path = path
        self._progress = progress
        self.write(f"tiltyard {__version__}")

    def write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def begin(self, what: str, total: int) -> None:
        self.write(f"{what}: {total} steps")
        self._progress.begin(what, total)

    def step(self, done: int, note: str) -> None:
        self._progress.step(done, note)
