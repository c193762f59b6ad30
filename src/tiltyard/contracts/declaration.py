"""The declaration of a tool: what a server tells a client about it.

A declaration is hostile. `read_declarations` accepts JSON data of any form, and returns
declarations that are safe to show, to send and to walk through; anything else is a
`DeclarationError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard.contracts.hostile_json import JsonError, check_text, copy_json
from tiltyard.contracts.lookalikes import hidden_character, mixed_scripts, skeleton
from tiltyard.contracts.schemas import check_schema
from tiltyard.foundation.printable import printable

MAX_TOOLS: Final = 1_000
MAX_NAME_CHARS: Final = 128
MAX_TITLE_CHARS: Final = 256
MAX_DESCRIPTION_CHARS: Final = 16_384
MAX_SCHEMA_BYTES: Final = 65_536
MAX_TOTAL_BYTES: Final = 700_000
"""All declarations of a conversation together: they travel to a guest in one frame."""


class Hints(Struct, frozen=True):
    """MCP's annotations: what a server says about the effects of its tool."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    trusted: bool = False
    """True if the operator vouches for these hints. A server cannot set it."""


NO_HINTS: Final = Hints()


class Declaration(Struct, frozen=True):
    """A tool as a client sees it."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    """The JSON schema of the arguments."""
    output_schema: dict[str, Any] | None = None
    """The JSON schema of `Result.structured`, if the tool declares one."""
    hints: Hints = NO_HINTS
    server: str = ""
    """The server that offers the tool."""
    corrections: dict[str, Any] = {}
    """What the operator's overlay says about the tool. A server cannot set it."""

    @property
    def required(self) -> frozenset[str]:
        """The arguments that every call must have."""
        names = self.input_schema.get("required")
        if not isinstance(names, list):
            return frozenset()
        return frozenset(name for name in names if isinstance(name, str))


class DeclarationError(ValueError):
    """A declaration that Tiltyard refuses. The message names the tool and says what to do."""


def read_declarations(
    raw: object, server: str = "", *, trusted: bool = False
) -> tuple[Declaration, ...]:
    """Read the list of tools of an MCP server, or declarations with Tiltyard's field names.

    `server` names the server. `trusted` says that the operator vouches for its annotations.
    """
    if isinstance(raw, Mapping) and isinstance(raw.get("tools"), list | tuple):
        raw = raw["tools"]  # The answer to `tools/list`.
    if not isinstance(raw, list | tuple):
        raise DeclarationError(
            f"the declarations are {_kind(raw)}; expected a list of tools, as `tools/list` returns"
        )
    if len(raw) > MAX_TOOLS:
        raise DeclarationError(
            f"{len(raw):,} tools are declared; the limit is {MAX_TOOLS:,}: "
            "connect fewer servers, or select the tools that the agent needs"
        )
    declared: list[Declaration] = []
    size = 0
    for at, one in enumerate(raw):
        declared.append(_read(one, at, server, trusted=trusted))
        size += len(msgspec.msgpack.encode(declared[-1]))
        _check_size(size, declared)
    _check_names(declared)
    return tuple(declared)


def check_declarations(declarations: Iterable[Declaration]) -> None:
    """Raise a DeclarationError if these tools cannot be offered to one agent."""
    declared = tuple(declarations)
    if len(declared) > MAX_TOOLS:
        raise DeclarationError(f"{len(declared):,} tools are declared; the limit is {MAX_TOOLS:,}")
    for at, one in enumerate(declared):
        if not isinstance(one, Declaration):
            raise DeclarationError(f"tool {at} is {_kind(one)}; expected a Declaration")
        _check(one, at)
    _check_size(sum(len(msgspec.msgpack.encode(one)) for one in declared), declared)
    _check_names(declared)


def _check_size(size: int, declared: Sequence[Declaration]) -> None:
    if size <= MAX_TOTAL_BYTES:
        return
    largest = max(declared, key=lambda one: len(msgspec.msgpack.encode(one)))
    raise DeclarationError(
        f"the declarations have more than {MAX_TOTAL_BYTES:,} bytes together: select fewer tools, "
        f"or shorten the largest one, {_shown(largest.name)}"
    )


_FIELDS: Final = {
    "title": ("title",),
    "description": ("description",),
    "input_schema": ("inputSchema", "input_schema"),
    "output_schema": ("outputSchema", "output_schema"),
    "hints": ("annotations", "hints"),
}
_HINTS: Final = {
    "read_only": ("readOnlyHint", "read_only"),
    "destructive": ("destructiveHint", "destructive"),
    "idempotent": ("idempotentHint", "idempotent"),
    "open_world": ("openWorldHint", "open_world"),
}


