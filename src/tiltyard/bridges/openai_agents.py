"""A guardrail for agents of the OpenAI Agents SDK.

Install the library with `pip install openai-agents`.
"""

import asyncio
import dataclasses
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from typing import Any, TypeAlias

from tiltyard.bridges.guard.frames import RefusedError, read_object
from tiltyard.bridges.hooked import Hooked, HookError, Options, Ran, Said, Talk, as_hooked

try:
    from agents.tool_context import ToolContext

    from agents import Agent, AgentHooks, FunctionTool, Handoff, RunContextWrapper
except ImportError as error:
    raise ImportError(
        "tiltyard.bridges.openai_agents needs the OpenAI Agents SDK: pip install openai-agents"
    ) from error

Call: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]


def guarded(agent: Agent[Any], guardrail: Hooked | Options | str = "declared") -> Agent[Any]:
    """Return a copy of an agent, and of all agents that it hands over to, with guarded tools.

    The copy is for one conversation.
    """
    talk = as_hooked(guardrail).talk(str(uuid.uuid4()))
    return _Guard(talk).agent(agent)


class _Guard:
    """Makes guarded agents of one conversation."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._made: dict[int, tuple[Agent[Any], Agent[Any]]] = {}

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        if id(agent) in self._made:
            return self._made[id(agent)][1]
        if agent.mcp_servers:
            raise HookError(
                f"the agent {agent.name!r} has MCP servers; guard each of them with "
                "`tiltyard guard`, and pass an agent without them"
            )
        tools = [self._tool(tool) for tool in agent.tools]
        made = agent.clone(tools=tools, hooks=_Hooks(self._talk, agent.hooks))
        self._made[id(agent)] = agent, made
        made.handoffs = [self._handoff(one) for one in agent.handoffs]
        return made

    def _handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self.agent(handoff)
        original = handoff.on_invoke_handoff

        async def invoke(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return self.agent(await original(context, arguments))

        return dataclasses.replace(handoff, on_invoke_handoff=invoke)

    def _tool(self, tool: Any) -> FunctionTool:
        if not isinstance(tool, FunctionTool):
            raise HookError(
                f"the tool {getattr(tool, 'name', tool)!r} does not run in this process, so no "
                "guardrail can stop it; remove it, or offer a function tool instead"
            )
        if getattr(tool, "_is_agent_tool", False):
            raise HookError(
                f"the tool {tool.name!r} is an agent, which runs its own tools with a model's "
                "words in place of the user's; hand over to it instead"
            )
        schema = tool.params_json_schema
        self._talk.declare(
            [{"name": tool.name, "description": tool.description, "inputSchema": schema}]
        )
        made = copy(tool)
        made.on_invoke_tool = _guarded_call(self._talk, tool)
        return made


def _guarded_call(talk: Talk, tool: FunctionTool) -> Call:
    name, run = tool.name, tool.on_invoke_tool

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        args = _arguments(arguments)
        verdict = await asyncio.to_thread(talk.decide, name, args, context.tool_call_id)
        if not verdict.runs:
            return verdict.text
        given = json.dumps(verdict.args) if verdict.changed else arguments
        try:
            result = await run(context, given)
        except Exception as error:
            await asyncio.to_thread(talk.observe_error, name, verdict.call, error)
            raise
        seen = await asyncio.to_thread(talk.observe, name, verdict.call, _text_of(result))
        return seen.text if seen.changed else result

    return invoke


def _arguments(text: str) -> dict[str, Any] | str:
    """Return the arguments of a call, or why they are unclear."""
    try:
        return read_object(text.encode("utf-8", "surrogatepass")) if text else {}
    except RefusedError as error:
        return error.why


class _Hooks(AgentHooks[Any]):
    """Tells the guardrail what the model is about to read, and calls the user's own hooks."""

    def __init__(self, talk: Talk, own: AgentHooks[Any] | None) -> None:
        self._talk = talk
        self._own = own or AgentHooks()

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        await asyncio.to_thread(self._talk.catch_up, history(input_items))
        await self._own.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, *given: Any, **named: Any) -> None:
        await self._own.on_llm_end(*given, **named)

    async def on_start(self, *given: Any, **named: Any) -> None:
        await self._own.on_start(*given, **named)

    async def on_end(self, *given: Any, **named: Any) -> None:
        await self._own.on_end(*given, **named)

    async def on_handoff(self, *given: Any, **named: Any) -> None:
        await self._own.on_handoff(*given, **named)

    async def on_tool_start(self, *given: Any, **named: Any) -> None:
        await self._own.on_tool_start(*given, **named)

    async def on_tool_end(self, *given: Any, **named: Any) -> None:
        await self._own.on_tool_end(*given, **named)


def history(items: Iterable[Any]) -> list[Said | Ran]:
    """Return what users said and tools returned."""
    found: list[Said | Ran] = []
    calls: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, dict):
            continue
        if item.get("role") == "user":
            found.append(Said(_text_of(item.get("content"))))
        elif item.get("type") == "function_call":
            calls[item["call_id"]] = item
        elif item.get("type") == "function_call_output":
            call = calls.get(item["call_id"], {})
            args = _arguments(call.get("arguments", ""))
            output = _text_of(item.get("output"))
            found.append(Ran(item["call_id"], call.get("name", ""), args, output))
    return found


def _text_of(content: Any) -> str:
    """Return the text of a message or a result, as the model reads it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "\n".join(_text_of(part) for part in content)
    text = content.get("text") if isinstance(content, dict) else getattr(content, "text", None)
    return text if isinstance(text, str) else str(content)
