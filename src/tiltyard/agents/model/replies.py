"""Read a model's reply: a call, an answer, or a problem to tell the model.

A reply is hostile. An endpoint may promise to follow a schema; this module checks it again.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard.agents.model.prompt import FUNCTIONS, Mode
from tiltyard.world.text import has_lone_surrogate
from tiltyard.world.tools import TOOLS

NO_COMPLETION: Final = "the endpoint sent no chat completion"
MAX_SAID_CHARS: Final = 4_000
MAX_ANSWER_CHARS: Final = 20_000
MAX_PROBLEM_CHARS: Final = 200


class Call(Struct, frozen=True):
    """A tool call with valid names and types."""

    tool: str
    args: dict[str, str | int]
    others: int = 0
    """Further calls in the same reply. They are not made: the agent makes one at a time."""


class Said(Struct, frozen=True):
    """An answer, which ends the turn."""

    text: str
    refused: bool = False
    """True if the endpoint marks the reply as a refusal."""


class Problem(Struct, frozen=True):
    """An invalid reply, and what is wrong with it."""

    why: str
    said: str
    """The part of the reply that the model sees again."""
    hopeless: bool = False
    """True if a repair request would not help."""


class Usage(Struct, frozen=True):
    """Tokens, as counted by the endpoint."""

    prompt: int = 0
    completion: int = 0


class _NotAnActionError(ValueError):
    """The reply is not a valid action. The message says why."""


def usage_of(body: str) -> Usage:
    """Return the token counts in a reply; 0 for a missing or invalid count."""
    found = _parsed(body)
    usage = found.get("usage") if isinstance(found, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    return Usage(_count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def content_of(body: str) -> str | None:
    """Return the text of a complete reply; None if there is none, or a refusal."""
    found = _parsed(body)
    try:
        choice = found["choices"][0]
        content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    except (TypeError, KeyError, IndexError, AttributeError):
        return None
    whole = choice.get("finish_reason") != "length" and not refusal
    return content if whole and isinstance(content, str) and content.strip() else None


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 10**9 else 0


def read_reply(body: str, mode: Mode) -> Call | Said | Problem:
    """Read the body of an endpoint's reply."""
    found = _parsed(body)
    try:
        choice = found["choices"][0]
        message = choice["message"]
        content = message.get("content")
        refusal = message.get("refusal")
        calls = message.get("tool_calls")
        ended = choice.get("finish_reason")
    except (TypeError, KeyError, IndexError, AttributeError):
        return Problem(NO_COMPLETION, "")
    said = content if isinstance(content, str) else ""
    if isinstance(refusal, str) and refusal.strip():
        return Said(_text(refusal), refused=True)
    called = calls if mode is Mode.TOOLS and isinstance(calls, list) else []
    if not called and not said.strip():
        return Problem("the reply is empty", "")
    if not called and mode is Mode.TOOLS:
        return Said(_text(said))
    if ended == "length":
        return Problem("the reply is too long and was cut off", said[:MAX_SAID_CHARS])
    try:
        return _read_call(called) if called else _read_action(said)
    except _NotAnActionError as error:
        return Problem(str(error)[:MAX_PROBLEM_CHARS], said[:MAX_SAID_CHARS])


def _read_action(said: str) -> Call | Said:
    try:
        found = msgspec.json.decode(said.encode())
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        raise _NotAnActionError("it is not JSON") from None
    action = found.get("action") if isinstance(found, dict) and len(found) == 1 else None
    if not isinstance(action, dict):
        raise _NotAnActionError('it is not an object with the one key "action"')
    if action.keys() == {"answer"}:
        answer = action["answer"]
        if not isinstance(answer, str):
            raise _NotAnActionError('"answer" is not a string')
        return Said(_text(answer))
    if action.keys() != {"tool", "arguments"}:
        raise _NotAnActionError('"action" has neither "tool" and "arguments" nor "answer"')
    return Call(_tool(action["tool"]), _arguments(action["tool"], action["arguments"]))


def _read_call(calls: list[Any]) -> Call:
    try:
        function = calls[0]["function"]
        name, packed = function["name"], function["arguments"]
    except (TypeError, KeyError):
        raise _NotAnActionError("the tool call has no function") from None
    tool = FUNCTIONS.get(name, name) if isinstance(name, str) else name
    known = _tool(tool)
    given = packed
    if isinstance(packed, str):
        try:
            given = msgspec.json.decode(packed.encode() or b"{}")
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            raise _NotAnActionError("the arguments are not JSON") from None
    return Call(known, _arguments(known, given), len(calls) - 1)


def _tool(name: object) -> str:
    if not isinstance(name, str):
        raise _NotAnActionError("the tool's name is not a string")
    if name not in TOOLS:
        raise _NotAnActionError(f"there is no tool {name[:60]!r}")
    return name


def _arguments(tool: str, given: object) -> dict[str, str | int]:
    if not isinstance(given, dict):
        raise _NotAnActionError("the arguments are not an object")
    args: dict[str, str | int] = {}
    for parameter in TOOLS[tool].parameters:
        value = given.get(parameter.name)
        if value is None:
            if parameter.required:
                raise _NotAnActionError(f"{tool} needs {parameter.name!r}")
        elif type(value) is not (int if parameter.number else str):
            kind = "a whole number" if parameter.number else "a string"
            raise _NotAnActionError(f"{parameter.name!r} must be {kind}")
        elif isinstance(value, str) and len(value) > parameter.max_chars:
            most = parameter.max_chars
            raise _NotAnActionError(f"{parameter.name!r} is longer than {most:,} characters")
        else:
            args[parameter.name] = value
    unknown = given.keys() - {parameter.name for parameter in TOOLS[tool].parameters}
    if unknown:
        raise _NotAnActionError(f"{tool} takes no {min(map(str, unknown))[:60]!r}")
    return args


def _text(said: str) -> str:
    clean = said.encode("utf-8", "replace").decode() if has_lone_surrogate(said) else said
    return clean[:MAX_ANSWER_CHARS]


def _parsed(body: str) -> Any:
    try:
        return msgspec.json.decode(body.encode("utf-8", "replace"))
    except (msgspec.MsgspecError, RecursionError):
        return None
