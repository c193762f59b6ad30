"""A guardrail for agents of Inspect, the evaluation framework, as an approver of tool calls.

Install the library with `pip install inspect-ai`.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

from tiltyard.bridges.hooked import Hooked, Options, Ran, Said, Talk, Verdict

try:
    import anyio.to_thread
    from inspect_ai.approval import Approval, Approver, approver
    from inspect_ai.hooks import BeforeModelGenerate, Hooks, hooks
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageTool,
        ChatMessageUser,
    )
    from inspect_ai.solver._task_state import sample_state
    from inspect_ai.tool import ToolCall, ToolCallView
except ImportError as error:
    raise ImportError("tiltyard.bridges.inspect needs Inspect: pip install inspect-ai") from error

MAX_SAMPLES: Final = 1_000
_OFFERED: Final[dict[str, list[dict[str, Any]]]] = {}
"""The tools that the model of each running sample was offered last."""


@hooks(name="tiltyard_guard", description="Tells Tiltyard's guard which tools a model has.")
class ToolNotes(Hooks):
    """Approvers do not see the declarations of tools, but hooks do."""

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        sample = sample_state()
        if sample is not None and data.tools:
            _OFFERED.pop(sample.uuid, None)
            _OFFERED[sample.uuid] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.parameters.model_dump(mode="json", exclude_none=True),
                }
                for tool in data.tools
            ]
        if len(_OFFERED) > MAX_SAMPLES:
            del _OFFERED[next(iter(_OFFERED))]


@approver(name="tiltyard_guard")
def guard(  # noqa: PLR0913, PLR0917 - Inspect passes parameters of policies by name
    guardrail: str = "declared",
    overlay: str = "",
    policy: str = "",
    record: str = "",
    model: str = "",
    unsafe: bool = False,  # noqa: FBT001, FBT002 - as above
) -> Approver:
    """Return an approver that asks a guardrail. Each sample is a conversation."""
    hooked = _hooked(Options(guardrail, overlay, policy, record, model, unsafe))

    async def approve(
        message: str, call: ToolCall, view: ToolCallView, history: list[ChatMessage]
    ) -> Approval:
        del message, view
        sample = sample_state()
        key = "" if sample is None else sample.uuid
        before = _history(user_words(sample, history), history)
        talk = hooked.talk(key)
        verdict = await anyio.to_thread.run_sync(_decide, talk, call, before, _OFFERED.get(key, []))
        if not verdict.runs:
            return Approval(decision="reject", explanation=verdict.text)
        if verdict.changed:
            less = dataclasses.replace(call, arguments=verdict.args)
            return Approval(decision="modify", modified=less, explanation=verdict.reason)
        return Approval(decision="approve")

    return approve


@cache
def _hooked(options: Options) -> Hooked:
    """Return one process for all samples of all tasks with the same options."""
    return Hooked(options)


def _decide(
    talk: Talk, call: ToolCall, before: list[Said | Ran], tools: list[dict[str, Any]]
) -> Verdict:
    talk.declare(tools)
    talk.catch_up(before)
    return talk.decide(call.function, call.arguments, call.id)


def user_words(sample: Any, history: Iterable[ChatMessage]) -> list[str]:
    """Return what the user says: the sample's input, and what an operator says later.

    Other messages of the role `user` come from agents, which write them for other agents.
    """
    given = [] if sample is None else sample.input
    first = [given] if isinstance(given, str) else [one.text for one in given if _is_user(one)]
    later = [one.text for one in history if _is_user(one) and one.source == "operator"]
    return [*first, *later]


def _is_user(message: ChatMessage) -> bool:
    return isinstance(message, ChatMessageUser)


def _history(said: Sequence[str], messages: Iterable[ChatMessage]) -> list[Said | Ran]:
    found: list[Said | Ran] = [Said(text) for text in said]
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            calls |= {call.id: call for call in message.tool_calls or ()}
        elif isinstance(message, ChatMessageTool):
            call = calls.get(message.tool_call_id or "")
            name = message.function or ("" if call is None else call.function)
            output = message.text if message.error is None else message.error.message
            args = {} if call is None else call.arguments
            ok = message.error is None
            found.append(Ran(message.tool_call_id or "", name, args, output, ok))
    return found
