"""A raw MCP client, and guards in front of the raw server, for the tests of the guard."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tiltyard.bridges.guard.record import Recorder
from tiltyard.bridges.guard.talk import Talk
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.contracts.policy import NO_POLICY, Policy
from tiltyard.episode.conversation import open_locally
from tiltyard.inference import Overlay

SERVER: Final = Path(__file__).parent / "raw_mcp_server.py"
GUARD: Final = (sys.executable, "-m", "tiltyard", "guard")
MODERN: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ASKING: Final = MODERN | {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


class Client:
    """Talks JSON-RPC with a process, one line at a time."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | (env or {}),
        )
        self._id = 0

    def send(self, body: dict[str, Any] | bytes) -> None:
        line = body if isinstance(body, bytes) else json.dumps(body).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive_line(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors()
        return line.rstrip(b"\n")

    def receive(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.receive_line())
        return found

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return the next message."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self.receive()

    def call(self, name: str, /, meta: dict[str, Any] | None = None, **args: Any) -> dict[str, Any]:
        extra = {} if meta is None else {"_meta": meta}
        return self.request("tools/call", name=name, arguments=args, **extra)

    def initialize(self, **capabilities: Any) -> dict[str, Any]:
        info = {"name": "test", "version": "1"}
        return self.request(
            "initialize", protocolVersion="2025-11-25", capabilities=capabilities, clientInfo=info
        )

    def errors(self) -> str:
        self.process.kill()
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is not None:
            self.process.kill()
        self.end()
        assert self.process.stderr is not None
        self.process.stderr.close()


def guarded(*options: str, env: dict[str, str] | None = None) -> Client:
    """Start a guard in front of the raw server."""
    return Client([*GUARD, *options, "--", sys.executable, str(SERVER)], env)


def said(message: dict[str, Any]) -> str:
    """Return the text of a tool's result."""
    found: str = message["result"]["content"][0]["text"]
    return found


class TalkDecider:
    """A decider in this process."""

    def __init__(
        self,
        make: MakeGuardrail,
        policy: Policy = NO_POLICY,
        overlay: Overlay | None = None,
        record: str = "",
    ) -> None:
        recorder = Recorder(record, "test")
        self.talk = Talk(open_locally(make), policy, overlay or Overlay(), recorder)
        self.asked: list[dict[str, Any]] = []
        self.shadow = False

    def ask(self, header: dict[str, Any], frame: bytes = b"") -> dict[str, Any]:
        self.asked.append(header)
        ways: dict[str, Callable[[], dict[str, Any]]] = {
            "call": lambda: self.talk.call(header | {"shadow": self.shadow}, frame),
            "result": lambda: self.talk.result(header["call"], frame),
            "tools": lambda: self.talk.tools(header["server"], frame),
            "confirmed": lambda: self.talk.confirmed(header["call"], yes=header["yes"]),
        }
        return {"guardrail": "test"} | ways[header["op"]]()
