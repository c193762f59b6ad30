"""Start an agent from outside on a session, as its own command line does.

A command may contain `{say}`, the user's sentence, and `{config}`, a file that names the server in
the format that most MCP clients read. What the command prints is the agent's answer.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from tiltyard.bridges.world_server.session import SessionError, SessionHead
from tiltyard.foundation.printable import printable

SERVER: Final = "world"
MAX_ANSWER_CHARS: Final = 1_000_000
SECONDS: Final = 600.0
_GRACE_SECONDS: Final = 5.0
_PLACE: Final = re.compile(r"\{say\}|\{config\}")


def serve_command(directory: Path) -> list[str]:
    """Return the command that serves a session that exists."""
    return [
        sys.executable, "-m", "tiltyard", "world", "serve", "--session", str(directory.resolve()),
    ]  # fmt: skip


def client_config(directory: Path) -> bytes:
    """Return the configuration of an MCP client for a session that exists."""
    command, *args = serve_command(directory)
    servers = {SERVER: {"command": command, "args": args}}
    return msgspec.json.format(msgspec.json.encode({"mcpServers": servers}), indent=1)


def split_command(command: str) -> list[str]:
    """Split a command line. Refuse one that would not tell the agent about server and task."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SessionError(f"the command {command!r} cannot be split: {error}") from None
    return check_command(words)


def check_command(words: list[str]) -> list[str]:
    """Return the words of a command if they pass on the sentence and the server."""
    for name in ("{say}", "{config}"):
        if not any(name in word for word in words):
            raise SessionError(
                f"the agent's command lacks {name}; write it where the value belongs"
            )
    return words


def run_agent(
    words: list[str], directory: Path, head: SessionHead, seconds: float = SECONDS
) -> str:
    """Run an agent on a session to its end, and return what it printed."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-agent-") as scratch:
        config = Path(scratch) / "mcp.json"
        config.write_bytes(client_config(directory))
        values = {"{say}": head.say, "{config}": str(config)}
        filled = [_PLACE.sub(lambda found: values[found[0]], word) for word in words]
        # A file, not a pipe: a child of the agent may keep a pipe open after the agent has ended.
        with (Path(scratch) / "answer").open("w+b") as answer:
            _run(filled, answer.fileno(), seconds)
            answer.seek(0)
            return answer.read(MAX_ANSWER_CHARS).decode("utf-8", "replace")


def _run(words: list[str], output: int, seconds: float) -> None:
    try:
        agent = subprocess.Popen(  # noqa: S603 - the user's own command
            words, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True
        )
    except OSError as error:
        raise SessionError(
            f"the agent {printable(words[0], limit=200)} cannot be started: {error.strerror}"
        ) from None
    try:
        code = agent.wait(seconds)
    except subprocess.TimeoutExpired:
        raise SessionError(f"the agent did not end within {seconds:g} seconds") from None
    finally:
        _end(agent)
    if code:
        raise SessionError(f"the agent ended with exit code {code}; see its output above")


def _end(agent: "subprocess.Popen[bytes]") -> None:
    """End the agent and everything that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(agent.pid, number)
        except ProcessLookupError:
            break
        try:
            agent.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
