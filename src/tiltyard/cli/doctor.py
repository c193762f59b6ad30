"""`tiltyard doctor`: test which sandbox this machine offers."""

from typing import Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.cli.options import JsonOption
from tiltyard.cli.terminal import open_console, print_json
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import Machine, probe

_MEANING: Final = {
    Level.A: "namespaces and the self-jail work; results are comparable",
    Level.B: "only the self-jail works; submissions run, but results are not comparable",
    Level.C: "no sandbox; submissions are refused",
}


def run(*, as_json: JsonOption = False) -> None:
    """Test which sandbox this machine offers, and print how to get what is missing.

    Results are comparable at isolation level A only. docs/isolation.md describes each layer.

    Exit codes:

    - 0: the machine reaches level A.
    - 1: it does not.

    Example: tiltyard doctor
    """
    machine = probe()
    if as_json:
        print_json(machine)
    else:
        _print_layers(open_console(), machine)
    if machine.level is not Level.A:
        raise typer.Exit(1)


def _print_layers(console: Console, machine: Machine) -> None:
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
