"""`tiltyard doctor`: which jail this machine has, and how to get a better one."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import Machine, probe

_MEANING = {
    Level.A: "namespaces and the self-jail: results are comparable",
    Level.B: "the self-jail alone: submissions run, results are not comparable",
    Level.C: "no jail: submissions are refused",
}


def run(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Try out which jail this machine gives a submission, and say how to get what is missing.

    Ends with 0 at level A, the only one whose results are comparable, and with 1 otherwise.

    Example: tiltyard doctor
    """
    machine = probe()
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(machine)).decode())
    else:
        _show(Console(highlight=False), machine)
    if machine.level is not Level.A:
        raise typer.Exit(1)


def _show(console: Console, machine: Machine) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for layer in machine.layers:
        sign = Text("yes", "green") if layer.works else Text("no", "bold red")
        table.add_row(sign, Text(layer.name), Text(layer.detail))
    console.print(table)
    style = "bold green" if machine.level is Level.A else "bold red"
    console.print(Text(f"\nLevel {machine.level}: {_MEANING[machine.level]}.", style))
    for layer in machine.missing:
        if layer.remedy:
            console.print(Text(f"To get {layer.name}: {layer.remedy}."))
