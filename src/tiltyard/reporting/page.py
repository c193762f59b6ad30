"""The frame of every HTML page that Tiltyard writes: one file, without network access.

This module defines the blocks that a page consists of, and keeps the page safe. All text in a block
is hostile. It goes into the file as JSON in which an HTML parser finds no markup, and the page's
scripts show it as text only. `report_page`, `leaderboard_page`, `monitor_page` and
`susceptibility_page` compose their pages from these blocks.
"""

import base64
import hashlib
import html
import os
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from tiltyard.reporting.finding_schema import Finding
from tiltyard.reporting.schema import BrokenMatch, TrialRow
from tiltyard.reporting.shadow_schema import ShadowedRun

Tone = Literal["", "good", "bad", "quiet"]


class Card(Struct, frozen=True):
    """One important number."""

    label: str
    value: str
    of: str = ""
    """The maximum, if there is one."""
    note: str = ""
    tone: Tone = ""
    share: float | None = None
    """The share of the maximum, 0 to 1, drawn as a bar."""


class Cards(Struct, frozen=True, tag="cards"):
    cards: tuple[Card, ...]


class Note(Struct, frozen=True, tag="note"):
    """A few sentences, optionally with a list."""

    text: str
    tone: Tone = ""
    points: tuple[str, ...] = ()


class Fact(Struct, frozen=True):
    term: str
    value: str
    code: bool = False
    """Whether to use a monospaced font, as for digests, names and paths."""


class Facts(Struct, frozen=True, tag="facts"):
    facts: tuple[Fact, ...]


class Sum(Struct, frozen=True, tag="sum"):
    """A calculation, line by line."""

    title: str
    formula: str
    lines: tuple[tuple[str, str, str], ...]
    """What is counted, the calculation, and its result."""
    result: tuple[str, str, str]
    note: str = ""


class Column(Struct, frozen=True):
    title: str
    kind: Literal["text", "number", "code"] = "text"


class Table(Struct, frozen=True, tag="table"):
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()
    """A relative link for each row, shown on its first `code` cell; empty for none."""
    tools: bool = False
    """Whether the reader can search the rows, and sort them by each column."""


class Plot(Struct, frozen=True, tag="plot"):
    """A Vega-Lite chart, made by `charts`. Its specification contains no text of the data."""

    title: str
    spec: dict[str, Any]
    values: tuple[Mapping[str, str | int | float | bool], ...]
    """The rows of the specification's data source `table`."""
    note: str = ""


class Row(Struct, frozen=True, tag="row"):
    """Blocks side by side, if the screen is wide enough."""

    blocks: tuple["Cards | Note | Facts | Sum | Table | Plot", ...]


class Findings(Struct, frozen=True, tag="findings"):
    """A list of findings that the reader can filter, open and replay step by step."""

    findings: tuple[Finding, ...]
    scored: bool = True
    """Whether to show the points of each finding."""


class Spot(Struct, frozen=True):
    """A place in a matrix."""

    ids: tuple[str, ...]
    """The findings or trials that belong here, each of which the page links to."""
    possible: bool = True
    """False if nothing can belong here."""


