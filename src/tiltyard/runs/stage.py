"""The stage of a job: its worlds, its guests, and where it keeps what it needs again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.model.record import Record
from tiltyard.contracts.tracks import Part
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import Progress
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.kept_output import KeptOutput
from tiltyard.matches.opponents import GuestSettings
from tiltyard.runs.job import Game, Job


class Records(Struct, frozen=True):
    """Where the exchanges with a model are kept, one directory for each match."""

    root: Path | None = None
    """None keeps them in memory."""
    closed: bool = False
    """Play from the record alone: no model is asked, and a missing exchange is an error."""

    def open(self, game: Game) -> Record:
        directory = None if self.root is None else self.root / f"offense-{game.number}"
        return Record(directory, closed=self.closed)


class Places(Struct, frozen=True):
    """Where the matches of a job keep what they need again."""

    logs: Path | None = None
    """The directory to continue an interrupted job from. None keeps no logs."""
    records: Records = Records()
    batteries: Path | None = None
    """The directory of the batteries of defense matches. None keeps them in memory."""


class Stage(Struct, frozen=True):
    """A job, and everything else that its matches need."""

    job: Job
    games: tuple[Game, ...]
    guests: GuestSettings
    places: "Places"
    progress: Progress
    output: KeptOutput | None = None
    """Keeps what the submission prints. None in official runs."""

    @property
    def is_practice(self) -> bool:
        return self.job.worlds.key is None

    def open_pool(self, part: Part, stack: ExitStack) -> GuestPool:
        return self.guests.open_pool(self.job.submission, part, stack, self.output)

    def progress_of(self, game: Game) -> Progress:
        return _GameProgress(self.progress, game, len(self.games))

    @contextmanager
    def open_log(self, name: str, kind: Any) -> Iterator[Log[Any] | None]:
        if self.places.logs is None:
            yield None
            return
        log: Log[Any] = Log(self.places.logs / f"{name}.log", kind)
        with log:
            yield log


NOWHERE: Final = Places()


class _GameProgress:
    """Adds the number of a game to the name of each stage, as in `offense 2 of 3`."""

    def __init__(self, progress: Progress, game: Game, games: int) -> None:
        self._suffix = f" {game.number} of {games}" if games > 1 else ""
        self._progress = progress

    def begin(self, what: str, total: int) -> None:
        self._progress.begin(f"{what}{self._suffix}", total)

    def step(self, done: int, note: str) -> None:
        self._progress.step(done, note)
