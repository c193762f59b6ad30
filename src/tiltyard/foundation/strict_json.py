"""Decode JSON that strangers wrote, without a second meaning.

A text that two parsers may read differently is an error: a key that occurs twice in an object, NaN,
a number that does not fit. Callers bound the size of the text.
"""

import json
from collections.abc import Callable
from typing import Any, Final

MAX_NUMBER_CHARS: Final = 64
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1


class UnclearError(ValueError):
    """A value that parsers may read differently. The structure of the text is readable."""


def strict_decoder(integer: Callable[[str], int] | None = None) -> json.JSONDecoder:
    """Return a decoder that raises an UnclearError for what parsers may read differently.

    `integer` reads an integer from its digits; without it, integers must fit into 64 bits.
    """
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=integer or _integer,
        parse_float=_float,
        parse_constant=_constant,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise UnclearError(f"the key {name[:80]!r} occurs twice in one object")
            seen.add(name)
    return made


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS or not _MIN_INT <= int(digits) <= _MAX_INT:
        raise UnclearError("an integer has more than 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits) if len(digits) <= MAX_NUMBER_CHARS else float("inf")
    if value in (float("inf"), float("-inf")):
        raise UnclearError("a number is too large or too long")
    return value


def _constant(name: str) -> None:
    raise UnclearError(f"{name} is no JSON number")
