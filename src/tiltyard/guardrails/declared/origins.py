"""Where values come from: what the results contained, record by record, and who wrote it."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.hostile_json import leaves
from tiltyard.guardrails.declared.sheets import data_of, sheet_of
from tiltyard.guardrails.declared.words import Sought, Texts

_PLACE: Final = re.compile(r"#char=(\d+),(\d+)")
_MAX_FIELD_WORDS: Final = 8
MAX_PIECES: Final = 4_000
_MAX_SEARCHES: Final = 1_000


class Piece(Struct, frozen=True, gc=False):
    """One value of a record, or a part of a text, by one author."""

    text: str
    by: str
    """`owner`, `system`, `person` or `unknown`."""
    author: str
    record: int
    """Pieces of one record have the same number."""
    read_by_name: bool = False
    """True if the user named the one text or record that the call read."""
    by_named_author: bool = False
    """True if the call read what an author wrote whom the user named."""
    embedded: bool = False
    """True for a part of a text that stands between tags."""
    about: frozenset[int] = frozenset()
    """The groups of things that the tool which returned it is for."""

    @property
    def is_field(self) -> bool:
        """Whether this is a short value rather than a text."""
        return "\n" not in self.text and len(self.text.split()) <= _MAX_FIELD_WORDS


class Reading(Struct, frozen=True):
    """What is known about a call that gave a result."""

    by_name: bool = False
    """Whether the user named what it reads."""
    by_author: bool = False
    """Whether the user named the author whose texts it reads."""
    document: bool = False
    """Whether it reads one file or page, whose form its author chooses."""
    about: frozenset[int] = frozenset()
    """The groups of things that the tool is for."""


class _Search:
    """The pieces that contain a value, as far as they have been searched."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._sought = Sought(value)
        self._done = 0
        self._holding: list[Piece] = []
        self._leading: list[Piece] = []

    def go_on(self, results: list[tuple[int, Texts]], pieces: list[Piece]) -> list[Piece]:
        """Search the results that are new. Return the pieces of all results."""
        for first, texts in results[self._done :]:
            self._holding += [pieces[first + at] for at in texts.with_value(self._sought)]
            if not self._holding:
                self._leading += [pieces[first + at] for at in texts.leading_to(self._value)]
        self._done = len(results)
        return self._holding or self._leading


