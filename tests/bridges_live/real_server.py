"""A server with every feature of MCP, written with the `mcp` package: `real_server.py [PORT]`."""

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("everything in Python", instructions="Call the tools.")
SEEN: dict[str, Any] = {"cancelled": 0}


class Sum(BaseModel):
    total: int
    parts: list[int]


class Name(BaseModel):
    name: str


@server.tool()
def echo(words: str) -> str:
    """Return the words."""
    return words


@server.tool()
def add(parts: list[int]) -> Sum:
    """Add numbers."""
    return Sum(total=sum(parts), parts=parts)


@server.tool()
def nested(value: dict[str, Any]) -> dict[str, Any]:
    """Return any value."""
    return {"value": value}


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def nothing() -> None:
    """Return nothing."""


@server.tool()
def picture() -> types.CallToolResult:
    """Return an image, a sound, a link and a resource."""
    inside = types.TextResourceContents(uri="note://a", text="inside", mime_type="text/plain")
    return types.CallToolResult(
        content=[
            types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png"),
            types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
            types.ResourceLink(type="resource_link", uri="note://b", name="b"),
            types.EmbeddedResource(type="resource", resource=inside),
        ]
    )


@server.tool()
def long(count: int) -> str:
    """Return a long text."""
    return "word " * count


@server.tool()
async def steps(count: int, ctx: Context[Any, Any]) -> str:
    """Report progress."""
    for number in range(count):
        await ctx.report_progress(number, count, f"step {number}")
    return "done"


@server.tool()
async def log(ctx: Context[Any, Any]) -> str:
    """Write to the log."""
    await ctx.info("first")
    await ctx.warning({"second": 2})
    return "logged"


@server.tool()
async def slow(ctx: Context[Any, Any]) -> str:
    """Wait for a long time."""
    del ctx
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        SEEN["cancelled"] += 1
        raise
    return "never"


@server.tool()
def cancelled() -> int:
    """Return how many calls were cancelled."""
    return int(SEEN["cancelled"])


@server.tool()
async def sample(ctx: Context[Any, Any]) -> str:
    """Ask the client's model."""
    words = types.TextContent(type="text", text="say hello")
    message = types.SamplingMessage(role="user", content=words)
    answer = await ctx.session.create_message([message], max_tokens=9, temperature=0.5)
    return answer.model_dump_json(by_alias=True)


@server.tool()
async def ask(ctx: Context[Any, Any]) -> str:
    """Ask the user, while the call waits."""
    answer = await ctx.elicit("your name?", Name)
    return answer.model_dump_json()


@server.tool()
def ask_modern(ctx: Context[Any, Any]) -> types.CallToolResult | types.InputRequiredResult:
    """Ask the user by a result, as 2026-07-28 wants it."""
    responses = ctx.input_responses
    if not responses:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = types.ElicitRequestFormParams(message="your name?", requested_schema=schema)
        request = types.ElicitRequest(params=params)
        return types.InputRequiredResult(input_requests={"who": request}, request_state="kept")
    text = f"{responses['who'].model_dump_json(by_alias=True)} {ctx.request_state}"
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


@server.tool()
async def roots(ctx: Context[Any, Any]) -> str:
    """List the client's roots."""
    return (await ctx.session.list_roots()).model_dump_json(by_alias=True)


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Add a tool, and tell the client."""

    def grown() -> str:
        """Return a word."""
        return "grown"

    server.add_tool(grown)
    await ctx.session.send_tool_list_changed()
    return "added"


@server.tool()
async def touch(ctx: Context[Any, Any]) -> str:
    """Tell the client that a resource has changed."""
    await ctx.session.send_resource_updated("note://a")
    return "touched"


@server.tool()
def meta(ctx: Context[Any, Any]) -> str:
    """Return fields that no schema knows."""
    found = ctx.request_context.meta or {}
    return str(sorted((key, str(value)) for key, value in dict(found).items() if "own/" in key))


@server.resource("note://a")
def note() -> str:
    """Return a note."""
    return "a note"


@server.resource("bytes://b", mime_type="application/octet-stream")
def blob() -> bytes:
    """Return bytes."""
    return b"\x00\x01\xff"


@server.resource("person://{name}")
def person(name: str) -> str:
    """Describe a person."""
    return f"about {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    del ref, context
    return types.Completion(values=[argument.value + "nn", argument.value + "lf"], has_more=False)


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
