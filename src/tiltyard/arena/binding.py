"""Bind a task or a goal to a world: draw its values, pick its records, fill its words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.foundation.draw import Draw
from tiltyard.packs.cast import Person, draw_company, draw_person
from tiltyard.packs.schema import Given, Goal, Pick, Scalar, Step, Task
from tiltyard.packs.world import Record, World, draw_value, make_record, show

SLOT: Final = re.compile(r"\{([a-z_][a-z0-9_.]*)\}")
MAX_CHARS: Final = 4_000
"""The limit for a text with {names}: each of them can stand for a long text."""
_PERSON: Final = ("name", "address", "account", "phone")


class BindingError(ValueError):
    """A task or goal names something that its world does not have."""


class BoundStep(Struct, frozen=True):
    """A call of a plan, with its literals filled in."""

    tool: str
    """As `pack.tool`."""
    args: dict[str, Any]
    """A literal, a reference (`@step.field | pipe`), or a list of both to join."""
    name: str
    of: str
    """The key of the record that references to this step mean; empty for the only one."""


class BoundTask(Struct, frozen=True):
    """A task in a world."""

    id: str
    world: World
    """The world with the records that the task needs."""
    say: str
    steps: tuple[BoundStep, ...]
    answer: tuple[str, ...]
    said: frozenset[str]
    """The values that the user's sentence names."""
    order: str = ""
    """The same request as a stranger writes it, for crossed twins."""
    delegates: bool = False


class BoundGoal(Struct, frozen=True):
    """A goal in a world."""

    id: str
    steps: tuple[BoundStep, ...]
    order: str
    """The order as a stranger writes it. It contains every literal of the plan."""


def bind_task(world: World, pack: str, name: str, task: Task) -> BoundTask:
    """Return a task as it stands in a world. The world's key determines every choice."""
    draw = Draw("task", world.site.key, pack, name)
    values = _draw_values(world, task.draw, draw.branch("draw"))
    keys: dict[str, str] = {}
    for handle, pick in task.pick.items():
        record = _pick(world, pack, pick, values, draw.branch("pick", handle))
        _note_record(values, keys, handle, record)
    for handle, given in task.given.items():
        record = _give(world, pack, given, values, draw.branch("given", handle))
        world = world.put(record)
        _note_record(values, keys, handle, record)
    say = fill(task.say, values)
    steps = tuple(
        _bind_step(pack, step, number, values, keys) for number, step in enumerate(task.plan)
    )
    said = frozenset(show(value) for name_, value in values.items() if f"{{{name_}}}" in task.say)
    order = fill(draw.branch("order").choice(task.orders), values) if task.orders else ""
    answer, id_ = tuple(task.answer), f"{pack}/{name}"
    return BoundTask(id_, world, str(say), steps, answer, said, str(order), task.delegates)


def bind_goal(world: World, pack: str, name: str, goal: Goal, draw: Draw) -> BoundGoal:
    """Return a goal as it stands in a world."""
    values = _draw_values(world, goal.draw, draw.branch("draw"))
    keys: dict[str, str] = {}
    for handle, pick in goal.pick.items():
        record = _pick(world, pack, pick, values, draw.branch("pick", handle))
        _note_record(values, keys, handle, record)
    steps = tuple(
        _bind_step(pack, step, number, values, keys) for number, step in enumerate(goal.plan)
    )
    order = str(fill(draw.branch("order").choice(goal.orders), values))
    return BoundGoal(f"{pack}/{name}", steps, order)


def _draw_values(world: World, wanted: Mapping[str, str], draw: Draw) -> dict[str, Scalar]:
    people = world.site.people
    values: dict[str, Scalar] = {f"owner.{name}": getattr(people.owner, name) for name in _PERSON}
    values["owner.first"] = people.owner.name.split()[0]
    for name, what in wanted.items():
        kind, _, who = what.partition(":")
        if kind in ("person", "company"):
            person = _draw_someone(world, kind, who or "contact", draw.branch(name))
            values |= {f"{name}.{part}": getattr(person, part) for part in _PERSON}
            values[f"{name}.first"] = person.name.split()[0]
            values[name] = person.name
        else:
            values[name] = draw_value(world, what, draw.branch(name))
    return values


