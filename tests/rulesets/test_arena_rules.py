"""The ruleset `arena`, and that it changes nothing for `design`."""

import msgspec
import pytest

from tiltyard.rulesets.ruleset import RulesetError, load_ruleset, read_ruleset


def test_design_has_no_arena_in_what_its_digest_covers() -> None:
    design = load_ruleset()
    assert design.arena is None
    assert b'"arena"' not in msgspec.json.encode(design)
    assert design.digest == "345e18c705ef9be4b734d3d640c6d3d5c8846b74f3e4a1d6ebfcf7170a4f73a1"


def test_the_quick_budget_has_fewer_tasks() -> None:
    rules = load_ruleset("arena")
    assert rules.arena is not None
    assert rules.arena.tasks is None
    quick = rules.with_quick_budgets().arena
    assert quick is not None
    assert quick.tasks == rules.arena.quick_tasks
    assert quick.worlds == rules.arena.worlds


def test_a_wrong_number_of_worlds_is_refused() -> None:
    text = 'extends = "arena"\n[arena]\nworlds = 0\n'
    with pytest.raises(RulesetError, match=r"`arena.worlds` is 0; expected `int` >= 1"):
        read_ruleset(text)
