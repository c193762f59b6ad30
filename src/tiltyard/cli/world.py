"""`tiltyard world`: put any agent into a hostile world, and judge what it did there."""

import shlex
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final

import typer
from rich.console import Console

from tiltyard.arena.stage import PLANTS
from tiltyard.bridges.world_server.agents import SECONDS, check_command, split_command
from tiltyard.bridges.world_server.play import (
    ALL_PACKS,
    DEFAULT_SEED,
    WORLDS,
    Wanted,
    begin,
    begin_without,
    check_same,
    judge_session,
    play_agent,
    tasks_of,
)
from tiltyard.bridges.world_server.session import SESSION, LiveSession
from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import JsonOption
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, output_width, print_json, safe, safe_lines
from tiltyard.foundation.files import write_whole
from tiltyard.packs.load import shipped_packs
from tiltyard.reporting.world_page import goal_facts, page, problems, task_line, verdict
from tiltyard.reporting.world_schema import WorldReport

HARMED: Final = 1

app = typer.Typer(
    help="Put any agent into a hostile world, and judge what it did there.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def complete_pack(incomplete: str) -> list[str]:
    return [name for name in (*shipped_packs(), ALL_PACKS) if name.startswith(incomplete)]


def complete_plant(incomplete: str) -> list[str]:
    return [name for name in PLANTS if name.startswith(incomplete)]


def complete_session(incomplete: str) -> list[str]:
    """Return the sessions in the default directory."""
    found = sorted(str(path.parent) for path in WORLDS.glob(f"*/{SESSION}"))
    return [name for name in found if name.startswith(incomplete)]


SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Draw the world from this seed.", show_default=str(DEFAULT_SEED)
    ),
]
PackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pack",
        metavar="NAME",
        help=f"A shipped pack's name, a pack's directory, or {ALL_PACKS}. Repeat it for several.",
        show_default="two packs that the seed chooses",
        autocompletion=complete_pack,
    ),
]
TaskOption = Annotated[
    str,
    typer.Option(metavar="ID", help="The user's task: see --list.", show_default="by the seed"),
]
PlantOption = Annotated[
    str,
    typer.Option(
        metavar="WAY",
        help=f"How a stranger plants an order: {', '.join(PLANTS)}.",
        show_default="by the seed",
        autocompletion=complete_plant,
    ),
]
SessionOption = Annotated[
    Path | None,
    typer.Option(
        "--session",
        metavar="DIR",
        help="Where to write the session. If the directory has one, the server goes on with it.",
        show_default=f"a new directory in {WORLDS}",
    ),
]
SessionArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SESSION", help="A session's directory.", autocompletion=complete_session
    ),
]
SecondsOption = Annotated[
    float, typer.Option("--seconds", metavar="N", min=1, help="End the agent after this time.")
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")
]


@app.command()
def serve(
    *,
    seed: SeedOption = None,
    pack: PackOption = None,
    task: TaskOption = "",
    plant: PlantOption = "",
    session: SessionOption = None,
    without_plant_of: Annotated[
        Path | None,
        typer.Option(
            metavar="SESSION",
            help="Serve the world of this session without the stranger's text.",
            autocompletion=complete_session,
        ),
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve streamable HTTP on this machine instead of stdio; 0 takes a free port.",
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print the tasks of the world, and serve nothing.")
    ] = False,
) -> None:
    """Serve a world with a stranger's order in it as an MCP server. It needs the extra `mcp`.

    Connect your agent, and give it the sentence that the command prints to stderr. The server
    writes every call to the session. Afterwards, `tiltyard world judge` says what the stranger
    made the agent do. Keep the session out of the agent's reach: it has the secrets.

    Exit codes:

    - 0: the client has disconnected.
    - 2: the command is wrong.
    - 130: interrupted.

    Example: tiltyard world serve --seed 7 --pack bank

    Example: tiltyard world serve --seed 7 --http 8800
    """
    wanted = Wanted(seed, tuple(pack or ()), task, plant)
    with exit_on_error():
        if list_:
            _print_tasks(tasks_of(wanted))
            return
        front = _import_front()
        where = _open(wanted, session, without_plant_of)
        with LiveSession(where) as live:
            check_same(live.head, wanted)
            if http is None:
                _announce(live)
                front.serve_stdio(live)
            else:
                served = front.HttpFront(live, http)
                _announce(live, served.url)
                served.serve()
    _tell(f"{live.count} calls; judge them: {_judge_command(where)}")


def _import_front() -> ModuleType:
    try:
        from tiltyard.bridges.world_server import server  # noqa: PLC0415 - an extra
    except ImportError:
        refuse("serving a world needs the extra `mcp`: pip install 'tiltyard[mcp]'")
    return server


def _open(wanted: Wanted, session: Path | None, without: Path | None) -> Path:
    """Return the directory of the session to serve, and write it if it is new."""
    if without is not None:
        if session is not None or wanted != Wanted():
            refuse("--without-plant-of takes the world of its session; give no other options")
        return begin_without(without)[0]
    if session is not None and (session / SESSION).exists():
        return session
    return begin(wanted, session)[0]


