"""`tiltyard export` and `tiltyard import`: take a competition from one server to another."""

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.serve import DIRECTORY, DatabaseOption, DirectoryOption, enter_service
from tiltyard.cli.terminal import safe


def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The competition, as in /c/NAME.")],
    into: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")],
    *,
    database: DatabaseOption = "",
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Write a whole competition of a server to files.

    `tiltyard leaderboard DIR` ranks its runs, and `tiltyard verify DIR/runs/RUN --key
    DIR/board.key` plays one again. The directory has the keys in it: keep it secret until they are
    published. It needs the extra `server`.

    Example: tiltyard export spring spring-2026
    """
    with exit_on_error():
        enter_service(database, directory, "")
        from django.db import connection  # noqa: PLC0415 - an extra

        from tiltyard.service.errors import ServiceError  # noqa: PLC0415 - an extra
        from tiltyard.service.models import Competition  # noqa: PLC0415 - an extra
        from tiltyard.service.transfer import export_competition  # noqa: PLC0415 - an extra

        if "service_competition" not in connection.introspection.table_names():
            refuse("this database has no competition yet; `tiltyard serve` makes its tables")
        found = Competition.objects.filter(slug=name).first()
        if found is None:
            known = ", ".join(Competition.objects.values_list("slug", flat=True)[:20])
            refuse(f"there is no competition {safe(name)}; there is {safe(known) or 'none'}")
        try:
            count = export_competition(found, into)
        except ServiceError as error:
            refuse(str(error))
        typer.echo(f"Written: {into}, with {count} submissions")


def import_files(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of an export.")],
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Another name for it than the one it had.")
    ] = "",
    database: DatabaseOption = "",
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Read a competition from the files of `tiltyard export` into a server's database.

    Submissions without a result are played again. Members get new accounts, without a password. It
    needs the extra `server`.

    Example: tiltyard import spring-2026 --name spring-again
    """
    with exit_on_error():
        enter_service(database, directory, "")
        from tiltyard.service.errors import ServiceError  # noqa: PLC0415 - an extra
        from tiltyard.service.prepare import migrate  # noqa: PLC0415 - an extra
        from tiltyard.service.transfer import import_competition  # noqa: PLC0415 - an extra

        migrate()
        try:
            made = import_competition(source, name)
        except ServiceError as error:
            refuse(str(error))
        typer.echo(f"Imported: {safe(made.title)}, at /c/{made.slug}")
