"""Stages: one cell, set up for an agent from outside.

In the arena a scripted agent plays every cell. On a stage an agent from outside makes the calls.
A staging determines the stage: the same staging gives the same world, task and plant.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tiltyard.arena.building import Attempt, Cell, CellBuilder
from tiltyard.arena.planting import WAYS
from tiltyard.contracts.guardrail import Result
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.printable import printable
from tiltyard.packs.arguments import find_problem
from tiltyard.packs.operations import call
from tiltyard.packs.results import SOURCE, show_result
from tiltyard.packs.schema import Pack
from tiltyard.packs.surface import Surface, draw_surface
from tiltyard.packs.world import Change, World, generate

PACKS_A_STAGE: Final = 2
NO_PLANT: Final = "none"
PLANTS: Final = (*WAYS, NO_PLANT)
Short = Annotated[str, Meta(max_length=200)]


class StageError(ValueError):
    """There is no such stage. The message says what to choose instead."""


class Staging(Struct, frozen=True, forbid_unknown_fields=True):
    """What determines a stage."""

    seed: int
    packs: Annotated[tuple[Short, ...], Meta(min_length=1, max_length=100)]
    task: Short
    """As `pack/task`."""
    plant: Short
    """One of `PLANTS`."""
    canary: Short
    """Protected values depend on it."""
    without: bool = False
    """True for the counterfactual: the same stage, with the stranger's text left out."""


class Stage(Struct, frozen=True):
    """A world with a task and, unless nobody plants anything, a stranger's order."""

    staging: Staging
    surface: Surface
    cell: Cell
    attempt: Attempt | None
    """How the stranger's order is planted; None if there is none."""

    @property
    def world(self) -> World:
        """The world at the beginning."""
        if self.attempt is None or self.staging.without:
            return self.cell.task.world
        return self.attempt.plant.world

    @property
    def say(self) -> str:
        """What the user asks for."""
        return self.cell.task.say


def choose_packs(packs: Mapping[str, Pack], seed: int, task: str = "") -> tuple[str, ...]:
    """Return some packs for a seed, among them those that the task needs."""
    names = Draw("stage packs", seed).shuffled(sorted(name for name in packs if packs[name].tasks))
    if not task:
        return tuple(sorted(names[:PACKS_A_STAGE]))
    own, _, name = task.partition("/")
    if own not in packs or name not in packs[own].tasks:
        raise StageError(_unknown_task(task))
    used = {own, *(step.do.partition(".")[0] for step in packs[own].tasks[name].plan)}
    needed = [one for one in sorted(packs) if one in used]
    others = [one for one in names if one not in needed]
    return tuple(sorted([*needed, *others[: max(0, PACKS_A_STAGE - len(needed))]]))


def list_tasks(packs: Mapping[str, Pack], seed: int) -> Iterator[tuple[str, str]]:
    """Yield the tasks of a world that can be played, each with its sentence."""
    builder, _ = _builder(packs, seed, "")
    for pack in sorted(packs):
        for name in packs[pack].tasks:
            prepared = builder.prepare(pack, name)
            if prepared is not None:
                yield f"{pack}/{name}", prepared.task.say


def choose_stage(packs: Mapping[str, Pack], seed: int, task: str, plant: str, canary: str) -> Stage:
    """Return the stage of a task. An empty task or plant leaves the choice to the seed."""
    if plant not in ("", *PLANTS):
        raise StageError(f"unknown way to plant {printable(plant, limit=40)}; use one of {_ways()}")
    builder, surface = _builder(packs, seed, canary)
    draw = Draw("stage", seed, *sorted(packs))
    tasks = [(name, one) for name in sorted(packs) for one in packs[name].tasks]
    if task:
        tasks = [one for one in tasks if "/".join(one) == task]
        if not tasks:
            raise StageError(_unknown_task(task))
    for pack, name in draw.branch("task").shuffled(tasks):
        cell = builder.build_one(pack, name)
        if cell is None:
            continue
        way = plant or draw.branch("way").choice([one.plant.way for one in cell.attempts])
        attempt = next((one for one in cell.attempts if one.plant.way == way), None)
        if attempt is not None or way == NO_PLANT:
            staging = Staging(seed, tuple(sorted(packs)), cell.task.id, way, canary)
            return Stage(staging, surface, cell, attempt)
        if task:
            known = ", ".join([*(one.plant.way for one in cell.attempts), NO_PLANT])
            raise StageError(f"the task {task} has no way to plant {plant!r}; it has {known}")
    what = f"the task {task}" if task else "any task of these packs"
    raise StageError(f"no stranger can reach a goal in {what}; choose another task, pack or plant")


def set_up(staging: Staging, packs: Mapping[str, Pack]) -> Stage:
    """Return the stage that a staging determines. The staging is hostile."""
    missing = [name for name in staging.packs if name not in packs]
    if missing:
        raise StageError(f"no such pack: {printable(missing[0], limit=80)}")
    chosen = {name: packs[name] for name in staging.packs}
    stage = choose_stage(chosen, staging.seed, staging.task, staging.plant, staging.canary)
    return Stage(staging, stage.surface, stage.cell, stage.attempt)


def _builder(packs: Mapping[str, Pack], seed: int, canary: str) -> tuple[CellBuilder, Surface]:
    key = f"stage/{seed}"
    world = generate((packs[name] for name in sorted(packs)), key, canary)
    surface = draw_surface(world.site)
    return CellBuilder(0, world, surface, Draw("stage cells", key)), surface


def _unknown_task(task: str) -> str:
    shown = printable(task, limit=80)
    return f"no task is called {shown}; `tiltyard world serve --list` prints those of a world"


def _ways() -> str:
    return ", ".join(PLANTS)


class Made(Struct, frozen=True):
    """A call of an agent from outside, and what came of it."""

    tool: str
    args: dict[str, Any]
    result: Result
    changes: tuple[Change, ...]
    world: World
    """The world after the call."""


def make_call(surface: Surface, world: World, tool: str, args: dict[str, Any]) -> Made:
    """Make a call. No tool and no argument makes this raise: the result says what is wrong."""
    bound = next((one for one in surface.tools.values() if one.declaration.name == tool), None)
    if bound is None:
        problem = f"unknown tool {printable(tool, limit=80)}"
    else:
        problem = find_problem(bound.declaration.input_schema, args)
    if bound is None or problem:
        failed = Result(ok=False, output="", error=problem, source=SOURCE)
        return Made(tool, args, failed, (), world)
    outcome = call(world, bound, bound.understood(args))
    return Made(tool, args, show_result(bound, outcome), outcome.changes, outcome.world)


def make_calls(
    surface: Surface, world: World, calls: Sequence[tuple[str, dict[str, Any]]]
) -> list[Made]:
    """Make calls one after the other."""
    made: list[Made] = []
    for tool, args in calls:
        made.append(make_call(surface, world, tool, args))
        world = made[-1].world
    return made
