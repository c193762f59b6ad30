"""`tiltyard key`: make an organizer's key."""

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.terminal import safe
from tiltyard.runs.key import make_key, read_key


def run(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write. Without --show, it must not exist."
        ),
    ],
    *,
    show: Annotated[
        bool, typer.Option("--show", help="Print the commitment of an existing key.")
    ] = False,
) -> None:
    """Make an organizer's key, write it to a file, and print its commitment.

    With --key, `tiltyard evaluate` draws the official seeds of a competition from the key. Keep the
    file secret: a competitor who has the key knows the official seeds.

    The commitment is a hash of the key and reveals nothing about it. Publish the commitment before
    the first match and the key after the last one: `tiltyard key FILE --show` then shows everybody
    that you did not exchange the key. Reports and leaderboards name a key by the first 16 digits of
    its commitment.

    Example: tiltyard key organizer.key
    """
    if not show:
        _write(path)
        typer.echo(f"written: {safe(path)}")
    with exit_on_error():
        typer.echo(f"commitment: {read_key(path).commitment}")


def _write(path: Path) -> None:
    try:
        path.touch(0o600, exist_ok=False)
        path.write_text(make_key(), encoding="ascii")
    except FileExistsError:
        refuse(f"{path} already exists; choose another file name, so that no key is lost")
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}")
