"""The operator's corrections to what inference says, as TOML."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Struct

from tiltyard.contracts.declaration import Declaration
from tiltyard.foundation.printable import printable
from tiltyard.inference.arguments import arguments_of
from tiltyard.inference.kinds import Effect, Inferred, Role, Source

MAX_OVERLAY_BYTES: Final = 1_000_000
_Kind = TypeVar("_Kind", Effect, Role, Source)
_FIELDS: Final = ("effect", "source", "args", "reversible", "local")


class OverlayError(ValueError):
    """The text is not an overlay. The message names the file and the line, and says what to do."""


class Correction(Struct, frozen=True):
    """What the operator says about one tool. What is None or missing stays as inferred."""

    effect: Effect | None = None
    source: Source | None = None
    args: dict[str, Role] = {}
    reversible: bool | None = None
    local: bool | None = None


class Overlay(Struct, frozen=True):
    """Corrections by tool. Those for a tool of one server win over those for any server."""

    tools: dict[str, Correction] = {}
    """Corrections for a tool of this name, of any server."""
    servers: dict[str, dict[str, Correction]] = {}
    """Corrections for the tools of one server."""

    def apply(self, declared: Declaration, inferred: Inferred) -> Inferred:
        """Return what inference says with the operator's corrections."""
        for kind, known in (
            ("overlay for any server", self.tools),
            ("overlay for this server", self.servers.get(declared.server, {})),
        ):
            correction = known.get(declared.name)
            if correction is not None:
                inferred = corrected(inferred, correction, kind)
        return inferred

    def carried_by(self, declared: Declaration) -> Declaration:
        """Return a declaration that carries the corrections for its tool to any guardrail."""
        found: dict[str, Any] = {}
        for known in (self.tools, self.servers.get(declared.server, {})):
            correction = known.get(declared.name)
            if correction is not None:
                said = msgspec.to_builtins(correction)
                args = found.get("args", {}) | said.pop("args")
                found |= {field: value for field, value in said.items() if value is not None}
                found["args"] = args
        return msgspec.structs.replace(declared, corrections=found)

    def unused(self, declarations: Iterable[Declaration]) -> Iterator[str]:
        """Yield a sentence for each entry that matches no tool or no argument."""
        declared = tuple(declarations)
        for server, tools in (("", self.tools), *self.servers.items()):
            for name, correction in tools.items():
                matching = [one for one in declared if one.name == name]
                if server:
                    matching = [one for one in matching if one.server == server]
                where = f"{name!r} of server {server!r}" if server else repr(name)
                if not matching:
                    yield f"the overlay corrects {where}, which no declaration has"
                for one in matching:
                    known = {argument.pointer for argument in arguments_of(one.input_schema)}
                    for pointer in sorted(correction.args.keys() - known):
                        yield f"the overlay corrects {pointer} of {where}, which the tool lacks"


NO_OVERLAY: Final = Overlay()


def read_correction(raw: Mapping[str, Any]) -> Correction:
    """Return what the corrections of a declaration say. Raise an OverlayError if they are wrong."""
    try:
        return msgspec.convert(raw, Correction)
    except msgspec.ValidationError as error:
        raise OverlayError(f"the corrections of a tool: {printable(error, limit=300)}") from None


def corrected(
    inferred: Inferred, correction: Correction, kind: str = "overlay for this server"
) -> Inferred:
    """Return what inference says with a correction."""
    changes: dict[str, Any] = {
        field: value
        for field in ("effect", "source", "reversible", "local")
        if (value := getattr(correction, field)) is not None
    }
    if correction.args:
        changes["roles"] = inferred.roles | correction.args
    return msgspec.structs.replace(inferred, **changes, because=f"{kind}; {inferred.because}")


