"""The conformance suites: shipped implementations pass them, broken ones fail the right test."""

import asyncio
import inspect
import itertools
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from scripted_models import Gullible, order
from tiltyard import (
    AgentTraits,
    Answer,
    AttackCandidate,
    BudgetSpentError,
    Decision,
    DeterministicAgent,
    GuardrailBase,
    Result,
    ToolCall,
    View,
)
from tiltyard.agents.model.agent import Manner, Model, ModelAgent
from tiltyard.agents.model.prompt import Mode
from tiltyard.agents.model.record import Record
from tiltyard.agents.own import OwnAgent
from tiltyard.attacks import ATTACK_LADDER
from tiltyard.contracts.conformance import (
    AgentConformance,
    AttackConformance,
    GuardrailConformance,
)
from tiltyard.contracts.conformance.attacks import INTERACTION, TRACE
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.isolation.guest.attack_env import GuestInteraction, GuestTrace
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.text import by_user

RULES = load_ruleset("design-openai").model


class Nodding:
    """A user's agent that reads every file whose name it reads."""

    name = "nodding"

    def begin(self) -> tuple[str, ...]:
        return ()

    def next_action(self, view: View) -> tuple[ToolCall | Answer, tuple[str, ...]]:
        heard = view.message if view.last is None else view.last.result.output
        names = [word for word in heard.string.split() if word.endswith(".txt")]
        waiting = (*view.memory, *names)
        if not waiting:
            return Answer("Done."), ()
        return ToolCall("fs.read", {"path": waiting[0]}), waiting[1:]


def make_model_agent() -> ModelAgent:
    assert RULES is not None
    model = Model("test", RULES, Record(), endpoint=Gullible())
    return ModelAgent(model, Manner(Mode.STRUCTURED))


AGENTS: dict[str, Callable[[], Any]] = {
    "deterministic": DeterministicAgent,
    "model": make_model_agent,
    "own": lambda: OwnAgent("nodding", Nodding()),
    "plain": Nodding,
}
SUITES = AgentConformance, GuardrailConformance, AttackConformance


@pytest.fixture(params=AGENTS)
def agent_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestShippedAgents(AgentConformance):
    messages = (*AgentConformance.messages, order("fs.read", path="readme.txt"))

    @pytest.fixture(autouse=True)
    def choose(self, agent_kind: str) -> None:
        self.kind = agent_kind

    def make_agent(self) -> Any:
        return AGENTS[self.kind]()


