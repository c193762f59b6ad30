"""The operations: what a call does to a world of packs.

No argument makes a call raise. A failed call changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.foundation.draw import Draw
from tiltyard.packs.commands import run_command
from tiltyard.packs.schema import RecordType, Scalar, Tool
from tiltyard.packs.surface import BoundTool
from tiltyard.packs.world import OWNER, SYSTEM, Change, Leaf, Record, World, make_record

MAX_RECORDS: Final = 50
MAX_TEXT_CHARS: Final = 20_000


class Outcome(Struct, frozen=True, gc=False):
    """The world after a call, and what the call returns."""

    world: World
    found: tuple[Record, ...] = ()
    error: str = ""
    changes: tuple[Change, ...] = ()
    note: str = ""
    """What a tool says that returns no records."""
    code: str = ""
    """The key of the record that delivers a one-time code, if the call waits for one."""


Authors = Mapping[str, str]
"""Who wrote the value of each argument. Arguments of the user's own words are the owner's."""


def call(
    world: World, bound: BoundTool, args: Mapping[str, Any], authors: Authors | None = None
) -> Outcome:
    """Execute a call. `authors` says who wrote which argument."""
    problem = _check(world, bound, args)
    if problem:
        return Outcome(world, error=problem)
    return _OPERATIONS[bound.tool.op](world, bound, args, authors or {})


def _check(world: World, bound: BoundTool, args: Mapping[str, Any]) -> str:
    tool = bound.tool
    for name, spec in tool.args.items():
        value = args.get(name)
        if value is None:
            if spec.required:
                return f"missing argument {bound.names[name]}"
        elif not isinstance(value, str | int | float | bool):
            return f"argument {bound.names[name]} must be a plain value"
        elif isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
            return f"argument {bound.names[name]} is too long"
    needs = tool.needs
    if needs is not None:
        kept = world.of_type(f"{bound.pack}.{needs.record}").values()
        if not any(record.value(needs.field) == needs.value for record in kept):
            return f"{needs.record} is not {needs.value}"
    return ""


def _kind(world: World, bound: BoundTool) -> RecordType:
    return world.site.types[bound.record]


def _field_values(tool: Tool, args: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the fields that the arguments name."""
    return {
        spec.sets: args[name]
        for name, spec in tool.args.items()
        if spec.sets is not None and args.get(name) is not None
    }


def _matches(record: Record, wanted: Mapping[str, Scalar]) -> bool:
    return all(_same(record.value(name), value) for name, value in wanted.items())


def _same(one: Scalar, other: Scalar) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.casefold() == other.casefold()
    return one == other


def _all(world: World, bound: BoundTool) -> list[Record]:
    kept = world.of_type(bound.record)
    return [kept[key] for key in sorted(kept)]


def _list(world: World, bound: BoundTool, args: Mapping[str, Any], _authors: Authors) -> Outcome:
    wanted = _field_values(bound.tool, args)
    found = [record for record in _all(world, bound) if _matches(record, wanted)]
    limit = next((args.get(name) for name, a in bound.tool.args.items() if a.text == "limit"), None)
    most = limit if isinstance(limit, int) and limit > 0 else MAX_RECORDS
    return Outcome(world, tuple(found[: min(most, MAX_RECORDS)]))


def _named(world: World, bound: BoundTool, args: Mapping[str, Any]) -> Record | None:
    """Return the record that the argument `by` names, or that with the key."""
    tool, kind = bound.tool, _kind(world, bound)
    if kind.only:
        return next(iter(_all(world, bound)), None)
    by = tool.by or next((name for name, a in tool.args.items() if a.sets == kind.key), None)
    if by is None or args.get(by) is None:
        return None
    field = tool.args[by].sets or kind.key
    if field == kind.key:
        return world.of_type(bound.record).get(str(args[by]))
    return next((one for one in _all(world, bound) if _same(one.value(field), args[by])), None)


def _get(world: World, bound: BoundTool, args: Mapping[str, Any], _authors: Authors) -> Outcome:
    record = _named(world, bound, args)
    return Outcome(world, error="not found") if record is None else Outcome(world, (record,))


def _search(world: World, bound: BoundTool, args: Mapping[str, Any], _authors: Authors) -> Outcome:
    query = next((args.get(name) for name, a in bound.tool.args.items() if a.text == "query"), "")
    words = str(query or "").casefold().split()
    wanted = _field_values(bound.tool, args)
    found = []
    for record in _all(world, bound):
        text = " ".join(str(record.value(name)) for name in bound.tool.within).casefold()
        if _matches(record, wanted) and all(word in text for word in words):
            found.append(record)
    return Outcome(world, tuple(found[:MAX_RECORDS]))


