"""The JSON values of a file: one a line, the items of a list, or one for the whole file."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from tiltyard.bridges.traces.elements import items_of
from tiltyard.bridges.traces.errors import BadFileError, BadRunError
from tiltyard.bridges.traces.streams import MAX_LINE_BYTES, Source
from tiltyard.bridges.traces.strict_json import parse_json
from tiltyard.bridges.traces.transcript import as_object
from tiltyard.studies.recorded import RecordedRun, Skipped

TOO_LONG: Final = f"it has more than {MAX_LINE_BYTES:,} bytes"
MakeRun = Callable[[Mapping[str, Any], str], RecordedRun]


class Value(Struct, frozen=True):
    """An object of a file, and where it stands; or the problem with it."""

    place: str
    value: Mapping[str, Any] | None
    problem: str = ""


def objects_of(source: Source, key: str = "") -> Iterator[Value]:
    """Yield the objects of a file. `key` names the list of an outer object, if there is one."""
    for place, raw in _raw_values(source, key):
        yield parsed(place, raw)


def parsed(place: str, raw: bytes | None) -> Value:
    if raw is None:
        return Value(place, None, TOO_LONG)
    try:
        return Value(place, as_object(parse_json(raw, "it"), "it"))
    except BadRunError as error:
        return Value(place, None, str(error))


def runs_of(source: Source, make: MakeRun) -> Iterator[RecordedRun | Skipped]:
    """Yield one run for each object of a file."""
    for one in objects_of(source):
        yield made(one, make)


def made(one: Value, make: MakeRun) -> RecordedRun | Skipped:
    """Make a run of an object, or say why there is none."""
    if one.value is None:
        return Skipped(one.place, one.problem)
    try:
        return make(one.value, one.place)
    except BadRunError as error:
        return Skipped(one.place, str(error))
    except RecursionError:
        return Skipped(one.place, "it is nested too deeply")


def _raw_values(source: Source, key: str) -> Iterator[tuple[str, bytes | None]]:
    start = source.head.lstrip()
    if key or start.startswith(b"["):
        for number, item in enumerate(items_of(source.read, key), 1):
            yield f"{source.path}, item {number}", item
    elif is_one_value(source.head):
        whole = source.read_whole(MAX_LINE_BYTES + 1)
        if len(whole) > MAX_LINE_BYTES:
            raise BadFileError(TOO_LONG)
        yield f"{source.path}", whole
    else:
        for number, line in source.lines():
            yield f"{source.path}, line {number}", line


def is_one_value(head: bytes) -> bool:
    """Tell whether a file is one object with line breaks, rather than one object a line."""
    first = head.lstrip().split(b"\n", 1)[0].rstrip()
    return first == b"{" or (first.startswith(b"{") and first.endswith((b",", b"[", b"{")))