class Origins:
    """Everything that the agent was given."""

    def __init__(self, *, records: bool) -> None:
        self._records = records
        """False: a whole result counts as one record."""
        self.pieces: list[Piece] = []
        self._last = 0
        self._forget()

    def _forget(self) -> None:
        """Forget everything that the pieces tell again."""
        self._texts: list[tuple[int, Texts]] = []
        """The texts of the pieces, result by result, and where their pieces begin."""
        self._by_record: dict[int, list[Piece]] = {}
        self._filed = 0
        """So many pieces are in `_by_record`."""
        self._searches: dict[tuple[type, str], _Search] = {}
        """Values that were looked for. A search goes on where it ended before."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_records": self._records, "pieces": self.pieces, "_last": self._last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
        if self.pieces:
            self._texts.append((0, Texts([piece.text for piece in self.pieces])))

    @property
    def is_full(self) -> bool:
        """Whether later results are not kept."""
        return len(self.pieces) > MAX_PIECES

    def add(self, result: Result, reading: "Reading") -> None:
        """Add a result. Without passages, its form tells records and authors apart."""
        if self.is_full:
            return
        if result.passages:
            self._add_known(result, reading)
            return
        sheet = sheet_of(result.output, result.structured, document=reading.document)
        if not self._records:
            text = "\n".join(part.text for part in sheet.parts)
            by = "unknown" if sheet.parts else "system"
            author = sheet.parts[0].author if sheet.parts else ""
            self._keep([Piece(text, by, author, self._next())], reading)
            return
        by_name, by_author, about = (
            reading.by_name and sheet.is_one,
            reading.by_author,
            reading.about,
        )
        base = self._last
        self._last += sheet.records
        pieces = [
            Piece(one.text, "unknown", "", base + one.record, embedded=True)
            if one.embedded
            else Piece(
                one.text, "unknown", one.author, base + one.record, by_name, by_author, about=about
            )
            for one in sheet.parts
        ]
        self._append(pieces, sheet.texts)

    def _add_known(self, result: Result, reading: "Reading") -> None:
        """Add a result whose server says who wrote its parts."""
        data = result.structured
        if data is None:
            data = data_of(result.output, document=reading.document)
        pieces = [*self._known(result, data)]
        is_one = data is None or len({piece.record for piece in pieces}) == 1
        if not self._records:
            text = "\n".join(piece.text for piece in pieces)
            worst = next((p for p in pieces if p.by in ("person", "unknown")), None)
            by, author = (worst.by, worst.author) if worst else ("system", "")
            pieces, is_one = [Piece(text, by, author, self._next())], True
        self._keep(pieces, reading, is_one=is_one)

    def _keep(self, pieces: list[Piece], reading: "Reading", *, is_one: bool = True) -> None:
        # A text is one document; a list is not, if the user named only a part of it.
        named = {
            "read_by_name": reading.by_name and is_one,
            "by_named_author": reading.by_author,
            "about": reading.about,
        }
        kept = [msgspec.structs.replace(piece, **named) for piece in pieces]
        self._append(kept, Texts([piece.text for piece in kept]))

    def _append(self, pieces: list[Piece], texts: Texts) -> None:
        self._texts.append((len(self.pieces), texts))
        self.pieces += pieces

    def holding(self, value: Any) -> list[Piece]:
        """Return the pieces that contain a value, or else those from which it derives."""
        key = (type(value), str(value))
        search = self._searches.get(key)
        if search is None:
            if len(self._searches) >= _MAX_SEARCHES:
                self._searches.clear()
            search = self._searches[key] = _Search(value)
        return search.go_on(self._texts, self.pieces)

    def record(self, number: int) -> list[Piece]:
        for piece in self.pieces[self._filed :]:
            self._by_record.setdefault(piece.record, []).append(piece)
        self._filed = len(self.pieces)
        return self._by_record.get(number, [])

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _known(self, result: Result, data: Any) -> Iterator[Piece]:
        numbers: dict[str, int] = {}
        for passage in result.passages:
            place = _PLACE.fullmatch(passage.path)
            if place is not None:
                start, end = int(place[1]), int(place[2])
                texts = [result.output[start:end]]
                key = str(_row(result.output, start))
            else:
                texts = [str(leaf) for leaf in leaves(_at(data, passage.path))]
                texts = texts or ([result.output] if passage.path == "" else [])
                parts = passage.path.split("/")[1:2]
                key = parts[0] if isinstance(data, list) and parts else ""
            number = numbers.get(key) or numbers.setdefault(key, self._next())
            for text in texts:
                yield Piece(text, passage.by, passage.author, number)


def _at(data: Any, path: str) -> Any:
    for key in path.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        if isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict) and name in data:
            data = data[name]
        else:
            return None
    return data


def _row(output: str, start: int) -> int:
    """Return the number of the block or line of a text in which a place is."""
    blank = output.count("\n\n", 0, start)
    return blank if "\n\n" in output else output.count("\n", 0, start)


def leaves_of(args: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the plain values of arguments, each with its JSON pointer."""
    found: list[tuple[str, Any]] = []
    _add_leaves(args, "", found)
    return found


def _add_leaves(args: Any, path: str, found: list[tuple[str, Any]]) -> None:
    if isinstance(args, dict):
        for name, value in args.items():
            place = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
            if isinstance(value, str):
                found.append((place, value))
            else:
                _add_leaves(value, place, found)
    elif isinstance(args, list | tuple):
        for index, value in enumerate(args):
            _add_leaves(value, f"{path}/{index}", found)
    else:
        found.append((path, args))
