"""Calls a guardrail inside a guest, and notes the line of the submission behind an exception."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiltyard.contracts.decision import Fault
from tiltyard.episode.guardrail_caller import GuardrailCaller
from tiltyard.isolation.guest import errors
from tiltyard.isolation.guest.virtual_clock import Clock
from tiltyard.isolation.wire.frames import FaultNote

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class GuestCaller(GuardrailCaller):
    """Calls one guardrail of a submission."""

    interrupts = ()  # No user is at a guest, so every interrupt is the submission's.

    def __init__(self, guardrail: Any, submission: Path, clock: Clock) -> None:
        super().__init__(guardrail)
        self._submission = submission
        self._clock = clock
        self._raised: FaultNote | None = None

    def make_loop(self) -> "AbstractEventLoop":
        from tiltyard.isolation.guest.virtual_loop import VirtualLoop  # noqa: PLC0415 - rarely used

        return VirtualLoop(self._clock)

    def describe(self, error: BaseException) -> str:
        self._raised = errors.raised(error, self._submission)
        return super().describe(error)

    def raised(self) -> FaultNote:
        """Return the note of the last exception."""
        assert self._raised is not None
        return self._raised

    def fault_note(self, fault: Fault, reason: str) -> FaultNote:
        """Return the note of a fault."""
        return self.raised() if fault is Fault.RAISED else FaultNote(fault, reason)
