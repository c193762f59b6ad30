"""The guest pool: fresh guests for one submission, as many as a match needs.

All guests are forks of one process that has imported trusted code only.
"""

import os
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Self

from tiltyard.contracts.asking import Ask, no_model
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.policy import NO_POLICY, Policy
from tiltyard.contracts.tracks import Part
from tiltyard.episode.conversation import CheckedSettings
from tiltyard.foundation.log import Log
from tiltyard.isolation.host.cores import SharedCore
from tiltyard.isolation.host.fork_server import ForkServer
from tiltyard.isolation.host.guest_process import Guest
from tiltyard.isolation.host.jailed_attack import Exchange, JailedAttack
from tiltyard.isolation.host.jailed_conversation import JailedConversation
from tiltyard.isolation.host.jailed_guardrail import JailedGuardrail
from tiltyard.isolation.host.kept_output import KeptOutput
from tiltyard.isolation.host.limits import Level, Limits
from tiltyard.isolation.host.probe import probe
from tiltyard.isolation.host.session import Deadlines, Session
from tiltyard.isolation.host.slots import Slot, take_slot
from tiltyard.isolation.host.unsafe import UnsafeGuest
from tiltyard.isolation.wire.frames import Load
from tiltyard.submissions import Submission


class GuestPool:
    """Guests for one part of a submission.

    Use it in a `with` statement, which ends all guests. `unsafe` runs them without a jail: for
    your own code only, and never comparable. `output` keeps what the guests print.
    """

    def __init__(  # noqa: PLR0913 - all but two have defaults
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
        output: KeptOutput | None = None,
    ) -> None:
        self.unsafe = unsafe
        self.level = Level.C if unsafe else probe().level if level is None else level
        self._submission = submission
        # The guest can read its key. It must not be able to draw what the judge draws.
        guest_key = sha256(f"guest {key}".encode()).hexdigest()
        self._load = Load(part, submission.module(part).file, guest_key, tuple(packages))
        self._packages = tuple(packages)
        self._limits = limits
        self._deadlines = deadlines
        self._output = output
        self._end: float | None = None
        self._process = os.getpid()
        self._fork_server: ForkServer | None = None
        self._open: list[tuple[Session, Slot]] = []
        self._next: tuple[Session, Slot] | None = None
        """A guest that already loads the submission, for the next call of `open`."""
        self._opened = 0
        self._core = SharedCore()
        self._settings = CheckedSettings()

    def guardrail(self) -> JailedGuardrail:
        """Return a guardrail. Its guest starts with the first decision."""
        return JailedGuardrail(self.open)

    def conversation(
        self, tools: Sequence[Declaration], policy: Policy = NO_POLICY, *, ask: Ask = no_model
    ) -> JailedConversation:
        """Begin a conversation over declared tools, with a fresh guest.

        `ask` answers what the guardrail asks a model.
        """
        return JailedConversation(self.open, self._settings.of(tools, policy), ask)

    def attack(self, log: Log[Exchange] | None = None) -> JailedAttack:
        return JailedAttack(self.open, log)

    def open(self) -> Session:
        """Return a session with a fresh guest."""
        if self._process != os.getpid():
            # This is a forked copy. The guests belong to the original process,
            self._process = os.getpid()
            self._open, self._next = [], None
            self._close_fork_server()
            # and so does the core, on which the original goes on.
            self._core.give_up()
        self._tidy()
        if self._end is None:
            # One limit for all guests together: a submission gets no more time by failing late.
            self._end = time.monotonic() + (self._deadlines or Deadlines()).whole
        session, slot = self._next or self._begin()
        self._open.append((session, slot))
        # A search uses one guest. After a second guardrail many more follow, one an episode.
        many = self._opened and self._load.part == "guardrail"
        self._next = self._begin() if many else None
        self._opened += 1
        try:
            self._core.join(session.guest.pid)
            session.wait_until_ready()
        except BaseException:
            session.close()
            raise
        return session

    def _begin(self) -> tuple[Session, Slot]:
        """Request a guest, and have it load the submission."""
        slot = take_slot()
        try:
            guest = self._request(slot)
        except BaseException:
            slot.release()
            raise
        try:
            session = Session(
                guest,
                self._load,
                self._submission,
                deadlines=self._deadlines,
                when_closed=self._tidy,
                end=self._end,
            )
        except BaseException:
            guest.kill()
            slot.release()
            raise
        return session, slot

    def warm(self) -> Self:
        """Start the fork server, so that the first guest need not wait for it."""
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
        """Release the slots of guests that ended, and the core when no guest is left."""
        for session, slot in self._open:
            if session.closed:
                slot.release()
                if self._output is not None:
                    self._output.add(session.guest)
        self._open = [(session, slot) for session, slot in self._open if not session.closed]
        if not self._open:
            self._core.give_up()

    def _request(self, slot: Slot) -> Guest:
        if self.unsafe:
            return UnsafeGuest(self._submission.root)
        self.warm()
        assert self._fork_server is not None
        return self._fork_server.request(limits=self._limits, slot=slot.number)

    def _close_fork_server(self) -> None:
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
            self._close_fork_server()
            self._core.give_up()
        self._open, self._next = [], None

    def __enter__(self) -> Self:
        return self.warm()

    def __exit__(self, *error: object) -> None:
        self.close()
