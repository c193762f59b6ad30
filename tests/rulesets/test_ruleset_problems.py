"""A ruleset with a mistake is refused before anything is played, and the error names the field."""

from importlib.resources import files
from pathlib import Path
from typing import Final, get_args

import pytest

from tiltyard.judge.predicates import Predicate
from tiltyard.rulesets.ruleset import (
    PREDICATES,
    OperatorName,
    RulesetError,
    find_ruleset,
    load_ruleset,
    read_ruleset,
)
from tiltyard.search import moves

DESIGN: Final = (files("tiltyard.rulesets") / "design.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("slots = 128", "slots = 0", "`search.slots` is 0; expected `int` >= 1"),
        ("slots = 128", "slots = -1_" + "0" * 30, "`search.slots` is -1"),
        ("chain_steps = 20", "chain_steps = -1", "`search.chain_steps` is -1; expected `int` >= 1"),
        ("variants = 5 ", "variants = 0 ", "`defense.variants` is 0; expected `int` >= 1"),
        ("full_marks = 400 ", "full_marks = 0 ", "`attack.full_marks` is 0; expected `int` >= 1"),
        ("states = 8_000", "states = -2", "`search.states` is -2; expected `int` >= 0"),
        ('"splice", ', '"spliec", ', "`search.operators[8]` is 'spliec'; expected one of append, "),
        ('"splice", ', "8, ", "`search.operators[8]` is 8; expected `str`"),
        ("EXFILTRATION = 16", "EXFIL = 16", "EXFIL, UNTRUSTED_TO_ACTION; expected exactly CONF"),
        ("EXFILTRATION = 16", "EXFILTRATION = -1", "'EXFILTRATION': -1, "),
        ("EXFILTRATION = 16", "EXFILTRATION = -1", "expected `int` >= 0 for every value"),
        ('weights = ["look"', 'weights = ["loook"', "`search.vocabulary.weights` names 'loook'"),
        ("look = [", "look = [1, ", "`search.vocabulary.phrases` is {'act': [...]"),
        ("look = [", "suite = [", "which the benign suite gives"),
        ("max_candidates = 2_000", "max_candidates = true", "`attack.max_candidates` is True"),
        ('name = "design"', "", "missing required field `name` at the top level"),
        ("[play]", "[plya]", "unknown field `plya` at the top level"),
        ("points_per_cell", "points_a_cell", "unknown field `points_a_cell` in the table `attack`"),
        ("slots = 128", "slots = ", ", column 9)"),
    ],
)
def test_an_error_names_the_field_its_value_and_what_is_allowed(
    old: str, new: str, complaint: str
) -> None:
    assert old in DESIGN
    with pytest.raises(RulesetError) as caught:
        read_ruleset(DESIGN.replace(old, new))
    assert str(caught.value).startswith("the text is not a ruleset: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ("seconds = 86_401", "`model.seconds` is 86401; expected `int` <= 86400"),
        ("retries = -1", "`model.retries` is -1; expected `int` >= 0"),
        ("requests = 0", "`model.requests` is 0; expected `int` >= 1"),
    ],
)
def test_a_ruleset_that_extends_another_is_checked_too(field: str, complaint: str) -> None:
    with pytest.raises(RulesetError, match=complaint):
        read_ruleset(f'extends = "design-openai"\n[model]\n{field}')


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "design"\n[search]\nslots = 0')
    with pytest.raises(RulesetError, match=r"mine\.toml is not a ruleset: `search\.slots` is 0"):
        find_ruleset(str(path))
    with pytest.raises(RulesetError, match=r"missing\.toml cannot be read"):
        find_ruleset(str(tmp_path / "missing.toml"))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(RulesetError, match="there are arena, demo-llm, design, design-openai"):
        load_ruleset("../design")


def test_rulesets_name_every_operator_and_every_predicate() -> None:
    assert set(get_args(OperatorName)) == moves.OPERATORS.keys()
    assert {predicate.value for predicate in Predicate} == PREDICATES
