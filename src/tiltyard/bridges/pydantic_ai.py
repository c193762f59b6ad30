"""A guardrail for agents of Pydantic AI.

Install the library with `pip install pydantic-ai-slim`.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from tiltyard.bridges.guard.frames import RefusedError, read_object
from tiltyard.bridges.hooked import Hooked, Options, Ran, Said, Talk, Verdict, as_hooked, as_text

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.messages import (
        ModelResponse,
        RetryPromptPart,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    raise ImportError(
        "tiltyard.bridges.pydantic_ai needs Pydantic AI 2: pip install pydantic-ai-slim"
    ) from error


class Guard(AbstractCapability[Any]):
    """Asks a guardrail about each tool call of an agent.

    Runs with the same `conversation_id` are one conversation.
    """

    def __init__(self, guardrail: Hooked | Options | str = "declared") -> None:
        self.hooked = as_hooked(guardrail)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        talk = self.hooked.talk(ctx.conversation_id or ctx.run_id or "")
        verdict = await asyncio.to_thread(_decide, talk, ctx, call, tool_def)
        if not verdict.runs:
            return verdict.text
        name = call.tool_name
        try:
            result = await handler(_reduced(args, verdict) if verdict.changed else args)
        except ModelRetry as error:
            # The model reads what the tool says about its error.
            await asyncio.to_thread(talk.observe_error, name, verdict.call, error)
            raise
        seen = await asyncio.to_thread(talk.observe, name, verdict.call, _text_of(result))
        return seen.text if seen.changed else result


def _decide(talk: Talk, ctx: RunContext[Any], call: ToolCallPart, tool: ToolDefinition) -> Verdict:
    talk.catch_up(history(ctx.messages))
    schema = tool.parameters_json_schema
    about = tool.description or ""
    talk.declare([{"name": tool.name, "description": about, "inputSchema": schema}])
    return talk.decide(call.tool_name, _arguments(call), call.tool_call_id)


def _arguments(call: ToolCallPart) -> dict[str, Any] | str:
    """Return the arguments of a call, or why they are unclear."""
    if not isinstance(call.args, str):
        return call.args or {}
    try:
        return read_object(call.args.encode("utf-8", "surrogatepass")) if call.args else {}
    except RefusedError as error:
        return error.why


def _reduced(args: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    """Return validated arguments with the values that the guardrail leaves."""
    return {name: verdict.args[name] for name in args if name in verdict.args}


def _text_of(result: Any) -> str:
    if not isinstance(result, ToolReturn):
        return as_text(result)
    said = "" if result.content is None else as_text(result.content)
    return "\n".join(part for part in (as_text(result.return_value), said) if part)


def history(messages: Iterable[Any]) -> list[Said | Ran]:
    """Return what users said and tools returned."""
    found: list[Said | Ran] = []
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(message, ModelResponse):
                if isinstance(part, ToolCallPart):
                    calls[part.tool_call_id] = part
            elif isinstance(part, UserPromptPart):
                found.append(Said(_prompt(part.content)))
            elif isinstance(part, ToolReturnPart | RetryPromptPart) and part.tool_name:
                call = calls.get(part.tool_call_id)
                args = {} if call is None else _arguments(call)
                ok = isinstance(part, ToolReturnPart) and part.outcome == "success"
                output = as_text(part.content)
                found.append(Ran(part.tool_call_id, part.tool_name, args, output, ok))
    return found


def _prompt(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part for part in content if isinstance(part, str))
