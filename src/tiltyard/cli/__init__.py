"""The command line: parse options, call a room, print the result."""

import sys

from tiltyard import __version__


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"tiltyard {__version__}\n")
        return
    if sys.argv[1:2] == ["guard"] and "--help" not in sys.argv:
        start_guard()
        return
    # Imported here, because the commands import every room, which takes a second.
    from tiltyard.cli.app import app  # noqa: PLC0415

    app()


def start_guard() -> None:
    """Run `tiltyard guard` without the other commands, which take a second to import."""
    from tiltyard.cli import guard_start  # noqa: PLC0415 - not needed to print the version

    given = guard_start.read_words(sys.argv[2:])
    if given is None:
        _read_with_typer()
        return
    from tiltyard.bridges.guard.run import run_and_exit  # noqa: PLC0415 - as above

    try:
        options = guard_start.settings_of(given)
    except guard_start.WrongUseError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(guard_start.WRONG_USE)
    run_and_exit(options)


def _read_with_typer() -> None:
    import typer  # noqa: PLC0415 - takes longer than the guard needs to start

    from tiltyard.cli import guard  # noqa: PLC0415 - as above

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command("guard")(guard.run)
    app(sys.argv[2:], prog_name="tiltyard guard")
