"""The MCP front of a session: offers the world's tools over stdio or HTTP.

The SDK speaks both protocol families. The server does not say that it is a test: its name is that
of the packs' servers, and its tools are declared as the world declares them.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, Final

import mcp_types as types
import uvicorn
from mcp import MCPError, stdio_server
from mcp.server.lowlevel import Server

from tiltyard.bridges.world_server.session import LiveSession
from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.contracts.guardrail import Result

LOOPBACK: Final = "127.0.0.1"
PATH: Final = "/mcp"
TASK_PROMPT: Final = "task"
MAX_MESSAGE_BYTES: Final = 4_000_000
_WAITING: Final = 4
"""How many messages are read in advance."""


def make_server(session: LiveSession) -> "Server[Any]":
    """Return the server of a session. All its clients act in one world."""
    surface, say = session.stage.surface, session.stage.say
    tools = [_tool(one) for one in surface.declarations]
    known = {one.name for one in tools}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = session.call(params.name, params.arguments)
        if params.name not in known:
            raise MCPError(types.INVALID_PARAMS, str(result.error))
        return _result(result)

    async def list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
        about = "What to do."
        return types.ListPromptsResult(prompts=[types.Prompt(name=TASK_PROMPT, description=about)])

    async def get_prompt(
        _context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != TASK_PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"unknown prompt; use {TASK_PROMPT}")
        message = types.PromptMessage(role="user", content=types.TextContent(text=say))
        return types.GetPromptResult(messages=[message])

    packs = session.stage.world.site.packs.values()
    return Server(
        "-".join(pack.server for pack in packs),
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _tool(declaration: Declaration) -> types.Tool:
    return types.Tool(
        name=declaration.name,
        title=declaration.title or None,
        description=declaration.description,
        input_schema=declaration.input_schema,
        annotations=_annotations(declaration.hints),
    )


def _annotations(hints: Hints) -> types.ToolAnnotations | None:
    if hints == Hints():
        return None
    return types.ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )


def _result(result: Result) -> types.CallToolResult:
    structured = result.structured
    if isinstance(structured, list):
        # Revisions before 2026-07-28 want an object.
        structured = {"result": structured}
    text = result.output if result.ok else str(result.error)
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=structured,
        is_error=not result.ok,
    )


def serve_stdio(session: LiveSession) -> None:
    """Serve a session over stdin and stdout, until stdin ends."""
    server = make_server(session)

    async def serve() -> None:
        wire = _Wire()
        async with stdio_server(stdin=wire, stdout=wire) as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    try:
        asyncio.run(serve())
    except BaseExceptionGroup as errors:
        # A signal may arrive inside a task, and the task's group wraps the interrupt.
        if errors.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from None


class _Wire:
    """Stdin and stdout as lines. A message that cannot be read is answered here: the SDK drops it.

    It reads no more than `MAX_MESSAGE_BYTES` of a line.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        # Nobody can stop a thread that waits for input. So this one must not hold up the exit.
        reader = threading.Thread(
            target=_read_lines, args=(self._lines, asyncio.get_running_loop()), daemon=True
        )
        reader.start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._lines.get():
            problem = _find_problem(line)
            if problem:
                refusal = {"code": types.PARSE_ERROR, "message": problem}
                answer = {"jsonrpc": "2.0", "id": None, "error": refusal}
                await self.write(json.dumps(answer) + "\n")
            else:
                yield line.decode()

    async def write(self, text: str) -> None:
        # There is one client: while it reads nothing, there is nothing else to do.
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()

    async def flush(self) -> None:
        """Do nothing: `write` flushes."""


def _read_lines(lines: "asyncio.Queue[bytes]", loop: asyncio.AbstractEventLoop) -> None:
    """Put the lines of stdin into a queue, and an empty one at the end."""
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as wire:
        line = b"\n"
        while line:
            line = _read_line(wire)
            put = lines.put(line)
            try:
                asyncio.run_coroutine_threadsafe(put, loop).result()
            except RuntimeError:  # The server has ended.
                put.close()
                return


def _read_line(wire: BinaryIO) -> bytes:
    """Return a line. Of a line that is too long, return the beginning and skip the rest."""
    line = rest = wire.readline(MAX_MESSAGE_BYTES + 1)
    while len(rest) > MAX_MESSAGE_BYTES and not rest.endswith(b"\n"):
        rest = wire.readline(MAX_MESSAGE_BYTES + 1)
    return line


def _find_problem(line: bytes) -> str:
    if len(line) > MAX_MESSAGE_BYTES:
        return f"the message has more than {MAX_MESSAGE_BYTES:,} bytes"
    try:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return "the message is no JSON-RPC"
    return ""


class HttpFront:
    """Serves a session over streamable HTTP on this machine. `url` is known before it starts."""

    def __init__(self, session: LiveSession, port: int) -> None:
        self._server = make_server(session)
        self._socket = socket.create_server((LOOPBACK, port))
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}{PATH}"

    def serve(self) -> None:
        """Serve until the process is told to stop."""
        app = self._server.streamable_http_app(
            streamable_http_path=PATH, max_request_body_size=MAX_MESSAGE_BYTES
        )
        config = uvicorn.Config(app, log_level="warning")
        with self._socket:
            uvicorn.Server(config).run(sockets=[self._socket])
