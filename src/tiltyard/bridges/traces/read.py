"""Read all runs of files and directories, one at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadFileError, TraceError
from tiltyard.bridges.traces.formats import READERS, Format, detect
from tiltyard.bridges.traces.streams import open_source
from tiltyard.foundation.files import reason_of
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.studies.recorded import RecordedRun, Skipped

SUFFIXES: Final = (".jsonl", ".json", ".ndjson", ".eval")
UNKNOWN: Final = "the format is unknown; name it with --format: " + ", ".join(
    one.value for one in Format
)


def find_traces(paths: Sequence[Path], without: Sequence[Path] = ()) -> list[Path]:
    """Return the trace files among paths and in directories, in a fixed order.

    `without` are files that are something else, such as the one with the tools.
    """
    excluded = {path.resolve() for path in without}
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise TraceError(f"{path} does not exist; name files or directories with traces")
        inside = sorted(filter(_is_trace, path.rglob("*"))) if path.is_dir() else [path]
        found.update(dict.fromkeys(one for one in inside if one.resolve() not in excluded))
    if not found:
        suffixes = ", ".join(SUFFIXES)
        raise TraceError(f"there is no trace: expected files with {suffixes}, or these with .gz")
    return [*found]


def _is_trace(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return name.endswith(SUFFIXES) and not name.startswith(".") and path.is_file()


class TraceReader:
    """Reads runs from files. It holds one run at a time, and a few lists of tools."""

    def __init__(
        self,
        files: Sequence[Path],
        format_: Format | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._files = files
        self._format = format_
        self._progress = progress
        self._lists = ToolLists()

    def runs(self) -> Iterator[RecordedRun | Skipped]:
        """Yield all runs, and what had to be skipped."""
        sizes = [_size(path) for path in self._files]
        self._progress.begin("reading traces", max(1, sum(sizes)))
        done = 0
        for path, size in zip(self._files, sizes, strict=True):
            try:
                yield from self._read(path, done)
            except BadFileError as error:
                yield Skipped(str(path), str(error))
            except OSError as error:
                yield Skipped(str(path), reason_of(error))
            done += size
            self._progress.step(done, path.name)

    def _read(self, path: Path, done: int) -> Iterator[RecordedRun | Skipped]:
        with open_source(path) as source:
            chosen = self._format or detect(source.head)
            if not source.head.strip():
                return
            if chosen is None:
                raise BadFileError(UNKNOWN)
            for one in READERS[chosen](source, self._lists):
                yield one
                self._progress.step(done + source.position, path.name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
