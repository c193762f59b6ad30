"""`tiltyard key`: make an organizer's key."""

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.errors import refuse
from tiltyard.cli.terminal import safe
from tiltyard.runs.key import make_key


def run(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write. It must not exist.")
    ],
) -> None:
    """Make an organizer's key and write it to a file.

    With --key, `tiltyard evaluate` draws the official seeds of a competition from the key. Keep the
    file secret: a competitor who has the key knows the official seeds.

    Example: tiltyard key organizer.key
    """
    try:
        path.touch(0o600, exist_ok=False)
        path.write_text(make_key(), encoding="ascii")
    except FileExistsError:
        refuse(f"{path} already exists; choose another file name, so that no key is lost")
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}")
    typer.echo(f"written: {safe(path)}")
