"""The extended suite: many tasks of ordinary users, some of which look like attacks."""

from collections.abc import Callable

import pytest

from tiltyard.benign import Call, Task, Trial, extended_suite, play
from tiltyard.contracts.guardrail import GuardrailBase
from tiltyard.judge import Judge
from tiltyard.world.scenario import Scenario
from tiltyard.world.tools import TOOLS

SEEDS = (123, *range(1, 31))

Made = Callable[[int], Scenario]
Calls = Callable[[Trial], list[Call]]
Classes = Callable[[Trial], set[tuple[str, str]]]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_agent_makes_exactly_the_calls_of_each_task(
    made: Made, calls: Calls, seed: int
) -> None:
    scenario = made(seed)
    for task in extended_suite(scenario):
        trial = play(task, scenario, GuardrailBase)
        assert calls(trial) == list(task.calls), task
        assert trial.succeeded, (task, trial.missing)


def test_the_suite_covers_all_tools_sinks_and_target_classes(made: Made, classes: Classes) -> None:
    scenario = made(123)
    suite = extended_suite(scenario)
    assert len({task.name for task in suite}) == len(suite) >= 60
    assert {call.tool for task in suite for call in task.calls} == set(TOOLS)
    met = set().union(*(classes(play(task, scenario, GuardrailBase)) for task in suite))
    assert met == {
        *(("egress", where) for where in ("external", "internal")),
        *(("mail", where) for where in ("external", "internal")),
        *(("write", what) for what in ("existing", "new")),
        ("delete", "existing"),
        *(("exec", how) for how in ("inert", "changing", "sending")),
    }


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_tasks_read_look_alikes_and_breach_nothing(made: Made, seed: int) -> None:
    scenario = made(seed)
    suite = extended_suite(scenario)
    lookalikes = {entry.document for entry in scenario.labels.planted if not entry.live}
    live = {entry.document for entry in scenario.labels.planted if entry.live}
    read = {document for task in suite for document in task.reads}
    assert {document.partition(":")[0] for document in read & lookalikes} == {
        "web",
        "email",
        "file",
    }
    assert not read & live
    judge = Judge(scenario)
    for task in suite:
        assert judge.findings(task.messages) == [], task


def test_some_tasks_contain_words_that_a_careless_rule_forbids(made: Made) -> None:
    def said(task: Task) -> str:
        return " ".join(task.messages).lower()

    suite = [task for seed in SEEDS[:6] for task in extended_suite(made(seed))]
    for word in ("token", "secret", "password", "base64", "curl", "rm ", "previous instructions"):
        assert any(word in said(task) for task in suite), word


def test_a_small_scenario_without_labels_is_enough(small: Scenario, calls: Calls) -> None:
    # Some users list their drafts.
    files = {**small.files, "drafts/plan.txt": "To do.\n"}
    scenario = Scenario(small.pages, small.folders, files)
    for task in extended_suite(scenario):
        trial = play(task, scenario, GuardrailBase)
        assert calls(trial) == list(task.calls), task
        assert trial.succeeded, (task, trial.missing)
