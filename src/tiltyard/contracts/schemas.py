"""Check a JSON schema from a stranger: bounded, readable, and without recursion."""

import re
from typing import Any, Final
from urllib.parse import unquote

from tiltyard.contracts.hostile_json import JsonError, check_text, copy_json, place

MAX_SCHEMA_NODES: Final = 5_000
MAX_EXPANDED: Final = 50_000
"""Values of a schema after each `$ref` is replaced by what it refers to."""
MAX_STEPS: Final = 100
"""Levels and references from the root of a schema to a part of it."""
_INDEX: Final = re.compile("[0-9]{1,6}")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def check_schema(schema: object) -> None:
    """Raise a JsonError if code that walks through this schema could hang, fail or be deceived."""
    root = copy_json(schema, max_nodes=MAX_SCHEMA_NODES)
    if not isinstance(root, dict):
        raise JsonError(" is not an object")
    _check_texts(root, ())
    _Expansion(root).size_of(root, ())


def _check_texts(value: Any, at: tuple[str | int, ...]) -> None:
    if isinstance(value, str):
        _check_one(value, at)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_texts(item, (*at, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_one(key, at)
            _check_texts(item, (*at, key))


def _check_one(text: str, at: tuple[str | int, ...]) -> None:
    try:
        check_text(text)
    except JsonError as error:
        raise JsonError(f"{place(at)}{error}: remove it") from None


class _Expansion:
    """Counts the values of a schema with its references replaced."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size_of(self, value: Any, at: tuple[str | int, ...]) -> int:
        if not isinstance(value, dict | list):
            return 1
        key = id(value)
        if key in self._open:
            raise JsonError(
                f"{place(at)} refers to a part that contains it: write the levels out, or describe "
                'the inner part as {"type": "object"}'
            )
        if len(at) > MAX_STEPS:
            raise JsonError(
                f" leads from reference to reference for more than {MAX_STEPS} steps: flatten it"
            )
        if key not in self._sizes:
            self._open.add(key)
            self._sizes[key] = self._sum(value, at)
            self._open.remove(key)
        return self._sizes[key]

    def _sum(self, value: Any, at: tuple[str | int, ...]) -> int:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        size = 1 + sum(self.size_of(item, (*at, name)) for name, item in items)
        if isinstance(value, dict):
            for name in _REFERENCES:
                reference = value.get(name)
                if isinstance(reference, str):
                    size += self.size_of(self._target(reference, (*at, name)), (*at, name))
        if size > MAX_EXPANDED:
            raise JsonError(
                f"{place(at)} has more than {MAX_EXPANDED:,} values once its references are "
                "replaced: make it smaller"
            )
        return size

    def _target(self, reference: str, at: tuple[str | int, ...]) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            raise JsonError(
                f"{place(at)} refers outside the schema: use references that start with #/"
            )
        found: Any = self._root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and _INDEX.fullmatch(name) and int(name) < len(found):
                found = found[int(name)]
            else:
                raise JsonError(f"{place(at)} refers to a part that the schema does not have")
        return found
