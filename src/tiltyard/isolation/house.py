"""Where a match's guests come from: a fresh one for each phase, and the next ones on their way.

Starting a guest takes a tenth of a second; so some are started before they are needed, and a match
does not wait for them.
"""

import os
from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Self

from tiltyard.isolation import jail
from tiltyard.isolation.attack import Exchange, JailedAttack
from tiltyard.isolation.cores import SharedCore
from tiltyard.isolation.guardrail import JailedGuardrail
from tiltyard.isolation.limits import Level, Limits
from tiltyard.isolation.probing import probe
from tiltyard.isolation.session import AnyGuest, Deadlines, Session
from tiltyard.isolation.slots import Slot, take_slot
from tiltyard.isolation.submissions import Submission, Track
from tiltyard.isolation.unsafe import PlainGuest
from tiltyard.isolation.wire import Load
from tiltyard.recording import Log

SPARE: Final = 3


class GuestHouse:
    """Guests for one submission and track. Use it in a `with` statement: nobody stays behind."""

    def __init__(  # noqa: PLR0913 - all but two are for those who want to change something
        self,
        submission: Submission,
        track: Track,
        *,
        key: str = "",
        level: Level | None = None,
        packages: Sequence[str] = (),
        limits: Limits | None = None,
        deadlines: Deadlines | None = None,
        spare: int = SPARE,
        unsafe: bool = False,
    ) -> None:
        self.unsafe = unsafe
        """Without a jail: for one's own code alone, and never comparable."""
        self.level = Level.C if unsafe else probe().level if level is None else level
        self._submission = submission
        # The guest can read what it is sent, and must not be able to draw what the judge draws.
        dice = sha256(f"guest {key}".encode()).hexdigest()
        self._load = Load(track, submission.module(track).file, dice, tuple(packages))
        self._packages = tuple(packages)
        self._limits = limits
        self._deadlines = deadlines
        self._spare = spare
        self._process = os.getpid()
        self._coming: deque[tuple[AnyGuest, Slot]] = deque()
        self._open: list[tuple[Session, Slot]] = []
        self._core = SharedCore()

    def guardrail(self) -> JailedGuardrail:
        """Return a guardrail whose guest is fetched when it is first asked."""
        return JailedGuardrail(self.open)

    def attack(self, log: Log[Exchange] | None = None) -> JailedAttack:
        return JailedAttack(self.open, log)

    def open(self) -> Session:
        """Return a session with a guest that nobody has spoken with."""
        if self._process != os.getpid():
            # A copy made by fork: the guests of the original are not its own.
            self._process = os.getpid()
            self._coming, self._open, self._core = deque(), [], SharedCore()
        with self._core.apart():
            while len(self._coming) <= self._spare:
                self._coming.append(self._start())
        self._tidy()
        guest, slot = self._coming.popleft()
        try:
            session = Session(guest, self._load, self._deadlines)
        except BaseException:
            guest.kill()
            slot.release()
            raise
        self._core.join(guest.pid)
        self._open.append((session, slot))
        return session

    def _tidy(self) -> None:
        """Give the slots of guests back that are no more."""
        for session, slot in self._open:
            if session.closed:
                slot.release()
        self._open = [(session, slot) for session, slot in self._open if not session.closed]

    def _start(self) -> tuple[AnyGuest, Slot]:
        slot = take_slot()
        try:
            return self._start_in(slot), slot
        except BaseException:
            slot.release()
            raise

    def _start_in(self, slot: Slot) -> AnyGuest:
        if self.unsafe:
            return PlainGuest(self._submission.root)
        return jail.start(
            "tiltyard.isolation.guest",
            level=self.level,
            submission=self._submission.root,
            packages=self._packages,
            limits=self._limits,
            slot=slot.number,
        )

    def close(self) -> None:
        if self._process == os.getpid():
            for session, _ in self._open:
                session.close()
            self._tidy()
            while self._coming:
                guest, slot = self._coming.pop()
                guest.kill()
                slot.release()
            self._core.give_up()
        self._open = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
