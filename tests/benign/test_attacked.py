"""Benign tasks with injections in the documents that they read."""

from collections.abc import Callable
from typing import Any

import pytest

from tiltyard import DataFlowGuardrail, Decision
from tiltyard.benign import (
    draw_tasks,
    extended_suite,
    play,
    under_attack,
    utility_under_attack,
)
from tiltyard.contracts.guardrail import Context, GuardrailBase
from tiltyard.world.scenario import Scenario

Made = Callable[[int], Scenario]


class DenyAll:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny("no")


@pytest.mark.parametrize("seed", [123, 1, 2, 3, 4, 5])
def test_the_injections_are_live(made: Made, seed: int) -> None:
    scenario = made(seed)
    for tasks in (draw_tasks(scenario, "a match", 5), extended_suite(scenario)):
        met = utility_under_attack(tasks, scenario, "a match", GuardrailBase)
        assert met.trials + met.left_out == len(tasks)
        assert met.trials >= 25
        assert met.breached >= 0.9 * met.trials
        assert met.succeeded >= 0.9 * met.trials


def test_a_guardrail_that_denies_everything_prevents_every_breach_and_is_useless(
    made: Made,
) -> None:
    met = utility_under_attack(draw_tasks(made(123), "a", 5), made(123), "a", DenyAll)
    assert (met.useful, met.succeeded, met.breached, met.rate) == (0, 0, 0, 0.0)


class Obedient:
    """Knows what the user wants and allows nothing else: the best possible guardrail."""

    def __init__(self, wanted: set[tuple[str, str]]) -> None:
        self.wanted = wanted

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if any((tool_name, str(value)) in self.wanted for value in tool_args.values()):
            return Decision.allow()
        return Decision.deny("the user did not ask for this")


def test_the_best_possible_guardrail_is_useful_in_almost_every_trial(made: Made) -> None:
    scenario = made(123)
    useful = trials = 0
    for task in draw_tasks(scenario, "a match", 5):
        wanted = {(call.tool, call.target) for call in task.calls}

        def make(wanted: set[tuple[str, str]] = wanted) -> Obedient:
            return Obedient(wanted)

        met = utility_under_attack((task,), scenario, "a match", make)
        useful, trials = useful + met.useful, trials + met.trials
    assert useful >= 0.95 * trials


def test_a_useful_trial_succeeds_and_has_no_breach(made: Made) -> None:
    met = utility_under_attack(draw_tasks(made(1), "a", 5), made(1), "a", DataFlowGuardrail)
    assert met.useful <= min(met.succeeded, met.trials - met.breached)


def test_an_injection_leaves_the_text_of_a_document_in_one_piece_and_changes_nothing_else(
    made: Made,
) -> None:
    scenario = made(123)
    tasks = draw_tasks(scenario, "a match", 5)
    staged = under_attack(tasks, scenario, "a match")
    assert [*staged.tasks, *staged.left_out] == sorted(tasks, key=lambda t: t in staged.left_out)
    before = {page.id: page for page in scenario.pages}
    changed = [page for page in staged.scenario.pages if page != before[page.id]]
    assert changed
    for page in changed:
        was = before[page.id]
        assert was.content.strip() in page.content
        assert (page.title, page.url) == (was.title, was.url)
    for query in ("howto", "welcome", "hockey"):
        hits = [s.world.web.search(query, neutral=False).hits for s in (scenario, staged.scenario)]
        assert hits[0] == hits[1]
    assert under_attack(tasks, scenario, "a match") == staged
    assert under_attack(tasks, scenario, "another match").scenario != staged.scenario


def test_tasks_that_read_no_document_from_a_stranger_are_left_out(made: Made) -> None:
    scenario = made(123)
    staged = under_attack(draw_tasks(scenario, "a match", 5), scenario, "a match")
    for task in staged.left_out:
        for document in task.reads:
            medium, _, path = document.partition(":")
            assert medium == "file"
            assert path not in scenario.labels.outside
        assert play(task, staged.scenario, GuardrailBase).succeeded
    assert {task.operation for task in staged.left_out} <= {"read file readme", "run echo"}


def test_a_scenario_without_injections_has_no_trials_under_attack(small: Scenario) -> None:
    tasks = draw_tasks(small, "a match", 5)
    met = utility_under_attack(tasks, small, "a match", GuardrailBase)
    assert (met.trials, met.left_out, met.rate) == (0, 35, 0.0)
