"""The command line: parse, call, print."""

from typing import Annotated

import typer

from tiltyard import __version__
from tiltyard.cli import (
    calibrate,
    compare,
    demo,
    doctor,
    evaluate,
    history,
    init,
    leaderboard,
    monitor,
    probe,
    replay,
    report,
    scenario,
    tournament,
    validate,
)

app = typer.Typer(
    name="tiltyard",
    help="The arena for AI-agent security.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.run)
app.command("init")(init.run)
app.command("validate")(validate.run)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.run)
app.command("replay")(replay.run)
app.command("history")(history.run)
app.command("compare")(compare.run)
app.command("verify")(evaluate.verify_report)
app.command("replay-match")(evaluate.replay_match)
app.command("key")(evaluate.make_key_file)
app.command("calibrate")(calibrate.run)
app.command("doctor")(doctor.run)
app.command("leaderboard")(leaderboard.run)
app.command("monitor")(monitor.run)
app.command("probe")(probe.run)
app.command("tournament")(tournament.run)
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
    """Play attacks and guardrails against each other, on a simulated machine.

    `tiltyard --install-completion` teaches your shell to complete commands and run ids.
    """
    del version


def main() -> None:
    app()