def _new_record(
    world: World, bound: BoundTool, values: Mapping[str, Scalar], authors: Authors
) -> tuple[World, Record]:
    tool = bound.tool
    draw = Draw("created", world.site.key, world.serial, bound.record)
    given = {**values, **tool.sets}
    record = make_record(world, bound.record, draw, given, surrounded=False)
    wrote = {spec.sets: authors.get(name, OWNER) for name, spec in tool.args.items() if spec.sets}
    fields = {
        name: Leaf(leaf.value, wrote[name] if name in values else SYSTEM)
        for name, leaf in record.fields.items()
    }
    made = structs.replace(record, fields=fields)
    return world.created().put(made), made


def _create(world: World, bound: BoundTool, args: Mapping[str, Any], authors: Authors) -> Outcome:
    values = _field_values(bound.tool, args)
    after, record = _new_record(world, bound, values, authors)
    changes = [_change("created", record, values)]
    after, code = _await_code(after, bound, record, changes)
    note = f"done: {record.key}"
    return Outcome(after, (record,), "", tuple(changes), note, code)


def _await_code(
    world: World, bound: BoundTool, record: Record, changes: list[Change]
) -> tuple[World, str]:
    """Deliver a code if the tool waits for one. Return the key of the record that delivers it."""
    if bound.tool.awaits is None:
        return world, ""
    after, code = _deliver_code(world, bound, record)
    changes.append(_change("created", code, {}))
    return after, code.key


def _deliver_code(world: World, bound: BoundTool, record: Record) -> tuple[World, Record]:
    """Put the code that a record waits for into a new record of the type `awaits`."""
    assert bound.tool.awaits is not None
    type_ = f"{bound.pack}.{bound.tool.awaits}"
    codes = [name for name, one in _kind(world, bound).fields.items() if one.kind == "code"]
    kind = world.site.types[type_]
    given = {
        name: record.value(codes[0]) for name, one in kind.fields.items() if one.kind == "code"
    }
    draw = Draw("code", world.site.key, world.serial)
    made = make_record(world, type_, draw, given, surrounded=False)
    return world.put(made), made


def _update(world: World, bound: BoundTool, args: Mapping[str, Any], authors: Authors) -> Outcome:
    record = _named(world, bound, args)
    if record is None:
        return Outcome(world, error="not found")
    tool = bound.tool
    by = tool.by or next(
        (name for name, spec in tool.args.items() if spec.sets == _kind(world, bound).key), ""
    )
    changed: dict[str, Scalar] = dict(tool.sets)
    fields = {**record.fields, **{name: Leaf(value, SYSTEM) for name, value in tool.sets.items()}}
    for name, spec in tool.args.items():
        if name != by and spec.sets is not None and args.get(name) is not None:
            fields[spec.sets] = Leaf(args[name], authors.get(name, OWNER))
            changed[spec.sets] = args[name]
    after = structs.replace(record, fields=fields)
    note = f"updated: {record.key}"
    return Outcome(world.put(after), (after,), "", (_change("updated", after, changed),), note)


def _delete(world: World, bound: BoundTool, args: Mapping[str, Any], _authors: Authors) -> Outcome:
    record = _named(world, bound, args)
    if record is None:
        return Outcome(world, error="not found")
    note = f"deleted: {record.key}"
    return Outcome(world.drop(record), (), "", (_change("deleted", record, {}),), note)


def _send(world: World, bound: BoundTool, args: Mapping[str, Any], authors: Authors) -> Outcome:
    values = _field_values(bound.tool, args)
    after, record = _new_record(world, bound, values, authors)
    to = str(args.get(bound.tool.to or "", ""))
    changes = [
        _change("created", record, values),
        Change("left", bound.record, record.key, values, to),
    ]
    after, code = _await_code(after, bound, record, changes)
    return Outcome(after, (record,), "", tuple(changes), f"sent: {record.key}", code)


def _fetch(world: World, bound: BoundTool, args: Mapping[str, Any], _authors: Authors) -> Outcome:
    url = str(args.get(bound.tool.to or "", ""))
    plain = url.partition("?")[0].rstrip("/")
    record = next((one for one in _all(world, bound) if str(one.value("url")) == plain), None)
    left = (Change("left", bound.record, plain, {"url": url}, _host(url)),)
    if record is None:
        return Outcome(world, error="not found", changes=left)
    return Outcome(world, (record,), "", left)


def _run(world: World, bound: BoundTool, args: Mapping[str, Any], authors: Authors) -> Outcome:
    name = next(name for name, spec in bound.tool.args.items() if spec.text == "command")
    ran = run_command(world, bound.record, str(args[name]), authors.get(name, OWNER))
    return Outcome(ran.world, ran.found, ran.error, ran.changes, ran.note)


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition("?")[0]


def _change(kind: Any, record: Record, values: Mapping[str, Scalar]) -> Change:
    return Change(kind, record.type, record.key, dict(values))


_OPERATIONS: Final[dict[str, Callable[[World, BoundTool, Mapping[str, Any], Authors], Outcome]]] = {
    "list": _list,
    "get": _get,
    "search": _search,
    "create": _create,
    "update": _update,
    "delete": _delete,
    "send": _send,
    "transfer": _send,
    "fetch": _fetch,
    "run": _run,
}
