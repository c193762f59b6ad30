"""What a guest tells the judge about an exception of the submission.

This code runs beside the submission, which can change it. The judge checks every word.
"""

import traceback
from pathlib import Path

from tiltyard.contracts.decision import Fault
from tiltyard.isolation.wire.frames import (
    MAX_LINES,
    MAX_MESSAGE_CHARS,
    MAX_TRACEBACK_CHARS,
    Failed,
    FailedAt,
    FaultNote,
    SourceLine,
)


class ResultError(TypeError):
    """`AttackAlgorithm.run` returned something that is not a list of candidates."""


def failed(kind: FailedAt, error: BaseException, submission: Path) -> Failed:
    """Return the frame that reports an exception."""
    if isinstance(error, ResultError):
        return Failed("result", _sendable(str(error), MAX_MESSAGE_CHARS))
    name = type(error).__name__
    try:
        text, lines = f"{name}: {error}", source_lines(error, submission)
        printed = "".join(traceback.format_exception(error)).replace(f"{submission}/", "")
    except BaseException:  # noqa: BLE001 - even an exception's text is the author's code
        text, lines, printed = name, [], ""
    return Failed(
        kind,
        _sendable(text, MAX_MESSAGE_CHARS),
        _sendable(name, MAX_MESSAGE_CHARS),
        lines[-MAX_LINES:],
        _sendable(printed[-MAX_TRACEBACK_CHARS:], MAX_TRACEBACK_CHARS),
    )


def raised(error: BaseException, submission: Path) -> FaultNote:
    """Return the note that reports an exception in a guardrail."""
    name = type(error).__name__
    try:
        text, lines = f"{name}: {error}", source_lines(error, submission)
    except BaseException:  # noqa: BLE001 - even an exception's text is the author's code
        text, lines = name, []
    at = lines[-1] if lines else None
    return FaultNote(Fault.RAISED, _sendable(text, MAX_MESSAGE_CHARS), at)


def source_lines(error: BaseException, submission: Path) -> list[SourceLine]:
    """Return the lines of the submission in an exception's traceback, the innermost last."""
    places = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        places.append((str(error.filename), error.lineno or 0))
    root = f"{submission}/"
    return [
        SourceLine(_sendable(file.removeprefix(root), MAX_MESSAGE_CHARS), line)
        for file, line in places
        if file.startswith(root) and line
    ]


def _sendable(text: str, most: int) -> str:
    return text[:most].encode("utf-8", "replace").decode()
