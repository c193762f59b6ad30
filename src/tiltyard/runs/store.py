"""Where runs are kept: `.tiltyard/runs/<run_id>/`, one directory each.

A run's directory has the submission as it was accepted, the logs from which an interrupted run
goes on, and in the end `report.json`, `report.html` and the findings' traces. A report is there
whole or not at all, and it is written last: it says that a run is finished.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tiltyard.foundation.files import write_whole
from tiltyard.reporting.schema import Report, ReportError, read_report, write_report

REPORT: Final = "report.json"
PAGE: Final = "report.html"
FULL: Final = "full"
"""In an official run: what the organizer alone may see."""
EXCHANGES: Final = "exchanges"
"""Where everything is kept that a model was asked and answered."""
MAX_REPORT_BYTES: Final = 200_000_000


class StoreError(Exception):
    """Runs cannot be kept here, or the one that is wanted is not here."""


class Store:
    """A directory of runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"

    def prepare(self) -> None:
        """Make the directories, or say why that cannot be: before hours of work, not behind."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise StoreError(
                f"runs cannot be kept in {self.root}: {_why(error)}. Name another with --store."
            ) from None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give a directory that is gone afterwards, on the same disk as the runs."""
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self.runs) as name:
            yield Path(name)

    def directory(self, run_id: str) -> Path:
        return self.runs / run_id

    def finished(self, run_id: str) -> Report | None:
        """Return the report of a run that came to its end."""
        path = self.directory(run_id) / REPORT
        return load_report(path) if path.is_file() else None

    def adopt(self, run_id: str, submission: Path, *, fresh: bool) -> Path:
        """Make a run's directory and move the submission there.

        What is left of an earlier attempt stays, unless it is to be fresh.
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
        """Keep others from playing the same run at the same time."""
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
        """Yield the finished runs, the newest first; what is no report of ours is passed over."""
        if not self.runs.is_dir():
            return
        paths = [path for path in self.runs.glob(f"*/{REPORT}") if path.is_file()]
        for path in sorted(paths, key=lambda one: (-one.stat().st_mtime_ns, one)):
            try:
                yield path.parent, load_report(path)
            except ReportError:
                continue


def _refuse_links(*paths: Path) -> None:
    """Raise if somebody put a link where a run is to be written: it would be followed."""
    for path in paths:
        if path.is_symlink():
            raise StoreError(f"{path} is a link, and nothing is written through it; remove it")


def save(directory: Path, files: dict[str, bytes], report: Report) -> Path:
    """Write a run's files, and its report behind them."""
    try:
        for name, data in files.items():
            write_whole(directory / name, data)
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


def has_record(report: Path) -> bool:
    """Tell whether what a model answered lies beside a report."""
    places = (report.parent / EXCHANGES, report.parent / FULL / EXCHANGES)
    return any(place.is_dir() for place in places)


def find_report(wanted: str, store: Store) -> Path:
    """Return the file of a report that is named by path, by directory or by run id."""
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
