"""SandboxEnv: an episode with snapshot and restore, for attacks and experiments."""

from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.agents.grammar import instructions
from tiltyard.contracts.agent import Agent, traits_of
from tiltyard.contracts.attack import BudgetSpentError
from tiltyard.contracts.guardrail import Guardrail, GuardrailBase, check_guardrail
from tiltyard.contracts.purse import OutOfRequestsError
from tiltyard.contracts.trace import PublicEvent, Trace, export, public
from tiltyard.episode.advance import MAX_CALLS_A_MESSAGE, Episode, advance, begin
from tiltyard.episode.folding import Beginning, fold, unfold
from tiltyard.episode.guardrail_runner import GuardrailRunner
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import World
from tiltyard.world.text import by_user, has_lone_surrogate

PUBLIC_SEED: Final = 123
MAX_MESSAGE_CHARS: Final = 2000


class Snapshot(Struct, frozen=True, gc=False):
    """A state of an environment. It is a reference: taking one copies nothing."""

    episode: Episode
    """Its history may be folded. Restore the snapshot to read it."""

    def __repr__(self) -> str:
        return f"<Snapshot of {self.episode.trace!r}>"


class Interaction(Struct, frozen=True, gc=False):
    """What the agent did for one message."""

    seed: int
    after: Trace

    def __repr__(self) -> str:
        failed = self.failed_tool_calls
        return f"<Interaction: {self.answer!r}, {self.tool_events_added} calls, {failed} failed>"

    @property
    def understood(self) -> list[str]:
        """The clauses of the message that the deterministic agent takes for instructions."""
        message = self.after.message
        spans = dict.fromkeys(instructions(by_user(message)).spans)
        return [message[start:stop] for start, stop in spans]

    @property
    def events(self) -> list[PublicEvent]:
        return [public(event) for event in self.after.turn_events]

    @property
    def answer(self) -> str:
        return "" if self.after.answer is None else self.after.answer.text

    @property
    def steps(self) -> int:
        """The cost of the message: one step for each call, at least one."""
        return max(1, len(self.after.turn_events))

    @property
    def total_tool_events(self) -> int:
        return self.after.event_count

    @property
    def tool_events_added(self) -> int:
        return len(self.after.turn_events)

    @property
    def successful_tool_calls(self) -> int:
        return sum(event.ok for event in self.events)

    @property
    def failed_tool_calls(self) -> int:
        return self.tool_events_added - self.successful_tool_calls

    @property
    def agent_refused(self) -> bool:
        """True if the agent made no call."""
        return self.tool_events_added == 0


class SandboxEnv:
    """A simulated machine with an agent and a guardrail.

    The world comes from `scenario`, from `fixtures_dir`, or else is generated from `seed`; seed 123
    is the public scenario. `world` replaces the scenario's first state, for example with other
    secrets. `agent` is the deterministic one by default. Without `guardrail`, every call runs.
    With `fold`, snapshots drop their history and take less memory; reading a dropped history
    computes it again.
    """

    def __init__(  # noqa: PLR0913 - the competition's own parameters, and one
        self,
        seed: int = PUBLIC_SEED,
        fixtures_dir: Path | str | None = None,
        agent: Agent | None = None,
        guardrail: Guardrail | None = None,
        *,
        scenario: Scenario | None = None,
        world: World | None = None,
        max_tool_hops: int = MAX_CALLS_A_MESSAGE,
        max_steps: int | None = None,
        fold: bool = False,
    ) -> None:
        guardrail = GuardrailBase() if guardrail is None else guardrail
        agent = DeterministicAgent() if agent is None else agent
        check_guardrail(guardrail)
        if not callable(getattr(agent, "next_action", None)) or isinstance(agent, type):
            raise TypeError(f"agent must be an object such as DeterministicAgent(), not {agent!r}")
        if type(seed) is not int:
            raise TypeError(f"seed must be an int, not {seed!r}")
        if scenario is None:
            scenario = generate(seed) if fixtures_dir is None else load_scenario(Path(fixtures_dir))
        self.seed = seed
        self.scenario = scenario
        self.max_tool_hops = _positive(max_tool_hops)
        self.guardrail = guardrail
        self.steps_left = None if max_steps is None else _positive(max_steps)
        """The steps left, or None without a budget. A restore gives no steps back."""
        self.steps_spent = 0
        """The steps of all messages, those before a restore included."""
        self._start = begin(scenario.world if world is None else world, agent, guardrail)
        self._episode = self._start
        self._beginning = Beginning(self._start)
        self._fold = (
            fold and traits_of(agent).pure and isinstance(self._start.runner, GuardrailRunner)
        )

    def __repr__(self) -> str:
        name = type(self.guardrail).__name__
        return f"<SandboxEnv: seed {self.seed}, {name}, {self._episode.trace!r}>"

    def reset(self) -> None:
        """Go back to the beginning of the episode."""
        self._move_to(self._start)

    def interact(self, message: str, max_tool_hops: int | None = None) -> Interaction:
        """Let the agent work on one message of the user."""
        message = _checked_message(message)
        if self.steps_left == 0:
            raise BudgetSpentError("no steps are left: return the candidates that you have")
        hops = self.max_tool_hops if max_tool_hops is None else _positive(max_tool_hops)
        before = self._episode.trace.steps
        try:
            self._episode = self._advance(message, hops)
        except OutOfRequestsError as error:
            self.steps_left = 0
            raise BudgetSpentError(f"{error}: return the candidates that you have") from None
        spent = self._episode.trace.steps - before
        self.steps_spent += spent
        if self.steps_left is not None:
            self.steps_left = max(0, self.steps_left - spent)
        return Interaction(self.seed, self._episode.trace)

    def _advance(self, message: str, max_calls: int) -> Episode:
        return advance(self._episode, message, max_calls)

    def snapshot(self) -> Snapshot:
        """Return the current state, to restore any number of times."""
        if self._fold and not self._beginning.was_asked:
            self._episode = fold(self._episode, self._beginning)
        return Snapshot(self._episode)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of this environment."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError("restore takes what snapshot() returned")
        if snapshot.episode.runner is not self._start.runner:
            raise ValueError("this snapshot was taken from another SandboxEnv")
        self._move_to(snapshot.episode)

    def _move_to(self, episode: Episode) -> None:
        # At once, not with the next message: `env.guardrail` must show the restored state.
        episode.runner.show(episode.state)
        self._episode = episode

    @property
    def episode(self) -> Episode:
        if self._episode.trace.is_folded:
            self._episode = unfold(self._episode)
        return self._episode

    @property
    def trace(self) -> Trace:
        return self.episode.trace

    def export_trace_dict(self) -> dict[str, Any]:
        """Return the public view of the trace as plain data."""
        return export(self.trace, self.seed)


def _checked_message(message: object) -> str:
    if not isinstance(message, str):
        raise TypeError(f"a message is a string, not {type(message).__name__}")
    if len(message) > MAX_MESSAGE_CHARS:
        raise ValueError(f"a message has at most {MAX_MESSAGE_CHARS} characters")
    if has_lone_surrogate(message):
        raise ValueError("a message must be valid Unicode; this one has a lone surrogate")
    return str.__str__(message)


def _positive(hops: object) -> int:
    if type(hops) is not int or hops < 1:
        raise ValueError(f"max_tool_hops must be a whole number from 1 up, not {hops!r}")
    return hops
