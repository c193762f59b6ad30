"""A guardrail for agents of LangChain and LangGraph.

`GuardMiddleware` is for `create_agent`. `tool_wrappers` is for a `ToolNode` of your own. Install
the library with `pip install langchain`.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, Final, NotRequired, TypeAlias

from tiltyard.bridges.hooked import (
    Hooked,
    Options,
    Ran,
    Said,
    Talk,
    Verdict,
    as_hooked,
    as_text,
)

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import AgentState, PrivateStateAttr
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.tools import BaseTool
    from langgraph.errors import GraphBubbleUp
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise ImportError(
        "tiltyard.bridges.langchain needs LangChain 1.4 or newer: pip install langchain"
    ) from error

Answer: TypeAlias = ToolMessage | Command[Any]
Run: TypeAlias = Callable[[ToolCallRequest], Answer]
RunLater: TypeAlias = Callable[[ToolCallRequest], Awaitable[Answer]]
_SOURCE: Final = "lc_source"
"""Marks messages of the role `user` that a middleware has written."""


class GuardState(AgentState[Any]):
    """The state of an agent, with the name of its conversation. It lasts as long as the thread."""

    tiltyard_conversation: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class GuardMiddleware(AgentMiddleware[GuardState, Any, Any]):
    """Asks a guardrail about each tool call of an agent.

    Put this middleware last in the list, so that no other one changes a call after it was decided.
    """

    state_schema = GuardState

    def __init__(self, guardrail: Hooked | Options | str = "declared") -> None:
        super().__init__()
        self.hooked = as_hooked(guardrail)

    def before_agent(self, state: GuardState, runtime: Any) -> dict[str, Any] | None:
        """Tell the guardrail what the user says."""
        del runtime
        key = state.get("tiltyard_conversation") or str(uuid.uuid4())
        self.hooked.talk(key).catch_up(history(state.get("messages", ())))
        return {"tiltyard_conversation": key}

    async def abefore_agent(self, state: GuardState, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Run) -> Answer:
        return _run(self._talk(request), request, handler)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunLater) -> Answer:
        return await _run_later(self._talk(request), request, handler)

    def _talk(self, request: ToolCallRequest) -> Talk:
        return self.hooked.talk(request.state["tiltyard_conversation"])


def tool_wrappers(guardrail: Hooked | Options | str = "declared") -> dict[str, Any]:
    """Return the wrappers of one conversation: `ToolNode(tools, **tool_wrappers())`.

    The user's messages come from the graph's state, from its key `messages`.
    """
    talk = as_hooked(guardrail).talk(str(uuid.uuid4()))

    def wrap(request: ToolCallRequest, execute: Run) -> Answer:
        talk.catch_up(history(_messages(request)))
        return _run(talk, request, execute)

    async def wrap_later(request: ToolCallRequest, execute: RunLater) -> Answer:
        await asyncio.to_thread(talk.catch_up, history(_messages(request)))
        return await _run_later(talk, request, execute)

    return {"wrap_tool_call": wrap, "awrap_tool_call": wrap_later}


def history(messages: Iterable[Any]) -> list[Said | Ran]:
    """Return what users said and tools returned. A summary by a middleware is not the user's."""
    found: list[Said | Ran] = []
    calls: dict[str, Any] = {}
    for message in messages:
        if isinstance(message, HumanMessage) and _SOURCE not in message.additional_kwargs:
            found.append(Said(str(message.text)))
        elif isinstance(message, AIMessage):
            calls |= {call["id"] or "": call for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id, {})
            name, ok = call.get("name") or message.name or "", message.status != "error"
            text = str(message.text)
            found.append(Ran(message.tool_call_id, name, call.get("args", {}), text, ok))
    return found


def _messages(request: ToolCallRequest) -> Iterable[Any]:
    state = request.state
    if isinstance(state, list):
        return state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return found or ()


def _run(talk: Talk, request: ToolCallRequest, handler: Run) -> Answer:
    verdict = _decide(talk, request)
    if not verdict.runs:
        return _denial(request, verdict)
    try:
        answer = handler(_with_args(request, verdict))
    except GraphBubbleUp:
        raise  # A question to the user, or another way to steer the graph.
    except Exception as error:
        talk.observe_error(request.tool_call["name"], verdict.call, error)
        raise
    return _observe(talk, request, verdict, answer)


async def _run_later(talk: Talk, request: ToolCallRequest, handler: RunLater) -> Answer:
    verdict = await asyncio.to_thread(_decide, talk, request)
    if not verdict.runs:
        return _denial(request, verdict)
    try:
        answer = await handler(_with_args(request, verdict))
    except GraphBubbleUp:
        raise
    except Exception as error:
        name = request.tool_call["name"]
        await asyncio.to_thread(talk.observe_error, name, verdict.call, error)
        raise
    return await asyncio.to_thread(_observe, talk, request, verdict, answer)


def _decide(talk: Talk, request: ToolCallRequest) -> Verdict:
    if request.tool is not None:
        talk.declare([declaration(request.tool)])
    call = request.tool_call
    return talk.decide(call["name"], call["args"], call["id"] or "")


def declaration(tool: BaseTool) -> dict[str, Any]:
    """Return a tool as MCP declares it."""
    schema = tool.tool_call_schema
    found = schema if isinstance(schema, dict) else schema.model_json_schema()
    return {"name": tool.name, "description": tool.description, "inputSchema": found}


def _with_args(request: ToolCallRequest, verdict: Verdict) -> ToolCallRequest:
    if not verdict.changed:
        return request
    return request.override(tool_call={**request.tool_call, "args": verdict.args})


def _denial(request: ToolCallRequest, verdict: Verdict) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(verdict.text, tool_call_id=call["id"], name=call["name"], status="error")


def _observe(talk: Talk, request: ToolCallRequest, verdict: Verdict, answer: Answer) -> Answer:
    call = request.tool_call
    told = isinstance(answer, ToolMessage)
    ok = not (isinstance(answer, ToolMessage) and answer.status == "error")
    text = str(answer.text) if isinstance(answer, ToolMessage) else as_text(answer.update)
    seen = talk.observe(call["name"], verdict.call, text, ok=ok)
    if not seen.changed:
        return answer
    status = "error" if seen.withheld or not ok or not told else "success"
    return ToolMessage(seen.text, tool_call_id=call["id"], name=call["name"], status=status)
