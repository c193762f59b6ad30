"""Progress bars on a terminal."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class ProgressBars:
    """Shows one bar per stage on a terminal, and nothing when stderr is not a terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:24}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=1, total=1)
        self._task = self._progress.add_task(what, total=total, note="")

    def step(self, done: int, note: str) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done, note=note)
