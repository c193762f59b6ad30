"""Tables and lines for a terminal. Every text in them may be hostile."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from tiltyard.cli.terminal import safe

_COLUMN_FRAME = 3
"""Characters that a column adds to its text: a border and two blanks."""
_FOLDED = 18
"""The least width of a folded column with its frame, unless its texts are shorter."""


def print_line(console: Console, text: str) -> None:
    """Print hostile text as one line, which a terminal wraps at words."""
    console.print(Text(safe(text)))


class Labelled:
    """A text behind a label. A terminal indents the lines that it wraps; a pipe wraps none."""

    def __init__(self, label: Text, text: Text) -> None:
        self._label = label
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            yield Text.assemble(self._label, self._text)
            return
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(self._label, self._text)
        yield grid


def print_table(
    console: Console,
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    left: Sequence[str] = (),
    optional: Sequence[str] = (),
    folding: str = "",
    width: int | None = None,
) -> None:
    """Print a table. The first column and those in `left` are left-aligned.

    If `width` is too small, columns in `optional` are left out, the first one first. A table with
    a `folding` column breaks its titles between words, and long cells of that column anywhere.
    `width` is the console's by default.
    """
    width = console.width if width is None else width
    cells = [[one if isinstance(one, Text) else Text(safe(one)) for one in row] for row in rows]
    names = [Text("\n".join(safe(name).split()) if folding else safe(name)) for name in head]
    widths = measure_columns(names, cells)
    least = [min(one, _FOLDED) if head[at] == folding else one for at, one in enumerate(widths)]
    shown = choose_columns(width, head, least, optional)
    left_over = width - 1 - sum(least[at] for at in shown)
    table = Table(title=Text(safe(title)), title_justify="left")
    for at in shown:
        justify: JustifyMethod = "left" if at == 0 or head[at] in left else "right"
        most = least[at] + max(left_over, 0) - _COLUMN_FRAME if head[at] == folding else None
        table.add_column(names[at], justify=justify, overflow="fold", max_width=most)
    for row in cells:
        table.add_row(*(row[at] for at in shown))
    console.print(table, width=width)
    missing = [name for at, name in enumerate(head) if at not in shown]
    if missing:
        print_line(console, left_out(missing))


def left_out(columns: Sequence[str]) -> str:
    """Say which columns a narrow terminal leaves out."""
    return f"Left out, because the terminal is narrow: {', '.join(columns)}."


def measure_columns(
    names: Sequence[Text], rows: Sequence[Sequence[Text]], frame: int = _COLUMN_FRAME
) -> list[int]:
    """Return the width of each column with its frame."""
    return [
        frame + max((line.cell_len for text in column for line in text.split()), default=0)
        for column in zip(names, *rows, strict=True)
    ]


def choose_columns(
    width: int,
    head: Sequence[str],
    widths: Sequence[int],
    optional: Sequence[str],
) -> list[int]:
    """Return the columns to show, without those in `optional` that do not fit `width`."""
    shown = [*range(len(head))]
    for name in optional:
        if 1 + sum(widths[at] for at in shown) <= width:
            break
        shown.remove([*head].index(name))
    return shown
