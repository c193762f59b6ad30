"""The frame of every HTML page that Tiltyard writes: one file, without network access.

This module defines the blocks that a page consists of, and keeps the page safe. All text in a block
is hostile. It goes into the file as JSON in which an HTML parser finds no markup, and the page's
scripts show it as text only. `report_page`, `leaderboard_page`, `monitor_page` and
`susceptibility_page` compose their pages from these blocks.
"""

import base64
import hashlib
import html
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from tiltyard.reporting.finding_schema import Finding
from tiltyard.reporting.schema import BrokenMatch

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


class Failures(Struct, frozen=True, tag="failures"):
    failures: tuple[BrokenMatch, ...]


Block = Cards | Note | Facts | Sum | Table | Plot | Row | Findings | Failures


class Section(Struct, frozen=True):
    id: str
    """Unique in the page; the navigation links to it."""
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""


class _Contents(Struct, frozen=True):
    title: str
    subtitle: str
    sections: tuple[Section, ...]


_STYLES: Final = ("palette.css", "page.css", "findings.css")
_SCRIPTS: Final = ("text.js", "blocks.js", "plots.js", "replay.js", "findings.js", "page.js")
_PLOTTERS: Final = ("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-interpreter.min.js")

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
    plotters = _PLOTTERS if any(_has_plot(section.blocks) for section in sections) else ()
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
            f'<script type="application/json" id="contents">{_embedded(contents)}</script>',
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
    rows = ("".join(f"<td>{_escaped(cell)}</td>" for cell in row) for row in block.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"<caption>{_escaped(block.caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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


def _embedded(contents: _Contents) -> str:
    encoded = msgspec.json.encode(contents).decode()
    for character, escape in _ESCAPES.items():
        encoded = encoded.replace(character, escape)
    return encoded
