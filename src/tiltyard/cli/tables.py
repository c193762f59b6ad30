"""Tables and lines for a terminal. Every text in them may be hostile."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from tiltyard.cli.terminal import safe

_COLUMN_FRAME = 3
"""Characters that a column adds to its text: a border and two blanks."""


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
) -> None:
    """Print a table. The first column and those in `left` are left-aligned.

    If the terminal is too narrow, columns in `optional` are left out, the first one first.
    """
    cells = [[one if isinstance(one, Text) else Text(safe(one)) for one in row] for row in rows]
    shown = choose_columns(console.width, head, cells, optional)
    table = Table(title=Text(safe(title)), title_justify="left")
    for at in shown:
        justify: JustifyMethod = "left" if at == 0 or head[at] in left else "right"
        table.add_column(Text(safe(head[at])), justify=justify, overflow="fold")
    for row in cells:
        table.add_row(*(row[at] for at in shown))
    console.print(table)
    missing = [name for at, name in enumerate(head) if at not in shown]
    if missing:
        print_line(console, f"Left out, because the terminal is narrow: {', '.join(missing)}.")


def choose_columns(
    width: int,
    head: Sequence[str],
    rows: Sequence[Sequence[Text]],
    optional: Sequence[str],
    frame: int = _COLUMN_FRAME,
) -> list[int]:
    """Return the columns to show, without those in `optional` that do not fit `width`."""
    widths = [
        frame + max(cell_len(name), *(row[at].cell_len for row in rows), 0)
        for at, name in enumerate(head)
    ]
    shown = [*range(len(head))]
    for name in optional:
        if 1 + sum(widths[at] for at in shown) <= width:
            break
        shown.remove([*head].index(name))
    return shown
