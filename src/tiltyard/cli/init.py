"""`tiltyard init`: write a submission to start from."""

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import complete_track, parse_track
from tiltyard.cli.terminal import safe
from tiltyard.contracts.tracks import PART_OF, PARTS, Part
from tiltyard.submissions.starter import write_starter

_BOTH: Final = "both"


def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write. Created if it does not exist.")
    ] = Path(),
    *,
    track: Annotated[
        str,
        typer.Option(
            autocompletion=lambda: [*complete_track(), _BOTH],
            metavar="offense|defense|both",
            help="Write attack.py for offense, guardrail.py for defense, or both files.",
        ),
    ] = _BOTH,
) -> None:
    """Write a working submission to start from: an attack, a guardrail, or both.

    The command never overwrites a file.

    Example: tiltyard init my-submission

    Example: tiltyard init my-guardrail --track defense
    """
    with exit_on_error():
        parts = _parts(track)
        written = write_starter(directory, parts)
    for path in written:
        typer.echo(f"written: {safe(path)}")
    place = safe(shlex.quote(str(directory)))
    typer.echo(
        "\nNext, change the code and see what it does:\n"
        f"  tiltyard validate {place}\n"
        "      checks in seconds whether a match accepts it\n"
        f"  tiltyard evaluate {place} --budget quick\n"
        "      plays its matches in under a minute"
    )
    if PART_OF["defense"] in parts:
        typer.echo(
            f"  tiltyard evaluate {place} --budget quick --ruleset arena\n"
            "      plays the guardrail on tools that it has never seen"
        )


def _parts(track: str) -> tuple[Part, ...]:
    if track.lower() == _BOTH:
        return PARTS
    try:
        return (PART_OF[parse_track(track)],)
    except typer.BadParameter:
        raise typer.BadParameter(
            f"unknown track {track!r}; expected offense, defense or both", param_hint="--track"
        ) from None
