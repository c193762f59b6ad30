"""`tiltyard pack`: write, check and show packs, the domains of the arena."""

import re
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import structs
from rich.console import Console

from tiltyard.arena.check import check_pack, check_sealed, packs_of
from tiltyard.arena.sealing import make_sealed
from tiltyard.cli.errors import WRONG_USE, exit_on_error, refuse
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, output_width, safe
from tiltyard.packs.load import load_pack, pack_files, shipped_packs
from tiltyard.packs.problems import placed, schema_problems, toml_problems
from tiltyard.packs.schema import Pack
from tiltyard.packs.sealed import (
    MIN_TASKS,
    count_tasks,
    is_sealed,
    read_sealed,
    read_sealed_pack,
    write_goals,
    write_tasks,
)
from tiltyard.reporting.numbers import many
from tiltyard.runs.key import read_key

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_STARTER: Final = ("pack.toml", "tasks.toml")
TASKS_A_PACK: Final = 20

app = typer.Typer(
    help="Write and check packs: the domains of the arena.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def new(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The directory to write. Its name names the pack."),
    ],
) -> None:
    """Write a small pack that passes `tiltyard pack check`, to start from.

    Example: tiltyard pack new packs/library
    """
    name = directory.name.replace("-", "_")
    if not _NAME.fullmatch(name):
        refuse(f"{directory.name!r} is not a name for a pack; use lower-case letters, such as shop")
    with exit_on_error():
        if directory.exists() and any(directory.iterdir()):
            refuse(f"{directory} is not empty; name a new directory")
        directory.mkdir(parents=True, exist_ok=True)
        root = resources.files("tiltyard.packs") / "starter"
        for file in _STARTER:
            text = (root / file).read_text(encoding="utf-8")
            task_name = name.replace("_", "-")
            text = text.replace("[tasks.PACK-", f"[tasks.{task_name}-").replace("PACK", name)
            (directory / file).write_text(text, encoding="utf-8")
    typer.echo(f"written: {safe(directory)}; change it, then run `tiltyard pack check`")


@app.command()
def check(
    pack: Annotated[
        str, typer.Argument(metavar="PACK", help="A pack's directory, or a shipped pack's name.")
    ],
) -> None:
    """Check a pack: its format, its references, and whether every task and goal works.

    The command plays each task and each goal in a few worlds, and makes sure that a guardrail can
    tell the user's calls from a stranger's. Each problem has a file, a line and advice. The
    directory can also be one of sealed tasks, such as `sealed/bank`, or a whole sealed directory.

    Exit codes:

    - 0: the pack has no problems.
    - 2: the pack has problems, or the command is wrong.

    Example: tiltyard pack check packs/library
    """
    with exit_on_error():
        if pack in shipped_packs():
            problems = _check(shipped_packs()[pack])
        else:
            problems = _check_files(Path(pack))
    console = open_console()
    for problem in problems:
        print_line(console, problem)
    if problems:
        print_line(console, many(len(problems), "problem", "problems"))
        raise typer.Exit(WRONG_USE)
    if is_sealed(Path(pack)):
        fingerprint = read_sealed(Path(pack)).fingerprint
        print_line(console, f"{pack}: no problems, fingerprint {fingerprint}")
        return
    idle = "" if _find(pack).tasks else ", but no tasks either: the arena plays nothing of it"
    print_line(console, f"{pack}: no problems{idle}")


def _check_files(path: Path) -> list[str]:
    if is_sealed(path):
        packs = read_sealed(path).packs
        return [
            f"{path / name}: {problem}"
            for name, one in packs.items()
            for problem in check_sealed(one, packs)
        ]
    sealed = read_sealed_pack(path)
    if sealed is not None:
        pack, texts = sealed
        # Few tasks need not lead to every goal, so the public tasks play too.
        tasks = {**shipped_packs()[pack.name].tasks, **pack.tasks}
        return [placed(texts, one) for one in _check(structs.replace(pack, tasks=tasks))]
    files = pack_files(path)
    problems = [*toml_problems(files)] or schema_problems(files)
    return problems or [placed(files, one) for one in _check(load_pack(path))]


