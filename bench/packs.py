"""The speed of worlds of packs: calls of the public tasks, in process.

This counts processor time, so that other work on the machine does not matter.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from table import Measured, Row
from tiltyard import GuardrailBase
from tiltyard.arena.building import Arena, build
from tiltyard.arena.episode import Played, play
from tiltyard.episode.conversation import open_locally
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.operations import call
from tiltyard.packs.results import show_result
from tiltyard.packs.surface import BoundTool
from tiltyard.packs.world import World

GOAL = 15_000
ROUNDS = 5


class Made(NamedTuple):
    """A call of a plan, and the world in which it happens."""

    world: World
    tool: BoundTool
    args: dict[str, Any]


def measure_calls() -> Measured:
    """Make the calls of all public tasks, and show their results."""
    arena = build(shipped_packs(), "bench")
    start = time.process_time()
    played = [_play(arena, number) for number in range(len(arena.cells))]
    guarded = sum(len(one.calls) for one in played) / (time.process_time() - start)
    calls = [one for number, episode in enumerate(played) for one in _made(arena, number, episode)]
    fastest = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        for one in calls:
            show_result(one.tool, call(one.world, one.tool, one.args))
        fastest = max(fastest, len(calls) / (time.process_time() - start))
    row = Row(
        "calls of the packs' tools, one core; in conversations with a guardrail",
        "",
        f"{fastest:,.0f} a second; {guarded:,.0f} a second",
        "",
        f">= {GOAL:,} a second",
        fastest >= GOAL,
    )
    return row, {"calls_per_s": fastest, "guarded_calls_per_s": guarded, "calls": len(calls)}


_BEGIN = open_locally(GuardrailBase)


def _play(arena: Arena, number: int) -> Played:
    cell = arena.cells[number]
    surface = arena.surfaces[cell.world]
    return play(cell.task, surface, _BEGIN(surface.declarations, arena.policies[cell.world]))


def _made(arena: Arena, number: int, played: Played) -> list[Made]:
    """Return the calls of an episode again, each with the world before it."""
    cell = arena.cells[number]
    tools = {one.declaration.name: one for one in arena.surfaces[cell.world].tools.values()}
    world, made = cell.task.world, []
    for called in played.calls:
        tool = tools[called.tool]
        args = tool.understood(called.shown)
        made.append(Made(world, tool, args))
        world = call(world, tool, args).world
    return made


def sections() -> dict[str, Callable[[], Measured]]:
    return {"packs": measure_calls}
