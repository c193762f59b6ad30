"""`tiltyard report`: a run's page, written again."""

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.problems import WRONG_USE, in_one_sentence, refuse
from tiltyard.cli.screen import (
    DEFAULT_STORE,
    RunArgument,
    StoreOption,
    shown,
)
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.schema import json_schema
from tiltyard.runs.store import PAGE, Store, find_report, load_report


def run(
    *,
    wanted: Annotated[str, RunArgument.__metadata__[0]] = "",
    out: Annotated[
        Path | None, typer.Option(help="The file to write, instead of the run's own.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of reports, and nothing else.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write a run's HTML page again from its report.

    Example: tiltyard report 36c0 --out page.html --open

    Example: tiltyard report --schema
    """
    if schema:
        typer.echo(json.dumps(json_schema(), indent=1))
        return
    if not wanted:
        refuse("name a run, as `tiltyard history` lists them, or ask for --schema", WRONG_USE)
    # Only here: the page brings its plots along, and no other command needs them.
    from tiltyard.reporting.html import render  # noqa: PLC0415

    with in_one_sentence():
        path = find_report(wanted, Store(store))
        page = render(load_report(path))
    target = path.with_name(PAGE) if out is None else out
    try:
        write_whole(target, page.encode())
    except OSError as error:
        why = f"{target} cannot be written: {error.strerror}"
        refuse(f"{why}. Name another file with --out.", WRONG_USE)
    typer.echo(shown(target))
    if show and not webbrowser.open(target.resolve().as_uri()):
        refuse("there is no browser to open it with: set BROWSER, or open it yourself", WRONG_USE)
