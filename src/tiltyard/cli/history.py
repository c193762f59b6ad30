"""`tiltyard history`: the finished runs."""

from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from tiltyard.cli.screen import DEFAULT_STORE, StoreOption, number, open_console, shown
from tiltyard.reporting.schema import Report, summary
from tiltyard.runs.store import Store


def run(
    *,
    store: StoreOption = DEFAULT_STORE,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of summaries as JSON.")
    ] = False,
) -> None:
    """List the finished runs, the newest first.

    Run ids can be shortened wherever a run is wanted, as long as they stay unique.

    Example: tiltyard history
    """
    reports = [report for _, report in Store(store).all()]
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode([*map(summary, reports)])).decode())
        return
    console = open_console()
    if not reports:
        console.print(
            f"No finished runs in {shown(store)}. Make one: tiltyard evaluate SUBMISSION, or name "
            "another with --store"
        )
        return
    table = Table(box=None, pad_edge=False)
    for name in ("run", "submission"):
        table.add_column(name, no_wrap=name == "run")
    for name in ("final", "offense", "defense"):
        table.add_column(name, justify="right")
    for name in ("comparable", "ruleset", "budget"):
        table.add_column(name)
    for report in reports:
        table.add_row(*map(Text, _row(report)))
    console.print(table)


def _row(report: Report) -> list[str]:
    parts = [None if part is None else part.score for part in (report.offense, report.defense)]
    budget = (
        f"{report.setting.budget}, official seeds"
        if report.setting.key
        else (report.setting.budget)
    )
    return [
        shown(report.run_id),
        shown(report.submission.name),
        number(report.final_score),
        *map(number, parts),
        "yes" if report.comparable else "no",
        shown(report.ruleset),
        shown(budget),
    ]
