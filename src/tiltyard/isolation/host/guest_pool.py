"""Where a match's guests come from: as many fresh ones as it wants.

All are copies of one process that has imported what is trusted, and nothing else.
"""

import os
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Self

from tiltyard.contracts.tracks import Part
from tiltyard.foundation.log import Log
from tiltyard.isolation.host.cores import SharedCore
from tiltyard.isolation.host.fork_server import ForkServer
from tiltyard.isolation.host.jailed_attack import Exchange, JailedAttack
from tiltyard.isolation.host.jailed_guardrail import JailedGuardrail
from tiltyard.isolation.host.limits import Level, Limits
from tiltyard.isolation.host.probe import probe
from tiltyard.isolation.host.session import AnyGuest, Deadlines, Session
from tiltyard.isolation.host.slots import Slot, take_slot
from tiltyard.isolation.host.unsafe import PlainGuest
from tiltyard.isolation.wire import Load
from tiltyard.submissions import Submission


class GuestPool:
    """Guests for one submission and part. Use it in a `with` statement: nobody stays behind."""

    def __init__(  # noqa: PLR0913 - all but two are for those who want to change something
        self,
        submission: Submission,
        part: Part,
        *,
        key: str = "",
        level: Level | None = None,
        packages: Sequence[str] = (),
        limits: Limits | None = None,
        deadlines: Deadlines | None = None,
        unsafe: bool = False,
    ) -> None:
        self.unsafe = unsafe
        """Without a jail: for one's own code alone, and never comparable."""
        self.level = Level.C if unsafe else probe().level if level is None else level
        self._submission = submission
        # The guest can read what it is sent, and must not be able to draw what the judge draws.
        dice = sha256(f"guest {key}".encode()).hexdigest()
        self._load = Load(part, submission.module(part).file, dice, tuple(packages))
        self._packages = tuple(packages)
        self._limits = limits
        self._deadlines = deadlines
        self._end: float | None = None
        self._process = os.getpid()
        self._fork_server: ForkServer | None = None
        self._open: list[tuple[Session, Slot]] = []
        self._next: tuple[Session, Slot] | None = None
        """A guest that loads the submission meanwhile, for whoever comes next."""
        self._visits = 0
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
            self._open, self._next = [], None
            self._leave_fork_server()
            # Nor is its core: the original goes on there.
            self._core.give_up()
        self._tidy()
        if self._end is None:
            # For all guests together: else one that is late could be followed by many more.
            self._end = time.monotonic() + (self._deadlines or Deadlines()).whole
        session, slot = self._next or self._begin()
        self._open.append((session, slot))
        # One guest searches. Where there is a second, many play one episode each.
        many = self._visits and self._load.part == "guardrail"
        self._next = self._begin() if many else None
        self._visits += 1
        try:
            self._core.join(session.guest.pid)
            session.wait_until_ready()
        except BaseException:
            session.close()
            raise
        return session

    def _begin(self) -> tuple[Session, Slot]:
        """Order a guest, and have it load the submission."""
        slot = take_slot()
        try:
            guest = self._order(slot)
        except BaseException:
            slot.release()
            raise
        try:
            return Session(guest, self._load, self._deadlines, self._tidy, self._end), slot
        except BaseException:
            guest.kill()
            slot.release()
            raise

    def warm(self) -> Self:
        """Start where guests are born, so that the first of them need not wait for it."""
        if self._fork_server is None and not self.unsafe:
            with self._core.apart():
                self._fork_server = ForkServer(
                    "tiltyard.isolation.guest.serve",
                    level=self.level,
                    submission=self._submission.root,
                    packages=self._packages,
                )
        return self

    def _tidy(self) -> None:
        """Give back the slots of guests that are no more, and the core when all are gone."""
        for session, slot in self._open:
            if session.closed:
                slot.release()
        self._open = [(session, slot) for session, slot in self._open if not session.closed]
        if not self._open:
            self._core.give_up()

    def _order(self, slot: Slot) -> AnyGuest:
        if self.unsafe:
            return PlainGuest(self._submission.root)
        self.warm()
        assert self._fork_server is not None
        return self._fork_server.order(limits=self._limits, slot=slot.number)

    def _leave_fork_server(self) -> None:
        if self._fork_server is not None:
            self._fork_server.close()
            self._fork_server = None

    def close(self) -> None:
        if self._process == os.getpid():
            if self._next is not None:
                self._open.append(self._next)
            for session, _ in [*self._open]:
                session.close()
            self._tidy()
            self._leave_fork_server()
            self._core.give_up()
        self._open, self._next = [], None

    def __enter__(self) -> Self:
        return self.warm()

    def __exit__(self, *error: object) -> None:
        self.close()
