"""`tiltyard scenario`: worlds as directories."""

from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.world import generate as generator
from tiltyard.world.fixtures import FixturesError, load_scenario, write_scenario
from tiltyard.world.scenario import Scenario

MAX_DOCUMENTS: Final = 100_000
MAX_FILES: Final = 20_000

app = typer.Typer(help="Generate and inspect scenarios.", no_args_is_help=True)


@app.command()
def generate(
    *,
    out: Annotated[Path, typer.Option(help="The directory to write, new or empty.")],
    seed: Annotated[int, typer.Option(help="Another seed is another world.")] = 123,
    pages: Annotated[
        int, typer.Option(help="How many web pages.", max=MAX_DOCUMENTS)
    ] = generator.DEFAULT_PAGES,
    mails: Annotated[
        int, typer.Option(help="How many messages.", max=MAX_DOCUMENTS)
    ] = generator.DEFAULT_MAILS,
    files: Annotated[
        int, typer.Option(help="How many files.", max=MAX_FILES)
    ] = generator.DEFAULT_FILES,
    overwrite: Annotated[bool, typer.Option(help="Replace a scenario that is there.")] = False,
) -> None:
    """Write a whole world in the fixtures layout.

    Example: tiltyard scenario generate --seed 7 --pages 20000 --out my-world
    """
    try:
        scenario = generator.generate(seed, pages=pages, mails=mails, files=files)
        write_scenario(scenario, out, overwrite=overwrite)
    except (FixturesError, ValueError) as error:
        typer.echo(f"tiltyard: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{out}: {_summary(scenario)}")


@app.command()
def show(
    directory: Annotated[Path, typer.Argument(help="A directory in the fixtures layout.")],
) -> None:
    """Check a fixtures directory and say what is in it.

    Example: tiltyard scenario show fixtures
    """
    try:
        scenario = load_scenario(directory)
    except FixturesError as error:
        typer.echo(f"tiltyard: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{directory}: {_summary(scenario)}")


def _summary(scenario: Scenario) -> str:
    mails = sum(map(len, scenario.folders.values()))
    live = sum(planted.live for planted in scenario.labels.planted)
    return (
        f"{len(scenario.pages)} pages, {mails} mails, {len(scenario.files)} files, "
        f"{len(scenario.labels.protected)} protected, {live} injections and "
        f"{len(scenario.labels.planted) - live} look-alikes, digest {scenario.digest[:16]}"
    )
