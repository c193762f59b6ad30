"""`tiltyard submit` and `tiltyard status`: compete on a server."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import JsonOption, SubmissionArgument
from tiltyard.cli.terminal import print_json, safe
from tiltyard.reporting.numbers import figure
from tiltyard.service.client import Client, ServerError
from tiltyard.service.wire import QuotaView, SubmissionView
from tiltyard.submissions import open_submission
from tiltyard.submissions.packing import pack

_POLL_SECONDS: Final = 2.0
_OPEN: Final = ("queued", "running")
ServerOption = Annotated[
    str,
    typer.Option("--server", metavar="URL", envvar="TILTYARD_SERVER", help="The server's address."),
]
TokenOption = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="TILTYARD_TOKEN",
        help="A token of your page on the server. Prefer the variable: others see your options.",
    ),
]
CompetitionOption = Annotated[
    str,
    typer.Option("--competition", metavar="NAME", help="Not needed if the server has one only."),
]


def run(
    submission: SubmissionArgument,
    *,
    server: ServerOption,
    token: TokenOption,
    competition: CompetitionOption = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the score, and print it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send a submission to a competition server.

    The command checks the submission first, with the words of `tiltyard validate`. Sending the same
    files again changes nothing and takes no quota. Make the token on your page of the server.

    Exit codes:

    - 0: the server has accepted the submission, and with --wait it has a score.
    - 1: with --wait, it has no score.
    - 2: the submission or the server refuses.

    Example: tiltyard submit my-submission --server https://arena.example --wait
    """
    with exit_on_error(), TemporaryDirectory(prefix="tiltyard-submit-") as scratch:
        found = open_submission(submission, Path(scratch) / "submission")
        content = pack(found)
    try:
        client = Client(server, token)
        slug = competition or _only_competition(client)
        accepted = client.submit(slug, f"{found.name}.zip", content)
        view = accepted.submission
        if not as_json:
            typer.echo(safe(_accepted(view, accepted.quota, is_new=accepted.new)))
        while wait and view.state in _OPEN:
            time.sleep(_POLL_SECONDS)
            view = client.submission(view.id)
    except ServerError as error:
        refuse(str(error))
    if as_json:
        print_json(view)
    elif wait:
        typer.echo(safe(_line(view)))
    if wait and view.state != "scored":
        raise typer.Exit(1)


def status(
    *,
    server: ServerOption,
    token: TokenOption,
    competition: CompetitionOption = "",
    as_json: JsonOption = False,
) -> None:
    """Print the state of your team's submissions on a competition server, the newest first.

    Example: tiltyard status --server https://arena.example
    """
    try:
        client = Client(server, token)
        slug = competition or _only_competition(client)
        views = client.submissions(slug)
        teams = {one.competition: one for one in client.me().teams}
    except ServerError as error:
        refuse(str(error))
    if as_json:
        print_json(views)
        return
    if slug in teams:
        typer.echo(safe(f"team {teams[slug].team}: {_left(teams[slug].quota)}"))
    for view in views:
        typer.echo(safe(_line(view)))
    if not views:
        typer.echo("Nothing yet. Send something with `tiltyard submit`.")


def _only_competition(client: Client) -> str:
    found = [one.slug for one in client.competitions()]
    if len(found) != 1:
        listed = ", ".join(found) or "none yet"
        raise ServerError(f"name a competition with --competition; the server has {listed}")
    return found[0]


def _accepted(view: SubmissionView, quota: QuotaView, *, is_new: bool) -> str:
    what = "accepted" if is_new else "already there"
    return f"{what}: {view.id} ({view.digest[:12]}); {_left(quota)}"


def _left(quota: QuotaView) -> str:
    next_at = "" if quota.next_at is None else f"; the next one at {quota.next_at:%H:%M} UTC"
    return f"{quota.left} of {quota.allowed} submissions left{next_at}"


def _line(view: SubmissionView) -> str:
    """Return a submission as one line: its id, its state, and what there is to say about it."""
    parts = [view.id, view.name, view.state]
    for one in view.judgings[:1]:
        if one.figures is not None:
            parts.append(figure(one.figures.final_score))
        if one.position is not None:
            parts.append(f"{one.position} before it")
        parts += filter(None, (one.worker, one.progress, one.why))
    return "  ".join(parts)
