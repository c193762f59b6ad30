"""Check packs: everything must refer to something that exists, and every task must work.

`check_pack` returns all problems. Problems of the file come first. If there are none, it plays each
task and each goal in a few worlds, without a guardrail.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, get_args

from msgspec import structs

from tiltyard.arena.binding import SLOT, BindingError, BoundTask, bind_goal, bind_task
from tiltyard.arena.building import build
from tiltyard.arena.cells import aim_of
from tiltyard.arena.episode import Plant, Played, play
from tiltyard.arena.match import play_cell
from tiltyard.arena.planting import literals_of, plant_order, slots_of
from tiltyard.arena.references import PIPES, REFERENCE, is_reference
from tiltyard.arena.witness import WitnessOracle
from tiltyard.contracts.guardrail import GuardrailBase
from tiltyard.episode.conversation import open_locally
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Goal, Kind, Pack, RecordType, Step, Task, Tool, Who
from tiltyard.packs.surface import Surface, draw_surface
from tiltyard.packs.world import generate

WORLDS: Final = ("check 1", "check 2", "check 3")
_LONE_OPERATIONS: Final = ("list", "get", "search", "fetch")
_PEOPLE: Final = ("person", "company")
_INSIDE: Final = tuple(kind for kind in get_args(Kind) if kind not in ("choice", "ref", "text"))
"""What a part of a text can draw."""
_DRAWN: Final = (*_PEOPLE, *_INSIDE)
"""What a task or a goal can draw."""
_WHO: Final = tuple(get_args(Who))
_MAX_NUMBER: Final = 1_000_000_000


def check_pack(pack: Pack, others: Mapping[str, Pack] | None = None) -> list[str]:
    """Return what is wrong with a pack, each with its place. `others` are packs that it uses."""
    packs = {**(others or {}), pack.name: pack}
    return (
        check_names(pack, packs)
        or [*_check_play(pack, packs), *check_reach(pack, packs)]
        or [*_check_witnesses(pack, packs)]
    )


def check_sealed(pack: Pack, packs: Mapping[str, Pack]) -> list[str]:
    """Return what is wrong with an organizer's pack or tasks. `packs` are all packs of the run.

    Few tasks need not lead to every goal, so nobody looks for goals that no task leads to.
    """
    problems = check_names(pack, packs)
    if problems or not pack.tasks:
        return problems
    needed = _needed(pack, packs)
    return [*_check_play(pack, needed)] or [*_check_witnesses(pack, needed)]


def check_names(pack: Pack, packs: Mapping[str, Pack]) -> list[str]:
    """Return what in a pack refers to nothing, each with its place. Plays nothing."""
    return [*_check_records(pack), *_check_tools(pack), *_check_plans(pack, packs)]


def _check_witnesses(pack: Pack, packs: Mapping[str, Pack]) -> Iterator[str]:
    """Yield tasks in which nothing that a guardrail sees tells the user from the stranger."""
    alone = {name: structs.replace(other, tasks={}) for name, other in packs.items()}
    chosen = {**alone, pack.name: pack}
    arena = build(chosen, "check", len(WORLDS), len(packs)).with_authors()
    for cell in arena.cells:
        name = cell.task.id.partition("/")[2]
        surface = arena.surfaces[cell.world]
        oracle = open_locally(partial(WitnessOracle, cell.task, surface))
        result = play_cell(arena, cell, oracle)
        if result.value < 1:
            way = f"planted as {result.lost_to}" if result.lost_to else "without a plant"
            yield (
                f"tasks.{name}: a guardrail cannot tell its calls from those of "
                f"{cell.goal.id} ({way}); let the user name other values or records"
            )


def _check_records(pack: Pack) -> Iterator[str]:
    for name, kind in pack.records.items():
        place = f"records.{name}"
        if kind.key not in kind.fields:
            yield f"{place}: the key {kind.key} is not among the fields; add it"
        if kind.title is not None and kind.title not in kind.fields:
            yield f"{place}: the title {kind.title} is not among the fields"
        yield from _check_names(place, {one: spec.names for one, spec in kind.fields.items()})
        for field, spec in kind.fields.items():
            if not 0 <= spec.low <= spec.high <= _MAX_NUMBER:
                yield f"{place}.fields.{field}: use 0 <= low <= high <= {_MAX_NUMBER:,}"
            yield from _check_author(f"{place}.fields.{field}", spec.author or kind.author, kind)
            if spec.kind in ("text", "choice") and not spec.values:
                yield f"{place}.fields.{field}: needs `values`"
            if spec.of is not None and spec.of not in kind.fields:
                yield f"{place}.fields.{field}: `of` names {spec.of}, which is not a field"


def _check_names(place: str, names: Mapping[str, list[str]]) -> Iterator[str]:
    """Every field and argument needs a name that no other one can take."""
    for name, others in names.items():
        taken = {
            _bare(one) for other, more in names.items() if other != name for one in (other, *more)
        }
        if taken.issuperset(map(_bare, (name, *others))):
            yield f"{place}: others can take every name of {name}; give it one of its own"


def _bare(name: str) -> str:
    return name.replace("_", "")


def _check_author(place: str, author: str, kind: RecordType) -> Iterator[str]:
    if author not in ("owner", "system", *kind.fields):
        yield f"{place}: the author {author!r} is not owner, system or a field with a name"


def _check_tools(pack: Pack) -> Iterator[str]:
    for name, tool in pack.tools.items():
        place = f"tools.{name}"
        kind = pack.records.get(tool.record)
        if kind is None:
            yield _no_record(place, tool.record, pack)
            continue
        yield from _check_names(place, {one: spec.names for one, spec in tool.args.items()})
        for field in (*tool.returns, *tool.within, *tool.sets):
            if field not in kind.fields:
                yield f"{place}: {tool.record} has no field {field}"
        for argument, spec in tool.args.items():
            if (spec.sets is None) == (spec.text is None):
                yield f"{place}.args.{argument}: give either `field` or `text`"
            elif spec.sets is not None and spec.sets not in kind.fields:
                yield f"{place}.args.{argument}: {tool.record} has no field {spec.sets}"
        yield from _check_operation(place, tool, kind, pack)


def _check_operation(place: str, tool: Tool, kind: RecordType, pack: Pack) -> Iterator[str]:
    if tool.op in ("send", "transfer", "fetch") and tool.to is None:
        yield f"{place}: `{tool.op}` needs `to`, the argument that names the destination"
    for argument in filter(None, (tool.to, tool.by, tool.amount)):
        if argument not in tool.args:
            yield f"{place}: there is no argument {argument}"
    if tool.op == "search" and not tool.within:
        yield f"{place}: `search` needs `within`, the fields to search"
    if tool.op in _LONE_OPERATIONS and not tool.returns:
        yield f"{place}: `{tool.op}` needs `returns`, the fields of its result"
    keyed = any(spec.sets == kind.key for spec in tool.args.values())
    if tool.op in ("get", "update", "delete") and not (keyed or tool.by or kind.only):
        yield f"{place}: `{tool.op}` needs an argument for {kind.key}, or `by`"
    if tool.op in ("get", "list", "search") and kind.key not in tool.returns and not kind.only:
        yield f"{place}: return the key {kind.key}: plans find records by it"
    yield from _check_special(place, tool, kind, pack)


def _check_special(place: str, tool: Tool, kind: RecordType, pack: Pack) -> Iterator[str]:
    if tool.op == "run" and not (
        kind.fields.get("content")
        and any(a.text == "command" and a.required for a in tool.args.values())
    ):
        yield (
            f'{place}: `run` needs a required argument with text = "command", over records with '
            "`content`"
        )
    if tool.awaits is not None and tool.awaits not in pack.records:
        yield _no_record(place, tool.awaits, pack)
    elif tool.awaits is not None and not any(one.kind == "code" for one in kind.fields.values()):
        yield f'{place}: `awaits` needs a field with is = "code" in {tool.record}'


def _check_plans(pack: Pack, packs: Mapping[str, Pack]) -> Iterator[str]:
    for name, task in pack.tasks.items():
        place = f"tasks.{name}"
        yield from _check_drawn(f"{place}.draw", task.draw)
        yield from _check_given(place, task, pack, packs)
        yield from _check_steps(place, task.plan, pack, packs)
        yield from _check_said(place, task)
        for reference in task.answer:
            yield from _check_reference(f"{place}.answer", reference, task.plan, must=True)
    for name, goal in pack.goals.items():
        place = f"goals.{name}"
        yield from _check_drawn(f"{place}.draw", goal.draw)
        for handle, pick in goal.pick.items():
            if _record_type(pick.record, pack, packs) is None:
                yield _no_record(f"{place}.pick.{handle}", pick.record, pack)
        yield from _check_steps(place, goal.plan, pack, packs)
        yield from _check_ordered(place, goal)


def _check_drawn(
    place: str, wanted: Mapping[str, str], kinds: Sequence[str] = _DRAWN
) -> Iterator[str]:
    """Check values to draw, each as `kind` or `kind:who`."""
    for name, what in wanted.items():
        kind, colon, who = what.partition(":")
        if kind not in kinds:
            yield f"{place}.{name}: cannot draw {kind!r}; use one of {', '.join(kinds)}"
        elif colon and (who not in _WHO or (kind in _PEOPLE and who == "owner")):
            known = [one for one in _WHO if kind not in _PEOPLE or one != "owner"]
            yield f"{place}.{name}: nobody is {who!r}; use one of {', '.join(known)}"


def _check_given(place: str, task: Task, pack: Pack, packs: Mapping[str, Pack]) -> Iterator[str]:
    for handle, pick in task.pick.items():
        if _record_type(pick.record, pack, packs) is None:
            yield _no_record(f"{place}.pick.{handle}", pick.record, pack)
    for handle, given in task.given.items():
        here = f"{place}.given.{handle}"
        kind = _record_type(given.record, pack, packs)
        if kind is None:
            yield _no_record(here, given.record, pack)
            continue
        for field in given.fields:
            if field not in kind.fields:
                yield f"{here}.fields: {given.record} has no field {field}"
        drawn = {name: what for name, what in given.parts.items() if "{" not in what}
        yield from _check_drawn(f"{here}.parts", drawn, _INSIDE)


def _record_type(name: str, pack: Pack, packs: Mapping[str, Pack]) -> RecordType | None:
    """Return a type of records by its name, as `type` or `pack.type`."""
    owner, _, kind = name.rpartition(".")
    found = packs.get(owner or pack.name)
    return None if found is None else found.records.get(kind)


def _no_record(place: str, name: str, pack: Pack) -> str:
    return f"{place}: there is no record {name}; use one of {', '.join(pack.records)}"


def _check_steps(
    place: str, plan: list[Step], pack: Pack, packs: Mapping[str, Pack]
) -> Iterator[str]:
    for number, step in enumerate(plan):
        here = f"{place}.plan[{number}]"
        owner, _, tool_name = step.do.rpartition(".")
        if (owner or pack.name) not in packs:
            yield f"{here}: there is no tool {step.do}: no shipped pack is called {owner}"
            continue
        tools = packs[owner or pack.name].tools
        tool = tools.get(tool_name)
        if tool is None:
            yield f"{here}: there is no tool {step.do}; use one of {', '.join(tools)}"
            continue
        for argument in step.args:
            if argument not in tool.args:
                yield f"{here}: {step.do} has no argument {argument}"
        for argument, spec in tool.args.items():
            if spec.required and argument not in step.args:
                yield f"{here}: {step.do} needs the argument {argument}"
        for value in step.args.values():
            for part in value if isinstance(value, list) else [value]:
                yield from _check_reference(here, part, plan[:number])


def _check_reference(
    place: str, value: Any, before: list[Step], *, must: bool = False
) -> Iterator[str]:
    found = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        if must or (isinstance(value, str) and value.startswith("@")):
            yield f"{place}: {value!r} is not a reference such as @step.field or @step.field | pipe"
        return
    if found[1] not in {step.name for step in before}:
        yield f"{place}: no earlier step is called {found[1]} (use `as`)"
    for pipe in re.findall(r"[a-z_]+", found[3]):
        if pipe not in PIPES:
            yield f"{place}: there is no pipe {pipe}; the pipes are {', '.join(PIPES)}"


def _check_said(place: str, task: Task) -> Iterator[str]:
    """Every value that the plan has as a literal must stand in the sentence."""
    said = set(SLOT.findall(task.say))
    for step in task.plan:
        for value in step.args.values():
            for part in value if isinstance(value, list) else [value]:
                for slot in SLOT.findall(part) if isinstance(part, str) else []:
                    if slot not in said and not slot.startswith("owner."):
                        yield f"{place}: the plan uses {{{slot}}}, which the sentence does not say"


def _check_ordered(place: str, goal: Goal) -> Iterator[str]:
    wanted = {
        slot
        for step in goal.plan
        for value in step.args.values()
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, str)
        for slot in SLOT.findall(part)
    }
    for number, order in enumerate(goal.orders):
        for slot in sorted(wanted - set(SLOT.findall(order))):
            yield f"{place}.orders[{number}]: the plan uses {{{slot}}}, which it does not say"


def packs_of(pack: str, steps: Iterable[Step]) -> set[str]:
    """Return the packs whose tools a plan uses."""
    return {pack, *(step.do.rpartition(".")[0] or pack for step in steps)}


class _Player:
    """Plays episodes of one world without a guardrail."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self._begin = open_locally(GuardrailBase)

    def play(self, task: BoundTask, plant: Plant | None = None) -> Played:
        unguarded = self._begin(self.surface.declarations, task.world.site.policy)
        return play(task, self.surface, unguarded, plant)


