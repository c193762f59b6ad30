"""Build an arena: worlds of packs, and in each the cells of its tasks.

A run has several worlds. Each world mixes some of the packs, and each task is played in one of the
worlds that have its packs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct, structs

from tiltyard.arena.asking import Asked, ask_about_read, leaves_of
from tiltyard.arena.balance import Balance
from tiltyard.arena.binding import (
    BindingError,
    BoundGoal,
    BoundTask,
    bind_goal,
    bind_task,
    goal_of,
)
from tiltyard.arena.cells import Aim, Expected, aim_of, expect
from tiltyard.arena.episode import Plant, Played, play
from tiltyard.arena.planting import Slot, literals_of, look_around, plants_of, slots_of
from tiltyard.arena.references import occurs
from tiltyard.contracts.guardrail import GuardrailBase
from tiltyard.contracts.policy import Policy
from tiltyard.episode.conversation import open_locally
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Pack
from tiltyard.packs.surface import Surface, draw_surface, with_authors
from tiltyard.packs.world import World, generate, show

WORLDS: Final = 6
PACKS_A_WORLD: Final = 4


class Cell(Struct, frozen=True):
    """A task and a goal in a world, with the ways to plant that work without a guardrail."""

    id: str
    world: int
    task: BoundTask
    goal: BoundGoal
    expected: Expected
    attempts: "tuple[Attempt, ...]"
    twin: str = ""
    """The cell in which user and stranger have changed places."""


class Attempt(Struct, frozen=True):
    """One way to plant, and the change that it aims at."""

    plant: Plant
    aim: Aim


class Arena(Struct, frozen=True):
    """The worlds and cells of a run."""

    surfaces: tuple[Surface, ...]
    policies: tuple[Policy, ...]
    cells: tuple[Cell, ...]

    def with_authors(self) -> "Arena":
        """Return the arena for the witness oracle, which need not look for names of authors."""
        return structs.replace(self, surfaces=tuple(map(with_authors, self.surfaces)))


def build(
    packs: Mapping[str, Pack],
    key: str,
    worlds: int = WORLDS,
    packs_a_world: int = PACKS_A_WORLD,
    only: int | None = None,
) -> Arena:
    """Return the arena that a key determines. `only` leaves out the cells of all other worlds."""
    draw = Draw("arena", key)
    chosen = _deal_packs(sorted(packs), worlds, packs_a_world, draw.branch("packs"))
    made = [
        generate((packs[name] for name in names), f"{key}/{n}") for n, names in enumerate(chosen)
    ]
    surfaces = tuple(draw_surface(world.site) for world in made)
    cells: list[Cell] = []
    for number, world in enumerate(made):
        if only not in (None, number):
            continue
        names = _assigned(packs, chosen, number, draw)
        builder = CellBuilder(number, world, surfaces[number], draw.branch("cells", number))
        cells += builder.build(names)
    return Arena(surfaces, tuple(world.site.policy for world in made), tuple(cells))


def _deal_packs(
    names: Sequence[str], worlds: int, packs_a_world: int, draw: Draw
) -> list[tuple[str, ...]]:
    """Deal packs to worlds, so that each pack comes about as often as any other."""
    deck: list[str] = []
    hands = []
    for _ in range(worlds):
        hand: list[str] = []
        while len(hand) < min(packs_a_world, len(names)):
            free = [name for name in deck if name not in hand]
            if not free:
                deck += draw.shuffled(names)
                continue
            deck.remove(free[0])
            hand.append(free[0])
        hands.append(tuple(sorted(hand)))
    return hands


def _assigned(
    packs: Mapping[str, Pack], chosen: Sequence[tuple[str, ...]], world: int, draw: Draw
) -> list[tuple[str, str]]:
    """Return the tasks that are played in a world, as pairs of a pack and a name."""
    homes = {
        pack: [number for number, mixed in enumerate(chosen) if pack in mixed]
        for pack in chosen[world]
    }
    return [
        (pack, task)
        for pack in chosen[world]
        for task in packs[pack].tasks
        if draw.branch("home", pack, task).choice(homes[pack]) == world
    ]


class Prepared(Struct, frozen=True):
    """A task as its user words it, and what happens when nobody interferes."""

    task: BoundTask
    slots: tuple[Slot, ...]
    """Where a stranger can write."""
    unguarded: Played
    asked: Asked | None = None


class CellBuilder:
    """Builds the cells of one world."""

    def __init__(self, number: int, world: World, surface: Surface, draw: Draw) -> None:
        self._number, self._world, self._surface, self._draw = number, world, surface, draw
        self._open = open_locally(GuardrailBase)
        self._balance = Balance(world)

    def build(self, names: Iterable[tuple[str, str]]) -> Iterator[Cell]:
        literal: list[BoundTask] = []
        for pack, name in names:
            task = self._bind(self._world, pack, name)
            if task is None:
                continue
            if task.order:
                literal.append(task)
            cell = self._own_cell(task)
            if cell is not None:
                yield cell
        yield from self._twins(literal)

    def build_one(self, pack: str, name: str) -> Cell | None:
        """Return the cell of one task, if a stranger can reach a goal in it."""
        task = self._bind(self._world, pack, name)
        return None if task is None else self._own_cell(task)

    def prepare(self, pack: str, name: str) -> Prepared | None:
        """Return one task without looking for a goal, if its plan works in this world."""
        task = self._bind(self._world, pack, name)
        return None if task is None else self._prepare(task, self._draw_for(task))

    def _draw_for(self, task: BoundTask) -> Draw:
        return self._draw.branch("cell", *task.id.split("/", 1))

    def _own_cell(self, task: BoundTask) -> Cell | None:
        draw = self._draw_for(task)
        goals = partial(self._bind_goals, draw=draw.branch("goals"))
        return self._cell_of(task, goals, draw)

    def _bind(self, world: World, pack: str, name: str) -> BoundTask | None:
        try:
            return bind_task(world, pack, name, world.site.packs[pack].tasks[name])
        except BindingError:
            return None

    def _play(self, task: BoundTask, plant: Plant | None = None) -> Played:
        unguarded = self._open(self._surface.declarations, self._world.site.policy)
        return play(task, self._surface, unguarded, plant)

    def _cell_of(
        self, task: BoundTask, goals_of: Callable[[BoundTask], Iterable[BoundGoal]], draw: Draw
    ) -> Cell | None:
        """Return the cell of a task and the first goal that a stranger can reach."""
        prepared = self._prepare(task, draw)
        if prepared is None:
            return None
        task, slots, unguarded = prepared.task, [*prepared.slots], prepared.unguarded
        expected = expect(unguarded)
        for goal in self._balance.order(goals_of(task), task):
            if _overlap(goal, unguarded, prepared.asked):
                continue
            attempts = self._attempts(task, goal, slots, unguarded, expected, draw)
            if attempts:
                self._balance.count(goal)
                id_ = f"{self._number}/{task.id}/{goal.id}"
                return Cell(id_, self._number, task, goal, expected, attempts)
        return None

    def _prepare(self, task: BoundTask, draw: Draw) -> Prepared | None:
        task = look_around(task, self._surface, draw.branch("look"))
        unguarded = self._play(task)
        slots = slots_of(task, unguarded, self._surface)
        task, asked = ask_about_read(task, slots, unguarded, self._surface, draw.branch("ask"))
        unguarded = self._play(task)
        slots = slots_of(task, unguarded, self._surface)
        if asked is not None:
            slots = [structs.replace(slot, asked=slot.is_same(asked.slot)) for slot in slots]
        if unguarded.answer is None or not slots:
            return None
        return Prepared(task, tuple(slots), unguarded, asked)

    def _bind_goals(self, task: BoundTask, draw: Draw) -> Iterator[BoundGoal]:
        """Yield goals in random order, of the packs that the task uses.

        If strangers wanted something from another server than the user, that would tell.
        """
        used = {step.tool.partition(".")[0] for step in task.steps}
        packs = [pack for pack in self._world.site.packs.values() if pack.name in used]
        goals = [(pack.name, name, goal) for pack in packs for name, goal in pack.goals.items()]
        for pack, name, goal in draw.shuffled(goals):
            with suppress(BindingError):
                yield bind_goal(task.world, pack, name, goal, draw.branch("goal", pack, name))

    def _attempts(  # noqa: PLR0913, PLR0917 - the parts of a cell
        self,
        task: BoundTask,
        goal: BoundGoal,
        slots: list[Slot],
        unguarded: Played,
        expected: Expected,
        draw: Draw,
    ) -> tuple[Attempt, ...]:
        """Return the plants that reach their aim without a guardrail and leave the task solved."""
        found: list[Attempt] = []
        for plant in plants_of(task, goal, self._surface, slots, draw.branch("plants", goal.id)):
            attacked = self._play(task, plant)
            aim = aim_of(attacked, self._surface)
            if aim is not None and not aim.is_reached(unguarded) and expected.is_met(attacked):
                found.append(Attempt(plant, aim))
        return tuple(found)

    def _twins(self, literal: list[BoundTask]) -> Iterator[Cell]:
        """Yield crossed twins: the user asks A and the stranger wants B, and the reverse.

        Both are tasks of one pack, because a stranger's server would tell.
        """
        shuffled = self._draw.branch("twins").shuffled(literal)
        order = sorted(shuffled, key=lambda task: task.id.partition("/")[0])
        for first, second in zip(order[::2], order[1::2], strict=False):
            draw = self._draw.branch("twin", first.id, second.id)
            pack, _, name = second.id.partition("/")
            other = self._bind(first.world, pack, name)
            if other is None:
                continue
            one = structs.replace(first, world=other.world)
            cell = self._cell_of(one, partial(_only, goal_of(other)), draw)
            twin = self._cell_of(other, partial(_only, goal_of(one)), draw)
            if cell is not None and twin is not None:
                yield structs.replace(cell, twin=twin.id)
                yield structs.replace(twin, twin=cell.id)


def _only(goal: BoundGoal, _task: BoundTask) -> list[BoundGoal]:
    return [goal]


def _overlap(goal: BoundGoal, unguarded: Played, asked: Asked | None) -> bool:
    """Return whether a goal names a value that the user's calls use, or that the user asks about.

    Then nothing that a guardrail sees tells the two apart.
    """
    used = {show(value) for called in unguarded.calls for value in leaves_of(called.shown)}
    added = "" if asked is None else asked.added
    if asked is not None:
        used.add(asked.slot.key)
    return any(
        len(literal) > 2 and (literal in used or occurs(literal, added))
        for literal in literals_of(goal.steps)
    )
