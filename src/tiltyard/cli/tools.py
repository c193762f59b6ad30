"""`tiltyard tools`: show what declarations say about tools, and check an overlay."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from msgspec import Struct
from rich.console import Console

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import JsonOption
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, page_width, print_json
from tiltyard.contracts.declaration import Declaration, read_declarations
from tiltyard.inference import (
    Effect,
    Inferred,
    Overlay,
    Role,
    Source,
    infer,
    read_overlay,
)

MAX_BYTES: Final = 10_000_000


class ToolRow(Struct):
    """One tool of the JSON output."""

    server: str
    name: str
    inferred: Inferred
    corrected: bool
    """Whether the overlay changes what the declaration says."""


class ToolList(Struct):
    """The JSON output."""

    tools: list[ToolRow]
    unused: list[str]
    """Entries of the overlay that match no tool or no argument."""


def run(
    declarations: Annotated[
        Path,
        typer.Argument(
            metavar="DECLARATIONS.json",
            help="The answer of an MCP server to `tools/list`, or a list of tools.",
        ),
    ],
    *,
    overlay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML with corrections, such as tools.toml."),
    ] = None,
    server: Annotated[
        str,
        typer.Option(metavar="NAME", help="The server's name, as the overlay writes it."),
    ] = "",
    why: Annotated[bool, typer.Option("--why", help="Print the evidence for each tool.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what each tool does, what its arguments are, and who wrote what it returns.

    Guardrails without a list of tool names work with this information. It rests on the words of
    the declaration. Check it, and write an overlay for what is wrong.

    Exit codes:

    - 0: the declarations are readable.
    - 2: the command, the declarations or the overlay are wrong.

    Example: tiltyard tools declarations.json --overlay tools.toml
    """
    with exit_on_error():
        declared = _read(declarations, server)
        corrections = Overlay() if overlay is None else _read_overlay(overlay)
        rows = [_row(one, corrections) for one in declared]
        unused = [*corrections.unused(declared)]
    if as_json:
        print_json(ToolList(rows, unused))
        return
    console = open_console()
    _print_tools(console, rows)
    for row in rows if why else ():
        print_line(console, f"{row.name}: {row.inferred.because}")
    for sentence in unused:
        print_line(console, f"warning: {sentence}")


def _read(path: Path, server: str) -> tuple[Declaration, ...]:
    raw = path.read_bytes()
    if len(raw) > MAX_BYTES:
        refuse(f"{path} has {len(raw):,} bytes; the limit is {MAX_BYTES:,}")
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        refuse(f"{path} is not JSON: {error}; save the server's answer to `tools/list`")
    if isinstance(found, dict) and isinstance(found.get("result"), dict):
        found = found["result"]  # The whole message, as it came over the wire.
    if isinstance(found, dict) and isinstance(found.get("server"), str):
        server = server or found["server"]
    return read_declarations(found, server)


def _read_overlay(path: Path) -> Overlay:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        refuse(f"{path} is not UTF-8 text; save it as UTF-8")
    return read_overlay(text, str(path))


def _row(declared: Declaration, overlay: Overlay) -> ToolRow:
    inferred = infer(declared, overlay)
    corrected = inferred != infer(declared)
    return ToolRow(declared.server, declared.name, inferred, corrected)


def _print_tools(console: Console, rows: Sequence[ToolRow]) -> None:
    head = ["tool", "effect", "arguments", "returns words of"]
    cells = [
        [
            f"{row.name} *" if row.corrected else row.name,
            row.inferred.effect.lower(),
            ", ".join(f"{at[1:]} {role.lower()}" for at, role in row.inferred.roles.items()) or "-",
            row.inferred.source.lower(),
        ]
        for row in rows
    ]
    print_table(
        console,
        f"{len(rows)} tools",
        head,
        cells,
        left=head,
        folding="arguments",
        width=page_width(),
    )
    if any(row.corrected for row in rows):
        print_line(console, "* The overlay changes what the declaration says.")
    effects = sum(row.inferred.effect is Effect.UNKNOWN for row in rows)
    roles = sum(role is Role.UNKNOWN for row in rows for role in row.inferred.roles.values())
    sources = sum(row.inferred.source is Source.UNKNOWN for row in rows)
    print_line(
        console,
        f"unknown: {effects} effects, {roles} roles, {sources} sources. "
        "A guardrail must expect the worst of them; an overlay can say more.",
    )
