"""An attack in the jail, from the judge's side: answers the calls to its environment."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig, BudgetSpentError
from tiltyard.contracts.trace import public
from tiltyard.episode.memory import bytes_of
from tiltyard.foundation.log import Log
from tiltyard.isolation.host import failures
from tiltyard.isolation.host.failures import Phase
from tiltyard.isolation.host.session import Session
from tiltyard.isolation.wire.frames import (
    MAX_SNAPSHOTS,
    RESET,
    SNAPSHOT,
    Candidates,
    EnvCall,
    EnvReply,
    RunAttack,
)
from tiltyard.world.state import Posted

MAX_KEPT_BYTES: Final = 1 << 29
"""The limit for the events of the current episode and of all snapshots together."""
MAX_ANSWER_CHARS: Final = 150_000
MAX_CANDIDATES: Final = 20_000
MAX_PARTS: Final = 2_000
MAX_FOUND_CHARS: Final = 20_000_000
"""The limit for all candidates together. The rest is dropped."""
MAX_MESSAGES_KEPT: Final = 64
MAX_MESSAGE_CHARS: Final = 4_000
MAX_WORD_CHARS: Final = 40


class JailedAttack:
    """A submission's attack. Use it like any other attack."""

    def __init__(
        self, open_session: Callable[[], Session], log: "Log[Exchange] | None" = None
    ) -> None:
        self._open = open_session
        self.output = ""
        """The end of what the last run printed, including notices to its author."""
        self._log = log

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[Any]:
        """Run the attack in a guest, and return its candidates.

        With the log of an interrupted run, the attack gets the logged replies first.
        """
        session = self._open()
        try:
            return _AttackServer(session, env, self._log).serve(config)
        finally:
            self.output = session.guest.output()[-failures.MAX_OUTPUT_CHARS :]
            session.close()


class Exchange(Struct, frozen=True):
    """A call of an attack to its environment, and the reply."""

    call: EnvCall
    reply: EnvReply


class _AttackServer:
    """Answers the calls of one attack."""

    def __init__(self, session: Session, env: AttackEnv, log: Log[Exchange] | None) -> None:
        self._session = session
        self._env = env
        self._log = log
        self._skipped: list[EnvCall] = []
        """Calls that the log answered, and that the environment has not seen."""
        self._snapshots: list[tuple[Any, int]] = []
        """Each with the size of its episode."""
        self._size = 0
        """The size of the current episode."""
        self._shared = 0
        """How much of it the last snapshot or restore has in common with it."""
        self._kept = 0
        """The size of all snapshots. What two of them share counts once."""
        self._rest: list[Any] = []
        """Events that did not fit into the last reply."""

    def serve(self, config: AttackRunConfig) -> list[Any]:
        """Run the attack, and return its candidates."""
        env = self._env
        env.reset()
        limits = config.max_steps, config.max_tool_hops, config.time_budget_s
        frame: Any = RunAttack(env.seed, *limits)
        found: list[Any] = []
        parts = chars = 0
        while True:
            call = self._session.ask(frame, Phase.RUN)
            if isinstance(call, Candidates):
                taken = [*map(_candidate, call.candidates[: MAX_CANDIDATES - len(found)])]
                chars += sum(map(_size, taken))
                if chars <= MAX_FOUND_CHARS:
                    found += taken
                parts += 1
                full = len(found) >= MAX_CANDIDATES or chars > MAX_FOUND_CHARS
                if not call.more or full or parts >= MAX_PARTS:
                    self._catch_up()
                    return found
                frame = EnvReply()
                continue
            if not isinstance(call, EnvCall):
                raise self._session.broke_protocol(failures.NO_ENV_CALL, Phase.RUN)
            frame = self._logged(call)
            if frame is None:
                frame = self._reply(call)
                if self._log is not None:
                    self._log.add(Exchange(call, frame))

    def _logged(self, call: EnvCall) -> EnvReply | None:
        """Return the reply from the log, or None after its end."""
        exchange = None if self._log is None else self._log.replay()
        if exchange is None:
            self._catch_up()
            return None
        if exchange.call != call:
            raise self._session.broke_protocol(failures.OTHER_CALL, Phase.RUN)
        self._skipped.append(call)
        return exchange.reply

    def _catch_up(self) -> None:
        """Make the calls that the log answered, to bring the environment to the same state."""
        skipped, self._skipped = self._skipped, []
        for call in skipped:
            self._reply(call)

    def _reply(self, call: EnvCall) -> EnvReply:
        try:
            return self._make(call)
        except BudgetSpentError:
            return EnvReply(budget_spent=True, steps_left=0, full=self._full())
        except (TypeError, ValueError) as error:
            left = self._env.steps_left
            return EnvReply(error=str(error)[:500], steps_left=left, full=self._full())

    def _make(self, call: EnvCall) -> EnvReply:
        env = self._env
        for move in call.moves:
            self._move(move)
        if call.method == "interact":
            self._check_size()
            done = env.interact(call.message, call.max_tool_hops or None)
            turn = done.after.turn_events
            self._size += bytes_of(turn)
            self._rest = [structs.astuple(public(event)) for event in turn]
            egress = [
                (effect.url.string, effect.data.string)
                for event in turn
                for effect in event.effects
                if isinstance(effect, Posted)
            ]
            return self._with_events(done.answer, done.total_tool_events, egress)
        if call.method == "more":
            return self._with_events("", 0, [])
        return EnvReply(steps_left=env.steps_left)

    def _move(self, move: int) -> None:
        """Reset the environment, take a snapshot, or restore one."""
        if move == SNAPSHOT:
            self._check_size()
            if len(self._snapshots) >= MAX_SNAPSHOTS:
                raise ValueError(f"more than {MAX_SNAPSHOTS:,} snapshots")
            self._snapshots.append((self._env.snapshot(), self._size))
            self._kept += self._size - self._shared
        elif move == RESET:
            self._env.reset()
            self._size = 0
        elif 0 <= move < len(self._snapshots):
            snapshot, self._size = self._snapshots[move]
            self._env.restore(snapshot)
        else:
            raise ValueError("there is no such snapshot")
        self._shared = self._size

    def _check_size(self) -> None:
        full = self._full()
        if full:
            raise ValueError(full)

    def _full(self) -> str:
        """Return why the episode can neither go on nor be kept, or an empty string."""
        if self._kept + self._size - self._shared <= MAX_KEPT_BYTES:
            return ""
        return (
            f"the episode and its snapshots take more than {MAX_KEPT_BYTES >> 20} MiB: "
            "reset, or restore a snapshot"
        )

    def _with_events(self, answer: str, number: int, egress: list[tuple[str, str]]) -> EnvReply:
        """Return a reply with as many of the waiting events as fit into a frame."""
        taken, chars = 0, sum(len(url) + len(data) for url, data in egress)
        for fields in self._rest:
            chars += 200 + len(fields[5])
            for value in fields[3].values():
                chars += len(value if isinstance(value, str) else str(value))
            if taken and chars > MAX_ANSWER_CHARS:
                break
            taken += 1
        events, self._rest = self._rest[:taken], self._rest[taken:]
        return EnvReply(
            events,
            answer,
            number,
            egress,
            more=bool(self._rest),
            steps_left=self._env.steps_left,
            full=self._full(),
        )


def _candidate(found: list[str | None] | str) -> Any:
    """Return a candidate cut to size. The judge refuses what is not a candidate."""
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
