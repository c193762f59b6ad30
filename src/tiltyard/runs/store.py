"""The store: `.tiltyard/runs/<run_id>/`, one directory for each run.

A run's directory holds the submission, the logs from which an interrupted run continues, and at
the end `report.json`, `report.html` and the traces of the findings. `report.json` is written
last, in one step: if it exists, the run is finished.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from tiltyard.foundation.files import write_whole
from tiltyard.reporting.match_parts import KeptTrace
from tiltyard.reporting.report_page import render
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import Report, ReportError, read_report, write_report

REPORT: Final = "report.json"
PAGE: Final = "report.html"
FULL: Final = "full"
"""The directory of an official run that only the organizer may see."""
EXCHANGES: Final = "exchanges"
"""The directory with every question to a model and its answer."""
MAX_REPORT_BYTES: Final = 200_000_000
_SCRATCH: Final = ".new-"


class StoreError(Exception):
    """The store cannot be written to, or does not have the run."""


class Store:
    """A directory of runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.batteries = root / "batteries"
        """The batteries of defense matches. Those of official worlds are as secret as the key."""

    def prepare(self) -> None:
        """Make the directories. Fail now if the disk is not writable, not after hours of play."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise StoreError(
                f"runs cannot be kept in {self.root}: {_why(error)}. "
                "Choose another directory with --store."
            ) from None
        self._remove_abandoned()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a temporary directory on the same disk as the runs.

        This process holds a lock on the directory. So another process can tell whether the
        directory is in use, even after a kill.
        """
        with ExitStack() as stack:
            with self._alone():
                made = tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self.runs)
                stack.callback(_unlock, _lock(Path(made.name)))
                stack.enter_context(made)
            yield Path(made.name)

    def _remove_abandoned(self) -> None:
        """Remove the temporary directories of processes that were killed."""
        with self._alone() as alone:
            found = self.runs.glob(f"{_SCRATCH}*") if alone else ()
            locks = {path: lock for path in found if (lock := _lock(path)) is not None}
        for path, lock in locks.items():
            shutil.rmtree(path, ignore_errors=True)
            _unlock(lock)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Keep others from looking at a temporary directory before it is locked.

        Yield False if the file system has no locks.
        """
        lock = _lock(self.runs.resolve(), wait=True)
        try:
            yield lock is not None
        finally:
            _unlock(lock)

    def directory(self, run_id: str) -> Path:
        return self.runs / run_id

    def finished(self, run_id: str) -> Report | None:
        """Return the report of a finished run; None if the run is not finished."""
        path = self.directory(run_id) / REPORT
        return load_report(path) if path.is_file() else None

    def adopt(self, run_id: str, submission: Path, *, fresh: bool) -> Path:
        """Make a run's directory and move the submission there.

        The logs of an earlier attempt stay, unless `fresh` is true.
        """
        directory = self.directory(run_id)
        places = "submission", "run.log", EXCHANGES, FULL
        _refuse_links(directory, *(directory / place for place in places))
        if fresh and directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(exist_ok=True)
        kept = directory / "submission"
        if kept.exists():
            shutil.rmtree(kept)
        submission.rename(kept)
        return kept

    @contextmanager
    def locked(self, run_id: str) -> Iterator[None]:
        """Keep other processes from playing the same run at the same time."""
        path = self.runs / f".{run_id}.lock"
        _refuse_links(path)
        with path.open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(f"run {run_id} is being played by another process") from None
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def all(self) -> Iterator[tuple[Path, Report]]:
        """Yield the finished runs, the newest first. Skip files that are not reports."""
        if not self.runs.is_dir():
            return
        paths = [path for path in self.runs.glob(f"*/{REPORT}") if path.is_file()]
        for path in sorted(paths, key=lambda one: (-one.stat().st_mtime_ns, one)):
            try:
                yield path.parent, load_report(path)
            except ReportError:
                continue

    def newest(self, count: int) -> list[Path]:
        """Return the reports of the newest finished runs, the newest first."""
        paths = [directory / REPORT for directory, _ in islice(self.all(), count)]
        if len(paths) < count:
            raise StoreError(
                f"no finished runs in {self.root}; name a run"
                if not paths
                else f"only one finished run in {self.root}; evaluate again, or name two runs"
            )
        return paths


def _lock(directory: Path, *, wait: bool = False) -> int | None:
    """Lock a directory. Return None if another process has the lock, or if nothing can be locked.

    The kernel frees the lock when the process ends.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(directory, flags)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _refuse_links(*paths: Path) -> None:
    """Raise if a path is a link: writing would follow it out of the store."""
    for path in paths:
        if path.is_symlink():
            raise StoreError(f"{path} is a link; remove it: Tiltyard does not write through links")


def save_run(directory: Path, report: Report, traces: Sequence[KeptTrace] = ()) -> Report:
    """Write a report, its page and its traces. Return the report that a competitor may see.

    The full report of an official run goes to a directory of its own, without traces.
    """
    files = {f"traces/{trace.name}.json": trace.data for trace in traces}
    if report.setting.key:
        files = {f"{FULL}/{REPORT}": write_report(report), f"{FULL}/{PAGE}": _page(report)}
        report = restricted(report)
    save(directory, {**files, PAGE: _page(report)}, report)
    return report


def _page(report: Report) -> bytes:
    return render(report).encode()


def save(directory: Path, files: dict[str, bytes], report: Report) -> Path:
    """Write a run's files, and then its report."""
    try:
        for name, data in files.items():
            write_whole(directory / name, data, secret=name.startswith(f"{FULL}/"))
        write_whole(directory / REPORT, write_report(report))
    except OSError as error:
        raise StoreError(f"the report cannot be written to {directory}: {_why(error)}") from None
    return directory / REPORT


def load_report(path: Path) -> Report:
    """Read a report from its file."""
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            raise ReportError(f"{path} is too large to be a report")
        data = path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {_why(error)}") from None
    try:
        return read_report(data)
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from None


def full_report(directory: Path, shown: Report) -> Report:
    """Return the organizer's version of a report, if its directory has one."""
    path = directory / FULL / REPORT
    return load_report(path) if shown.restricted and path.is_file() else shown


def exchanges_in(directory: Path, *, official: bool) -> Path:
    """Return where a run keeps its exchanges with a model. Those of a hidden world are hidden."""
    return directory / FULL / EXCHANGES if official else directory / EXCHANGES


def has_record(report: Path) -> bool:
    """Return whether the exchanges with a model lie beside a report."""
    places = (report.parent / EXCHANGES, report.parent / FULL / EXCHANGES)
    return any(place.is_dir() for place in places)


def find_report(wanted: str, store: Store) -> Path:
    """Find a report by its path, its directory or the first digits of its run id."""
    for path in (Path(wanted), Path(wanted) / REPORT):
        if path.is_file():
            return path
    known = [path.parent.name for path in store.runs.glob(f"*/{REPORT}")]
    fitting = [run_id for run_id in sorted(known) if wanted and run_id.startswith(wanted)]
    if len(fitting) == 1:
        return store.directory(fitting[0]) / REPORT
    if fitting:
        raise StoreError(f"{wanted!r} could be any of {', '.join(fitting[:5])}; give more digits")
    raise StoreError(
        f"there is no report {wanted!r}, neither as a path nor as a run in {store.root}; "
        "`tiltyard history` lists the runs"
    )


def _why(error: OSError) -> str:
    return error.strerror or str(error)