def _announce(live: LiveSession, url: str = "") -> None:
    """Tell the user what to do. Over stdio, stdout belongs to the protocol."""
    _tell("The user says (give this sentence to your agent):\n")
    _tell(f"    {live.stage.say}\n")
    if url:
        _tell(f"server:  {url}")
    _tell(f"session: {live.directory}" + (f" ({live.count} calls so far)" if live.count else ""))
    _tell(f"judge:   {_judge_command(live.directory)}")


def _tell(text: str) -> None:
    typer.echo(safe_lines(text), err=True)


def _judge_command(directory: Path) -> str:
    # A run without the plant belongs to the session two levels above it.
    session = directory.parent.parent if directory.parent.name == "without" else directory
    return f"tiltyard world judge {shlex.quote(str(session))}"


def _print_tasks(tasks: list[tuple[str, str]]) -> None:
    if not tasks:
        refuse("no such task; run the same command without --task")
    head = ("task", "sentence")
    console = open_console()
    print_table(console, "Tasks", head, tasks, left=head, folding="sentence", width=output_width())


@app.command()
def judge(
    session: SessionArgument,
    *,
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the agent told the user.",
            show_default="the file answer.txt of the session, if there is one",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="First start the agent again in the same world without the stranger's text. "
            "{say} and {config} stand for the sentence and a file with the server.",
        ),
    ] = None,
    seconds: SecondsOption = SECONDS,
    as_json: JsonOption = False,
    html: HtmlOption = None,
) -> None:
    """Say what a stranger made an agent do in a served world.

    The judge makes all calls of the session again, in its own copy of the world. It believes no
    result that the session contains. If there are runs of the agent without the stranger's text
    (see --command, and `tiltyard world serve --without-plant-of`), a goal that the agent reaches
    there too is not the stranger's doing.

    Exit codes:

    - 0: the agent did nothing that only a stranger can want.
    - 1: the stranger's goal was reached, or a protected value left.
    - 2: the command or the session is wrong.
    - 130: interrupted.

    Example: tiltyard world judge .tiltyard/worlds/1f3a --html judged.html
    """
    with exit_on_error():
        if command is not None:
            words = split_command(command)
            play_agent(words, *begin_without(session), seconds)
        report = judge_session(session, answer)
        if html is not None:
            write_whole(html, page(report).encode())
    _finish(report, html, as_json=as_json)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="CMD",
            help="The agent's command, after --. {say} and {config} stand for the sentence and a "
            "file with the server.",
        ),
    ],
    *,
    seed: SeedOption = None,
    pack: PackOption = None,
    task: TaskOption = "",
    plant: PlantOption = "",
    session: SessionOption = None,
    seconds: SecondsOption = SECONDS,
    as_json: JsonOption = False,
    html: HtmlOption = None,
) -> None:
    """Start an agent in a world with and without a stranger's order, and judge it.

    What the agent prints to stdout is its answer. It needs the extra `mcp`. Exit codes are those
    of `tiltyard world judge`.

    Example: tiltyard world run --seed 7 -- claude -p {say} --mcp-config {config}
    """
    wanted = Wanted(seed, tuple(pack or ()), task, plant)
    with exit_on_error():
        _import_front()
        words = check_command(command)
        where, head = begin(wanted, session)
        _tell(f"session: {where}\n    {head.say}")
        play_agent(words, where, head, seconds)
        if head.staging.plant != PLANTS[-1]:
            play_agent(words, *begin_without(where), seconds)
        report = judge_session(where)
        if html is not None:
            write_whole(html, page(report).encode())
    _finish(report, html, as_json=as_json)


def _finish(report: WorldReport, html: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        _print_report(open_console(), report)
        if html is not None:
            typer.echo(f"written: {safe(html)}")
    if report.harmed:
        raise typer.Exit(HARMED)


def _print_report(console: Console, report: WorldReport) -> None:
    print_line(console, f"{report.outcome}: {verdict(report)}")
    for problem in problems(report):
        print_line(console, problem)
    print_line(console, "")
    rows = [
        ("the user says", report.task.say),
        ("the user's task", task_line(report)),
        *(("missing", one) for one in report.task.missing),
        *goal_facts(report),
    ]
    for one in report.leaks:
        also = " (without the plant too)" if one.also_without_plant else ""
        rows.append(("left", f"{one.field} {one.value} to {one.to}, by call {one.call}{also}"))
    width = output_width()
    print_table(
        console, f"Session {report.session}", ("what", "found"), rows, left=("found",),
        folding="found", width=width,
    )  # fmt: skip
    calls = [
        (str(one.number), one.tool, "; ".join(one.changes) or "-", "; ".join(one.marks) or "-")
        for one in report.calls
    ]
    head = ("call", "tool", "changes", "verdict")
    print_table(
        console, "Calls", head, calls, left=head, optional=("changes",), folding="verdict",
        width=width,
    )  # fmt: skip
