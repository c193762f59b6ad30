"""An agent: fastmcp's client, driven by the language model on this machine.

Usage: local_agent.py SENTENCE CONFIG. The model chooses tools; its last words are the answer. It is
very small, and rarely succeeds.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError
from openai import OpenAI

from tiltyard.agents.local import LocalServer

TURNS = 2
TOOLS = 5
SHOWN_CHARS = 500
SYSTEM = "You work for the user. Use the tools. Reply with JSON: a tool and its arguments."


def choose(model: OpenAI, name: str, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Ask the model for the next call. The grammar of the reply allows declared calls only."""
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": tool.inputSchema},
            "required": ["tool", "arguments"],
        }
        for tool in tools
    ]
    reply = model.chat.completions.create(
        model=name,
        messages=messages,
        max_tokens=60,
        temperature=0,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "call", "schema": {"anyOf": calls}},
        },
    )
    try:
        return dict(json.loads(reply.choices[0].message.content or ""))
    except ValueError:  # The reply was longer than the limit.
        return {"tool": tools[0].name, "arguments": {}}


async def work(say: str, config: Any, server: LocalServer) -> str:
    model = OpenAI(base_url=server.url, api_key="none")
    async with Client(config) as client:
        listed = await client.list_tools()
        tools = [tool for tool in listed if not tool.inputSchema.get("required")][:TOOLS]
        offered = "\n".join(f"{tool.name}: {tool.description}" for tool in tools)
        messages = [
            {"role": "system", "content": f"{SYSTEM}\n{offered}"},
            {"role": "user", "content": say},
        ]
        for _ in range(TURNS):
            call = choose(model, server.model, messages, tools)
            try:
                result = await client.call_tool(call["tool"], call["arguments"])
                text = "\n".join(getattr(part, "text", "") for part in result.content)
            except ToolError as error:
                text = str(error)
            messages += [
                {"role": "assistant", "content": json.dumps(call)},
                {"role": "user", "content": f"Result: {text[:SHOWN_CHARS]}"},
            ]
    return text


def main() -> None:
    with LocalServer() as server:
        answer = asyncio.run(work(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), server))
    sys.stdout.write(answer)


if __name__ == "__main__":
    main()