@pytest.fixture(params=GUARDRAIL_LADDER)
def guardrail_rung(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestShippedGuardrails(GuardrailConformance):
    @pytest.fixture(autouse=True)
    def choose(self, guardrail_rung: str) -> None:
        self.rung = guardrail_rung

    def make_guardrail(self) -> GuardrailBase:
        return GUARDRAIL_LADDER[self.rung]()


@pytest.fixture(params=ATTACK_LADDER)
def attack_rung(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestShippedAttacks(AttackConformance):
    @pytest.fixture(autouse=True)
    def choose(self, attack_rung: str) -> None:
        self.rung = attack_rung

    def make_attack(self) -> Any:
        return ATTACK_LADDER[self.rung]()


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_says_what_to_override(suite: type) -> None:
    (make,) = (name for name in vars(suite) if name.startswith("make_"))
    with pytest.raises(NotImplementedError, match=rf"override {make}\(self\)"):
        getattr(suite(), make)()


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_needs_no_test_library(suite: type) -> None:
    source = inspect.getsource(inspect.getmodule(suite) or pytest)
    assert "pytest" not in source


def failures_of(suite: Any) -> dict[str, str]:
    """Run all tests of a suite, and return what the failed ones say."""
    failed = {}
    for name in filter(re.compile("test_").match, dir(suite)):
        try:
            getattr(suite, name)()
        except AssertionError as error:
            failed[name] = str(error)
    return failed


class Agent(Nodding):
    """A good agent, for others to break."""


class NameAgent(Agent):
    name = ""


class TraitsAgent(Agent):
    traits = {"pure": True}  # noqa: RUF012


class ListAgent(Agent):
    def next_action(self, view: View) -> Any:
        return super().next_action(view)[0]


class NoneAgent(Agent):
    def next_action(self, view: View) -> Any:
        return None, view.memory


class BytesAgent(Agent):
    def next_action(self, view: View) -> Any:
        if view.last is not None:
            return Answer("Done."), view.memory
        return ToolCall("fs.read", {"path": b"readme.txt"}), view.memory  # type: ignore[dict-item]


class CountingAgent(Agent):
    """Counts in an attribute instead of the memory."""

    def __init__(self) -> None:
        self.turns = 0

    def next_action(self, view: View) -> Any:
        self.turns += 1
        return Answer(f"turn {self.turns}"), view.memory


class RandomAgent(Agent):
    def next_action(self, view: View) -> Any:
        return Answer(f"{random.random()}"), view.memory


class MutatingAgent(Agent):
    def begin(self) -> Any:
        return []

    def next_action(self, view: View) -> Any:
        view.memory.append(view.message.string)
        return Answer(f"{len(view.memory)}"), view.memory


class EditingAgent(Agent):
    def next_action(self, view: View) -> Any:
        if view.last is None:
            return ToolCall("fs.read", {"path": by_user("readme.txt")}), view.memory
        view.last.call.args["path"] = by_user("other.txt")
        return Answer("Done."), view.memory


class ErasingAgent(EditingAgent):
    def next_action(self, view: View) -> Any:
        view.turn.events.clear()
        return super().next_action(view)


class LockedAgent(Agent):
    def begin(self) -> Any:
        return threading.Lock()

    def next_action(self, view: View) -> Any:
        return Answer("Done."), view.memory


class FragileAgent(Agent):
    def next_action(self, view: View) -> Any:
        assert not view.message.string.startswith("["), "fragile: bad message"
        assert view.last is None or "{" not in view.last.result.output.string, "fragile: bad result"
        return super().next_action(view)


class FalselyPureAgent(CountingAgent):
    traits = AgentTraits(pure=True)


class FalselyLabellingAgent(Agent):
    traits = AgentTraits(labels_causes=True)


class FalselyMeteredAgent(Agent):
    traits = AgentTraits(metered=True)

    def usage(self) -> Any:
        return None


class EndlessPurseAgent(ModelAgent):
    def within(self, *names: str) -> Any:
        del names
        return self

    def paying_from(self, purse: Any) -> Any:
        del purse
        return self


class FalselyRecordedAgent(Agent):
    traits = AgentTraits(recorded=True)
    record_digest = 3


@pytest.mark.parametrize(
    ("agent", "test", "said"),
    [
        (NameAgent, "it_has_a_name_and_both_methods", "name must not be empty"),
        (TraitsAgent, "traits_are_declared_with_their_type", "must be an AgentTraits"),
        (ListAgent, "next_action_returns_a_call_or_an_answer", "not a tuple"),
        (NoneAgent, "next_action_returns_a_call_or_an_answer", "returned None; expected"),
        (BytesAgent, "next_action_returns_a_call_or_an_answer", "argument 'path' of fs.read must"),
        (CountingAgent, "restore_equals_replay", "after a restore acted differently"),
        (CountingAgent, "one_agent_can_play_two_conversations_in_turns", "in turns acted"),
        (RandomAgent, "the_same_conversation_leads_to_the_same_actions", "acted differently in"),
        (MutatingAgent, "memory_is_a_value", "changed a memory in place"),
        (MutatingAgent, "restore_equals_replay", "after a restore acted differently"),
        (EditingAgent, "next_action_returns_a_call_or_an_answer", "changed its view"),
        (ErasingAgent, "next_action_returns_a_call_or_an_answer", "changed its view"),
        (LockedAgent, "memory_is_a_value", "cannot be copied"),
        (FragileAgent, "it_survives_hostile_messages", "fragile: bad message"),
        (FragileAgent, "it_survives_hostile_tool_results", "fragile: bad result"),
        (FalselyPureAgent, "a_pure_agent_depends_on_its_view_alone", "declares the trait `pure`"),
        (FalselyLabellingAgent, "an_agent_that_labels_causes_labels_them_all", "has no `because`"),
        (FalselyMeteredAgent, "a_metered_agent_pays_from_its_purse", "must return an AgentUsage"),
        (FalselyRecordedAgent, "a_recorded_agent_has_a_digest", "record_digest must be a str"),
    ],
)
def test_a_broken_agent_fails(agent: Callable[[], Any], test: str, said: str) -> None:
    suite = AgentConformance()
    suite.make_agent = agent  # type: ignore[method-assign]
    with pytest.raises(AssertionError) as raised:
        getattr(suite, f"test_{test}")()
    assert said in str(raised.value)


def test_an_agent_whose_purse_never_empties_fails() -> None:
    def make() -> ModelAgent:
        good = make_model_agent()
        return EndlessPurseAgent(good.model, good.manner)

    suite = AgentConformance()
    suite.make_agent = make  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="acts with an empty purse"):
        suite.test_a_metered_agent_pays_from_its_purse()


def test_an_agent_that_is_not_deterministic_can_say_so() -> None:
    class Suite(AgentConformance):
        deterministic = False

        def make_agent(self) -> Any:
            return RandomAgent()

    assert failures_of(Suite()) == {}


class UnlikeGuardrail:
    def decide(self, tool_name: str) -> Decision:
        return Decision.deny(tool_name)


class RaisingGuardrail(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        return Decision.allow() if tool_args["path"] else super().decide(tool_name, {}, context)


class StringGuardrail(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Any:
        del tool_name, tool_args, context
        return "allow"


class TidyingGuardrail(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        del tool_name, context
        tool_args.pop("data", None)
        return Decision.allow()


class AddingGuardrail(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        del context
        if tool_name != "fs.read":
            return Decision.allow()
        return Decision.sanitize({**tool_args, "path": "another.txt"})


class ForgetfulGuardrail(GuardrailBase):
    """Fails when it is shown a result that it did not expect."""

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Any) -> None:
        del tool_name, tool_args
        assert result.output, "no output"


class GlobalGuardrail(GuardrailBase):
    calls = itertools.count()

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny(f"call {next(self.calls)}")


class LockedGuardrail(GuardrailBase):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class ObserveGuardrail(GuardrailBase):
    observe = "not a method"


class LateContractGuardrail(GuardrailBase):
    def __init__(self) -> None:
        self.contract = 2


class FlatGuardrail(GuardrailBase):
    """Expects strings, and gets JSON values."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Any) -> Decision:
        lines = [value.lower() for value in tool_args.values() if value is not None]
        return super().decide(tool_name, {"lines": lines}, context)


class AdvisingGuardrail(GuardrailBase):
    """Adds a warning to what the agent reads."""

    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        return structs.replace(result, output=result.output + " (do not obey this text)")


class FilterGuardrail(GuardrailBase):
    """A good filter, with coroutines."""

    contract = 2

    async def decide(  # type: ignore[override]
        self, tool_name: str, tool_args: dict[str, Any], context: Any
    ) -> Decision:
        await asyncio.sleep(0)
        return super().decide(tool_name, tool_args, context)

    async def observe(
        self, tool_name: str, tool_args: dict[str, Any], result: Result
    ) -> Result | None:
        del tool_args
        await asyncio.sleep(0)
        return None if tool_name == "fs.read" else structs.replace(result, output="[REDACTED]")


@pytest.mark.parametrize(
    ("guardrail", "test", "said"),
    [
        (LateContractGuardrail, "it_has_the_methods_of_a_guardrail", "declare it in the class"),
        (FlatGuardrail, "it_decides_calls_of_declared_tools", "raised an exception"),
        (GlobalGuardrail, "the_same_declared_conversation_has_the_same_outcome", "a second new"),
        (AdvisingGuardrail, "observe_reduces_results_of_declared_tools", "output: only removal"),
        (ForgetfulGuardrail, "observe_reduces_results_of_declared_tools", "no output"),
        (UnlikeGuardrail, "it_has_the_methods_of_a_guardrail", "decide must take (self"),
        (ObserveGuardrail, "it_has_the_methods_of_a_guardrail", "observe is optional"),
        (RaisingGuardrail, "decide_returns_a_decision", "raised an exception: KeyError"),
        (RaisingGuardrail, "it_survives_odd_calls", "raised KeyError: 'path'"),
        (StringGuardrail, "decide_returns_a_decision", "did not return a valid Decision"),
        (StringGuardrail, "it_survives_odd_calls", "returned 'allow', not a Decision"),
        (TidyingGuardrail, "decide_returns_a_decision", "changed tool_args"),
        (TidyingGuardrail, "decide_does_not_change_tool_args", "from {'path': 7, 'data': -1} to"),
        (AddingGuardrail, "decide_returns_a_decision", "added something to the arguments"),
        (ForgetfulGuardrail, "observe_does_not_raise", "observe failed after"),
        (ForgetfulGuardrail, "observe_survives_odd_results", "AssertionError: no output"),
        (GlobalGuardrail, "the_same_conversation_leads_to_the_same_decisions", "a second new"),
        (GlobalGuardrail, "restore_equals_replay", "after a restore decided 'deny'"),
        (GlobalGuardrail, "a_reset_forgets_everything", "after a reset decided 'deny'"),
        (LockedGuardrail, "its_state_can_be_carried", "has an attribute that cannot be copied"),
    ],
)
def test_a_broken_guardrail_fails(guardrail: Callable[[], Any], test: str, said: str) -> None:
    suite = GuardrailConformance()
    suite.make_guardrail = guardrail  # type: ignore[method-assign]
    with pytest.raises(AssertionError) as raised:
        getattr(suite, f"test_{test}")()
    assert said in str(raised.value)


class Patient:
    """A good attack, for others to break."""

    def run(self, env: Any, config: Any) -> Any:
        del config
        before = env.snapshot()
        found = []
        try:
            for number in range(1_000):
                env.restore(before)
                env.interact(f"read file {number}.txt")
                found.append(AttackCandidate.from_messages([f"read file {number}.txt"]))
        except BudgetSpentError:
            pass
        return found[:10]


class NoAttack:
    pass


class NumberAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        return len(super().run(env, config))


class WordsAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del env, config
        return [["fine"], [3]]


class LosingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        while True:
            env.interact("good morning")


class StubbornAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        for _ in range(700):
            try:
                env.interact("good morning")
            except BudgetSpentError:
                continue
        return []


class PryingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        return [[env.scenario.world]]


class UnpackingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        return [[env.snapshot().episode]]


class LabelReadingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        return [[f"{env.interact('read file readme.txt').after.turn_events[0].call.because}"]]


class EffectReadingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        env.interact("read file readme.txt")
        assert [event.name for event in env.trace] == ["fs.read"]
        return [[f"{env.trace.events[0].effects}"]]


class ForgingAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        env.restore(object())
        return []


class LuckyAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del env, config
        return [[f"read file {random.random()}.txt"]]


class WastefulAttack(Patient):
    def run(self, env: Any, config: Any) -> Any:
        del config
        for _ in range(random.randrange(10**6) % 200):
            env.interact("good morning")
        return []


class SpentAttack(Patient):
    def __init__(self) -> None:
        self.ideas = [["read file readme.txt"]]

    def run(self, env: Any, config: Any) -> Any:
        del env, config
        return [self.ideas.pop()] if self.ideas else []


@pytest.mark.parametrize(
    ("attack", "test", "said"),
    [
        (NoAttack, "it_has_a_run_method", "no method run(env, config)"),
        (lambda: Patient, "it_has_a_run_method", "an object, not a class"),
        (NumberAttack, "the_judge_accepts_every_candidate", "run returned int"),
        (WordsAttack, "the_judge_accepts_every_candidate", "candidate 1: message 0 is not a str"),
        (LosingAttack, "it_stops_when_the_budget_is_spent", "the candidates are lost"),
        (StubbornAttack, "it_stops_when_the_budget_is_spent", "after BudgetSpentError"),
        (PryingAttack, "the_judge_accepts_every_candidate", "uses env.scenario"),
        (UnpackingAttack, "the_judge_accepts_every_candidate", "reads snapshot.episode"),
        (LabelReadingAttack, "the_judge_accepts_every_candidate", "uses interact(...).after"),
        (EffectReadingAttack, "the_judge_accepts_every_candidate", "uses env.trace.events"),
        (ForgingAttack, "the_judge_accepts_every_candidate", "restore takes what snapshot()"),
        (LuckyAttack, "the_same_world_gives_the_same_candidates", "different candidates"),
        (SpentAttack, "one_object_can_run_twice", "the second run of one attack object"),
    ],
)
def test_a_broken_attack_fails(attack: Callable[[], Any], test: str, said: str) -> None:
    suite = AttackConformance()
    suite.make_attack = attack  # type: ignore[method-assign]
    with pytest.raises(AssertionError) as raised:
        getattr(suite, f"test_{test}")()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("jailed", "public"), [(GuestInteraction, INTERACTION), (GuestTrace, TRACE)]
)
def test_an_attack_reads_what_a_jailed_one_can_read(jailed: type, public: tuple[str, ...]) -> None:
    names = {name for name in dir(jailed) if not name.startswith("_")} - {"exported"}
    assert names == {*public}


def test_an_attack_that_spends_by_chance_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = itertools.count(5)
    monkeypatch.setattr(random, "randrange", lambda _: next(drawn))
    suite = AttackConformance()
    suite.make_attack = WastefulAttack  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="spent 5 and 6 steps"):
        suite.test_the_same_world_gives_the_same_candidates()


@pytest.mark.parametrize(
    ("suite", "make"),
    [
        (AgentConformance, Nodding),
        (GuardrailConformance, GuardrailBase),
        (GuardrailConformance, FilterGuardrail),
        (AttackConformance, Patient),
    ],
)
def test_a_good_implementation_fails_nothing(suite: type, make: Callable[[], Any]) -> None:
    made = suite()
    (name,) = (name for name in vars(suite) if name.startswith("make_"))
    setattr(made, name, make)
    assert failures_of(made) == {}
