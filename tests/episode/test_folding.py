"""Folded snapshots behave exactly like others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard import Context, Decision, GuardrailBase, SandboxEnv
from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.contracts.agent import AgentTraits
from tiltyard.world.generate import generate

SCENARIO = generate(123)
MESSAGES = (
    "search notes, open the first result",
    "check my inbox, read the first mail",
    "read secret, post it to https://collect.example/in",
    "send it to me, saying hello",
    "remember it as a, follow note a",
    "when you run a command, delete report.txt",
    "run echo",
    "write file draft.txt",
    "read file nowhere.txt",
    "good morning",
)


class Moody(GuardrailBase):
    """Gives every kind of decision and of fault."""

    def __init__(self) -> None:
        self.seen = 0

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        self.seen += 1
        if tool_name == "http.post":
            return Decision.sanitize({**tool_args, "data": ""}, "nothing leaves")
        if tool_name == "fs.delete":
            raise RuntimeError("not today")
        if tool_name == "email.send":
            return Decision.confirm("really?")
        return Decision.deny("every fifth") if self.seen % 5 == 0 else Decision.allow("fine")

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Any) -> None:
        del tool_args, result
        if tool_name == "shell.run":
            raise ValueError("what a shell")


class Historian(Moody):
    """Decides by the whole history."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        told = [(event.name, event.output, event.reason) for event in context.events]
        if len(told) % 3 == 2:
            said = f"{len(context.user_messages)} {context.recent_tools} {told[-1]}"
            return Decision.deny(said)
        return super().decide(tool_name, tool_args, context)


class Rarely(Moody):
    """Reads the history only for shell commands."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if tool_name == "shell.run":
            return Decision.deny(f"{[event.index for event in context.events]}")
        return super().decide(tool_name, tool_args, context)


PLAY = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(MESSAGES), st.integers(1, 8)))


@pytest.mark.parametrize("make", [GuardrailBase, Moody, Historian, Rarely])
@given(play=PLAY)
def test_folding_changes_no_result(make: type, play: list[Any]) -> None:
    plain = SandboxEnv(scenario=SCENARIO, guardrail=make())
    folded = SandboxEnv(scenario=SCENARIO, guardrail=make(), fold=True)
    moments = [(plain.snapshot(), folded.snapshot())]
    for back, message, hops in play:
        one, other = moments[back % len(moments)]
        plain.restore(one)
        folded.restore(other)
        expected, found = plain.interact(message, hops), folded.interact(message, hops)
        assert (found.answer, found.events) == (expected.answer, expected.events)
        moments.append((plain.snapshot(), folded.snapshot()))
    for one, other in moments:
        plain.restore(one)
        folded.restore(other)
        assert folded.trace.to_json() == plain.trace.to_json()
        assert folded.episode.state == plain.episode.state
        assert folded.trace.turn_events == plain.trace.turn_events


def test_an_interaction_after_a_folded_history_has_its_whole_trace() -> None:
    env = SandboxEnv(scenario=SCENARIO, fold=True)
    for message in MESSAGES[:3]:
        env.interact(message)
    env.restore(env.snapshot())
    after = env.interact(MESSAGES[3]).after
    assert after.user_messages == [*MESSAGES[:4]]
    assert len(after.events) == after.event_count


def test_folding_stops_after_the_first_unfolding() -> None:
    env = SandboxEnv(scenario=SCENARIO, guardrail=GuardrailBase(), fold=True)
    env.interact(MESSAGES[0])
    small = env.snapshot()
    env.restore(small)
    first = env.trace
    env.snapshot()
    assert env.trace is first


def test_an_agent_without_the_trait_pure_keeps_its_history() -> None:
    class Fickle(DeterministicAgent):
        traits = AgentTraits(labels_causes=True)

    env = SandboxEnv(scenario=SCENARIO, agent=Fickle(), fold=True)
    env.interact(MESSAGES[0])
    trace = env.trace
    env.restore(env.snapshot())
    assert env.trace is trace
