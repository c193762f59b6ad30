"""Say what is wrong with the files of a pack: where, what, and what to do."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, get_args

import msgspec

from tiltyard.contracts.hostile_json import JsonError, check_text
from tiltyard.packs.schema import (
    Argument,
    Family,
    Field,
    Given,
    Goal,
    Kind,
    Operation,
    Pack,
    Pick,
    RecordType,
    Task,
    TextArgument,
    Tool,
    Who,
    Witness,
)

Files = Mapping[str, str]
"""The texts of files, by the name that a user sees."""
_HEADER: Final = re.compile(r"\[+([^\[\]]+)\]+\s*(#.*)?")
MAX_PROBLEMS: Final = 50
"""A hostile file has many, and finding the line of each takes time."""
_KINDS: Final[dict[str, tuple[type, dict[str, type]]]] = {
    "records": (RecordType, {"fields": Field}),
    "tools": (Tool, {"args": Argument}),
    "goals": (Goal, {"pick": Pick}),
    "tasks": (Task, {"pick": Pick, "given": Given}),
}
"""The tables of a pack, and the tables inside their entries."""
_CHOICES: Final[dict[str, Any]] = {
    "is": Kind,
    "op": Operation,
    "family": Family,
    "who": Who,
    "witness": Witness,
    "text": TextArgument,
}
_UNKNOWN: Final = re.compile(r"unknown field `([^`]+)`")
_PLACE: Final = re.compile(r"([\w.\-\[\]]+)(?: \(world [^)]*\))?: ")


def toml_problems(files: Files) -> Iterator[str]:
    """Yield every file that is not TOML, with its line."""
    for name, text in files.items():
        try:
            tomllib.loads(text)
        except RecursionError:
            yield f"{name}: nested too deeply; use fewer brackets inside each other"
        except tomllib.TOMLDecodeError as error:
            found = re.search(r" \(at line (\d+), column \d+\)", str(error))
            line = f":{found[1]}" if found else ""
            what = str(error).replace(found[0], "") if found else str(error)
            yield f"{name}{line}: not valid TOML: {what}; correct this line"


def schema_problems(files: Files, whole: type = Pack) -> list[str]:
    """Return every entry of valid TOML files that does not fit the format of a pack.

    `whole` is the type of all files together.
    """
    try:
        data = tomllib.loads("\n".join(files.values()))
    except tomllib.TOMLDecodeError as error:
        return [f"{next(iter(files))}: {error} in all files together; define each table once"]
    wrong = (
        one
        for section, (kind, inner) in _KINDS.items()
        for one in _entries(data.get(section), (section,), kind, inner)
    )
    found = [_said(files, keys, problem) for keys, problem in islice(wrong, MAX_PROBLEMS)]
    if found:
        return found
    problem = _problem(data, whole)
    if problem is not None:
        return [_said(files, *problem)]
    return [_said(files, keys, what) for keys, what in islice(_hidden(data, ()), MAX_PROBLEMS)]


def _hidden(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the places of texts with control characters."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _hidden(member, (*keys, key))
    elif isinstance(value, list):
        for item in value:
            yield from _hidden(item, keys)
    elif isinstance(value, str):
        try:
            check_text(value)
        except JsonError as error:
            yield keys, f"a text{error}"


def _said(files: Files, keys: Sequence[str], problem: str) -> str:
    """Return a problem of the format with its place and advice."""
    unknown = _UNKNOWN.search(problem)
    place = place_of(files, (*keys, unknown[1]) if unknown else keys)
    return f"{place}: {_advise(problem, keys)}"


def placed(files: Files, problem: str) -> str:
    """Return a problem with its file and line. It begins with a place, such as `tools.pay: `."""
    found = _PLACE.match(problem)
    if found is None:
        return f"{next(iter(files))}: {problem}"
    return f"{place_of(files, _keys(found[1]))}: {problem}"


def place_of(files: Files, keys: Sequence[str]) -> str:
    """Return the file and line where the value of some keys stands, as far as it can be found."""
    best, place = -1, ""
    for name, text in files.items():
        depth, line = _line_of(text, keys)
        if depth > best:
            best, place = depth, f"{name}:{line}" if line else name
    return place


def _line_of(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Return how many of the keys were found, and the line of the last one, from 1."""
    lines, headers = text.splitlines(), _headers(text)
    depth, at = 0, 0
    for number, named in headers.items():
        if len(named) > depth and named == tuple(keys[: len(named)]):
            depth, at = len(named), number
    for key in keys[depth:]:
        wanted = re.compile(rf"(?<![\w-])['\"]?{re.escape(key)}['\"]?\s*=")
        for number in range(max(1, at), len(lines) + 1):
            if number > at and number in headers:
                break
            if wanted.search(lines[number - 1]):
                depth, at = depth + 1, number
                break
        else:
            continue
    return depth, at


@lru_cache(maxsize=8)
def _headers(text: str) -> dict[int, tuple[str, ...]]:
    """Return the keys of each line that begins a table."""
    found = (
        (number, _HEADER.fullmatch(line.strip()))
        for number, line in enumerate(text.splitlines(), 1)
    )
    return {
        number: tuple(part.strip(" '\"") for part in header[1].split("."))
        for number, header in found
        if header is not None
    }


def _entries(
    table: Any, keys: tuple[str, ...], kind: type, inner: Mapping[str, type]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the entries of a table that are wrong: their keys, and what is wrong."""
    if not isinstance(table, dict):
        return
    for name, entry in table.items():
        problem = _problem(entry, kind)
        if problem is None:
            continue
        deeper = [
            found
            for key, part in inner.items()
            if isinstance(entry, dict)
            for found in _entries(entry.get(key), (*keys, name, key), part, {})
        ]
        yield from deeper or [((*keys, name, *problem[0]), problem[1])]


def _problem(value: Any, kind: type) -> tuple[tuple[str, ...], str] | None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `")
        return tuple(_keys(path.rstrip("`").removeprefix("$"))), problem
    return None


def _keys(path: str) -> list[str]:
    return [key for key in re.sub(r"\[[^\]]*\]", "", path).split(".") if key]


def _advise(problem: str, keys: Sequence[str]) -> str:
    """Return a problem of the format with its place in the pack, and what to do."""
    where = ".".join(keys)
    lead = f"{where}: {problem}" if where else problem
    if "missing required field" in problem:
        return f"{lead}; add it"
    if "unknown field" in problem:
        return f"{lead}; remove it, or correct its name"
    if problem.startswith("Invalid enum value") and keys and keys[-1] in _CHOICES:
        return f"{lead}; use one of {', '.join(get_args(_CHOICES[keys[-1]]))}"
    return f"{lead}; correct the value"
