"""Walk through an input schema to the arguments that carry values."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tiltyard.inference.words import sentences, split_name

MAX_ARGUMENTS: Final = 500
_MAX_DEPTH: Final = 8
_DESCRIBED: Final = 60
"""Words of a description that can say what an argument is."""
_MAX_VISITS: Final = 5_000
"""Schemas are hostile: references can make a small one large."""


class Argument(Struct, frozen=True):
    """One value of a call, or each item of a list of values."""

    pointer: str
    words: tuple[str, ...]
    """The words of its own name."""
    parents: tuple[str, ...] = ()
    """The words of the names around it."""
    described: tuple[str, ...] = ()
    """The words of its description."""
    types: frozenset[str] = frozenset()
    format: str = ""
    choices: tuple[str, ...] = ()
    """The values of its `enum`, if it has one."""

    @property
    def is_text(self) -> bool:
        return not self.types or bool(self.types & {"string", "object"})

    @property
    def last(self) -> str:
        return self.words[-1] if self.words else ""


def arguments_of(schema: Any) -> tuple[Argument, ...]:
    """Return the arguments of a tool. A list of strings is one argument.

    A schema that is too large or too deep is read in part: the rest has no role.
    """
    found: list[Argument] = []
    for one in _Walk(schema).fields(schema, _Place()):
        found.append(one)
        if len(found) == MAX_ARGUMENTS:
            break
    return tuple(found)


class _Place(Struct, frozen=True):
    """Where a value is in a call."""

    pointer: str = ""
    words: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    depth: int = 0

    def field(self, name: str) -> "_Place":
        escaped = name.replace("~", "~0").replace("/", "~1")
        return _Place(
            f"{self.pointer}/{escaped}",
            split_name(name),
            (*self.parents, *self.words),
            self.depth + 1,
        )

    def items(self) -> "_Place":
        return _Place(f"{self.pointer}/*", self.words, self.parents, self.depth)


class _Walk:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._visits = 0

    def fields(self, schema: Any, place: _Place) -> Iterator[Argument]:
        """Yield the arguments inside an object."""
        merged = self._merged(schema)
        for name, inner in merged["properties"].items():
            if self._visits > _MAX_VISITS or place.depth > _MAX_DEPTH:
                return
            if isinstance(name, str):
                yield from self._value(inner, place.field(name))

    def _value(self, schema: Any, place: _Place) -> Iterator[Argument]:
        merged = self._merged(schema)
        if merged["properties"]:
            yield from self.fields(schema, place)
            return
        items = merged.get("items")
        if isinstance(items, dict):
            item = self._merged(items)
            if item["properties"]:
                yield from self.fields(items, place.items())
                return
            merged = {**item, **merged, "types": item["types"]}
        yield _argument(merged, place)

    def _merged(self, schema: Any, depth: int = 0) -> dict[str, Any]:
        """Return a schema with its references and alternatives as one flat schema."""
        found: dict[str, Any] = {"properties": {}, "types": frozenset()}
        self._visits += 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._visits > _MAX_VISITS:
            return found
        parts = [self._target(schema.get("$ref"))]
        for key in ("allOf", "anyOf", "oneOf"):
            several = schema.get(key)
            parts += several[:20] if isinstance(several, list) else []
        for part in parts:
            inner = self._merged(part, depth + 1)
            found["properties"] |= inner.pop("properties")
            found["types"] |= inner.pop("types")
            found = {**inner, **found}
        own = schema.get("properties")
        found["properties"] |= own if isinstance(own, dict) else {}
        types = schema.get("type")
        given = types if isinstance(types, list) else [types]
        found["types"] |= {one for one in given if isinstance(one, str) and one != "null"}
        kept = ("description", "format", "enum", "items")
        return {**found, **{key: schema[key] for key in kept if key in schema}}

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found = self._root
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found


def _argument(merged: dict[str, Any], place: _Place) -> Argument:
    text = merged.get("description")
    described = [word for one in sentences(text) for word in one] if isinstance(text, str) else []
    choices = merged.get("enum")
    form = merged.get("format")
    return Argument(
        place.pointer,
        place.words,
        place.parents,
        tuple(described[:_DESCRIBED]),
        merged["types"],
        form.lower() if isinstance(form, str) else "",
        tuple(str(one)[:60] for one in choices[:50]) if isinstance(choices, list) else (),
    )
