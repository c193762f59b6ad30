"""Tables of strangers' words and of numbers, for a terminal and for Markdown."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.cli.screen import shown

_MARKDOWN = frozenset("\\`*_{}[]<>#|~&$")


def escaped(words: str) -> str:
    """Return a stranger's words so that Markdown takes them as they are."""
    return "".join(f"\\{char}" if char in _MARKDOWN else char for char in shown(words))


def say(console: Console, sentence: str) -> None:
    console.print(Text(shown(sentence)), soft_wrap=True)


def print_table(
    console: Console,
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    words: Sequence[str] = (),
) -> None:
    """Print a table of numbers; the first column is words, and so are those that are named."""
    table = Table(title=Text(shown(title)), title_justify="left")
    for at, name in enumerate(head):
        is_words = at == 0 or name in words
        table.add_column(
            Text(shown(name)), justify="left" if is_words else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(shown(cell)) for cell in row))
    console.print(table)