def _draw_someone(world: World, kind: str, who: str, draw: Draw) -> Person:
    people = world.site.people
    if who == "new":
        return draw_company(draw) if kind == "company" else draw_person(draw)
    group = {
        "colleague": people.colleagues,
        "contact": people.contacts,
        "stranger": people.strangers,
    }[who]
    fitting = [one for one in group if one.name.split()[-1].isalpha()] or list(group)
    return draw.choice(fitting)


def full_name(pack: str, name: str) -> str:
    """Return the name of a tool or a type with its pack, as `pack.name`."""
    return name if "." in name else f"{pack}.{name}"


def _pick(world: World, pack: str, pick: Pick, values: Mapping[str, Scalar], draw: Draw) -> Record:
    where = {name: fill(value, values) for name, value in pick.where.items()}
    kept = world.of_type(full_name(pack, pick.record))
    fitting = [
        kept[key]
        for key in sorted(kept)
        if all(kept[key].value(name) == value for name, value in where.items())
    ]
    if not fitting:
        raise BindingError(f"no {pick.record} with {where}")
    return draw.choice(fitting)


def _give(
    world: World, pack: str, given: Given, values: Mapping[str, Scalar], draw: Draw
) -> Record:
    parts = {
        name: _part(world, what, values, draw.branch(name)) for name, what in given.parts.items()
    }
    inside = {**values, **parts}
    fields = {name: fill(value, inside) for name, value in given.fields.items()}
    return make_record(world, full_name(pack, given.record), draw, fields, parts)


def _part(world: World, what: str, values: Mapping[str, Scalar], draw: Draw) -> Scalar:
    """Return a part: a value that is drawn already (`{name}`), or a kind to draw."""
    return fill(what, values) if "{" in what else draw_value(world, what, draw)


def _note_record(
    values: dict[str, Scalar], keys: dict[str, str], handle: str, record: Record
) -> None:
    keys[handle] = record.key
    values |= {f"{handle}.{name}": leaf.value for name, leaf in record.fields.items()}
    values |= {f"{handle}.{name}": value for name, value in record.parts.items()}


def _bind_step(
    pack: str, step: Step, number: int, values: Mapping[str, Scalar], keys: Mapping[str, str]
) -> BoundStep:
    args = {name: _fill_all(value, values) for name, value in step.args.items()}
    of = keys.get(step.of or "", "")
    if step.of and not of:
        raise BindingError(f"step {number}: no record is called {step.of}")
    return BoundStep(full_name(pack, step.do), args, step.name or f"step{number}", of)


def _fill_all(value: Any, values: Mapping[str, Scalar]) -> Any:
    return [fill(one, values) for one in value] if isinstance(value, list) else fill(value, values)


def fill(text: Any, values: Mapping[str, Scalar]) -> Any:
    """Fill the {names} of a text. A text that is one {name} becomes its value, with its type."""
    if not isinstance(text, str):
        return text
    whole = SLOT.fullmatch(text)
    if whole is not None and whole[1] in values:
        return values[whole[1]]
    if len(text) > MAX_CHARS:
        raise BindingError(f"a text has {len(text):,} characters; the limit is {MAX_CHARS:,}")

    def found(slot: re.Match[str]) -> str:
        if slot[1] not in values:
            raise BindingError(f"nothing is called {{{slot[1]}}}")
        return show(values[slot[1]])

    return SLOT.sub(found, text)


def goal_of(task: BoundTask) -> BoundGoal:
    """Return the goal of a stranger who wants what a user asks for in the twin."""
    return BoundGoal(task.id, _renamed(task.steps, "s_"), task.order)


def _renamed(steps: tuple[BoundStep, ...], prefix: str) -> tuple[BoundStep, ...]:
    return tuple(
        structs.replace(
            step,
            name=prefix + step.name,
            args={name: _rename(value, prefix) for name, value in step.args.items()},
        )
        for step in steps
    )


def _rename(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        return [_rename(part, prefix) for part in value]
    if isinstance(value, str) and value.startswith("@"):
        return f"@{prefix}{value[1:]}"
    return value
