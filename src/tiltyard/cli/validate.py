"""`tiltyard validate`: what would be refused, before a match is played."""

from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.text import Text

from tiltyard.cli.problems import in_one_sentence
from tiltyard.cli.screen import UnsafeOption, open_console, shown, waiting
from tiltyard.contracts.tracks import Part
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.studies.validation import Validation, validate


class Side(StrEnum):
    """A track, or as an alias the part of a submission that plays in it."""

    OFFENSE = "offense"
    DEFENSE = "defense"
    ATTACK = "attack"
    GUARDRAIL = "guardrail"

    @property
    def part(self) -> Part:
        return "attack" if self in (Side.OFFENSE, Side.ATTACK) else "guardrail"


def run(
    submission: Annotated[Path, typer.Argument(help="A directory, a .zip or a .py file.")],
    *,
    track: Annotated[
        Side | None,
        typer.Option(help="Look at this track alone, and miss it if it is not there."),
    ] = None,
    unsafe: UnsafeOption = False,
) -> None:
    """Say in seconds what of a submission would be refused, with file and line.

    It is opened as a match opens it, its classes are made in the jail, the guardrail decides about
    a few calls and the attack runs for a few steps. Ends with 0 when nothing would be refused, with
    1 when something would, and with 3 when there is no jail here to try it in.

    Example: tiltyard validate my-submission

    Example: tiltyard validate attack.py --track offense
    """
    parts = () if track is None else (track.part,)
    with (
        in_one_sentence(),
        waiting("trying it out in the jail"),
        TemporaryDirectory(prefix="tiltyard-validate-") as scratch,
    ):
        into = Path(scratch) / "submission"
        done = validate(submission, into, load_ruleset(), parts=parts, unsafe=unsafe)
    _show(done)
    if done.problems:
        raise typer.Exit(1)


def _show(done: Validation) -> None:
    console = open_console()
    for passed in done.passed:
        console.print(Text.assemble(("ok       ", "green"), shown(passed)))
    for note in done.notes:
        console.print(Text.assemble(("note     ", "yellow"), shown(note)))
    for problem in done.problems:
        console.print(Text.assemble(("refused  ", "bold red"), shown(problem)))
    if not done.problems:
        console.print("Nothing would be refused.")