def _read(raw: object, at: int, server: str, *, trusted: bool) -> Declaration:
    if not isinstance(raw, Mapping):
        raise DeclarationError(f"tool {at} is {_kind(raw)}; expected an object with a `name`")
    name = raw.get("name")
    if not isinstance(name, str):
        raise DeclarationError(f"tool {at} has no `name`; every tool needs one, as a string")
    where = f"tool {_shown(name)}"
    found = {field: _one_of(raw, names, where) for field, names in _FIELDS.items()}
    hints = found["hints"]
    if hints is not None and not isinstance(hints, Mapping):
        raise DeclarationError(f"{where}: its annotations are {_kind(hints)}; expected an object")
    title = found["title"]
    if title is None and hints is not None:
        title = hints.get("title")
    declared = Declaration(
        name,
        _string(title, "title", where),
        _string(found["description"], "description", where),
        _schema(found["input_schema"], "input schema", where) or {},
        _schema(found["output_schema"], "output schema", where),
        _read_hints(hints or {}, where, trusted=trusted),
        server or _string(raw.get("server"), "server", where),
    )
    _check(declared, at)
    return declared


def _one_of(raw: Mapping[Any, Any], names: Sequence[str], where: str) -> Any:
    given = [name for name in names if raw.get(name) is not None]
    if len(given) > 1:
        raise DeclarationError(f"{where} has {' and '.join(given)}; keep one of them")
    return raw[given[0]] if given else None


def _string(value: object, field: str, where: str) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise DeclarationError(f"{where}: its {field} is {_kind(value)}; expected a string")
    return value


def _schema(value: object, field: str, where: str) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        copied = copy_json(value)
    except JsonError as error:
        raise DeclarationError(f"{where}: its {field}{error}") from None
    if not isinstance(copied, dict):
        raise DeclarationError(f"{where}: its {field} is {_kind(value)}; expected an object")
    return copied


def _read_hints(raw: Mapping[Any, Any], where: str, *, trusted: bool) -> Hints:
    found: dict[str, bool | None] = {}
    for field, names in _HINTS.items():
        value = _one_of(raw, names, where)
        if value is not None and type(value) is not bool:
            raise DeclarationError(f"{where}: {names[0]} is {_kind(value)}; expected true or false")
        found[field] = value
    return Hints(**found, trusted=trusted)


def _check(declared: Declaration, at: int) -> None:
    """Check one declaration. Every text may go to a terminal, a model or a report."""
    name = declared.name
    if not name or name != name.strip():
        raise DeclarationError(f"tool {at} has the name {_shown(name)}; expected a name like a.b")
    where = f"tool {_shown(name)}"
    texts = (
        ("name", name, MAX_NAME_CHARS),
        ("title", declared.title, MAX_TITLE_CHARS),
        ("server", declared.server, MAX_TITLE_CHARS),
        ("description", declared.description, MAX_DESCRIPTION_CHARS),
    )
    for field, text, most in texts:
        if len(text) > most:
            raise DeclarationError(
                f"{where}: its {field} has {len(text):,} characters; the limit is {most:,}: "
                "shorten it, or do not offer the tool"
            )
        try:
            check_text(text, one_line=field != "description")
        except JsonError as error:
            raise DeclarationError(
                f"{where}: its {field}{error}: remove it, or do not offer the tool"
            ) from None
    hidden = hidden_character(name)
    if hidden:
        raise DeclarationError(
            f"{where}: its name has the invisible character U+{ord(hidden):04X}: remove it"
        )
    scripts = mixed_scripts(name)
    if scripts:
        raise DeclarationError(
            f"{where}: its name mixes {' and '.join(scripts)} letters, so that it can look like "
            "another name: use the letters of one alphabet"
        )
    for field, schema in (
        ("input schema", declared.input_schema),
        ("output schema", declared.output_schema),
    ):
        if schema is not None:
            _check_schema(schema, field, where)


def _check_schema(schema: object, field: str, where: str) -> None:
    try:
        check_schema(schema)
    except JsonError as error:
        raise DeclarationError(f"{where}: its {field}{error}") from None
    size = len(msgspec.msgpack.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        raise DeclarationError(
            f"{where}: its {field} has {size:,} bytes; the limit is {MAX_SCHEMA_BYTES:,}: "
            "shorten it, or do not offer the tool"
        )


def _check_names(declared: Sequence[Declaration]) -> None:
    seen: dict[str, Declaration] = {}
    for one in declared:
        shape = skeleton(one.name)
        other = seen.get(shape)
        if other is None:
            seen[shape] = one
            continue
        if other.name == one.name:
            raise DeclarationError(
                f"tool {_shown(one.name)} is declared twice{_servers(other, one)}: "
                "rename one of them, for example with its server as a prefix"
            )
        raise DeclarationError(
            f"tool {_shown(one.name)} looks like {_shown(other.name)}{_servers(other, one)}: "
            "a model or a user can take one for the other; rename one of them"
        )


def _servers(one: Declaration, other: Declaration) -> str:
    if one.server == other.server:
        return ""
    return f" (by the servers {_shown(one.server)} and {_shown(other.server)})"


def _shown(name: str) -> str:
    return "'" + printable(name, spell_out="'", limit=80) + "'"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), printable(type(value).__name__, limit=40))