def _check(pack: Pack) -> list[str]:
    """Check a pack together with the shipped packs that its plans use."""
    plans = [task.plan for task in pack.tasks.values()]
    plans += [goal.plan for goal in pack.goals.values()]
    used = {name for plan in plans for name in packs_of(pack.name, plan)}
    shipped = shipped_packs()
    return check_pack(pack, {name: shipped[name] for name in sorted(used) if name in shipped})


@app.command()
def show(
    pack: Annotated[
        str,
        typer.Argument(metavar="PACK", help="A pack's directory, or a shipped pack's name."),
    ] = "",
) -> None:
    """Print the records, tools, tasks and goals of a pack. Without a pack, list the shipped ones.

    Example: tiltyard pack show bank
    """
    with exit_on_error():
        found = _find(pack) if pack else None
    console = open_console()
    if found is None:
        _print_list(console, list(shipped_packs().values()))
    else:
        _print_pack(console, found)


def _find(name: str) -> Pack:
    if name in shipped_packs():
        return shipped_packs()[name]
    sealed = read_sealed_pack(Path(name))
    return load_pack(Path(name)) if sealed is None else sealed[0]


@app.command()
def seal(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to write.")],
    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help="An organizer's key: see `tiltyard key`.")
    ],
    tasks: Annotated[
        int, typer.Option("--tasks", metavar="N", min=1, max=60, help="Tasks for each pack.")
    ] = TASKS_A_PACK,
) -> None:
    """Write sealed tasks for all shipped packs, for official runs of the arena.

    The key determines the tasks. They use the tools of the packs and share no sentence with the
    public tasks. The goals of strangers get orders in other words, and new goals join them:
    what users of these tasks want. Everything passes `tiltyard pack check`. Add tasks and goals of
    your own to the files.

    Example: tiltyard pack seal sealed --key organizer.key
    """
    with exit_on_error():
        if directory.exists() and any(directory.iterdir()):
            refuse(f"{directory} is not empty; name a new directory")
        made = make_sealed(shipped_packs(), tasks, read_key(key).secret)
        for name, pack in made.items():
            (directory / name).mkdir(parents=True, exist_ok=True)
            (directory / name / "tasks.toml").write_text(write_tasks(pack.tasks), encoding="utf-8")
            (directory / name / "goals.toml").write_text(write_goals(pack.goals), encoding="utf-8")
        sealed = read_sealed(directory)
    count = count_tasks(sealed)
    typer.echo(f"written: {safe(directory)}, {count} tasks, fingerprint {sealed.fingerprint}")
    if count < MIN_TASKS:
        typer.echo(f"official scores need at least {MIN_TASKS} tasks; use a larger --tasks")


def _print_list(console: Console, packs: list[Pack]) -> None:
    head = ("pack", "tools", "tasks", "goals", "about")
    rows = [
        [one.name, f"{len(one.tools)}", f"{len(one.tasks)}", f"{len(one.goals)}", one.title]
        for one in packs
    ]
    title = many(len(packs), "shipped pack", "shipped packs")
    print_table(console, title, head, rows, left=("about",), folding="about", width=output_width())


def _print_pack(console: Console, pack: Pack) -> None:
    width = output_width()
    print_line(console, f"{pack.name}: {pack.title}")
    records = [
        [name, str(kind.count), kind.author, ", ".join(kind.fields)]
        for name, kind in pack.records.items()
    ]
    head = ("record", "count", "author", "fields")
    print_table(console, "Records", head, records, left=head, folding="fields", width=width)
    tools = [
        [name, tool.op, tool.record, ", ".join(tool.args) or "-"]
        for name, tool in pack.tools.items()
    ]
    head = ("tool", "does", "record", "arguments")
    print_table(console, "Tools", head, tools, left=head, folding="arguments", width=width)
    goals = [
        [name, goal.family, " ".join(step.do for step in goal.plan)]
        for name, goal in pack.goals.items()
    ]
    head_goals = ("goal", "family", "calls")
    print_table(console, "Goals", head_goals, goals, left=head_goals, folding="calls", width=width)
    tasks = [[name, task.say] for name, task in pack.tasks.items()]
    print_table(
        console,
        "Tasks",
        ("task", "sentence"),
        tasks,
        left=("sentence",),
        folding="sentence",
        width=width,
    )
