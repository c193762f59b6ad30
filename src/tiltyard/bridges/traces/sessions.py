"""Runs that stretch over several lines of a file, one after the other."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.studies.recorded import RecordedRun, Skipped


class Session(Protocol):
    """A run that is being read."""

    def add(self, raw: Mapping[str, Any]) -> None:
        """Add one line. Raise BadRunError if it is wrong."""

    def finish(self, run_id: str, place: str) -> RecordedRun | None:
        """Return the run; None if it is empty."""


class Sessions:
    """The run that is being read. A problem in one line skips the whole run."""

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._session: Session | None = None
        self._problem: Skipped | None = None
        self._place = ""
        self.id = ""

    @property
    def is_open(self) -> bool:
        return self._session is not None or self._problem is not None

    def begin(self, run_id: str, place: str) -> None:
        self._session, self._problem = self._make(), None
        self.id, self._place = run_id, place

    def add(self, raw: Mapping[str, Any], place: str = "") -> None:
        if self._session is None or self._problem is not None:
            return
        try:
            self._session.add(raw)
        except BadRunError as error:
            self.spoil(place or self._place, str(error))
        except RecursionError:
            self.spoil(place or self._place, "it is nested too deeply")

    def spoil(self, place: str, problem: str) -> None:
        """Note that a line of the run cannot be read. The first problem counts."""
        self._problem = self._problem or Skipped(place, problem)

    def end(self) -> Iterator[RecordedRun | Skipped]:
        """Yield the run that was read, if there is one."""
        session, problem = self._session, self._problem
        self._session, self._problem = None, None
        if problem is not None:
            yield problem
        elif session is not None:
            try:
                run = session.finish(self.id or self._place, self._place)
            except BadRunError as error:
                yield Skipped(self._place, str(error))
            else:
                if run is not None:
                    yield run
