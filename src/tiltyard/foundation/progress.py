"""Progress of long work: one protocol for everything that takes a while."""

from typing import Final, Protocol


class Progress(Protocol):
    """Receives the progress of long work: a terminal's bar, a log, or nothing."""

    def begin(self, what: str, total: int) -> None:
        """Start a stage named `what` that takes `total` steps."""

    def step(self, done: int, note: str) -> None:
        """Report that `done` steps of the current stage are complete."""


class _NoProgress:
    """Ignores all progress."""

    def begin(self, what: str, total: int) -> None: ...

    def step(self, done: int, note: str) -> None: ...


NO_PROGRESS: Final[Progress] = _NoProgress()
