"""Cut the output of a tool into parts: record by record, and what stands between tags apart."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.hostile_json import leaves
from tiltyard.guardrails.declared.notations import data_in, json_in
from tiltyard.guardrails.declared.words import Texts
from tiltyard.inference.vocabulary import word_set

_AUTHOR_FIELD: Final = re.compile(
    r"^(from|sender|author|by|user|person|with|created_?by|posted_?by|owner|writer|organi[sz]er|"
    r"reviewer|uploader|correspondent|counterparty)(_?(name|address|email|id))?$",
    re.IGNORECASE,
)
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=- )|\n(?=\* )|\n(?=#+ )")
_LINE: Final = re.compile(r"^[-*\s]*([A-Za-z_ ]{2,24})\s*[:=]\s*(.+)$", re.MULTILINE)
_TAG: Final = re.compile(r"<([A-Za-z][\w-]*)>")
"""What stands between two tags in a text claims to be something else than the text."""
_HTML: Final = re.compile(r"<!doctype|<html|<body|<div|<p>|<form", re.IGNORECASE)
_HTML_TAGS: Final = word_set(
    "a abbr address article aside audio b base bdi bdo blockquote body br button canvas caption "
    "cite code col colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img "
    "input ins kbd label legend li link main map mark menu meta meter nav noscript object ol "
    "optgroup option output p param picture pre progress q rp rt ruby s samp script section "
    "select slot small source span strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead time title tr track u ul var video wbr center font"
)
_MAX_KEPT_CHARS: Final = 20_000
"""A longer output is cut again each time."""
_MAX_ALL_CHARS: Final = 4_000_000
"""So many characters of outputs stay cut. Agents read the same texts again and again."""


class Part(Struct, frozen=True, gc=False):
    """A value of a record, or a part of a text, by one author."""

    text: str
    author: str
    record: int
    """The number of its record in the output, from 1."""
    embedded: bool = False
    """True for a part of a text that stands between tags."""


class Sheet:
    """An output, cut into parts."""

    def __init__(self, parts: Sequence[Part], records: int, *, is_one: bool) -> None:
        self.parts = parts
        self.records = records
        """How many records there are, each embedded part among them."""
        self.is_one = is_one
        """Whether it is one document or one record."""
        self.texts = Texts([part.text for part in parts])


def sheet_of(output: str, structured: Any, *, document: bool) -> Sheet:
    """Return an output in parts. Its form tells records and authors apart."""
    if structured is not None:
        return _cut(output, structured)
    if len(output) > _MAX_KEPT_CHARS:
        return _cut(output, data_of(output, document=document))
    return _KEPT.get(output, document=document)


class _Kept:
    """The outputs that were read last."""

    def __init__(self) -> None:
        self._sheets: OrderedDict[tuple[str, bool], Sheet] = OrderedDict()
        self._chars = 0

    def get(self, output: str, *, document: bool) -> Sheet:
        key = output, document
        found = self._sheets.pop(key, None)
        if found is None:
            found = _cut(output, data_of(output, document=document))
            self._chars += len(output)
            while self._chars > _MAX_ALL_CHARS and self._sheets:
                (oldest, _), _ = self._sheets.popitem(last=False)
                self._chars -= len(oldest)
        self._sheets[key] = found
        return found


_KEPT: Final = _Kept()


def data_of(output: str, *, document: bool) -> Any:
    """Return the data that an output is, or None.

    A document is as somebody wrote it. Other texts are as the server prints them.
    """
    return json_in(output) if document else data_in(output)


def _cut(output: str, data: Any) -> Sheet:
    parts: list[Part] = []
    last = 0
    for values, author in _records_of(data) if data is not None else _blocks_of(output):
        last += 1
        number = last
        for text in values:
            kept: list[str] = []
            at = 0
            for start, end in _embedded_in(text) if "<" in text else ():
                last += 1
                parts.append(Part(text[start:end], "", last, embedded=True))
                kept.append(text[at:start])
                at = end
            rest = "\n".join([*kept, text[at:]]) if kept else text
            if rest and not rest.isspace():
                parts.append(Part(rest, author, number))
    is_one = data is None or len({one.record for one in parts if not one.embedded}) == 1
    return Sheet(parts, last, is_one=is_one)


def _embedded_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where parts between tags begin and end. In a page, tags of HTML are its own."""
    known = _HTML_TAGS if _HTML.search(text) else frozenset()
    at = 0
    for tag in _TAG.finditer(text):
        if tag.start() >= at and tag[1].lower() not in known:
            closing = text.find(f"</{tag[1]}>", tag.end())
            at = len(text) if closing < 0 else closing + len(tag[0]) + 1
            yield tag.start(), at


def _records_of(data: Any, name: str = "") -> Iterator[tuple[list[str], str]]:
    """Yield the records of structured content: each with its values and its author.

    The name under which a mapping has a record is a value of this record, too.
    """
    if isinstance(data, list):
        for one in data:
            yield from _records_of(one)
    elif isinstance(data, dict):
        inner = {name: value for name, value in data.items() if _has_records(value)}
        own = {name: value for name, value in data.items() if name not in inner}
        texts = [str(leaf) for leaf in leaves([*own.values()])]
        # The names of a mapping can be values: a name and its address, a city and its hotels.
        yield [*texts, *map(str, data), *([name] if name else [])], _author_in(own)
        for key, value in inner.items():
            yield from _records_of(value, str(key))
    elif data is not None:
        yield [str(data)], ""


def _has_records(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value)


def is_author_field(name: str) -> bool:
    return _AUTHOR_FIELD.match(name) is not None


def _author_in(flat: dict[str, Any]) -> str:
    for name, value in flat.items():
        if isinstance(value, str) and is_author_field(name):
            return value
    return ""


def _blocks_of(output: str) -> Iterator[tuple[list[str], str]]:
    if _TAG.search(output):
        # A blank line inside an embedded part must not cut it.
        yield [output], ""
        return
    for block in _BLOCK.split(output):
        if block.strip():
            fields = {
                name.strip().casefold().replace(" ", "_"): value.strip()
                for name, value in _LINE.findall(block)
            }
            yield [block, *fields.values()], _author_in(fields)
