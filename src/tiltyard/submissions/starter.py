"""Starter submissions: a working attack and a working guardrail to begin with."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from tiltyard.contracts.tracks import Part


class StarterError(ValueError):
    """A starter that cannot be written: why, and what to do."""


def write_starter(directory: Path, parts: Sequence[Part]) -> list[Path]:
    """Write `attack.py`, `guardrail.py` or both into `directory`, and return their paths.

    Files are never overwritten: if one exists, nothing is written.
    """
    paths = {part: directory / f"{part}.py" for part in parts}
    for path in paths.values():
        if path.exists() or path.is_symlink():
            raise StarterError(f"{path} already exists; choose another directory, or move it away")
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for part, path in paths.items():
            source = resources.files("tiltyard.submissions.starters").joinpath(f"{part}.py")
            # "x" fails if another process has created the file since the check above.
            with path.open("xb") as file:
                written.append(path)
                file.write(source.read_bytes())
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise StarterError(f"cannot write to {directory}: {error.strerror}") from None
    return written
