"""The episode: the only place where world, agent and guardrail meet.

An episode is a value. `advance` takes an episode and a message, and returns the episode after
that message. The old episode stays valid, and can be advanced again with another message.
"""

from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.agent import Agent, View, traits_of, without_claims
from tiltyard.contracts.decision import ALLOWED, Action, Decision, Fault
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.contracts.trace import NO_TRACE, Answer, Event, OpenTurn, Trace
from tiltyard.episode.guardrail_runner import Runner, runner_of
from tiltyard.episode.redaction import NotARedactionError, redact
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.world import tools
from tiltyard.world.results import Outcome, ToolCall, ToolError, failure
from tiltyard.world.state import World
from tiltyard.world.text import SourceKind, by_user
from tiltyard.world.tools import TOOLS

MAX_CALLS_A_MESSAGE: Final = 24
CUT_SHORT: Final = Answer("I stopped here: too many calls for one message.")


class Episode(Struct, frozen=True, gc=False):
    """Everything that the next message can depend on.

    A search keeps hundreds of thousands of episodes. Their values have no cycles, so the garbage
    collector skips them (`gc=False`). An agent or guardrail with a reference to its own environment
    keeps that environment alive.
    """

    agent: Agent
    runner: Runner
    world: World
    memory: Any
    """The agent's memory."""
    state: Any
    """The guardrail's state."""
    trace: Trace = NO_TRACE


def begin(world: World, agent: Agent, guardrail: Guardrail) -> Episode:
    """Return a new episode."""
    runner = runner_of(guardrail)
    return Episode(agent, runner, world, agent.begin(), runner.initial)


def advance(episode: Episode, message: str, max_calls: int = MAX_CALLS_A_MESSAGE) -> Episode:
    """Let the agent work on one message of the user. The guardrail decides every call."""
    with marked_interrupts():
        return _advance(episode, message, max_calls)


def _advance(episode: Episode, message: str, max_calls: int) -> Episode:
    agent, runner, world, memory = episode.agent, episode.runner, episode.world, episode.memory
    runner.enter(episode.state)
    turn = OpenTurn(episode.trace, message, [])
    number, first = episode.trace.turns, episode.trace.event_count
    said, owner = by_user(message), world.site.owner
    believed = traits_of(agent).labels_causes
    answer = CUT_SHORT
    last: Event | None = None
    for index in range(first, first + max_calls):
        action, memory = agent.next_action(View(said, last, memory, turn, owner))
        if isinstance(action, Answer):
            answer = action
            break
        call = action if believed and action.because is not None else without_claims(action)
        ran, decision = _permitted(call, runner.decide(call, turn))
        if ran is None:
            outcome, error = _refused(world, call, decision), ""
        else:
            outcome = tools.call(world, ran)
            error = runner.observe(ran, outcome.result)
        world, result, effects = outcome.world, outcome.result, outcome.effects
        changed = None if ran is call else ran
        last = Event(index, number, call, decision, result, effects, changed, error)
        turn.events.append(last)
    return Episode(agent, runner, world, memory, runner.leave(), turn.closed(answer))


def _permitted(call: ToolCall, decision: Decision) -> tuple[ToolCall | None, Decision]:
    """Return the call that may run, or None, and the decision for the trace."""
    if decision is ALLOWED or decision.action is Action.ALLOW:
        return call, decision
    if decision.action is not Action.SANITIZE:
        return None, decision
    try:
        less = redact(call, decision.sanitized_args or {})
    except NotARedactionError as error:
        reason = f"sanitize: {error} (said: {decision.reason})"
        return None, Decision(Action.DENY, reason, None, Fault.NOT_A_REDACTION)
    return less, Decision(Action.SANITIZE, decision.reason)


def _refused(world: World, call: ToolCall, decision: Decision) -> Outcome:
    error = ToolError.DENIED
    if decision.fault is not None:
        error = ToolError.GUARDRAIL_ERROR
    elif decision.action is Action.CONFIRM:
        error = ToolError.NOT_CONFIRMED
    tool = TOOLS.get(call.tool)
    return Outcome(world, failure(SourceKind.TOOL if tool is None else tool.source, error))
