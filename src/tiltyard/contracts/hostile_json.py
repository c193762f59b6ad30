"""JSON values from strangers: copied with exact types, within bounds, and with readable text."""

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Final

import msgspec

MAX_DEPTH: Final = 32
MAX_NODES: Final = 20_000
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Control characters, characters that change the writing direction or are invisible, and halves of
surrogate pairs. Tab and line breaks are not among them."""
_LINE_BREAK: Final = re.compile("[\t\r\n]")


class JsonError(ValueError):
    """The value is not acceptable. The message starts with the place: ` at /a/0 is ...`."""


def check_text(text: str, *, one_line: bool = False) -> None:
    """Raise a JsonError if a text has a character that a reader cannot see."""
    found = _HIDDEN.search(text) or (_LINE_BREAK.search(text) if one_line else None)
    if found is not None:
        raise JsonError(
            f" has the character U+{ord(found.group()):04X} at position {found.start()}, which "
            "hides or reorders text"
        )


def copy_json(value: object, *, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES) -> Any:
    """Return a copy that contains exact JSON types only: no subclass, no shared or cyclic part.

    Tuples become lists. Numbers must be finite, and integers must fit into 64 bits.
    """
    return _Copier(max_depth, max_nodes).copy(value)


def clone(value: Any) -> Any:
    """Return a copy of a value that `copy_json` returned."""
    return _DECODER.decode(_ENCODER.encode(value))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder()


class _Copier:
    def __init__(self, max_depth: int, max_nodes: int) -> None:
        self._max_depth = max_depth
        self._max_nodes = max_nodes
        self._nodes = 0
        self._at: list[str | int] = []
        """The path to the present value, for error messages."""

    def copy(self, value: Any) -> Any:
        self._nodes += 1
        kind = type(value)
        if kind is str:
            return value if value.isascii() else self._valid(value)
        if value is None or kind is bool:
            return value
        if kind is int or kind is float:
            return self._number(value)
        if kind is dict:
            return self._members(value)
        if kind is list or kind is tuple:
            return self._items(value)
        raise JsonError(f"{place(self._at)} is a {kind.__name__[:40]!r}, which is no JSON value")

    def _members(self, value: dict[Any, Any]) -> dict[str, Any]:
        self._check_bounds(len(value))
        at, copied = self._at, {}
        for key, member in value.items():
            if type(key) is not str:
                raise JsonError(f"{place(at)} has a key that is no string")
            at.append(key)
            if not key.isascii():
                self._valid(key)
            copied[key] = self.copy(member)
            at.pop()
        return copied

    def _items(self, value: list[Any] | tuple[Any, ...]) -> list[Any]:
        self._check_bounds(len(value))
        at, copied = self._at, []
        for number, item in enumerate(value):
            at.append(number)
            copied.append(self.copy(item))
            at.pop()
        return copied

    def _check_bounds(self, more: int) -> None:
        if len(self._at) >= self._max_depth:
            raise JsonError(f" is nested more than {self._max_depth} levels deep: flatten it")
        if self._nodes + more > self._max_nodes:
            raise JsonError(f" has more than {self._max_nodes:,} values: make it smaller")

    def _number(self, value: float) -> float:
        if type(value) is int:
            if not _MIN_INT <= value <= _MAX_INT:
                raise JsonError(f"{place(self._at)} is an integer of more than 64 bits")
        elif not isfinite(value):
            raise JsonError(f"{place(self._at)} is {value}, which is no JSON number")
        return value

    def _valid(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise JsonError(f"{place(self._at)} is not valid Unicode") from None
        return text


def place(at: Sequence[str | int]) -> str:
    """Return where a value is, as text for an error message."""
    pointer = to_pointer(at)
    if not pointer:
        return ""
    shown = pointer if len(pointer) <= 80 else pointer[:77] + "..."
    return " at " + shown.encode("unicode_escape").decode("ascii")


def to_pointer(at: Sequence[str | int]) -> str:
    """Return a path as a JSON pointer."""
    return "".join("/" + str(one).replace("~", "~0").replace("/", "~1") for one in at)


def leaves(value: Any) -> Iterator[Any]:
    """Yield the texts, numbers and truth values in a JSON value."""
    if isinstance(value, dict):
        for member in value.values():
            yield from leaves(member)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value
