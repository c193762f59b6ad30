"""A guest and the wire to it, with what is told when it fails.

A guest that dies, hangs, misses a deadline or breaks the protocol is ended, and the match with
it: no score, and a verdict that tells the author what they must know.
"""

import builtins
import re
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from tiltyard.episode.guardrail_runner import GuardrailGoneError, normalize_reason
from tiltyard.isolation.wire import (
    Channel,
    Failed,
    FromGuest,
    GoneError,
    LateError,
    Load,
    MalformedError,
    Ready,
    WireError,
)

OUTPUT_CHARS: Final = 2_000
MAX_PACKED_CHARS: Final = 4_000
_LINE: Final = re.compile(r'^  File "([\w./-]{1,200}\.py)", line (\d{1,6}), in ', re.MULTILINE)


class AnyGuest(Protocol):
    """A process at the other end of two pipes."""

    to_guest: int
    from_guest: int

    @property
    def pid(self) -> int:
        """Return its number here."""

    def output(self) -> str:
        """Return what it printed."""

    def kill(self) -> None:
        """End it."""


class Deadlines(Struct, frozen=True):
    """Seconds. A watchdog, and never a decision."""

    load: float = 30.0
    answer: float = 20.0
    whole: float = 2520.0
    """For all that the guests of one house are asked: the official limit of a match."""


class GuestError(GuardrailGoneError):
    """A guest failed, and why: everything its author must know."""

    def __init__(  # noqa: PLR0913 - everything its author must know
        self, kind: str, message: str, *, call: str, module: str, traceback: str, output: str
    ) -> None:
        super().__init__(message)
        self.kind = kind
        """`import`, `class`, `construct`, `run`, `died`, `deadline` or `protocol`."""
        self.call = call
        """What it was doing."""
        self.module = module
        """The submission's own file, as the judge knows it."""
        self.traceback = traceback
        self.output = output
        """The end of what it printed."""

    def packed(self) -> bytes:
        """Return all of it as bytes, for another process."""
        said = (str(self), self.call, self.module, self.traceback, self.output)
        return msgspec.msgpack.encode((self.kind, *(text[-MAX_PACKED_CHARS:] for text in said)))

    @classmethod
    def unpacked(cls, data: bytes) -> "GuestError":
        kind, said, call, module, traceback, output = msgspec.msgpack.decode(data)
        return cls(kind, said, call=call, module=module, traceback=traceback, output=output)

    def official_within(self, lines: int) -> str:
        """Return what may be told of a match in a hidden world: no word of the guest's own.

        The kind of failure, the exception if it is one that everybody knows, and the line if the
        module really has it: a guest writes its own traceback.
        """
        name = str(self).partition(":")[0]
        known = getattr(builtins, name, None)
        if not (isinstance(known, type) and issubclass(known, BaseException)):
            return self.kind
        told = [int(line) for file, line in _LINE.findall(self.traceback) if file == self.module]
        is_there = told and 1 <= told[-1] <= lines
        return f"{self.kind}: {name}" + (
            f" on line {told[-1]} of {self.module}" if is_there else ""
        )


_STAGES: Final = ("import", "class", "construct", "run")
_KINDS: Final = ((LateError, "deadline"), (MalformedError, "protocol"), (GoneError, "died"))


class Session:
    """One guest, from its start to its end."""

    def __init__(
        self,
        guest: AnyGuest,
        load: Load,
        deadlines: Deadlines | None = None,
        when_closed: Callable[[], None] | None = None,
        end: float | None = None,
    ) -> None:
        self.guest = guest
        self.closed = False
        self._when_closed = when_closed
        self.module = load.module
        self.deadlines = deadlines or Deadlines()
        self._end = time.monotonic() + self.deadlines.whole if end is None else end
        """When the time is over, on the monotonic clock."""
        self._wire: Channel[Any] = Channel(guest.from_guest, guest.to_guest, FromGuest)
        self._loading = f"load {load.module}"
        self._heed(lambda: self._wire.send(load, self.deadlines.load), self._loading)

    def wait_until_ready(self) -> None:
        """Wait until the submission is loaded, which was asked for at once."""
        left = max(0.1, self._end - time.monotonic())
        seconds = min(left, self.deadlines.load)
        answer = self._heed(lambda: self._wire.receive(seconds), self._loading)
        if not isinstance(answer, Ready):
            raise self.failed("did not say that it is ready", self._loading)

    def ask(self, frame: Any, call: str) -> Any:
        """Send a frame and wait for the answer."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._error("deadline", f"the guest's time is over ({call})", call)
        seconds = min(left, self.deadlines.answer)
        return self._heed(lambda: self._wire.exchange(frame, seconds), call)

    def _heed(self, speak: Callable[[], Any], call: str) -> Any:
        """Return what the guest answers; whatever else it does is its end."""
        try:
            answer = speak()
        except WireError as error:
            kind = next(name for known, name in _KINDS if isinstance(error, known))
            raise self._error(kind, f"{error} ({call})", call) from None
        if isinstance(answer, Failed):
            if answer.stage not in _STAGES:
                raise self.failed("failed at no known stage", call)
            said = normalize_reason(answer.message[:500])
            told = "\n".join(map(normalize_reason, answer.traceback[:10_000].split("\n")))
            raise self._error(answer.stage, said, call, told)
        return answer

    def failed(self, what: str, call: str) -> GuestError:
        return self._error("protocol", f"the guest {what}", call)

    def _error(self, kind: str, message: str, call: str, traceback: str = "") -> GuestError:
        output = self.guest.output()[-OUTPUT_CHARS:]
        self.close()
        return GuestError(
            kind, message, call=call, module=self.module, traceback=traceback, output=output
        )

    def close(self) -> None:
        self.closed = True
        self.guest.kill()
        if self._when_closed is not None:
            self._when_closed()
