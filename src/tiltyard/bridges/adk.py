"""A guardrail for agents of Google's Agent Development Kit (ADK).

Install the library with `pip install google-adk`.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from tiltyard.bridges.hooked import Hooked, Options, Ran, Said, Talk, Verdict, as_hooked, as_text

try:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
except ImportError as error:
    raise ImportError("tiltyard.bridges.adk needs ADK 2: pip install google-adk") from error

_INNER = (
    "DENIED: an agent as a tool runs its own tools in a session of its own, with a model's words "
    "in place of the user's. The Tiltyard guard cannot guard it; make it a sub-agent"
)


class GuardPlugin(BasePlugin):
    """Asks a guardrail about each tool call of a runner's agents. A session is a conversation.

    Put this plugin last in the list, so that no other one changes a call after it was decided.
    """

    def __init__(self, guardrail: Hooked | Options | str = "declared") -> None:
        super().__init__(name="tiltyard_guard")
        self.hooked = as_hooked(guardrail)
        self._running: dict[tuple[str, str], int] = {}
        """The calls that were allowed, by session and id. ADK also shows results of denied ones."""

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Tell the guardrail what the user says, and what it has missed of the session."""
        session = invocation_context.session
        talk = self.hooked.talk(_key(session))
        await asyncio.to_thread(talk.catch_up, history(session.events))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if isinstance(tool, AgentTool):
            return {"error": _INNER}
        key, id_ = _key(tool_context.session), tool_context.function_call_id or ""
        verdict = await asyncio.to_thread(_decide, self.hooked.talk(key), tool, tool_args, id_)
        if not verdict.runs:
            return {"error": verdict.text}
        if verdict.changed:
            tool_args.clear()
            tool_args.update(verdict.args)
        self._running[key, id_] = verdict.call
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,
    ) -> dict[str, Any] | None:
        del tool_args
        key, id_ = _key(tool_context.session), tool_context.function_call_id or ""
        call = self._running.pop((key, id_), None)
        if call is None:
            return None
        talk = self.hooked.talk(key)
        seen = await asyncio.to_thread(talk.observe, tool.name, call, _text_of(result))
        return {"error" if seen.withheld else "result": seen.text} if seen.changed else None

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        del tool_args
        key, id_ = _key(tool_context.session), tool_context.function_call_id or ""
        call = self._running.pop((key, id_), None)
        if call is not None:
            await asyncio.to_thread(self.hooked.talk(key).observe_error, tool.name, call, error)
        return None


def _key(session: Any) -> str:
    return f"{session.app_name}\n{session.user_id}\n{session.id}"


def _decide(talk: Talk, tool: BaseTool, args: dict[str, Any], id_: str) -> Verdict:
    talk.declare([declaration(tool)])
    return talk.decide(tool.name, args, id_)


def declaration(tool: BaseTool) -> dict[str, Any]:
    """Return a tool as MCP declares it."""
    found = tool._get_declaration()  # noqa: SLF001 - the only way to a tool's schema
    schema: Any = None if found is None else found.parameters_json_schema
    if schema is None and found is not None and found.parameters is not None:
        schema = found.parameters.model_dump(mode="json", exclude_none=True)
    about = {"name": tool.name, "description": tool.description or ""}
    return about | {"inputSchema": _lower(schema or {"type": "object"})}


def _lower(schema: Any) -> Any:
    """Return a schema with the types of JSON schema: Google writes them in capital letters."""
    if isinstance(schema, list):
        return [_lower(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower(value)
        for key, value in schema.items()
    }


def history(events: Iterable[Any]) -> list[Said | Ran]:
    """Return what users said and tools returned."""
    found: list[Said | Ran] = []
    calls: dict[str, Any] = {}
    for event in events:
        parts = (event.content and event.content.parts) or ()
        texts = [part.text for part in parts if part.text]
        if event.author == "user" and texts:
            found.append(Said("\n".join(texts)))
        for part in parts:
            if part.function_call is not None:
                calls[part.function_call.id or ""] = part.function_call
            elif part.function_response is not None:
                given = part.function_response
                call = calls.get(given.id or "")
                args = {} if call is None else call.args or {}
                output = _text_of(given.response)
                found.append(Ran(given.id or "", given.name or "", args, output))
    return found


def _text_of(response: Any) -> str:
    """Return a result as text. ADK puts a text into a dictionary."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("result", "error") and isinstance(value, str):
            return value
    return as_text(response)
