"""`tiltyard guard`: a guard in front of an MCP server.

Typer reads the command line only if it is not in the usual form: see `guard_start`. Then the
process becomes the guard, which needs little memory.
"""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tiltyard.cli.guard_start import WRONG_USE, Given, WrongUseError, settings_of


class Client(StrEnum):
    CLAUDE = "claude"
    CURSOR = "cursor"
    VSCODE = "vscode"


def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="The command that starts the MCP server."),
    ] = None,
    *,
    guardrail: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A shipped guardrail's name, a .py file, or a submission. "
            "Files and submissions run in the sandbox.",
        ),
    ] = "declared",
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The conversation. Guards with the same name share one guardrail, so that it "
            "knows what the tools of all servers returned.",
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The server's name, as the overlay writes it.",
            show_default="from COMMAND",
        ),
    ] = "",
    overlay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML with corrections, such as tools.toml."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML about the owner and the surroundings."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML about the model that the guardrail may ask."),
    ] = None,
    said: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="What the user says. Repeat it for several messages. With --session and without "
            "COMMAND: tell it to the guards that run.",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask the user when the guardrail wants a confirmation."),
    ] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Decide and record, and never deny.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a record of each conversation to this directory."),
    ] = None,
    url: Annotated[
        str,
        typer.Option(metavar="URL", help="Guard the MCP server at this address instead."),
    ] = "",
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="With --url: where clients connect. Port 0: any."),
    ] = "127.0.0.1:0",
    print_config: Annotated[
        Client | None,
        typer.Option(help="Print what to paste into the settings of this client, and exit."),
    ] = None,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe-no-sandbox",
            help="Run a file or a submission without a sandbox. Only for code that you trust: it "
            "can do everything that you can do.",
        ),
    ] = False,
) -> None:
    """Guard an MCP server: ask a guardrail about each tool call.

    The guard stands between an MCP client and a server. It denies calls that the guardrail denies,
    and forwards everything else unchanged.

    Exit codes:

    - 0: the client has ended the connection. Otherwise the exit code of the server.
    - 2: the command is wrong.

    Example: tiltyard guard -- npx @modelcontextprotocol/server-filesystem .

    Example: tiltyard guard --url http://127.0.0.1:3001/mcp --listen 127.0.0.1:3002

    Example: tiltyard guard --print-config claude -- npx @modelcontextprotocol/server-filesystem .
    """
    given = Given(
        command=tuple(command or ()),
        guardrail=guardrail,
        session=session,
        server=server,
        overlay=str(overlay or ""),
        policy=str(policy or ""),
        model=str(model or ""),
        said=tuple(said or ()),
        ask=ask,
        shadow=shadow,
        record=str(record or ""),
        url=url,
        listen=listen,
        unsafe_no_sandbox=unsafe,
    )
    try:
        options = settings_of(given)
    except WrongUseError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_USE) from None
    if print_config is not None:
        entry = _config(print_config, given.server_name, listen if url else "")
        typer.echo(json.dumps(entry, indent=2))
        return
    program = [sys.executable, "-P", "-m", "tiltyard.bridges.guard.run", json.dumps(options)]
    sys.stdout.flush()
    os.execv(sys.executable, program)  # noqa: S606 - our own program


def _config(client: Client, name: str, listen: str) -> dict[str, Any]:
    """Return the entry for a client's settings: this command, without --print-config."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    own = words[:at]
    if "--print-config" in own:
        flag = own.index("--print-config")
        del own[flag : flag + 2]
    own = [word for word in own if not word.startswith("--print-config=")]
    entry: dict[str, Any] = {"command": "tiltyard", "args": own + words[at:]}
    if listen:
        entry = {"url": f"http://{listen}/mcp"}
    if client is Client.VSCODE:
        return {"servers": {name: {"type": "http" if listen else "stdio"} | entry}}
    if listen and client is Client.CLAUDE:
        entry = {"type": "http"} | entry
    return {"mcpServers": {name: entry}}