def _check_play(pack: Pack, packs: Mapping[str, Pack]) -> Iterator[str]:
    """Play every task without a guardrail."""
    for key in WORLDS:
        world = generate(_needed(pack, packs).values(), key)
        player = _Player(draw_surface(world.site))
        for name, task in pack.tasks.items():
            place = f"tasks.{name} (world {key!r})"
            try:
                bound = bind_task(world, pack.name, name, task)
            except BindingError as error:
                yield f"{place}: {error}"
                continue
            problem = _problem_of(bound, player.play(bound))
            if problem:
                yield f"{place}: {problem}"


def _needed(pack: Pack, packs: Mapping[str, Pack]) -> dict[str, Pack]:
    """Return a pack and those whose tools its plans use."""
    plans = [
        *(task.plan for task in pack.tasks.values()),
        *(goal.plan for goal in pack.goals.values()),
    ]
    steps = [step for plan in plans for step in plan]
    return {name: packs[name] for name in packs if name in packs_of(pack.name, steps)}


def check_reach(pack: Pack, packs: Mapping[str, Pack]) -> Iterator[str]:
    """Yield the goals of a pack to which none of its tasks leads."""
    for key in WORLDS:
        world = generate(_needed(pack, packs).values(), key)
        player = _Player(draw_surface(world.site))
        missing = dict(pack.goals)
        for name, task in pack.tasks.items():
            if not missing:
                break
            try:
                bound = bind_task(world, pack.name, name, task)
            except BindingError:
                continue
            played = player.play(bound)
            if _problem_of(bound, played):
                continue
            for goal in [*missing]:
                draw = Draw("check", key, name, goal)
                found = _reach(bound, played, player, pack, goal, draw)
                if isinstance(found, str):
                    yield f"goals.{goal} (world {key!r}): {found}"
                if found:
                    del missing[goal]
        for goal in missing if pack.tasks else ():
            yield f"goals.{goal} (world {key!r}): no task's slots lead to it unguarded"


