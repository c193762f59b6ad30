"""The conformance suite of agents."""

import copy
from typing import Any, NamedTuple

from tiltyard.contracts.agent import (
    Agent,
    AgentTraits,
    AgentUsage,
    View,
    as_metered,
    as_recorded,
    traits_of,
)
from tiltyard.contracts.conformance.material import (
    HOSTILE_TEXTS,
    MESSAGES,
    hostile_openings,
    scenario,
)
from tiltyard.contracts.decision import ALLOWED
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.contracts.trace import NO_TRACE, Answer, Event, OpenTurn
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.world.results import Other, ToolCall, ToolError, ToolResult
from tiltyard.world.text import SourceKind, Text, by_machine, by_user

MAX_CALLS = 8


class AgentConformance:
    """What every agent must do. Override `make_agent`."""

    messages: tuple[str, ...] = MESSAGES
    """The conversation that the tests play. Add messages that make your agent call tools."""
    deterministic: bool = True
    """False for an agent that may answer the same conversation differently, such as a live model
    without a record. The tests that compare two conversations are then skipped."""

    def make_agent(self) -> Agent:
        """Return a new agent."""
        raise NotImplementedError("override make_agent(self): return a new agent")

    def test_it_has_a_name_and_both_methods(self) -> None:
        agent = self.make_agent()
        name = getattr(agent, "name", None)
        assert isinstance(name, str), f"name must be a str, not {name!r}"
        assert name, "name must not be empty"
        for method in ("begin", "next_action"):
            assert callable(getattr(agent, method, None)), f"the agent has no method {method}"

    def test_traits_are_declared_with_their_type(self) -> None:
        declared = getattr(self.make_agent(), "traits", AgentTraits())
        assert isinstance(declared, AgentTraits), (
            f"traits must be an AgentTraits(...), not {declared!r}: anything else is ignored"
        )

    def test_next_action_returns_a_call_or_an_answer(self) -> None:
        self._play(self.messages)  # It checks every action.

    def test_the_same_conversation_leads_to_the_same_actions(self) -> None:
        if self.deterministic:
            first, second = self._play(self.messages), self._play(self.messages)
            _compare(first, second, "a second new agent in the same conversation")

    def test_restore_equals_replay(self) -> None:
        if not self.deterministic:
            return
        half = len(self.messages) // 2
        watched = _Watched(self.make_agent())
        env = SandboxEnv(scenario=scenario(), agent=watched, max_tool_hops=MAX_CALLS)
        for message in self.messages[:half]:
            env.interact(message)
        before, known = env.snapshot(), len(watched.steps)
        for message in reversed(self.messages):  # Another future, which the restore must undo.
            env.interact(message)
        env.restore(before)
        del watched.steps[known:]
        for message in self.messages[half:]:
            env.interact(message)
        _compare(self._play(self.messages), watched, "the same agent after a restore")

    def test_one_agent_can_play_two_conversations_in_turns(self) -> None:
        """Keep state in the memory: attributes would mix up the two conversations."""
        if not self.deterministic:
            return
        agent = self.make_agent()
        watched = _Watched(agent), _Watched(agent)
        envs = [
            SandboxEnv(scenario=scenario(), agent=each, max_tool_hops=MAX_CALLS) for each in watched
        ]
        orders = self.messages, self.messages[::-1]
        for pair in zip(*orders, strict=True):
            for env, message in zip(envs, pair, strict=True):
                env.interact(message)
        for each, messages in zip(watched, orders, strict=True):
            _compare(self._play(messages), each, "an agent that plays two conversations in turns")

    def test_memory_is_a_value(self) -> None:
        """An episode keeps old memories to go back to, so the agent must not change them."""
        for step in self._play(self.messages).steps:
            assert _equal(step.memory, step.copied), (
                "next_action changed a memory in place that it had returned before; return a new "
                f"value instead. It was {step.copied!r} and became {step.memory!r}"
            )

    def test_it_survives_hostile_messages(self) -> None:
        for message in (*HOSTILE_TEXTS, *hostile_openings()):
            self._play((message,))

    def test_it_survives_hostile_tool_results(self) -> None:
        for text in HOSTILE_TEXTS:
            for error in (None, ToolError.DENIED, ToolError.NOT_FOUND):
                agent = self.make_agent()
                for message in self.messages[:3]:
                    _play_by_hand(agent, message, _result(text, error))

    def test_a_pure_agent_depends_on_its_view_alone(self) -> None:
        if not traits_of(self.make_agent()).pure:
            return
        steps = self._play(self.messages).steps
        for agent in (self.make_agent(), self.make_agent()):
            for step in reversed(steps):
                action, memory = agent.next_action(step.view)
                assert action == step.action, (
                    "the agent declares the trait `pure` and acts differently when the same view "
                    f"comes in another order: {action!r} instead of {step.action!r}"
                )
                assert _equal(memory, step.copied), (
                    "the agent declares the trait `pure` and returns another memory for the same "
                    f"view: {memory!r} instead of {step.copied!r}"
                )

    def test_an_agent_that_labels_causes_labels_them_all(self) -> None:
        if not traits_of(self.make_agent()).labels_causes:
            return
        for step in self._play((*self.messages, *hostile_openings())).steps:
            if isinstance(step.action, ToolCall):
                _check_labels(step.action, len(step.view.trace.events))

    def test_a_recorded_agent_has_a_digest(self) -> None:
        recorded = as_recorded(self.make_agent())
        if recorded is not None:
            digest = recorded.record_digest
            assert isinstance(digest, str), f"record_digest must be a str, not {digest!r}"

    def test_a_metered_agent_pays_from_its_purse(self) -> None:
        metered = as_metered(self.make_agent())
        if metered is None:
            return
        assert isinstance(metered.usage(), AgentUsage), "usage() must return an AgentUsage"
        empty = metered.within("conformance").paying_from(Purse(0))
        try:
            empty.next_action(_view(self.messages[0], empty.begin()))
        except OutOfRequestsError:
            return
        raise AssertionError(
            "the agent declares the trait `metered` and acts with an empty purse: "
            "`paying_from(Purse(0))` must make next_action raise OutOfRequestsError"
        )

    def _play(self, messages: tuple[str, ...]) -> "_Watched":
        watched = _Watched(self.make_agent())
        env = SandboxEnv(scenario=scenario(), agent=watched, max_tool_hops=MAX_CALLS)
        for message in messages:
            env.interact(message)
        return watched


