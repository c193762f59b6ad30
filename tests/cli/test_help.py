"""`--help` of every command: complete, within the terminal's width, and wrapped once."""

import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from tiltyard.cli.app import app

WIDTHS = (80, 120)
PADDING = 1


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command and group."""
    command = typer.main.get_command(app) if command is None else command
    yield path
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


def find(path: Sequence[str]) -> Any:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


def print_help(path: Sequence[str], width: int) -> list[str]:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.stdout.splitlines()]


def plain(markdown: str) -> str:
    """Return Markdown as the help prints it, on one line."""
    text = re.sub(r"^- ", "• ", inspect.cleandoc(markdown), flags=re.MULTILINE)
    return " ".join(text.replace("`", "").split())


def assert_wrapped_once(lines: Sequence[str], width: int) -> None:
    """Check that each line is full: the first word of the next line does not fit on it."""
    for line, following in pairwise(lines):
        if line and following and not following.lstrip().startswith("•"):
            assert len(line) + 1 + len(following.split()[0]) > width, f"{line!r} / {following!r}"


def rows(lines: Sequence[str], width: int) -> Iterator[tuple[str, list[str], int]]:
    """Yield the name, the help and the help's width of every row of every panel."""
    name, help_lines, column = "", [""], 0
    for line in lines:
        if not line.startswith("│"):
            continue
        inside = line[2 : width - 2]
        # A name stands at the left, or behind the asterisk of what is required.
        if re.match(r"(\*|  )? {0,4}[\w-]", inside) and not inside.startswith(" " * 8):
            if name:
                yield name, help_lines, width - 4 - column
            name = inside.removeprefix("*").split()[0]
            last = re.split(r" {2,}", inside.rstrip())[-1]
            column = inside.rindex(last)
            help_lines = [last]
        else:
            help_lines.append(inside[column:].rstrip())
    if name:
        yield name, help_lines, width - 4 - column


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", [*commands()], ids=" ".join)
def test_help_is_complete_and_wrapped_once(path: tuple[str, ...], width: int) -> None:
    command = find(path)
    lines = print_help(path, width)
    assert max(map(len, lines)) <= width

    panels = next(at for at, line in enumerate(lines) if line.startswith("╭"))
    usage = next(at for at, line in enumerate(lines) if line.startswith(" Usage:"))
    body = [line.removeprefix(" ") for line in lines[usage + 1 : panels]]
    assert plain("\n".join(body)) == plain(command.help)
    assert_wrapped_once(body, width - 2 * PADDING)

    shown = {name: (text, room) for name, text, room in rows(lines[panels:], width)}
    for name, text in expected_rows(command):
        written, room = shown[name]
        assert plain(text) in " ".join(" ".join(written).split()), name
        # "[default: ...]" and "[required]" begin on a line of their own.
        prose = takewhile(lambda line: not line.startswith("["), written)
        assert_wrapped_once([*prose], room)


def expected_rows(command: Any) -> Iterator[tuple[str, str]]:
    for param in command.params:
        if param.help:
            yield (
                (param.metavar if param.param_type_name == "argument" else param.opts[0]),
                param.help,
            )
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield name, inspect.cleandoc(inner.help or "").split("\n\n")[0]


@pytest.mark.parametrize("path", [*commands()], ids=" ".join)
def test_help_gives_an_example_of_every_command(path: tuple[str, ...]) -> None:
    command = find(path)
    if not isinstance(command, TyperGroup):
        assert f"Example: tiltyard {' '.join(path)}" in command.help


def test_broken_wraps_are_found() -> None:
    with pytest.raises(AssertionError):
        assert_wrapped_once(["a sentence that was wrapped twice: it", "has", "an orphan"], 40)


def test_every_option_is_explained() -> None:
    for path in commands():
        for param in find(path).params:
            assert param.help, (path, param.name)
            assert param.help.strip().endswith((".", "v1", "1.6")), param.help
