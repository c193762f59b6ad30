"""The shell of every page that Tiltyard makes: one file, no network, and no script but its own.

Owns what a page can be made of (blocks), and how it is kept safe. Whatever stands in a block is
hostile: it goes into the file as JSON that no parser of HTML can see through, and from there into
the page as text alone. What a report shows where is `html`'s to say; other pages have other
sections of the same blocks.
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

from tiltyard.reporting.schema import Failure, Finding

Tone = Literal["", "good", "bad", "quiet"]


class Card(Struct, frozen=True):
    """One number that matters."""

    label: str
    value: str
    of: str = ""
    """The most that it could be, if there is a most."""
    note: str = ""
    tone: Tone = ""
    share: float | None = None
    """How much of the most it is, 0 to 1, to be drawn as a bar."""


class Cards(Struct, frozen=True, tag="cards"):
    cards: tuple[Card, ...]


class Note(Struct, frozen=True, tag="note"):
    """A few sentences, or a list of them under a heading."""

    text: str
    tone: Tone = ""
    points: tuple[str, ...] = ()


class Fact(Struct, frozen=True):
    term: str
    value: str
    code: bool = False
    """Shown letter by letter: a digest, a name, a path."""


class Facts(Struct, frozen=True, tag="facts"):
    facts: tuple[Fact, ...]


class Sum(Struct, frozen=True, tag="sum"):
    """A calculation, line by line, as one would do it on paper."""

    title: str
    formula: str
    lines: tuple[tuple[str, str, str], ...]
    """What is counted, how, and what it comes to."""
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
    """A Vega-Lite drawing. Its specification is ours, and holds no word of the data."""

    title: str
    spec: dict[str, Any]
    values: tuple[Mapping[str, str | int | float | bool], ...]
    """The rows that the specification's `table` stands for."""
    note: str = ""


class Row(Struct, frozen=True, tag="row"):
    """Blocks beside each other where there is room."""

    blocks: tuple["Cards | Note | Facts | Sum | Table | Plot", ...]


class Findings(Struct, frozen=True, tag="findings"):
    """Findings that can be filtered, opened and stepped through."""

    findings: tuple[Finding, ...]
    scored: bool = True
    """Whether what a finding adds to a score is worth showing."""


class Failures(Struct, frozen=True, tag="failures"):
    failures: tuple[Failure, ...]


Block = Cards | Note | Facts | Sum | Table | Plot | Row | Findings | Failures


class Section(Struct, frozen=True):
    id: str
    """Unique in its page; links lead to it."""
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
    "This page draws itself with JavaScript, all of it in this file. "
    "The same figures stand in the JSON beside it."
)

_INVISIBLE: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))

# `<` and `>` would let a text end its element, `&` would be taken for an entity were the element
# ever another, and the two separators once ended a line of JavaScript.
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

    A reader without JavaScript is shown what is given for that, and else a sentence.
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
    """Return what a reader without JavaScript is shown, as markup."""
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
    """Return a stranger's text as text: no markup, and nothing in it that cannot be seen."""
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
    """Allow just these scripts and styles, letter by letter, and nothing else at all.

    Trusted types forbid turning text into markup or code even to our own scripts.
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
