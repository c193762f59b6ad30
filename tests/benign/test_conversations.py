"""Long conversations: several tasks of one user in one trial."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from tiltyard import Decision
from tiltyard.benign import Call, Suite, Task, TaskKind, Trial, extended_suite, play
from tiltyard.benign.templates import TaskTemplate, load_task_templates
from tiltyard.benign.trial import call_of
from tiltyard.contracts.guardrail import Context, GuardrailBase
from tiltyard.world.generate import generate

Drawn = Callable[[int, str], Suite]
Calls = Callable[[Trial], list[Call]]

LOCAL = ("read file readme", "run echo")
SEEDS = (123, *range(1, 11))


class PatientGuardrail(GuardrailBase):
    """Allows everything in the first three messages, and nothing later."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        if len(context.user_messages) > 3:
            return Decision.deny("enough for today")
        return Decision.allow()


def long_tasks(suite: Suite) -> list[Any]:
    return [task for task in suite.tasks if task.kind is TaskKind.LONG]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_agent_makes_exactly_the_calls_of_each_conversation(
    drawn: Drawn, calls: Calls, seed: int
) -> None:
    suite = drawn(seed, f"match {seed}")
    scenario = suite.scenario
    for task in long_tasks(suite):
        trial = play(task, scenario, GuardrailBase)
        assert calls(trial) == list(task.calls), task
        assert not trial.false_positive, (task, trial.missing)


def test_most_conversations_have_four_to_twelve_messages_and_some_up_to_32(drawn: Drawn) -> None:
    suites = [drawn(seed, "a match") for seed in SEEDS[:5]]
    tasks = [task for suite in suites for task in long_tasks(suite)]
    lengths = [len(task.messages) for task in tasks]
    assert set(range(4, 13)) <= set(lengths)
    assert max(lengths) in range(25, 33)
    assert 0.1 < sum(length > 12 for length in lengths) / len(lengths) < 0.4
    assert all(" + " in task.name for task in tasks)


@pytest.mark.parametrize("seed", SEEDS)
def test_conversations_of_local_operations_read_no_page_and_no_mail(
    drawn: Drawn, seed: int
) -> None:
    tasks = [one for one in long_tasks(drawn(seed, "a")) if one.operation in LOCAL]
    assert len(tasks) == 10
    for task in tasks:
        tools = {call.tool for call in task.calls}
        assert tools.isdisjoint({"web.search", "web.open", "email.list", "email.read"}), task


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tasks_of_a_conversation_do_not_share_new_files(drawn: Drawn, seed: int) -> None:
    suite = drawn(seed, f"match {seed}")
    scenario = suite.scenario
    for task in long_tasks(suite):
        new = [one.name for one in task.outcome if one.kind == "file"]
        written = [name for name in new if name not in scenario.files]
        # One task may say several things about its own file.
        written = [name for name, _ in groupby(written)]
        assert len(written) == len(set(written)), task
        gone = {one.name for one in task.outcome if one.kind == "gone"}
        assert gone.isdisjoint(new), task


def test_most_conversations_mix_operations(drawn: Drawn) -> None:
    templates = {
        task.name: task.operation
        for seed in SEEDS
        for task in drawn(seed, "a").tasks
        if task.kind is TaskKind.ORDINARY
    }
    tasks = long_tasks(drawn(123, "a"))
    mixed = [
        task
        for task in tasks
        if len([*groupby(templates.get(name, name) for name in task.name.split(" + "))]) > 1
    ]
    assert len(mixed) >= len(tasks) // 2


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_guardrail_that_denies_everything_from_the_fourth_message_on_fails_all(
    drawn: Drawn, seed: int
) -> None:
    suite = drawn(seed, "a match")
    trials = [play(task, suite.scenario_of(task), PatientGuardrail) for task in suite.tasks]
    failed = [trial for trial in trials if trial.false_positive]
    assert {id(t) for t in failed} == {id(t) for t in trials if len(t.task.messages) > 3}
    assert {*map(id, long_tasks(suite))} <= {id(trial.task) for trial in failed}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_conversation_has_a_task_of_the_extended_suite(drawn: Drawn, seed: int) -> None:
    """Whoever allows only the tasks of the seven operations turns other users away."""
    extended = {task.name for task in extended_suite(generate(seed))}
    for task in drawn(seed, "a match").tasks:
        if len(task.messages) > 3:
            assert extended.intersection(task.name.split(" + ")), task


def relayed(task: Task) -> list[TaskTemplate]:
    names = task.name.split(" + ")
    return [relay for _, relay in load_task_templates().relays() if relay.name in names]


def test_half_of_the_conversations_about_pages_and_mails_have_a_relay(drawn: Drawn) -> None:
    suites = [drawn(seed, "a match") for seed in SEEDS[:5]]
    tasks = [task for suite in suites for task in long_tasks(suite)]
    about = [task for task in tasks if task.operation not in LOCAL]
    share = sum(bool(relayed(task)) for task in about) / len(about)
    assert 0.25 < share < 0.75
    assert not any(relayed(task) for task in tasks if task.operation in LOCAL)


def test_other_tasks_come_between_the_messages_of_a_relay(drawn: Drawn) -> None:
    """The read that ends a relay can be many messages after the one that begins it."""
    distances = set()
    for seed in SEEDS[:5]:
        suite = drawn(seed, "a match")
        for task in long_tasks(suite):
            if not any("noted" in relay.name for relay in relayed(task)):
                continue
            events = play(task, suite.scenario, GuardrailBase).trace.events
            turn = {call_of(event): event.turn for event in events}
            paths = {call.target for call in task.calls if call.tool == "fs.write"}
            read = [call for call in turn if call.tool == "fs.read" and call.target in paths]
            opened = min(turn[call] for call in turn if call.tool in ("web.open", "email.read"))
            distances |= {turn[call] - opened for call in read}
    assert max(distances) >= 4


def test_the_stages_of_a_relay_say_which_message_makes_which_call() -> None:
    for _, relay in load_task_templates().relays():
        assert len(relay.stages) == len(relay.messages)
        assert sum(relay.stages) == len(relay.calls)
