"""All commands of `tiltyard`, and the options of `tiltyard` itself."""

from typing import Annotated, Final

import typer

from tiltyard import __version__
from tiltyard.cli import (
    calibrate,
    chat,
    compare,
    demo,
    doctor,
    dojo,
    evaluate,
    guard,
    history,
    init,
    key,
    leaderboard,
    monitor,
    pack,
    probe,
    replay,
    report,
    scenario,
    serve,
    shadow,
    submit,
    tools,
    tournament,
    transfer,
    validate,
    verify,
    world,
)

_START: Final = "Start here"
_RUNS: Final = "Look at runs"
_COMPETE: Final = "Run a competition"
_USE: Final = "Use guardrails with other agents"
_STUDY: Final = "Study agents, attacks and guardrails"

app = typer.Typer(
    name="tiltyard",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("demo", rich_help_panel=_START)(demo.run)
app.command("chat", rich_help_panel=_START)(chat.run)
app.command("init", rich_help_panel=_START)(init.run)
app.command("validate", rich_help_panel=_START)(validate.run)
app.command("evaluate", rich_help_panel=_START)(evaluate.run)
app.command("doctor", rich_help_panel=_START)(doctor.run)
app.command("history", rich_help_panel=_RUNS)(history.run)
app.command("report", rich_help_panel=_RUNS)(report.run)
app.command("replay", rich_help_panel=_RUNS)(replay.run)
app.command("compare", rich_help_panel=_RUNS)(compare.run)
app.command("verify", rich_help_panel=_RUNS)(verify.verify_run)
app.command("replay-match", rich_help_panel=_RUNS)(verify.replay_match)
app.command("guard", rich_help_panel=_USE)(guard.run)
app.command("key", rich_help_panel=_COMPETE)(key.run)
app.command("leaderboard", rich_help_panel=_COMPETE)(leaderboard.run)
app.command("monitor", rich_help_panel=_COMPETE)(monitor.run)
app.command("tournament", rich_help_panel=_COMPETE)(tournament.run)
app.command("submit", rich_help_panel=_COMPETE)(submit.run)
app.command("status", rich_help_panel=_COMPETE)(submit.status)
app.command("serve", rich_help_panel=_COMPETE)(serve.run)
app.command("worker", rich_help_panel=_COMPETE)(serve.work)
app.command("export", rich_help_panel=_COMPETE)(transfer.export)
app.command("import", rich_help_panel=_COMPETE)(transfer.import_files)
app.command("probe", rich_help_panel=_STUDY)(probe.run)
app.command("calibrate", rich_help_panel=_STUDY)(calibrate.run)
app.command("tools", rich_help_panel=_STUDY)(tools.run)
app.command("dojo", rich_help_panel=_STUDY)(dojo.run)
app.command("shadow", rich_help_panel=_STUDY)(shadow.run)
app.add_typer(pack.app, name="pack", rich_help_panel=_STUDY)
app.add_typer(world.app, name="world", rich_help_panel=_STUDY)
app.add_typer(scenario.app, name="scenario", rich_help_panel=_STUDY)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it so
    if wanted:
        typer.echo(f"tiltyard {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Play attacks and guardrails for AI agents against each other, on a simulated machine.

    For a first look, run `tiltyard demo`. To see the options of a command, add `--help` to it. To
    let your shell complete commands and run ids, run `tiltyard --install-completion` once.
    """
    del version
