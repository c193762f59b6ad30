"""Measure guardrails in one arena."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from tiltyard.episode.conversation import OpenConversation
from tiltyard.matches.arena import build_world, play_cells
from tiltyard.packs.load import shipped_packs
from tiltyard.reporting.arena_calibration import ArenaCalibration, ArenaRow
from tiltyard.reporting.arena_part import build_arena_part
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.rulesets.ruleset import Ruleset


class Measured(Struct, frozen=True):
    """A guardrail to measure."""

    name: str
    family: str
    begin: OpenConversation


def calibrate_arena(
    guardrails: Sequence[Measured], seed: int, ruleset: Ruleset, on_match: Callable[[str], None]
) -> ArenaCalibration:
    """Play every guardrail in the arena of a seed; `on_match` gets the name of each one."""
    rules = ruleset.arena
    assert rules is not None, "calibrate_arena needs a ruleset with an arena"
    on_match("building the arena")
    worlds = [
        build_world(shipped_packs(), f"seed {seed}", rules, number)
        for number in range(rules.worlds)
    ]
    rows: list[ArenaRow] = []
    for one in guardrails:
        on_match(one.name)
        cells = [cell for world in worlds for cell in play_cells(world, one.begin)]
        part = build_arena_part(cells, (), worlds=len(worlds), tasks="public", with_lost=False)
        rows.append(_row(one, part))
    rows.sort(key=lambda row: (-row.score, row.name))
    count = sum(len(world.cells) for world in worlds)
    return ArenaCalibration(ruleset.id, seed, len(worlds), count, tuple(rows))


def _row(one: Measured, part: ArenaPart) -> ArenaRow:
    return ArenaRow(
        one.name,
        one.family,
        part.score,
        part.low,
        part.high,
        part.solved or 0,
        part.untouched or 0,
        part.breached or 0,
        part.digest,
    )
