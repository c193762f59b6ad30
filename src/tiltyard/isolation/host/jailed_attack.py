"""An attack in a jail, from the judge's side: its environment's calls come back over the wire."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig, BudgetSpentError
from tiltyard.contracts.trace import public
from tiltyard.foundation.log import Log
from tiltyard.isolation.host.session import OUTPUT_CHARS, Session
from tiltyard.isolation.wire import Asked, Done, Given, Run
from tiltyard.world.state import Posted

MAX_SNAPSHOTS: Final = 200_000
MAX_ANSWER_CHARS: Final = 150_000
MAX_CANDIDATES: Final = 20_000
MAX_PARTS: Final = 2_000
MAX_FOUND_CHARS: Final = 20_000_000
"""Of all candidates together; what comes behind is not taken."""
MAX_MESSAGES_KEPT: Final = 64
MAX_MESSAGE_CHARS: Final = 4_000
MAX_WORD_CHARS: Final = 40


class JailedAttack:
    """A submission's attack: use it wherever an attack is wanted."""

    def __init__(
        self, open_session: Callable[[], Session], log: "Log[Exchange] | None" = None
    ) -> None:
        self._open = open_session
        self.output = ""
        """The end of what it printed when it last ran, notices to its author among it."""
        self._log = log

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[Any]:
        """Let the attack run, answer what it asks, and return what it found.

        With the log of a run that was interrupted, it is given the same answers again first.
        """
        session = self._open()
        try:
            return _Host(session, env, self._log).serve(config)
        finally:
            self.output = session.guest.output()[-OUTPUT_CHARS:]
            session.close()


class Exchange(Struct, frozen=True):
    """What an attack asked, and what it was told."""

    asked: Asked
    given: Given


class _Host:
    """Answers one attack."""

    def __init__(self, session: Session, env: AttackEnv, log: Log[Exchange] | None) -> None:
        self._session = session
        self._env = env
        self._log = log
        self._fed: list[Asked] = []
        """What was answered from the log, and the environment has not seen."""
        self._snapshots: list[Any] = []
        self._rest: list[Any] = []
        """Events that did not fit into the last answer."""

    def serve(self, config: AttackRunConfig) -> list[Any]:
        env = self._env
        env.reset()
        frame: Any = Run(env.seed, config.max_steps, config.max_tool_hops, config.time_budget_s)
        found: list[Any] = []
        parts = chars = 0
        while True:
            asked = self._session.ask(frame, "run")
            if isinstance(asked, Done):
                taken = [*map(_candidate, asked.candidates[: MAX_CANDIDATES - len(found)])]
                chars += sum(map(_size, taken))
                if chars <= MAX_FOUND_CHARS:
                    found += taken
                parts += 1
                full = len(found) >= MAX_CANDIDATES or chars > MAX_FOUND_CHARS
                if not asked.more or full or parts >= MAX_PARTS:
                    self._catch_up()
                    return found
                frame = Given()
                continue
            if not isinstance(asked, Asked):
                raise self._session.failed("said something that no attack says", "run")
            frame = self._remembered(asked)
            if frame is None:
                frame = self._given(asked)
                if self._log is not None:
                    self._log.add(Exchange(asked, frame))

    def _remembered(self, asked: Asked) -> Given | None:
        """Answer from the log as long as it lasts."""
        exchange = None if self._log is None else self._log.replay()
        if exchange is None:
            self._catch_up()
            return None
        if exchange.asked != asked:
            raise self._session.failed("asked something else when it was started again", "run")
        self._fed.append(asked)
        return exchange.given

    def _catch_up(self) -> None:
        """Do what was answered from the log: the environment has to be where the attack thinks."""
        fed, self._fed = self._fed, []
        for asked in fed:
            self._given(asked)

    def _given(self, asked: Asked) -> Given:
        try:
            return self._answer(asked)
        except BudgetSpentError:
            return Given(error="budget", steps_left=0)
        except (TypeError, ValueError) as error:
            return Given(error=str(error)[:500], steps_left=self._env.steps_left)

    def _answer(self, asked: Asked) -> Given:
        env = self._env
        if asked.what == "interact":
            done = env.interact(asked.message, asked.max_tool_hops or None)
            turn = done.after.turn_events
            self._rest = [structs.astuple(public(event)) for event in turn]
            egress = [
                (effect.url.string, effect.data.string)
                for event in turn
                for effect in event.effects
                if isinstance(effect, Posted)
            ]
            return self._some(Given([], done.answer, done.total_tool_events, egress))
        if asked.what == "more":
            return self._some(Given())
        given = Given(steps_left=env.steps_left)
        if asked.what == "snapshot":
            if len(self._snapshots) >= MAX_SNAPSHOTS:
                raise ValueError(f"more than {MAX_SNAPSHOTS:,} snapshots")
            self._snapshots.append(env.snapshot())
            return structs.replace(given, number=len(self._snapshots) - 1)
        if asked.what == "restore":
            if not 0 <= asked.number < len(self._snapshots):
                raise ValueError("there is no such snapshot")
            env.restore(self._snapshots[asked.number])
        elif asked.what == "reset":
            env.reset()
        else:
            raise ValueError("there is no such question")
        return given

    def _some(self, given: Given) -> Given:
        """Put as many of the waiting events into an answer as fit."""
        taken, chars = 0, sum(len(url) + len(data) for url, data in given.egress)
        for fields in self._rest:
            chars += 200 + len(fields[5]) + sum(len(str(value)) for value in fields[3].values())
            if taken and chars > MAX_ANSWER_CHARS:
                break
            taken += 1
        events, self._rest = self._rest[:taken], self._rest[taken:]
        return structs.replace(
            given, events=events, more=bool(self._rest), steps_left=self._env.steps_left
        )


def _candidate(found: list[str | None] | str) -> Any:
    """Return what may be a candidate; the judge refuses what is none, and it is not kept."""
    if isinstance(found, str):
        return found[:MAX_WORD_CHARS]
    if len(found) > MAX_MESSAGES_KEPT:
        return ("",) * MAX_MESSAGES_KEPT
    if all(isinstance(message, str) for message in found):
        return AttackCandidate(tuple(str(message)[:MAX_MESSAGE_CHARS] for message in found))
    return tuple(found)


def _size(candidate: Any) -> int:
    messages = candidate.user_messages if isinstance(candidate, AttackCandidate) else candidate
    return sum(len(message) if isinstance(message, str) else 1 for message in messages)