def _problem_of(task: BoundTask, played: Played) -> str:
    failed = [one for one in played.calls if one.result is None or not one.result.ok]
    if len(played.calls) < len(task.steps):
        step = task.steps[len(played.calls)]
        used = ", ".join(str(value) for value in step.args.values() if is_reference(value))
        return f"a reference of step {len(played.calls)} finds nothing: {used}"
    if failed:
        result, decision = failed[0].result, failed[0].decision
        return f"{failed[0].tool} fails: {decision.reason if result is None else result.error}"
    if played.answer is None:
        return "the answer refers to something that no result contains"
    return ""


def _reach(  # noqa: PLR0913, PLR0917 - the parts of an episode
    task: BoundTask, played: Played, player: _Player, pack: Pack, name: str, draw: Draw
) -> bool | str:
    """Return whether a stranger reaches a goal in a task's episode, or what is wrong with it."""
    slots = slots_of(task, played, player.surface)
    if not slots:
        return False
    try:
        aimed = bind_goal(task.world, pack.name, name, pack.goals[name], draw)
    except BindingError as error:
        return str(error)
    missing = [one for one in literals_of(aimed.steps) if one not in aimed.order]
    if missing:
        return f"the order lacks the literal {missing[0]!r}"
    plant = plant_order(task, aimed, player.surface, slots, draw)
    return aim_of(player.play(task, plant), player.surface) is not None
