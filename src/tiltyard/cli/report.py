"""`tiltyard report`: write a run's HTML page again."""

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import DEFAULT_STORE, RUN_ARGUMENT, StoreOption
from tiltyard.cli.terminal import safe
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.schema import json_schema
from tiltyard.runs.store import PAGE, Store, find_report, load_report


def run(
    *,
    wanted: Annotated[str, RUN_ARGUMENT] = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to this file instead of the run's report.html."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of reports and exit.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write a run's HTML page again from its report.json, and print the page's path.

    Without RUN, write the page of the newest run.

    Example: tiltyard report --open

    Example: tiltyard report 36c0 --out page.html --open

    Example: tiltyard report --schema
    """
    if schema:
        typer.echo(json.dumps(json_schema(), indent=1))
        return
    # Imported here, because the page's plots are slow to import and no other command needs them.
    from tiltyard.reporting.report_page import render  # noqa: PLC0415

    with exit_on_error():
        path = find_report(wanted, Store(store)) if wanted else Store(store).newest(1)[0]
        page = render(load_report(path))
    target = path.with_name(PAGE) if out is None else out
    try:
        write_whole(target, page.encode())
    except OSError as error:
        refuse(f"cannot write {target}: {error.strerror}. Name another file with --out.")
    typer.echo(safe(target))
    if show and not webbrowser.open(target.resolve().as_uri()):
        refuse("no browser found: set BROWSER, or open the page yourself")
