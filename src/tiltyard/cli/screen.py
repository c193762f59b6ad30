"""What may be sent to a terminal, and the arguments that commands have in common.

Texts of scenarios, submissions and other people's reports are hostile: they are shown with every
control character, escape sequence and change of writing direction spelled out, and never as markup.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from tiltyard.foundation.printable import printable
from tiltyard.reporting.schema import Segment
from tiltyard.runs.store import REPORT

DEFAULT_STORE: Final = Path(".tiltyard")
_OPENS, _CLOSES = (
    "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}",
    "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}",
)
_BRACKETS: Final = (_OPENS, _CLOSES)
_COLOURS: Final = {
    "user": "green",
    "machine": "dim",
    "web": "magenta",
    "email": "yellow",
    "file": "cyan",
    "outside file": "red",
}


def _complete_run(incomplete: str) -> list[str]:
    """Offer the runs of the usual store to a shell that completes a command."""
    try:
        return sorted(
            path.parent.name
            for path in DEFAULT_STORE.glob(f"runs/*/{REPORT}")
            if path.parent.name.startswith(incomplete)
        )
    except OSError:
        return []


StoreOption = Annotated[Path, typer.Option("--store", help="Where runs are kept.")]
RunArgument = Annotated[
    str,
    typer.Argument(
        help="A run id or its first digits, a run's directory, or a report.json.",
        autocompletion=_complete_run,
        show_default=False,
    ),
]
UnsafeOption = Annotated[
    bool,
    typer.Option(
        "--unsafe-no-sandbox",
        help="Run it without a jail. For code of your own alone: it can do whatever you can.",
    ),
]


def open_console(*, width: int | None = None) -> Console:
    """Return a console that takes no text for markup, and breaks no line that goes into a pipe."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that does not know a character is shown its number, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    if width is None and not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=200)
    return console


def waiting(for_what: str) -> AbstractContextManager[object]:
    """Show on a terminal, while a `with` statement lasts, that something is being done."""
    console = Console(stderr=True)
    return console.status(for_what) if console.is_terminal else nullcontext()


def shown(text: object) -> str:
    """Return a stranger's text as one line that can be printed anywhere."""
    return printable(text, spell_out=_BRACKETS)


def shown_lines(text: str) -> str:
    """Return a stranger's text in its own lines."""
    return printable(text, keep="\n", spell_out=_BRACKETS)


def shown_segments(segments: Sequence[Segment]) -> Text:
    """Return a text by its authors: in colours, and what is secret or a stranger's in brackets.

    Lines stay lines. The brackets cannot be forged: in a text they are spelled out.
    """
    whole = Text()
    for one in segments:
        marks = [*(["SECRET"] if one.secret else []), *([one.by] if one.untrusted else [])]
        style = "bold reverse red" if one.secret else _COLOURS.get(one.by, "")
        body = shown_lines(one.text)
        if marks:
            marks += [one.encoding] if one.encoding else []
            body = f"{_OPENS}{shown(' '.join(marks))}: {body}{_CLOSES}"
        whole.append(body, style=style)
    return whole


LEGEND: Final = (
    f"{_OPENS}web: ...{_CLOSES} is a stranger's text, {_OPENS}SECRET: ...{_CLOSES} a protected one"
)


def number(value: float | str | None) -> str:
    """Write a score or a count: whole numbers plainly, others with two digits, none as a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return shown(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
