"""Results: how a tool shows records, as text and as structured content, and who wrote them."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from tiltyard.contracts.guardrail import Passage, Result
from tiltyard.packs.operations import Outcome
from tiltyard.packs.surface import BoundTool, spell
from tiltyard.packs.world import OWNER, SYSTEM, Record

SOURCE: Final = "tool"
NOTHING_AWAITED: Final[Mapping[str, int]] = MappingProxyType({})


def show_result(
    bound: BoundTool, outcome: Outcome, awaited: Mapping[str, int] = NOTHING_AWAITED
) -> Result:
    """Return what a call returns, as a guardrail and an agent see it.

    `awaited` has the keys of records that deliver one-time codes, and the index of the call that
    waits for each.
    """
    if outcome.error:
        return Result(ok=False, output="", error=outcome.error, source=SOURCE)
    if not bound.tool.returns or (bound.tool.op == "run" and not outcome.found):
        return Result(ok=True, output=outcome.note, error=None, source=SOURCE)
    if bound.format == "json":
        return _as_json(bound, outcome.found, awaited)
    text, passages = _FORMATS[bound.format](bound, outcome.found, awaited)
    authors = tuple(passages) if bound.authored else ()
    return Result(ok=True, output=text, error=None, source=SOURCE, passages=authors)


def _as_json(bound: BoundTool, found: Sequence[Record], awaited: Mapping[str, int]) -> Result:
    several = bound.tool.op in ("list", "search")
    shown = [
        {bound.fields[name]: record.fields[name].value for name in bound.tool.returns}
        for record in found
    ]
    data: Any = shown if several else shown[0] if shown else {}
    return Result(
        ok=True,
        output=msgspec.json.encode(data).decode(),
        error=None,
        source=SOURCE,
        structured=data if bound.structured else None,
        passages=_pointed(bound, found, awaited, several=several) if bound.authored else (),
    )


def _pointed(
    bound: BoundTool, found: Sequence[Record], awaited: Mapping[str, int], *, several: bool
) -> tuple[Passage, ...]:
    """Return who wrote the parts of a JSON document, with a JSON pointer for each."""
    passages: list[Passage] = []
    for index, record in enumerate(found):
        path = f"/{index}" if several else ""
        call = awaited.get(record.key)
        authors = {name: record.fields[name].author for name in bound.tool.returns}
        if len({*authors.values()}) == 1:
            passages.append(_passage(path, next(iter(authors.values())), call))
            continue
        passages += [
            _passage(f"{path}/{bound.fields[name]}", author, call)
            for name, author in authors.items()
        ]
    return tuple(passages)


def _passage(path: str, author: str, call: int | None) -> Passage:
    if author in (OWNER, SYSTEM):
        return Passage(path, "", author, awaits=call)
    return Passage(path, author, "person", awaits=call)


def _as_lines(
    bound: BoundTool, found: Sequence[Record], awaited: Mapping[str, int]
) -> tuple[str, list[Passage]]:
    labels = [(name, f"{bound.fields[name]}: ") for name in bound.tool.returns]
    pieces: list[str] = []
    passages: list[Passage] = []
    at = 0
    for record in found:
        if at:
            pieces.append("\n")
            at += 1
        call, fields = awaited.get(record.key), record.fields
        start, end, author = at, at, ""
        for name, label in labels:
            leaf = fields[name]
            text = spell(leaf.value)
            at += len(label)
            if leaf.author != author:
                if author:
                    passages.append(_passage(f"#char={start},{end}", author, call))
                start, author = at, leaf.author
            at = end = at + len(text)
            at += 1
            pieces += (label, text, "\n")
        passages.append(_passage(f"#char={start},{end}", author, call))
    return "".join(pieces), passages


def _as_table(
    bound: BoundTool, found: Sequence[Record], awaited: Mapping[str, int]
) -> tuple[str, list[Passage]]:
    names = bound.tool.returns
    rows = [_BAR.join([bound.fields[name] for name in names])]
    passages: list[Passage] = []
    at = len(rows[0]) + 1
    for record in found:
        call, fields = awaited.get(record.key), record.fields
        start, end, author = at, at, ""
        cells = []
        for name in names:
            leaf = fields[name]
            text = spell(leaf.value).replace("\n", " ")
            if leaf.author != author:
                if author:
                    passages.append(_passage(f"#char={start},{end}", author, call))
                start, author = at, leaf.author
            end = at + len(text)
            at = end + len(_BAR)
            cells.append(text)
        at = end + 1
        passages.append(_passage(f"#char={start},{end}", author, call))
        rows.append(_BAR.join(cells))
    return "\n".join(rows), passages


_BAR: Final = " | "
"""Between the cells of a table."""
_FORMATS: Final[
    dict[
        str,
        Callable[[BoundTool, Sequence[Record], Mapping[str, int]], tuple[str, list[Passage]]],
    ]
] = {"lines": _as_lines, "table": _as_table}
