"""A session: one guest, the channel to it, and the end of both.

A guest that dies, hangs, misses a deadline or breaks the protocol is killed, and the match ends
with it. The match has no score then, and `GuestError` tells the author why.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.isolation.host import failures
from tiltyard.isolation.host.failures import Failure, GuestError, Phase
from tiltyard.isolation.host.guest_process import Guest
from tiltyard.isolation.wire.channel import Channel, GoneError, LateError, WireError
from tiltyard.isolation.wire.frames import Failed, FromGuest, Load, Ready
from tiltyard.submissions import Submission

_END_SECONDS: Final = 2
"""How long to wait for the exit code of a guest that has closed its connection."""


class Deadlines(Struct, frozen=True):
    """Seconds. A deadline can end a match, and never changes a decision."""

    load: float = 30.0
    answer: float = 20.0
    whole: float = 2520.0
    """For all guests of one pool together: the official limit of a match."""


class Session:
    """One guest, from its start to its end."""

    def __init__(  # noqa: PLR0913 - the pool alone opens sessions
        self,
        guest: Guest,
        load: Load,
        submission: Submission,
        *,
        deadlines: Deadlines | None = None,
        when_closed: Callable[[], None] | None = None,
        end: float | None = None,
    ) -> None:
        self.guest = guest
        self.submission = submission
        self.closed = False
        self.deadlines = deadlines or Deadlines()
        self._when_closed = when_closed
        self._module = load.module
        self._end = time.monotonic() + self.deadlines.whole if end is None else end
        """When the time of the match is over, on the monotonic clock."""
        self._wire: Channel[Any] = Channel(guest.from_guest, guest.to_guest, FromGuest)
        try:
            self._wire.send(load, self.deadlines.load)
        except WireError as error:
            raise self._wire_error(error, self.deadlines.load, Phase.LOAD) from None

    def wait_until_ready(self) -> None:
        """Wait until the guest has loaded the submission."""
        left = max(0.1, self._end - time.monotonic())
        try:
            answer = self._wire.receive(min(left, self.deadlines.load))
        except WireError as error:
            raise self._wire_error(error, self.deadlines.load, Phase.LOAD) from None
        if isinstance(answer, Failed):
            raise self._reported(answer, Phase.LOAD)
        if not isinstance(answer, Ready):
            raise self.broke_protocol(failures.NOT_READY, Phase.LOAD)

    def ask(self, frame: Any, phase: Phase, tool: str = "") -> Any:
        """Send a frame and return the answer. Raise `GuestError` if there is none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._wire_error(LateError(), self.deadlines.answer, phase, tool)
        try:
            answer = self._wire.exchange(frame, min(left, self.deadlines.answer))
        except WireError as error:
            raise self._wire_error(error, self.deadlines.answer, phase, tool) from None
        if isinstance(answer, Failed):
            raise self._reported(answer, phase, tool)
        return answer

    def broke_protocol(self, what: str, phase: Phase, tool: str = "") -> GuestError:
        """End the session, and return the error to raise."""
        return self._error(failures.protocol_failure(what), phase, tool)

    def _wire_error(
        self, error: WireError, seconds: float, phase: Phase, tool: str = ""
    ) -> GuestError:
        deadline = failures.no_answer(seconds)
        if time.monotonic() >= self._end:
            deadline = failures.time_is_over(self.deadlines.whole)
        gone = isinstance(error, GoneError)
        code = self.guest.exit_code(_END_SECONDS) if gone else None
        return self._error(failures.wire_failure(error, deadline, code), phase, tool)

    def _reported(self, claim: Failed, phase: Phase, tool: str = "") -> GuestError:
        failure = failures.reported_failure(claim, phase, self.submission, self._module)
        return self._error(failure, phase, tool)

    def _error(self, failure: Failure, phase: Phase, tool: str = "") -> GuestError:
        output = self.guest.output()[-failures.MAX_OUTPUT_CHARS :]
        self.close()
        file = failure.file or self._module
        return GuestError(
            structs.replace(failure, phase=phase, tool=tool, file=file, output=output)
        )

    def close(self) -> None:
        """Kill the guest."""
        self.closed = True
        self.guest.kill()
        if self._when_closed is not None:
            self._when_closed()
