"""`tiltyard verify` and `tiltyard replay-match`: play a run again and compare the results."""

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.errors import MATCH_FAILED, exit_on_error, refuse
from tiltyard.cli.options import (
    DEFAULT_STORE,
    KeyOption,
    RunArgument,
    ScenarioOption,
    SealedOption,
    StoreOption,
    UnsafeOption,
    read_worlds,
)
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.terminal import safe
from tiltyard.runs.job import Worlds
from tiltyard.runs.store import Store, find_report, has_record
from tiltyard.runs.verify import Trust, Verified, verify


def verify_run(
    run: RunArgument,
    *,
    scenario: ScenarioOption = None,
    key: KeyOption = None,
    sealed: SealedOption = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Your own agent package.module:Class, if the run has it. It runs outside the "
            "sandbox.",
        ),
    ] = "",
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Play a run again, and compare every number of its report.

    The command reads the submission and the settings from the run's directory. It plays a match
    with a language model from the record of its exchanges, without asking the model.

    Exit codes:

    - 0: the results are the same.
    - 1: the results differ.
    - 2: the command is wrong, or the run cannot be played again.
    - 3: this machine has no sandbox.

    Example: tiltyard verify .tiltyard/runs/36c0aed0a5fd25e4
    """
    with exit_on_error():
        path = find_report(run, Store(store))
        worlds = read_worlds(scenario, key, sealed)
        _print_result(_play_again(path, store, worlds, Trust(unsafe, agent)))


def replay_match(
    run: RunArgument,
    *,
    scenario: ScenarioOption = None,
    key: KeyOption = None,
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Play a match with a language model again, without the model.

    The command takes the model's answers from the record in the run's directory. It needs no server
    and no network. For a run with another agent, use `tiltyard verify`.

    Exit codes:

    - 0: the results are the same.
    - 1: the results differ.
    - 2: the command is wrong, or the run has no record.
    - 3: this machine has no sandbox.

    Example: tiltyard replay-match .tiltyard/runs/36c0aed0a5fd25e4
    """
    with exit_on_error():
        path = find_report(run, Store(store))
        if not has_record(path):
            refuse(
                f"{path.parent} has no record of a model's answers; use `tiltyard verify` for a "
                "run with another agent"
            )
        _print_result(_play_again(path, store, read_worlds(scenario, key), Trust(unsafe)))


def _play_again(path: Path, store: Path, worlds: Worlds, trust: Trust) -> Verified:
    with ProgressBars() as bars:
        return verify(path, Store(store), worlds=worlds, trust=trust, progress=bars)


def _print_result(verified: Verified) -> None:
    if verified.same:
        typer.echo(f"the same: {verified.found}")
        return
    typer.echo(f"different: the report says {safe(verified.expected)}", err=True)
    typer.echo(f"           played again    {verified.found}", err=True)
    for name in verified.different:
        typer.echo(f"           {name} differs", err=True)
    for failure in verified.failures:
        typer.echo(f"           {safe(failure)}", err=True)
    raise typer.Exit(MATCH_FAILED)
