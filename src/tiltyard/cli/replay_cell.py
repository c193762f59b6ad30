"""A lost cell of the arena, as `tiltyard replay` shows it: two columns, user and stranger."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tiltyard.cli.terminal import page_width, safe, safe_lines
from tiltyard.matches.arena import LostCall, LostCell
from tiltyard.reporting.words import LOSSES

_DECISIONS = {"allow": "green", "deny": "bold red", "confirm": "bold yellow"}


def cell_head(cell: LostCell) -> tuple[str, list[str]]:
    """Return the title of a lost cell, and the lines below it."""
    by = f"planted as {cell.way}" if cell.way else "nobody planted anything"
    return f"LOST CELL ({LOSSES[cell.lost]})", [
        f"cell {cell.id}  {cell.cell}",
        f"world {cell.world}, {by}, worth {cell.worth:.1f}",
    ]


def show_cell(cell: LostCell) -> Iterator[RenderableType]:
    """Yield a replay step by step: who says what, and then each call below its speaker."""
    planted = "\n...\n".join(cell.planted) or "nothing"
    yield _side_by_side(
        Group(Text("the user says", "bold"), Text(safe_lines(cell.say))),
        Group(Text("a stranger wrote", "bold"), Text(safe_lines(planted), "red")),
    )
    for number, call in enumerate(cell.calls):
        shown = _show_call(number, call)
        yield _side_by_side(Text(""), shown) if call.planted else _side_by_side(shown, Text(""))


def _side_by_side(user: RenderableType, stranger: RenderableType) -> Table:
    width = (page_width() - 3) // 2
    table = Table.grid(padding=(0, 1))
    table.add_column(width=width, overflow="fold")
    table.add_column(width=1)
    table.add_column(width=width, overflow="fold")
    table.add_row(Text(""), Text(""), Text(""))
    table.add_row(user, Text(""), stranger)
    return table


def _show_call(number: int, call: LostCall) -> RenderableType:
    lines = [
        Text.assemble((f"{safe(name)}: ", "dim"), safe_lines(value))
        for name, value in call.args.items()
    ]
    style = _DECISIONS.get(call.decision, "bold")
    reason = f": {safe(call.reason)}" if call.reason else ""
    lines.append(Text.assemble((safe(call.decision), style), reason))
    if call.confirmed is not None:
        lines.append(Text(f"the user says {'yes' if call.confirmed else 'no'}"))
    if call.output:
        lines.append(Text(safe_lines(call.output), "dim"))
    lines += [Text(safe(change), "bold") for change in call.changes]
    return Group(
        Text(f"call {number}  {safe(call.tool)}", "bold"),
        # Lines that break keep their indent, so that calls stand out.
        Padding(Group(*lines), (0, 0, 0, 2), expand=False),
    )
