"""The command line: parse, call, print."""

from typing import Annotated

import typer

from tiltyard import __version__
from tiltyard.cli import calibrate, demo, doctor, evaluate, scenario

app = typer.Typer(
    name="tiltyard",
    help="The arena for AI-agent security.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.run)
app.command("evaluate")(evaluate.evaluate)
app.command("verify")(evaluate.verify_report)
app.command("key")(evaluate.make_key_file)
app.command("calibrate")(calibrate.run)
app.command("doctor")(doctor.run)
app.add_typer(scenario.app, name="scenario")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it so
    if wanted:
        typer.echo(f"tiltyard {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Play attacks and guardrails against each other, on a simulated machine."""
    del version


def main() -> None:
    app()
