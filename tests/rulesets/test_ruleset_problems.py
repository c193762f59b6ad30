"""Rulesets that make no sense are refused by name, before anything is played."""

from importlib.resources import files
from typing import Final

import pytest

from tiltyard.judge.predicates import Predicate
from tiltyard.rulesets.ruleset import (
    OPERATORS,
    PREDICATES,
    RulesetError,
    load_ruleset,
    read_ruleset,
)
from tiltyard.search import moves

TEXT: Final = (files("tiltyard.rulesets") / "design.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("slots = 128", "slots = 0", "`slots` is 0"),
        ("chain_steps = 20", "chain_steps = -1", "`chain_steps`"),
        ("variants = 5 ", "variants = 0 ", "`variants`"),
        ("full_marks = 400 ", "full_marks = 0 ", "`full_marks`"),
        ("states = 8_000", "states = -2", "`states`"),
        ('"splice", ', '"spliec", ', "no operator 'spliec'"),
        ("EXFILTRATION = 16", "EXFIL = 16", "must name"),
        ("check the folder {folder}", "check the folder {foldr}", "'foldr'"),
        ('weights = ["look"', 'weights = ["loook"', "'loook'"),
        ('washes = ["read file readme"', 'washes = ["read {x}"', "'x'"),
        ("max_candidates = 2_000", "max_candidates = true", "max_candidates"),
        ("[play]", "[plya]", "plya"),
    ],
)
def test_a_mistake_in_a_ruleset_is_named(old: str, new: str, complaint: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(RulesetError, match=complaint):
        read_ruleset(TEXT.replace(old, new))


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(RulesetError, match="there are demo-llm, design, design-openai"):
        load_ruleset("../design")


def test_the_names_that_a_ruleset_may_use_are_the_programs_own() -> None:
    assert set(moves.OPERATORS) == OPERATORS
    assert {predicate.value for predicate in Predicate} == PREDICATES
