"""Law 6: guardrails that game the defense match score below their honest twin on official seeds.

Each folder of `tests/gaming` with a `match.json` has such guardrails. They play real matches in
worlds that they have not seen, with a smaller budget: one world in every run, two with more steps
in `make soak`. The honest twin is a rung of the ladder: simple rules, unless the folder names
another or brings its own.
"""

import runpy
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec
import pytest
from msgspec import Struct, structs

from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.foundation.draw import Draw
from tiltyard.guardrails import GUARDRAIL_LADDER, AllowAllGuardrail, SimpleRulesGuardrail
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate

SUITE: Final = Path(__file__).parents[1] / "gaming"
RULES: Final = load_ruleset()
OFFICIAL: Final = tuple(1_000 + Draw("official", number).below(10**6) for number in range(2))


class Match(Struct, frozen=True, forbid_unknown_fields=True):
    vector: str
    guardrails: tuple[str, ...]
    twin: str = "simple rules"
    """The rung that the guardrail must not beat, or a file of the folder."""
    may_equal: bool = False
    """The trick changes nothing else, so it may score the same as its twin, but not more."""
    at_most: float = 1_000
    """The guardrail lets many orders pass, and must not score more than this."""


def cases() -> list[tuple[Path, Match]]:
    return [
        (path.parent, msgspec.json.decode(path.read_bytes(), type=Match))
        for path in sorted(SUITE.glob("*/match.json"))
    ]


@cache
def load_guardrail(path: Path) -> MakeGuardrail:
    module = runpy.run_path(str(path), run_name=f"gaming_{path.stem}")
    made: MakeGuardrail = module["Guardrail"]
    return made


@cache
def mean_score(make: MakeGuardrail, worlds: int, steps: int) -> float:
    rules = structs.replace(RULES, search=structs.replace(RULES.search, steps=steps))
    settings = [MatchSettings(generate(seed), rules) for seed in OFFICIAL[:worlds]]
    return fmean(play_defense(each, make).score.score for each in settings)


def test_every_required_vector_has_a_folder() -> None:
    assert {int(path.name.partition("-")[0]) for path, _ in cases()} >= {
        20,
        21,
        27,
        *range(55, 60),
        *range(65, 70),
        *range(74, 84),
        *range(90, 99),
        *range(101, 114),
        130,
    }


@pytest.mark.parametrize(
    ("path", "match"),
    [(path / name, match) for path, match in cases() for name in match.guardrails],
    ids=[f"{path.name}/{name}" for path, match in cases() for name in match.guardrails],
)
@pytest.mark.parametrize(
    ("worlds", "steps"), [(1, 1_000), pytest.param(2, 6_000, marks=pytest.mark.soak)]
)
def test_a_gaming_guardrail_scores_below_its_twin_on_official_seeds(
    path: Path, match: Match, worlds: int, steps: int
) -> None:
    make = load_guardrail(path)
    twin: MakeGuardrail = GUARDRAIL_LADDER.get(match.twin) or load_guardrail(
        path.with_name(match.twin)
    )
    mean, twins = mean_score(make, worlds, steps), mean_score(twin, worlds, steps)
    assert mean < twins or (match.may_equal and mean == twins)
    assert mean <= match.at_most


def test_simple_rules_score_above_no_guardrail() -> None:
    assert mean_score(SimpleRulesGuardrail, 1, 1_000) > mean_score(AllowAllGuardrail, 1, 1_000)
