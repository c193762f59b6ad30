"""Validation: checks a submission in seconds, before a match is played.

It opens the submission as a match does, and makes the check that comes before a match. Nothing
here gives a score.
"""

from pathlib import Path

from msgspec import Struct

from tiltyard.contracts.tracks import CLASSES, TRACK_OF, Part
from tiltyard.matches.acceptance import PartCheck, Problem, check_part
from tiltyard.matches.opponents import guest_settings
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.submissions import Submission, SubmissionError, open_submission


class Validation(Struct, frozen=True):
    problems: tuple[Problem, ...]
    passed: tuple[str, ...] = ()
    """What works."""
    notes: tuple[str, ...] = ()
    """What is allowed, but probably not intended."""


def validate(
    path: Path,
    into: Path,
    ruleset: Ruleset,
    *,
    parts: tuple[Part, ...] = (),
    unsafe: bool = False,
) -> Validation:
    """Open a submission into the new directory `into`, and check `parts`, or all that it has."""
    try:
        submission = open_submission(path, into)
        for part in parts:
            submission.module(part)
    except SubmissionError as error:
        return Validation((Problem(str(error)),))
    guests = guest_settings(ruleset, unsafe=unsafe)
    checks: list[PartCheck] = []
    for part in CLASSES:
        if part in submission.rivals and not parts:
            checks.append(PartCheck((Problem(_rivals(submission, part)),)))
        elif part in (parts or submission.modules):
            checks.append(check_part(submission, part, ruleset, guests))
        elif not parts:
            note = f"There is no class {CLASSES[part]}: {TRACK_OF[part]} is not played."
            checks.append(PartCheck((), notes=(note,)))
    return Validation(
        tuple(problem for check in checks for problem in check.problems),
        tuple(passed for check in checks for passed in check.passed),
        tuple(note for check in checks for note in check.notes),
    )


def _rivals(submission: Submission, part: Part) -> str:
    try:
        submission.module(part)
    except SubmissionError as error:
        return str(error)
    raise AssertionError(part)
