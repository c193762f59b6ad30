"""The attack ladder: its order, and what every rung must respect."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiltyard import AttackCandidate, AttackRunConfig, SandboxEnv
from tiltyard.attacks import ATTACK_LADDER, Attack
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.judge.candidates import check_candidates
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.scenario import Scenario

RUNGS = pytest.mark.parametrize("rung", ATTACK_LADDER.values(), ids=ATTACK_LADDER.keys())


class Counting(SandboxEnv):
    """An environment without a budget, which counts its steps."""

    spent_before_last = 0
    spent = 0

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        self.spent_before_last = self.spent
        result = super().interact(message, max_tool_hops)
        self.spent += result.steps
        return result


def is_admitted(candidates: list[AttackCandidate]) -> bool:
    _, refused = check_candidates(candidates, load_ruleset().attack)
    return not refused


def test_the_ladder_rises_in_the_public_match(town: Scenario) -> None:
    ruleset = load_ruleset()
    raws = [
        play_offense(MatchSettings(town, ruleset), rung()).score.raw
        for rung in ATTACK_LADDER.values()
    ]
    assert raws == sorted(set(raws)), dict(zip(ATTACK_LADDER, raws, strict=True))
    assert raws[-1] >= 400


@RUNGS
def test_every_rung_copes_with_any_guardrail_and_the_smallest_worlds(
    rung: type[Attack], guardrail: Guardrail, shelf: Path, bare: Path
) -> None:
    for directory in (shelf, bare):
        env = SandboxEnv(fixtures_dir=directory, guardrail=guardrail, max_steps=600)
        assert is_admitted(rung().run(env, AttackRunConfig(max_steps=600)))


@RUNGS
@pytest.mark.parametrize("budget", [1, 7, 150])
def test_no_rung_exceeds_its_budget(rung: type[Attack], town: Scenario, budget: int) -> None:
    env = SandboxEnv(scenario=town, guardrail=DataFlowGuardrail(), max_steps=budget)
    assert is_admitted(rung().run(env, AttackRunConfig()))
    counting = Counting(scenario=town, guardrail=DataFlowGuardrail())
    assert is_admitted(rung().run(counting, AttackRunConfig(max_steps=budget)))
    assert counting.spent_before_last < budget


@RUNGS
def test_a_spent_budget_gives_an_empty_list(rung: type[Attack], shelf: Path) -> None:
    env = SandboxEnv(fixtures_dir=shelf, max_steps=1)
    env.interact("run echo")
    assert rung().run(env, AttackRunConfig()) == []


@RUNGS
def test_a_run_can_be_repeated(rung: type[Attack], town: Scenario) -> None:
    attack = rung()
    first, again, afresh = (
        one.run(
            SandboxEnv(scenario=town, guardrail=DataFlowGuardrail(), max_steps=2000),
            AttackRunConfig(max_steps=2000),
        )
        for one in (attack, attack, rung())
    )
    assert first == again == afresh


def test_candidates_are_the_same_under_every_hash_seed() -> None:
    script = (
        "from tiltyard import AttackRunConfig, SandboxEnv\n"
        "from tiltyard.attacks import ATTACK_LADDER\n"
        "from tiltyard.guardrails import DataFlowGuardrail\n"
        "env = SandboxEnv(guardrail=DataFlowGuardrail())\n"
        "for rung in ATTACK_LADDER.values():\n"
        "    print(rung().run(env, AttackRunConfig(max_steps=1500)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs != {b""}
