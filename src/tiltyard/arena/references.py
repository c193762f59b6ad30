"""References of a plan: what an agent can take from the results that it was given.

A reference resolves against what the guardrail let through: a value counts only if it stands in the
delivered text, in the record that the reference means. A value inside a text also needs the
sentence around it, or the agent could not tell what it means.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard.contracts.guardrail import Result
from tiltyard.foundation.legible import keeps_sense, keeps_value
from tiltyard.packs.schema import Scalar
from tiltyard.packs.surface import spell
from tiltyard.packs.world import Record, World, show

REFERENCE: Final = re.compile(r"@([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)((?:\s*\|\s*[a-z_]+)*)")
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


class Delivered(Struct, frozen=True, gc=False):
    """The result of a step as the agent got it."""

    found: tuple[Record, ...]
    result: Result
    of: str
    """The key of the record that references mean; empty for the only one."""
    plain: World | None = None
    """The world in which nobody planted anything."""


class Origin(Struct, frozen=True, gc=False):
    """Where a value of an argument comes from."""

    literal: bool
    """True if the plan itself contains the value."""
    author: str = ""
    """Who wrote the value, if it comes from a result."""
    record: str = ""
    """The record's type and field, as `pack.type.field`, if it comes from a result."""


class UnresolvedError(Exception):
    """A reference means something that the agent was not given."""


def resolve(
    value: Any, results: Mapping[str, Delivered], *, plain: bool = False
) -> tuple[Scalar, Origin]:
    """Return the value of an argument, and where it comes from.

    With `plain`, a text in which somebody planted something has its writer's own words only.
    """
    if isinstance(value, list):
        parts = [resolve(one, results, plain=plain) for one in value]
        origin = next((origin for _, origin in parts if not origin.literal), Origin(literal=True))
        return "".join(show(part) for part, _ in parts), origin
    reference = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if reference is None:
        return value, Origin(literal=True)
    step, field, pipes = reference.groups()
    found, origin = _look_up(results.get(step), field, plain=plain)
    try:
        for pipe in re.findall(r"[a-z_]+", pipes):
            found = PIPES[pipe](found)
    except (ValueError, IndexError, OverflowError):
        # A planted text may stand where the plan expects a number or a date.
        raise UnresolvedError(field) from None
    return found, origin


def is_reference(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(is_reference, value))
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def _look_up(delivered: Delivered | None, field: str, *, plain: bool) -> tuple[Scalar, Origin]:
    if delivered is None:
        raise UnresolvedError(field)
    for record in delivered.found:
        if delivered.of in ("", record.key):
            part = field in record.parts
            value = record.parts[field] if part else record.value(field)
            output = delivered.result.output
            pieces: Sequence[Scalar] = [value]
            if plain and not part:
                value, pieces = _own_words(delivered, record, field)
            if value is None or not all(is_left(piece, output) for piece in pieces):
                raise UnresolvedError(field)
            if part and not is_legible(_sentence(delivered, record, value), output):
                raise UnresolvedError(field)
            author = _author(record, field, value)
            return value, Origin(literal=False, author=author, record=f"{record.type}.{field}")
    raise UnresolvedError(field)


def _own_words(delivered: Delivered, record: Record, field: str) -> tuple[Scalar, Sequence[Scalar]]:
    """Return a value without planted words, and the pieces of it that an agent must find."""
    value = record.value(field)
    kept = {} if delivered.plain is None else delivered.plain.of_type(record.type)
    before = kept[record.key].value(field) if record.key in kept else None
    if not isinstance(value, str) or not isinstance(before, str) or value == before:
        return value, [value]
    lines = [line for line in before.split("\n") if line]
    # Planted words stand before, between or after the lines of a text.
    return (before, lines) if all(line in value for line in lines) else (value, [value])


def _author(record: Record, field: str, value: Scalar) -> str:
    """Return who wrote a value. A part belongs to the author of the text that it stands in."""
    if field in record.fields:
        return record.fields[field].author
    written = (leaf.author for leaf in record.fields.values() if occurs(value, show(leaf.value)))
    return next(written, "")


def _sentence(delivered: Delivered, record: Record, value: Scalar) -> str:
    """Return the sentence of a record that a value stands in, as its writer wrote it."""
    kept = {} if delivered.plain is None else delivered.plain.of_type(record.type)
    leaves = kept.get(record.key, record).fields.values()
    sentences = (one for leaf in leaves for one in _SENTENCES.split(show(leaf.value)))
    return next((one for one in sentences if occurs(value, one)), show(value))


def is_left(value: Scalar, given: str) -> bool:
    """Return whether an agent finds a value in a result, perhaps without its spaces and dashes."""
    return occurs(value, given) or keeps_value(show(value), given)


def is_legible(text: str, given: str) -> bool:
    """Return whether an agent understands a text in a result from which parts may be missing."""
    return occurs(text, given) or keeps_sense(text, given)


def occurs(value: Scalar, text: str) -> bool:
    """Return whether a value stands in a text, in any spelling that results use."""
    encoded = msgspec.json.encode(value).decode()
    spellings = {show(value), spell(value), encoded[1:-1] if isinstance(value, str) else encoded}
    # Tables put a text on one line.
    spellings.add(show(value).replace("\n", " "))
    return any(_stands_in(spelling, text) for spelling in spellings if spelling)


def _stands_in(spelling: str, text: str) -> bool:
    """Return whether a text contains a spelling that is not a part of a longer word or number."""
    at = text.find(spelling)
    while at >= 0:
        end = at + len(spelling)
        before, after = text[at - 1 : at] if at else "", text[end : end + 1]
        if text[max(0, at - 2) : at] in ("\\n", "\\t"):
            before = ""  # A line break in JSON, not the end of a word.
        if not _go_on(before, spelling[0]) and not _go_on(spelling[-1], after):
            return True
        at = text.find(spelling, at + 1)
    return False


def _go_on(left: str, right: str) -> bool:
    """Return whether two characters belong to one word or one number."""
    return (left.isalpha() and right.isalpha()) or (left.isdigit() and right.isdigit())


def _number(value: Scalar) -> Scalar:
    return float(re.sub(r"[^\d.]", "", str(value).replace(",", "")) or 0)


def _iso_date(value: Scalar) -> Scalar:
    """Turn `3 March 2026` into `2026-03-03`."""
    day, month, year = str(value).split()
    return f"{year}-{_MONTHS.index(month) + 1:02d}-{int(day):02d}"


PIPES: Final[dict[str, Callable[[Scalar], Scalar]]] = {
    "cents": lambda value: round(float(str(value)) * 100),
    "date": lambda value: str(value)[:10],
    "digits": lambda value: re.sub(r"\D", "", str(value)),
    "domain": lambda value: str(value).rpartition("@")[2],
    "first_word": lambda value: str(value).split()[0],
    "half": lambda value: round(float(str(value)) / 2, 2),
    "iso_date": _iso_date,
    "lower": lambda value: str(value).lower(),
    "minutes": lambda value: int(str(value)) * 60,
    "number": _number,
    "text": show,
    "upper": lambda value: str(value).upper(),
    "whole": lambda value: round(float(str(value))),
}
"""What a plan can do with a value: change its format or its unit."""
