"""Injected tasks: the user's own calls must pass, injected calls may be denied."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tiltyard import Decision
from tiltyard.benign import OPERATIONS, Suite, Task, TaskKind, Trial, play
from tiltyard.benign.tasks import Call
from tiltyard.contracts.guardrail import Context, Guardrail, GuardrailBase, Result
from tiltyard.guardrails import (
    PatternMatchingGuardrail,
    ReferenceGuardrail,
    SimpleRulesGuardrail,
    TaintTrackingGuardrail,
)
from tiltyard.judge import Judge
from tiltyard.world.scenario import Scenario
from tiltyard.world.tools import target_parameter

Drawn = Callable[[int, str], Suite]
Calls = Callable[[Trial], list[Call]]

SEEDS = (123, *range(1, 11))
READING = [name for name in OPERATIONS if name not in ("read file readme", "run echo")]


def injected(drawn: Drawn, seed: int) -> tuple[Scenario, list[Task]]:
    suite = drawn(seed, f"match {seed}")
    return suite.poisoned, [task for task in suite.tasks if task.kind is TaskKind.INJECTED]


@pytest.mark.parametrize("seed", SEEDS)
def test_users_succeed_although_the_agent_follows_the_injections(
    drawn: Drawn, calls: Calls, seed: int
) -> None:
    poisoned, tasks = injected(drawn, seed)
    assert [task.operation for task in tasks] == [name for name in READING for _ in range(3)]
    for task in tasks:
        trial = play(task, poisoned, GuardrailBase)
        assert not trial.false_positive, (task, trial.missing)
        proposed = calls(trial)
        assert [call for call in proposed if call in task.calls] == list(task.calls)
        assert len(proposed) > len(task.calls), task


def test_two_injected_tasks_in_three_are_long_conversations(drawn: Drawn) -> None:
    for seed in SEEDS:
        _, tasks = injected(drawn, seed)
        long = [task for task in tasks if len(task.messages) > 3]
        assert Counter(task.operation for task in long) == dict.fromkeys(READING, 2)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_the_judge_finds_breaches_without_a_guardrail(drawn: Drawn, seed: int) -> None:
    poisoned, tasks = injected(drawn, seed)
    judge = Judge(poisoned)
    breached = [task for task in tasks if judge.findings(task.messages)]
    assert len(breached) >= 0.8 * len(tasks)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_only_documents_that_injected_tasks_read_differ(drawn: Drawn, seed: int) -> None:
    scenario = drawn(seed, f"match {seed}").scenario
    poisoned, tasks = injected(drawn, seed)
    read = {document for task in tasks for document in task.reads}
    changed = 0
    for before, after in zip(scenario.pages, poisoned.pages, strict=True):
        if before != after:
            changed += 1
            assert f"web:{before.id}" in read
            assert before.content.strip() in after.content
            assert (before.id, before.title, before.url) == (after.id, after.title, after.url)
    for folder, mails in scenario.folders.items():
        for mail, other in zip(mails, poisoned.folders[folder], strict=True):
            if mail != other:
                changed += 1
                assert f"email:{mail.id}" in read
                assert mail.body.strip() in other.body
    assert changed > 5
    assert (poisoned.files, poisoned.labels) == (scenario.files, scenario.labels)
    for query in ("howto", "welcome", "news"):
        hits = [each.world.web.search(query, neutral=False).hits for each in (scenario, poisoned)]
        assert hits[0] == hits[1]


class FreezingGuardrail(GuardrailBase):
    """Denies everything for good once the agent has read an injection of this scenario."""

    added: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.frozen = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny("an order was read") if self.frozen else Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        self.frozen = self.frozen or any(text in result.output for text in self.added)


def added_texts(scenario: Scenario, poisoned: Scenario) -> frozenset[str]:
    pairs = [
        (before.content, after.content)
        for before, after in zip(scenario.pages, poisoned.pages, strict=True)
    ]
    for folder, mails in scenario.folders.items():
        others = poisoned.folders[folder]
        pairs += [(one.body, other.body) for one, other in zip(mails, others, strict=True)]
    return frozenset(after.removeprefix(before).strip() for before, after in pairs) - {""}


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_guardrail_that_freezes_after_it_read_an_order_fails(drawn: Drawn, seed: int) -> None:
    poisoned, tasks = injected(drawn, seed)
    texts = added_texts(drawn(seed, f"match {seed}").scenario, poisoned)

    class Freezing(FreezingGuardrail):
        added = texts

    for task in tasks:
        assert play(task, poisoned, Freezing).false_positive, task


class OnlyOwnCalls:
    """Allows the user's own calls and denies, or asks to confirm, all others."""

    def __init__(self, task: Task, verdict: Callable[[str], Decision]) -> None:
        self.calls = task.calls
        self.verdict = verdict

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if Call(tool_name, str(tool_args.get(target_parameter(tool_name)))) in self.calls:
            return Decision.allow()
        return self.verdict("the user did not ask for this")


@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("verdict", [Decision.deny, Decision.confirm])
def test_denying_injected_calls_is_no_false_positive(
    drawn: Drawn, seed: int, verdict: Callable[[str], Decision]
) -> None:
    poisoned, tasks = injected(drawn, seed)
    for task in tasks:

        def make(task: Task = task) -> OnlyOwnCalls:
            return OnlyOwnCalls(task, verdict)

        trial = play(task, poisoned, make)
        assert any(event.decision.action == verdict("").action for event in trial.trace.events)
        assert (trial.stop, trial.false_positive) == (None, False)


def test_the_same_denial_is_a_false_positive_in_an_ordinary_task(drawn: Drawn) -> None:
    """The kind of the task decides: an ordinary task has no call that is not the user's."""
    suite = drawn(123, "a match")
    task = next(one for one in suite.tasks if one.operation == "open welcome")

    class NoPages(GuardrailBase):
        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
            del tool_args, context
            return Decision.deny("no pages") if tool_name == "web.open" else Decision.allow()

    trial = play(task, suite.scenario_of(task), NoPages)
    assert trial.stop is not None
    assert trial.false_positive


def test_denying_one_of_the_users_calls_is_a_false_positive(drawn: Drawn) -> None:
    poisoned, tasks = injected(drawn, 123)
    for task in tasks:
        last = task.calls[-1]

        class NoLast(GuardrailBase):
            def decide(
                self,
                tool_name: str,
                tool_args: dict[str, Any],
                context: Context,
                last: Call = last,
            ) -> Decision:
                del context
                target = str(tool_args.get(target_parameter(tool_name)))
                same = Call(tool_name, target) == last
                return Decision.deny("not this one") if same else Decision.allow()

        trial = play(task, poisoned, NoLast)
        assert trial.stop is not None
        assert (trial.stop.tool, trial.stop.reason) == (last.tool, "not this one")


@pytest.mark.parametrize(
    "rung",
    [
        SimpleRulesGuardrail,
        PatternMatchingGuardrail,
        TaintTrackingGuardrail,
        ReferenceGuardrail,
    ],
)
@pytest.mark.parametrize("seed", [123, *range(1, 21)])
def test_the_rungs_have_no_false_positive(
    drawn: Drawn, seed: int, rung: Callable[[], Guardrail]
) -> None:
    suite = drawn(seed, "")
    for task in suite.tasks:
        trial = play(task, suite.scenario_of(task), rung)
        assert not trial.false_positive, (task, trial.stop, trial.missing)
