"""Write to a terminal or a pipe.

Texts of scenarios, submissions and reports are hostile. `safe` spells out every control character,
escape sequence and change of writing direction, and consoles from `open_console` ignore markup.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from typing import Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from tiltyard.foundation.printable import printable
from tiltyard.reporting.finding_schema import Segment

_OPENS, _CLOSES = (
    "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}",
    "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}",
)
_BRACKETS: Final = (_OPENS, _CLOSES)
_PIPE_WIDTH: Final = 200
_MAX_WIDTH: Final = 100
_COLOURS: Final = {
    "user": "green",
    "machine": "dim",
    "web": "magenta",
    "email": "yellow",
    "file": "cyan",
    "outside file": "red",
}
LEGEND: Final = (
    f"{_OPENS}web: ...{_CLOSES} is text from a stranger, "
    f"{_OPENS}SECRET: ...{_CLOSES} is protected text"
)


def open_console() -> Console:
    """Return a console that ignores markup and does not wrap lines that go into a pipe."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Print the number of a character that the terminal's encoding lacks, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=_PIPE_WIDTH)


def output_width() -> int:
    """Return the terminal's width; in a pipe, that of `COLUMNS`, or 80."""
    return Console().width


def page_width() -> int:
    """Return the width for rules and tables of text, which are hard to read if they are wider."""
    return min(output_width(), _MAX_WIDTH)


def spinner(activity: str) -> AbstractContextManager[object]:
    """Show `activity` on a terminal while the `with` block runs."""
    console = Console(stderr=True)
    return console.status(activity) if console.is_terminal else nullcontext()


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def safe(text: object) -> str:
    """Return hostile text as one printable line."""
    return printable(text, spell_out=_BRACKETS)


def safe_lines(text: str) -> str:
    """Return hostile text as printable lines."""
    return printable(text, keep="\n", spell_out=_BRACKETS)


def render_segments(segments: Sequence[Segment]) -> Text:
    """Return text coloured by author, with secrets and strangers' text in brackets.

    A text cannot forge the brackets: `safe_lines` spells them out.
    """
    whole = Text()
    for segment in segments:
        marks = ["SECRET"] if segment.secret else []
        marks += [segment.by] if segment.untrusted else []
        style = "bold reverse red" if segment.secret else _COLOURS.get(segment.by, "")
        body = safe_lines(segment.text)
        if marks:
            marks += [segment.encoding] if segment.encoding else []
            body = f"{_OPENS}{safe(' '.join(marks))}: {body}{_CLOSES}"
        whole.append(body, style=style)
    return whole


def format_number(value: float | str | None) -> str:
    """Write a score or a count: two decimals unless it is a whole number, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return safe(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
