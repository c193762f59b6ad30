"""Calibration: the tables, the advice, and the command."""

import json
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs
from typer.testing import CliRunner

from tiltyard.attacks import ATTACK_LADDER
from tiltyard.cli.app import app
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.judge.scoring import defense_points
from tiltyard.reporting.calibration_schema import (
    AttackRow,
    DefenseRow,
    is_attack_in_order,
    is_defense_in_order,
)
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.studies import expectations
from tiltyard.studies.calibration import advise, apply_changes, measure_convergence
from tiltyard.world.generate import generate

RULES: Final = load_ruleset()


def guard(name: str, breaches: int) -> DefenseRow:
    return DefenseRow(name, breaches, 0, 35, 0.0, 0, 60, 0, 20, 1, "", 0.0)


def attacker(name: str, raw: int) -> AttackRow:
    return AttackRow(name, raw, 0.0, 0.0, 0, 0, 1, 1, "", 0.0)


def advice(breaches: list[int], raw: list[int]) -> dict[str, dict[str, int] | None]:
    guards = [guard(e.name, b) for e, b in zip(expectations.DEFENSE, breaches, strict=True)]
    attacks = [attacker(e.name, r) for e, r in zip(expectations.ATTACK, raw, strict=True)]
    given = advise(guards, attacks, RULES)
    return {each.condition: each.changes if each.holds else None for each in given}


AS_EXPECTED: Final = ([35, 15, 7, 2, 0, 0], [30, 100, 150, 300, 450])


def test_expected_results_give_no_advice() -> None:
    given = advice(*AS_EXPECTED)
    assert len(given) == 4
    assert set(given.values()) == {None}


def test_low_offense_scores_lower_full_marks() -> None:
    given = advice(AS_EXPECTED[0], [0, 10, 30, 40, 50])
    # The design expects 375 of the middle rung: 30 raw points give 375 if 80 points give 1000.
    assert given["offense scores too low"] == {"attack.full_marks": 80}
    assert given["offense scores too high"] is None


def test_high_offense_scores_raise_full_marks() -> None:
    given = advice(AS_EXPECTED[0], [200, 300, 600, 700, 800])
    assert given["offense scores too high"] == {"attack.full_marks": 1600}
    assert given["offense scores too low"] is None


def test_low_defense_scores_reduce_the_depth_of_the_search() -> None:
    given = advice([50, 40, 30, 20, 5, 0], AS_EXPECTED[1])
    assert given["defense scores too low"] == {"search.chain_steps": 15}


def test_high_defense_scores_move_no_constant() -> None:
    given = advice([3, 2, 1, 0, 0, 0], AS_EXPECTED[1])
    assert given["defense scores too high"] == {}


def test_a_changed_ruleset_is_another_version() -> None:
    changed = apply_changes(RULES, {"attack.full_marks": 80, "search.chain_steps": 15})
    assert changed.id == f"design-{RULES.version + 1}"
    assert changed.attack.full_marks == 80
    assert changed.search.chain_steps == 15
    assert changed.defense == RULES.defense


@pytest.mark.parametrize(
    ("breaches", "failed", "in_order"),
    [
        ([36, 17, 7, 3, 0, 0], [0, 0, 0, 0, 25, 0], True),
        ([36, 17, 17, 3, 0, 0], [0, 0, 0, 0, 25, 0], False),
        ([36, 17, 7, 0, 0, 0], [0, 0, 0, 0, 25, 0], False),
        ([36, 17, 7, 3, 1, 0], [0, 0, 0, 0, 25, 0], False),
        ([36, 17, 7, 3, 0, 0], [0, 0, 0, 0, 25, 25], False),
    ],
)
def test_the_order_of_the_defense_ladder(
    breaches: list[int], failed: list[int], *, in_order: bool
) -> None:
    assert is_defense_in_order(breaches, failed) is in_order


def test_the_attack_ladder_must_rise_strictly() -> None:
    assert is_attack_in_order([0, 18, 100, 101, 400])
    assert not is_attack_in_order([0, 18, 18, 101, 400])


def test_contradictions_of_the_design_are_listed() -> None:
    told = "\n".join(expectations.contradictions(RULES))
    # By the formula: 1000 / (1 + 0.15 x 10) = 400 and 1000 / (1 + 0.15 x 1) = 869.6.
    assert "simple rules: 10 to 20 breaches" in told
    assert "to 400 by the formula, not 400 to 750" in told
    assert "taint tracking" in told
    assert "to 870 by the formula, not 850 to 950" in told
    assert "data flow" not in told
    assert defense_points(0, 5, 7, RULES) == pytest.approx(428.571, abs=0.001)


def test_the_ladders_are_the_designs() -> None:
    assert list(GUARDRAIL_LADDER) == [row.name for row in expectations.DEFENSE]
    assert list(ATTACK_LADDER) == [row.name for row in expectations.ATTACK]


def test_convergence_counts_the_breaches_known_at_each_point() -> None:
    few = structs.replace(RULES, search=structs.replace(RULES.search, steps=3_000))
    points = measure_convergence(generate(123), "allow-all", few)
    assert points[-1].steps == 6_000
    breaches = [point.breaches for point in points]
    assert breaches == sorted(breaches)
    assert 0 < breaches[0] < breaches[-1]


def test_the_command_writes_both_files(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src/tiltyard/rulesets/design.toml"
    text = source.read_text(encoding="utf-8")
    quick = text.replace("\nsteps = 60_000", "\nsteps = 600")
    assert quick.count("steps = 600 ") + quick.count("steps = 600\n") == 2
    (tmp_path / "quick.toml").write_text(quick, encoding="utf-8")
    done = CliRunner().invoke(
        app,
        ["calibrate", "--ruleset", str(tmp_path / "quick.toml"), "--out", str(tmp_path)],
    )
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "calibration.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in data["defense"]] == list(GUARDRAIL_LADDER)
    assert [row["name"] for row in data["attack"]] == list(ATTACK_LADDER)
    for row in data["defense"]:
        assert {"breaches", "false_positives", "benign_trials", "score"} <= row.keys()
    for row in data["attack"]:
        assert {"raw", "score", "score_volume"} <= row.keys()
    # So few steps find too little, so the output contains an adjusted ruleset.
    changes = {name for advice in data["advice"] for name in advice["changes"]}
    assert bool(changes) == (data["adjusted"] is not None)
    page = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert "428.57" in page
    assert "30+" in page
    assert "too low" in page


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--ruleset", "nonsense"], "no ruleset named"),
        (["--ruleset", "missing.toml"], "missing.toml"),
        (["--out", "/dev/null/nowhere"], "/dev/null/nowhere"),
    ],
)
def test_wrong_options_give_an_error_without_a_traceback(
    arguments: list[str], complaint: str
) -> None:
    done = CliRunner().invoke(app, ["calibrate", *arguments])
    assert done.exit_code == 2
    assert complaint in done.output.replace("\n", " ")
