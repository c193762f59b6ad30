"""The command line: parse, call, print."""

import typer

from tiltyard.cli import demo, scenario

app = typer.Typer(
    name="tiltyard",
    help="The arena for AI-agent security.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.run)
app.add_typer(scenario.app, name="scenario")


def main() -> None:
    app()