class _Step(NamedTuple):
    view: View
    action: ToolCall | Answer
    memory: Any
    copied: Any
    """A copy of the memory, made when the agent returned it."""


class _Watched:
    """Checks an agent's steps, and writes them down."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self.traits = traits_of(agent)
        self.steps: list[_Step] = []
        self._agent = agent

    def begin(self) -> Any:
        return self._agent.begin()

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Any]:
        turn = OpenTurn(view.turn.before, view.turn.message, list(view.turn.events))
        kept = View(view.message, view.last, view.memory, turn, view.owner)
        args = [dict(event.call.args) for event in turn.events]
        returned = self._agent.next_action(view)
        unchanged = view.turn.events == turn.events and args == [
            event.call.args for event in turn.events
        ]
        assert unchanged, (
            "next_action changed its view; the calls and results in it belong to the trace, so "
            "make new ones"
        )
        assert isinstance(returned, tuple), f"next_action returned {returned!r}, not a tuple"
        assert len(returned) == 2, (
            f"next_action returned {len(returned)} values; expected the action and the memory"
        )
        action, memory = returned
        _check_action(action)
        self.steps.append(_Step(kept, action, memory, _copied(memory)))
        return action, memory


def _copied(memory: Any) -> Any:
    try:
        return copy.deepcopy(memory)
    except Exception as error:
        raise AssertionError(
            f"the memory {memory!r} cannot be copied ({type(error).__name__}: {error}); a memory "
            "is a value: keep connections and locks in the agent's attributes"
        ) from error


def _check_action(action: object) -> None:
    if isinstance(action, Answer):
        assert isinstance(action.text, str), f"Answer.text must be a str, not {action.text!r}"
        return
    assert isinstance(action, ToolCall), (
        f"next_action returned {action!r}; expected a ToolCall or an Answer"
    )
    assert isinstance(action.tool, str), f"ToolCall.tool must be a str, not {action.tool!r}"
    assert isinstance(action.args, dict), f"ToolCall.args must be a dict, not {action.args!r}"
    for name, value in action.args.items():
        assert isinstance(name, str), f"the names in ToolCall.args must be str, not {name!r}"
        assert value is None or isinstance(value, str | int | Text | Other), (
            f"the argument {name!r} of {action.tool} must be a str, an int or None, not {value!r}"
        )


def _check_labels(call: ToolCall, known: int) -> None:
    why = "the agent declares the trait `labels_causes`, and its call of " + call.tool
    assert call.because is not None, f"{why} has no `because`"
    for index in (*call.because, *call.uses):
        assert 0 <= index < known, f"{why} names the event {index}; there are {known} before it"
    for name, value in call.args.items():
        assert not isinstance(value, str), f"{why} has the argument {name!r} without authors"


def _compare(expected: _Watched, found: _Watched, who: str) -> None:
    for at, (one, other) in enumerate(zip(expected.steps, found.steps, strict=False)):
        assert one.action == other.action, (
            f"{who} acted differently in action {at}: {other.action!r} instead of {one.action!r}"
        )
        assert _equal(one.copied, other.copied), (
            f"{who} had another memory after action {at}: "
            f"{other.copied!r} instead of {one.copied!r}; a memory needs an __eq__ by value"
        )
    assert len(expected.steps) == len(found.steps), (
        f"{who} took {len(found.steps)} actions instead of {len(expected.steps)}"
    )


def _equal(one: object, other: object) -> bool:
    return type(one) is type(other) and bool(one == other)


def _play_by_hand(agent: Agent, message: str, result: ToolResult) -> None:
    """Play one turn in which every call has the same result."""
    turn = OpenTurn(NO_TRACE, message, [])
    memory, last = agent.begin(), None
    for index in range(MAX_CALLS):
        owner = scenario().world.site.owner
        action, memory = agent.next_action(View(by_user(message), last, memory, turn, owner))
        _check_action(action)
        if not isinstance(action, ToolCall):
            return
        last = Event(index, 0, action, ALLOWED, result)
        turn.events.append(last)


def _view(message: str, memory: Any) -> View:
    turn = OpenTurn(NO_TRACE, message, [])
    return View(by_user(message), None, memory, turn, scenario().world.site.owner)


def _result(text: str, error: ToolError | None) -> ToolResult:
    return ToolResult(error is None, by_machine(text), SourceKind.WEB, error)