def read_overlay(text: str, file: str = "the overlay") -> Overlay:
    """Read an overlay from TOML. `file` is the name that errors give."""
    if len(text) > MAX_OVERLAY_BYTES:
        raise OverlayError(f"{file} has more than {MAX_OVERLAY_BYTES:,} characters; split it")
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise OverlayError(f"{file} is not TOML: {printable(error, limit=300)}") from None
    return _Reader(text, file).read(raw)


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file

    def read(self, raw: Mapping[str, Any]) -> Overlay:
        for key in sorted(raw.keys() - {"tool", "server"}):
            self._fail(
                (key,), f"unknown table {key!r}; expected [tool.NAME] or [server.S.tool.NAME]"
            )
        servers = {}
        for server, inside in self._table(raw.get("server", {}), ("server",)).items():
            at = ("server", server)
            tables = self._table(inside, at)
            for key in sorted(tables.keys() - {"tool"}):
                self._fail((*at, key), f"unknown key {key!r}; expected [server.{server}.tool.NAME]")
            servers[server] = self._tools(tables.get("tool", {}), (*at, "tool"))
        return Overlay(self._tools(raw.get("tool", {}), ("tool",)), servers)

    def _tools(self, raw: Any, at: tuple[str, ...]) -> dict[str, Correction]:
        return {
            name: self._correction(inside, (*at, name))
            for name, inside in self._table(raw, at).items()
        }

    def _correction(self, raw: Any, at: tuple[str, ...]) -> Correction:
        found = self._table(raw, at)
        for key, value in found.items():
            if key not in _FIELDS:
                hint = "write the name in quotes if it contains dots; "
                advice = hint if isinstance(value, dict) else ""
                self._fail(
                    (*at, key), f"unknown key {key!r}; {advice}keys are {', '.join(_FIELDS)}"
                )
        args = self._table(found.get("args", {}), (*at, "args"))
        return Correction(
            self._one_of(Effect, found["effect"], (*at, "effect")) if "effect" in found else None,
            self._one_of(Source, found["source"], (*at, "source")) if "source" in found else None,
            {
                "/" + name.removeprefix("/"): self._one_of(Role, value, (*at, "args", name))
                for name, value in args.items()
            },
            self._switch(found, "reversible", at),
            self._switch(found, "local", at),
        )

    def _one_of(self, kind: type[_Kind], value: Any, at: tuple[str, ...]) -> _Kind:
        if not isinstance(value, str) or value.upper() not in kind.__members__:
            self._fail(at, f"{at[-1]} is {value!r}; expected one of {', '.join(kind.__members__)}")
        return kind[value.upper()]

    def _table(self, raw: Any, at: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(raw, dict):
            table = ".".join(at)
            missing = ".NAME" if at[-1] in ("tool", "server") else ""
            self._fail(at, f"{table} is not a table; write [{table}{missing}]")
        return raw

    def _switch(self, found: Mapping[str, Any], key: str, at: tuple[str, ...]) -> bool | None:
        value = found.get(key)
        if value is not None and not isinstance(value, bool):
            self._fail((*at, key), f"{key} is {value!r}; expected true or false")
        return value

    def _fail(self, at: tuple[str, ...], problem: str) -> NoReturn:
        line = _line_of(self._text, at)
        raise OverlayError(f"{self._file}, line {line}: {printable(problem, limit=300)}")


def _line_of(text: str, wanted: tuple[str, ...]) -> int:
    """Return the line that defines a key, or the table that it would be in."""
    best, line = 0, 1
    table: tuple[str, ...] = ()
    for number, written in enumerate(text.splitlines(), 1):
        path = _path_of(written)
        if written.lstrip().startswith("["):
            table = path
        else:
            path = (*table, *path)
        common = 0
        while common < min(len(path), len(wanted)) and path[common] == wanted[common]:
            common += 1
        if common > best:
            best, line = common, number
    return line


def _path_of(written: str) -> tuple[str, ...]:
    """Return the keys that one line of TOML names; none if the line continues another one."""
    try:
        found: Any = tomllib.loads(written)
    except ValueError:
        name, is_key, _ = written.partition("=")
        return _path_of(f"{name}= 0") if is_key and _ != " 0" else ()
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        path += found
        found = next(iter(found.values()))
    return tuple(path)