class Matrix(Struct, frozen=True, tag="matrix"):
    """Where findings lie in a grid, and which places are empty."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Spot, ...]], ...]
    empty: str
    """What a possible place without findings says."""


class Trials(Struct, frozen=True, tag="trials"):
    """A list of failed benign trials that the reader can open and replay step by step."""

    trials: tuple[TrialRow, ...]


class ShadowedRuns(Struct, frozen=True, tag="shadowed"):
    """A list of recorded runs that the reader can filter, open and replay step by step."""

    runs: tuple[ShadowedRun, ...]


class Failures(Struct, frozen=True, tag="failures"):
    failures: tuple[BrokenMatch, ...]


class Output(Struct, frozen=True, tag="output"):
    """What a submission printed."""

    title: str
    text: str


Block = (
    Cards
    | Note
    | Facts
    | Sum
    | Table
    | Matrix
    | Plot
    | Row
    | Findings
    | Trials
    | ShadowedRuns
    | Failures
    | Output
)


class Section(Struct, frozen=True):
    id: str
    """Unique in the page; the navigation links to it."""
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""
    short: str = ""
    """The title in the navigation, if it is another one."""


class _Contents(Struct, frozen=True):
    title: str
    subtitle: str
    sections: tuple[Section, ...]


_STYLES: Final = ("palette.css", "page.css", "findings.css")
_SCRIPTS: Final = (
    "text.js",
    "blocks.js",
    "tables.js",
    "plots.js",
    "replay.js",
    "findings.js",
    "page.js",
)
PLOTTERS: Final = ("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-interpreter.min.js")

_WITHOUT_SCRIPTS: Final = (
    "This page needs JavaScript, which is part of this file. "
    "The JSON file next to it contains the same figures."
)

_INVISIBLE: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))

# `<` and `>` could end the script element, `&` would start an entity in any other element, and the
# two separators end a line in older versions of JavaScript.
_ESCAPES: Final = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render_page(
    title: str,
    sections: Sequence[Section],
    subtitle: str = "",
    *,
    without_scripts: Sequence[Note | Table] = (),
) -> str:
    """Return a whole page as one HTML file.

    Browsers without JavaScript show the blocks in `without_scripts`, or a sentence if there are
    none.
    """
    styles = [_asset(name) for name in _STYLES]
    plotters = PLOTTERS if any(_has_plot(section.blocks) for section in sections) else ()
    scripts = [_asset(name) for name in (*plotters, *_SCRIPTS)]
    contents = _Contents(title, subtitle, tuple(sections))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(styles, scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            "<title>Tiltyard</title>",
            *(f"<style>{style}</style>" for style in styles),
            "</head>",
            "<body>",
            f"<noscript>{_plainly(title, without_scripts)}</noscript>",
            f'<script type="application/json" id="contents">{embedded(contents)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        )
    )


def _plainly(title: str, blocks: Sequence[Note | Table]) -> str:
    """Return the markup for browsers without JavaScript."""
    if not blocks:
        return f"<p>{_WITHOUT_SCRIPTS}</p>"
    return "".join((f"<h1>{_escaped(title)}</h1>", *map(_plain_block, blocks)))


def _plain_block(block: Note | Table) -> str:
    if isinstance(block, Note):
        points = "".join(f"<li>{_escaped(point)}</li>" for point in block.points)
        return f"<p>{_escaped(block.text)}</p>" + (f"<ul>{points}</ul>" if points else "")
    head = "".join(f'<th scope="col">{_escaped(column.title)}</th>' for column in block.columns)
    body = "".join(f"<tr>{_plain_row(block, at)}</tr>" for at in range(len(block.rows)))
    caption = f"<caption>{_escaped(block.caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _plain_row(table: Table, at: int) -> str:
    cells = [_escaped(cell) for cell in table.rows[at]]
    if table.links and table.links[at]:
        linked = next(n for n, column in enumerate(table.columns) if column.kind == "code")
        cells[linked] = f'<a href="{_escaped(table.links[at])}">{cells[linked]}</a>'
    return "".join(f"<td>{cell}</td>" for cell in cells)


def relative_link(target: Path, page: Path) -> str:
    """Return a link from the file `page` to the file `target`, which no name turns into a script.

    Names of directories may be hostile. The link begins with a dot, so it has no scheme.
    """
    path = Path(os.path.relpath(target.resolve(), page.resolve().parent)).as_posix()
    return quote(path if path.startswith("../") else f"./{path}")


def _escaped(text: str) -> str:
    """Return hostile text without markup, and with invisible characters spelled out."""
    return html.escape("".join(map(_visible, text)))


def _visible(char: str) -> str:
    if char == "\n" or unicodedata.category(char) not in _INVISIBLE:
        return char
    return f"\\u{{{ord(char):04x}}}"


def _has_plot(blocks: Sequence[Block]) -> bool:
    return any(
        isinstance(block, Plot) or (isinstance(block, Row) and _has_plot(block.blocks))
        for block in blocks
    )


def _asset(name: str) -> str:
    return (files("tiltyard.reporting") / "assets" / name).read_text(encoding="utf-8")


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a content security policy that allows only these scripts and styles, by hash.

    Trusted types stop even the page's own scripts from turning text into markup or code.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_source_hash, scripts))}",
            f"style-src {' '.join(map(_source_hash, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def embedded(contents: Struct) -> str:
    """Return JSON in which an HTML parser finds no markup, for a script element."""
    encoded = msgspec.json.encode(contents).decode()
    for character, escape in _ESCAPES.items():
        encoded = encoded.replace(character, escape)
    return encoded
