"""`tiltyard serve`: run a competition server. `tiltyard worker`: play its submissions."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.cli.errors import NO_SANDBOX, exit_on_error, refuse
from tiltyard.cli.terminal import safe

DIRECTORY: Final = Path(".tiltyard/server")
_SEASON: Final = Path("docs/season")
_NEEDS: Final = "the competition server needs the extra `server`: pip install 'tiltyard[server]'"
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        help="postgresql://HOST/NAME, also with a user, a password and a port, or sqlite:///FILE. "
        "Without it, an SQLite file in the directory.",
    ),
]
DirectoryOption = Annotated[
    Path,
    typer.Option("--directory", metavar="DIR", help="Where this process keeps its files."),
]


def run(
    *,
    database: DatabaseOption = "",
    directory: DirectoryOption = DIRECTORY,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Listen here.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65_535, help="Listen on this port.")
    ] = 8080,
    origin: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The address that browsers use, such as https://arena.example. With https, "
            "cookies and redirects are made for a proxy that ends TLS.",
        ),
    ] = "",
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Play submissions on this machine, too.")
    ] = True,
    demo: Annotated[
        bool, typer.Option("--demo", help="Load the season of docs/season as a competition.")
    ] = False,
) -> None:
    """Run a competition server. It needs the extra `server`.

    Without options the server keeps everything in an SQLite file, serves this machine only, and
    plays the submissions itself. The first start makes an organizer's account and prints how to
    log in. A start after an upgrade brings the tables to the new version.

    For many teams, use PostgreSQL, and start `tiltyard worker` on as many machines as you like.

    Example: tiltyard serve --demo

    Example: tiltyard serve --database postgresql://tiltyard@db/tiltyard --no-worker
    """
    with exit_on_error("stopped"):
        _check_port(host, port)
        url = enter_service(database, directory, origin or f"http://{host}:{port}")
        from tiltyard.service.prepare import first_organizer, migrate  # noqa: PLC0415 - an extra
        from tiltyard.service.serve import serve, worker_beside  # noqa: PLC0415 - an extra

        migrate()
        if demo:
            _load_demo()
        shown = origin or f"http://{host}:{port}"
        typer.echo(f"Tiltyard serves {shown}")
        made = first_organizer()
        if made is not None:
            typer.echo(f"Log in at {shown}/login as {made[0]} with the password {made[1]}")
            typer.echo("This password is shown once.")
        with ExitStack() as stack:
            if worker:
                command = ["worker", "--database", url, "--directory", str(directory)]
                stack.enter_context(worker_beside(command))
            serve(host, port)


def work(
    *,
    database: DatabaseOption = "",
    directory: DirectoryOption = DIRECTORY,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What organizers call it. Default: the host's name.")
    ] = "",
    jobs: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Submissions at the same time. One uses all cores already."
        ),
    ] = 1,
) -> None:
    """Play the submissions of a competition server, until it is stopped.

    Workers share nothing but the database. If a worker dies, another one takes over its submission
    within 30 seconds. It needs the extra `server`.

    Exit codes:

    - 0: the worker was stopped.
    - 2: the database cannot be used.
    - 3: this machine does not offer isolation level A.

    Example: tiltyard worker --database postgresql://tiltyard@db/tiltyard
    """
    with exit_on_error("stopped"):
        url = enter_service(database, directory, "")
        from tiltyard.service.engine.worker import (  # noqa: PLC0415 - an extra
            MachineError,
            Post,
            WorkerError,
            work,
        )

        try:
            work(Post(url, directory / "worker", name, jobs))
        except MachineError as error:
            refuse(str(error), NO_SANDBOX)
        except WorkerError as error:
            refuse(str(error))


def enter_service(database: str, directory: Path, origin: str) -> str:
    """Make Django ready, and return the address of the database."""
    from tiltyard.service.environment import (  # noqa: PLC0415 - only this command needs it
        DEFAULT_ORIGIN,
        SECRET,
        DatabaseUrlError,
        enter,
        keep_secret,
        sqlite_url,
    )

    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    url = database or sqlite_url(directory / "tiltyard.sqlite3")
    try:
        secret = os.environ.get(SECRET) or keep_secret(directory)
        enter(url, secret, origin or DEFAULT_ORIGIN)
    except DatabaseUrlError as error:
        refuse(str(error))
    except ImportError:
        refuse(_NEEDS)
    _check_database()
    return url


def _check_database() -> None:
    from django.db import OperationalError, connection  # noqa: PLC0415 - an extra

    try:
        connection.ensure_connection()
    except OperationalError as error:
        refuse(f"the database cannot be reached: {str(error).strip().splitlines()[0]}")
    connection.close()


def _check_port(host: str, port: int) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        refuse(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port")


def _load_demo() -> None:
    from tiltyard.service.demo import DemoError, load_season  # noqa: PLC0415 - an extra

    try:
        competition = load_season(_SEASON)
    except DemoError as error:
        refuse(str(error))
    typer.echo(f"Loaded: {safe(competition.title)}, at /c/{competition.slug}")
