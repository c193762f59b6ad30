"""`tiltyard validate`: check a submission before a match."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import SubmissionArgument, UnsafeOption, complete_track, parse_track
from tiltyard.cli.tables import Labelled
from tiltyard.cli.terminal import open_console, safe, spinner
from tiltyard.contracts.tracks import PART_OF
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.studies.validation import Validation, validate


def run(
    submission: SubmissionArgument,
    *,
    track: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_track,
            metavar="offense|defense",
            help="Check this track only, and fail if the submission does not have it.",
        ),
    ] = None,
    unsafe: UnsafeOption = False,
) -> None:
    """Check in seconds whether a match would accept a submission.

    The command opens the submission as a match does and creates its classes in the sandbox. The
    guardrail decides about a few calls, and the attack runs for a few steps. Every problem is
    printed with its file and line. Nothing is written.

    Exit codes:

    - 0: a match accepts the submission.
    - 1: a match refuses it.
    - 3: this machine has no sandbox.

    Example: tiltyard validate my-submission

    Example: tiltyard validate attack.py --track offense
    """
    parts = () if track is None else (PART_OF[parse_track(track)],)
    with (
        exit_on_error(),
        spinner("checking the submission in the sandbox"),
        TemporaryDirectory(prefix="tiltyard-validate-") as scratch,
    ):
        into = Path(scratch) / "submission"
        done = validate(submission, into, load_ruleset(), parts=parts, unsafe=unsafe)
    _print_result(done)
    if done.problems:
        raise typer.Exit(1)


def _print_result(done: Validation) -> None:
    console = open_console()
    for passed in done.passed:
        _print_labelled(console, Text("ok", "green"), passed)
    for note in done.notes:
        _print_labelled(console, Text("note", "yellow"), note)
    for problem in done.problems:
        _print_labelled(console, Text("refused", "bold red"), str(problem))
    if not done.problems:
        console.print("A match accepts this submission.")


def _print_labelled(console: Console, label: Text, text: str) -> None:
    label.pad_right(len("refused  ") - len(label))
    console.print(Labelled(label, Text(safe(text))))
