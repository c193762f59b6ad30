"""Progress of long commands: bars on a terminal, lines in a pipe. Both go to stderr."""

import sys
from time import monotonic
from typing import Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tiltyard.cli.terminal import safe

LINE_EVERY_SECONDS: Final = 15.0


class ProgressBars:
    """Shows one bar per stage on a terminal; with `lines`, prints lines where there is none."""

    def __init__(self, *, lines: bool = False) -> None:
        self._progress = Progress(
            TextColumn("{task.description:24}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task: TaskID | None = None
        self._lines = _Lines() if lines and self._progress.disable else None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int) -> None:
        if self._lines is not None:
            self._lines.begin(what, total)
        if self._task is not None:
            self._progress.update(self._task, completed=1, total=1)
        self._task = self._progress.add_task(safe(what), total=total, note="")

    def step(self, done: int, note: str) -> None:
        if self._lines is not None:
            self._lines.step(done, note)
        if self._task is not None:
            self._progress.update(self._task, completed=done, note=safe(note))


class _Lines:
    """Prints a line when a stage begins, and then one every few seconds."""

    def __init__(self) -> None:
        self._what, self._total, self._next = "", 1, 0.0

    def begin(self, what: str, total: int) -> None:
        self._what, self._total = what, max(1, total)
        self._print(what)

    def step(self, done: int, note: str) -> None:
        if monotonic() >= self._next:
            self._print(f"{self._what}: {done / self._total:.0%}{f' ({note})' if note else ''}")

    def _print(self, line: str) -> None:
        self._next = monotonic() + LINE_EVERY_SECONDS
        typer.echo(safe(line), err=True)
