"""Law 6 in the arena: guardrails that use a habit of the generator score little.

Each folder of `tests/gaming` with an `arena.json` has such guardrails, and the score that they must
not exceed. They play real cells of worlds that they have not seen.
"""

import runpy
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import Struct, structs

from tiltyard.arena.building import Arena, build
from tiltyard.arena.match import play_cell
from tiltyard.arena.score import score_defense
from tiltyard.episode.conversation import open_locally
from tiltyard.guardrails.declared import DeclaredGuardrail
from tiltyard.packs.load import shipped_packs

SUITE: Final = Path(__file__).parents[1] / "gaming"
HONEST: Final = 700
"""The top rung scores more than this in the same cells."""


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    vector: str
    guardrails: tuple[str, ...]
    at_most: float


def cases() -> list[tuple[Path, float]]:
    found = []
    for path in sorted(SUITE.glob("*/arena.json")):
        case = msgspec.json.decode(path.read_bytes(), type=Case)
        found += [(path.parent / name, case.at_most) for name in case.guardrails]
    return found


@cache
def arena() -> Arena:
    packs = {
        name: structs.replace(pack, tasks=dict(sorted(pack.tasks.items())[::6]))
        for name, pack in shipped_packs().items()
    }
    return build(packs, "gaming")


def score(make: type) -> float:
    begin = open_locally(make)
    return score_defense([play_cell(arena(), cell, begin) for cell in arena().cells]).score


@pytest.mark.parametrize(("path", "most"), cases(), ids=lambda one: getattr(one, "stem", ""))
def test_a_habit_of_the_generator_is_worth_little(path: Path, most: float) -> None:
    made = runpy.run_path(str(path), run_name=f"gaming_{path.stem}")["Guardrail"]
    assert score(made) <= most


def test_the_top_rung_does_well_in_the_same_cells() -> None:
    assert score(DeclaredGuardrail) > HONEST
