"""`tiltyard scenario`: scenarios as directories of fixtures."""

from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.terminal import safe
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.world import generate as generator
from tiltyard.world.fixtures import load_scenario, write_scenario
from tiltyard.world.scenario import Scenario

MAX_DOCUMENTS: Final = 100_000
MAX_FILES: Final = 20_000

app = typer.Typer(
    help="Generate and inspect scenarios.", no_args_is_help=True, rich_markup_mode="markdown"
)


@app.command()
def generate(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The directory to write. It must be new or empty.")
    ],
    seed: Annotated[
        int, typer.Option(metavar="N", help="Each seed gives a different scenario.")
    ] = PUBLIC_SEED,
    pages: Annotated[
        int, typer.Option(metavar="N", help="How many web pages.", max=MAX_DOCUMENTS)
    ] = generator.DEFAULT_PAGES,
    mails: Annotated[
        int, typer.Option(metavar="N", help="How many mails.", max=MAX_DOCUMENTS)
    ] = generator.DEFAULT_MAILS,
    files: Annotated[
        int, typer.Option(metavar="N", help="How many files.", max=MAX_FILES)
    ] = generator.DEFAULT_FILES,
    overwrite: Annotated[bool, typer.Option(help="Replace a scenario in that directory.")] = False,
) -> None:
    """Generate a scenario from a seed and write it as a directory of fixtures.

    To play in such a directory, pass it to `tiltyard evaluate` or `tiltyard probe` as --scenario.

    Example: tiltyard scenario generate --seed 7 --pages 20000 --out my-world
    """
    with exit_on_error():
        try:
            scenario = generator.generate(seed, pages=pages, mails=mails, files=files)
        except ValueError as error:
            refuse(str(error))
        write_scenario(scenario, out, overwrite=overwrite)
    typer.echo(f"{safe(out)}: {_summary(scenario)}")


@app.command()
def show(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of fixtures.")],
) -> None:
    """Check a directory of fixtures and print what it contains.

    Example: tiltyard scenario show fixtures
    """
    with exit_on_error():
        scenario = load_scenario(directory)
    typer.echo(f"{safe(directory)}: {_summary(scenario)}")


def _summary(scenario: Scenario) -> str:
    mails = sum(map(len, scenario.folders.values()))
    live = sum(planted.live for planted in scenario.labels.planted)
    look_alikes = len(scenario.labels.planted) - live
    return (
        f"{len(scenario.pages)} pages, {mails} mails, {len(scenario.files)} files, "
        f"{len(scenario.labels.protected)} protected,\n"
        f"  {live} injections and {look_alikes} look-alikes, digest {scenario.digest[:16]}"
    )
