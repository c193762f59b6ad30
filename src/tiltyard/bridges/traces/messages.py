"""Messages as Chat Completions, AgentDojo and Inspect write them, with small differences."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.transcript import Transcript, as_list, as_object, text_of
from tiltyard.contracts.guardrail import Result

SOURCE: Final = "tool"
"""The kind of source of all results: traces do not tell who wrote them."""
_SILENT: Final = ("system", "developer")
_MAX_ERROR_CHARS: Final = 500

Resolve = Callable[[str], str]


def read_messages(
    transcript: Transcript, messages: object, resolve: Resolve = lambda text: text
) -> None:
    """Add all messages of a conversation. `resolve` returns what a reference stands for."""
    for raw in as_list(messages, "messages"):
        message = as_object(raw, "a message")
        role = message.get("role")
        content = resolve(text_of(message.get("content"), "the content of a message"))
        if role == "user":
            transcript.say(content)
        elif role == "assistant":
            transcript.answer(content)
            _add_calls(transcript, message)
        elif role == "tool":
            transcript.result(message.get("tool_call_id"), to_result(content, message.get("error")))
        elif role == "function":
            transcript.result(None, to_result(content, message.get("error")))
        elif role not in _SILENT:
            raise BadRunError(f"a message has the unknown role {str(role)[:80]!r}")


def _add_calls(transcript: Transcript, message: Mapping[str, Any]) -> None:
    for raw in as_list(message.get("tool_calls"), "tool_calls"):
        _add_call(transcript, as_object(raw, "a tool call"))
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        transcript.call(legacy.get("name"), legacy.get("arguments"))


def _add_call(transcript: Transcript, raw: Mapping[str, Any]) -> None:
    function = raw.get("function")
    custom = raw.get("custom")
    if isinstance(function, Mapping):
        name, args = function.get("name"), function.get("arguments")
    elif isinstance(custom, Mapping):
        # A custom tool takes one text without a schema.
        name, args = custom.get("name"), {"input": custom.get("input")}
    else:
        name, args = function, raw.get("args", raw.get("arguments"))
    transcript.call(name, args, raw.get("id"))


def to_result(output: str, error: object = None) -> Result:
    """Return the result of a call. An error is a text, or an object with a message."""
    if error is None or error == "" or error is False:
        return Result(ok=True, output=output, error=None, source=SOURCE)
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("type") or "error"
    return Result(ok=False, output=output, error=str(error)[:_MAX_ERROR_CHARS], source=SOURCE)
