"""Folding: keep a history as its messages and decisions, and compute the rest again on demand.

An episode continues from its world, its agent's memory and its guardrail's state. The history is
only for reading, takes most of the memory, and is rarely read between a snapshot and its restore.
So a snapshot keeps the message and the guardrail's decisions of each turn. A pure agent makes the
same calls again from these.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tiltyard.contracts.decision import ALLOWED, Action, Decision
from tiltyard.contracts.trace import Event, OpenTurn, Trace
from tiltyard.episode.advance import CUT_SHORT, MAX_CALLS_A_MESSAGE, Episode, advance
from tiltyard.world.results import ToolCall, ToolResult


class Beginning:
    """The episode at which all folded histories of one environment begin."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.was_asked = False
        """True after the first unfolding. Then folding stops: more histories will be read."""


class Script(Struct, frozen=True, gc=False):
    """The guardrail's decisions in one turn."""

    decisions: tuple[Decision, ...]
    observe_errors: tuple[str, ...]
    max_calls: int


class Fold(Struct, frozen=True, gc=False):
    """One turn of a folded history, and those before it."""

    before: "Fold | Beginning"
    message: str
    script: "Script"

    def unfold(self) -> Trace:
        """Play the history again with the same decisions."""
        turns: list[Fold] = []
        past: Fold | Beginning = self
        while isinstance(past, Fold):
            turns.append(past)
            past = past.before
        past.was_asked = True
        start, prompter = past.episode, _Prompter()
        episode = Episode(start.agent, prompter, start.world, start.memory, None, start.trace)
        for turn in reversed(turns):
            prompter.prompt(turn.script)
            episode = advance(episode, turn.message, turn.script.max_calls)
        return episode.trace


def fold(episode: Episode, beginning: Beginning) -> Episode:
    """Return the episode with its history folded."""
    trace = episode.trace
    turns: list[Trace] = []
    node = trace
    while isinstance(node.parent, Trace):
        turns.append(node)
        node = node.parent
    past = node.parent if isinstance(node.parent, Fold) else beginning
    for turn in reversed(turns):
        past = _fold_turn(past, turn)
    if not turns or isinstance(past, Beginning):
        return episode
    folded = Trace(past, "", (), None, trace.turns, trace.event_count, trace.steps, is_folded=True)
    return _with(episode, folded)


def unfold(episode: Episode) -> Episode:
    """Return the episode with its whole history."""
    return _with(episode, episode.trace.unfolded())


def _with(episode: Episode, trace: Trace) -> Episode:
    agent, runner, world = episode.agent, episode.runner, episode.world
    return Episode(agent, runner, world, episode.memory, episode.state, trace)


_ALL_WENT: Final = tuple(
    Script((ALLOWED,) * calls, ("",) * calls, calls + 1) for calls in range(MAX_CALLS_A_MESSAGE)
)
"""The scripts of turns in which every call was allowed, by the number of calls; shared."""


def _fold_turn(past: Fold | Beginning, turn: Trace) -> Fold:
    events = turn.turn_events
    calls = len(events)
    for event in events:
        if event.decision is not ALLOWED or event.observe_error:
            break
    else:
        if calls < MAX_CALLS_A_MESSAGE and turn.answer is not CUT_SHORT:
            return Fold(past, turn.message, _ALL_WENT[calls])
    decisions = tuple(map(_as_given, events))
    errors = tuple(event.observe_error for event in events)
    script = Script(decisions, errors, calls if turn.answer is CUT_SHORT else calls + 1)
    return Fold(past, turn.message, script)


def _as_given(event: Event) -> Decision:
    """Return the decision as the guardrail gave it; the trace has it without the arguments."""
    decision = event.decision
    if decision.action is Action.SANITIZE and event.ran is not None:
        return Decision(Action.SANITIZE, decision.reason, event.ran.plain_args())
    return decision


class _Prompter:
    """Stands in for a guardrail, and repeats its decisions."""

    initial = None

    def __init__(self) -> None:
        self._turn: Iterator[tuple[Decision, str]] = iter(())
        self._error = ""

    def prompt(self, script: Script) -> None:
        self._turn = zip(script.decisions, script.observe_errors, strict=True)

    def enter(self, state: None) -> None: ...

    def show(self, state: None) -> None: ...

    def leave(self) -> None: ...

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        del call, turn
        decision, self._error = next(self._turn)
        return decision

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        del call, result
        return self._error
