"""`tiltyard init`: a submission to start from."""

import shlex
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.problems import WRONG_USE, refuse
from tiltyard.cli.screen import shown
from tiltyard.contracts.tracks import PARTS


class Starter(StrEnum):
    ATTACK = "attack"
    GUARDRAIL = "guardrail"
    BOTH = "both"

    @property
    def files(self) -> tuple[str, ...]:
        parts = PARTS if self is Starter.BOTH else (self.value,)
        return tuple(f"{part}.py" for part in parts)


def run(
    directory: Annotated[Path, typer.Argument(help="Where to put it; made if need be.")] = Path(),
    *,
    track: Annotated[Starter, typer.Option(help="What to start with.")] = Starter.BOTH,
) -> None:
    """Write a working starter: an attack, a guardrail, or both.

    Nothing that is there is overwritten.

    Example: tiltyard init my-submission --track guardrail
    """
    for name in track.files:
        if (directory / name).exists() or (directory / name).is_symlink():
            there = f"{directory / name} is there already"
            refuse(f"{there}; name another directory, or move it away", WRONG_USE)
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in track.files:
            source = resources.files("tiltyard.submissions.starters").joinpath(name).read_bytes()
            # "x": whoever made the file meanwhile keeps it.
            with (directory / name).open("xb") as file:
                file.write(source)
            written.append(directory / name)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        refuse(f"{directory} cannot be written to: {error.strerror}", WRONG_USE)
    for path in written:
        typer.echo(f"written: {shown(path)}")
    place = shown(shlex.quote(str(directory)))
    typer.echo(
        "\nNext, change it and see what it does:\n"
        f"  tiltyard validate {place}                 what would be refused, in seconds\n"
        f"  tiltyard evaluate {place} --budget quick  both matches, in under a minute"
    )
