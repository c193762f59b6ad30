"""The messages that the guard itself sends: errors, denials and questions."""

import json
from typing import Any, Final

from tiltyard.bridges.guard.frames import Id, RefusedError, encode
from tiltyard.foundation.printable import printable

INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
QUESTION: Final = "tiltyard-confirm"
"""The key of the guard's question among the input requests of 2026-07-28."""
MARK: Final = "tiltyard/denial"
"""The key in `_meta` of a denial. No result of a server keeps it."""
_MAX_SHOWN: Final = 2_000


def error(id: Id | None, code: int, why: str) -> bytes:  # noqa: A002 - JSON-RPC's word
    """Return a JSON-RPC error."""
    body = {"code": code, "message": f"Tiltyard guard: {why}"}
    return encode({"jsonrpc": "2.0", "id": id, "error": body})


def refusal(refused: RefusedError) -> bytes:
    """Return the answer to a frame that is not forwarded."""
    return error(refused.id, refused.code, f"not forwarded: {refused.why}")


def denial(id: Id | None, tool: str, reply: dict[str, Any], *, modern: bool) -> bytes:  # noqa: A002
    """Return the result of a call that does not run. It cannot be taken for `not found`."""
    text = denial_text(tool, reply, "The call never reached the server. ")
    meta = {
        "action": reply.get("action", "deny"),
        "guardrail": str(reply.get("guardrail", "")),
        "reason": str(reply.get("reason", "")),
        "fault": reply.get("fault"),
    }
    return _result(id, text, meta, modern=modern)


def denial_text(tool: str, reply: dict[str, Any], also: str = "") -> str:
    """Return what an agent reads in place of a result."""
    guardrail = str(reply.get("guardrail", ""))
    by = f"the guardrail {guardrail!r}" if guardrail else "the guard"
    return (
        f"DENIED: the Tiltyard guard did not run this call of the tool {_shown(tool)}. "
        f"{also}Denied by {by}. Reason: {reply.get('reason') or 'none given'}"
    )


def withheld(id: Id | None, tool: str, reply: dict[str, Any], *, modern: bool) -> bytes:  # noqa: A002
    """Return what replaces a result that the guardrail could not check."""
    guardrail, reason = str(reply.get("guardrail", "")), str(reply.get("reason", ""))
    meta = {"action": "withhold", "guardrail": guardrail, "reason": reason}
    return _result(id, withheld_text(tool, reply), meta, modern=modern)


def withheld_text(tool: str, reply: dict[str, Any]) -> str:
    """Return what an agent reads in place of a result that the guardrail could not check."""
    return (
        f"WITHHELD: the tool {_shown(tool)} ran, but the Tiltyard guard withholds its result. "
        f"Guardrail: {str(reply.get('guardrail', ''))!r}. Reason: {reply.get('reason', '')}"
    )


def unmarked(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return a result of a server without the mark of a denial; None if it has none."""
    result = body.get("result")
    if not isinstance(result, dict):
        return None
    meta = result.get("_meta")
    if not isinstance(meta, dict) or MARK not in meta:
        return None
    kept = {key: value for key, value in meta.items() if key != MARK}
    return body | {"result": result | {"_meta": kept}}


def _result(id: Id | None, text: str, meta: dict[str, Any], *, modern: bool) -> bytes:  # noqa: A002
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {MARK: meta},
    }
    if modern:
        result["resultType"] = "complete"
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def question(server: str, tool: str, args: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an elicitation about exactly this call."""
    shown = printable(json.dumps(args, ensure_ascii=False), limit=_MAX_SHOWN)
    message = (
        f"The guardrail {reply.get('guardrail', '')!r} asks: may the agent call the tool "
        f"{_shown(tool)} of the server {_shown(server)} with these arguments?\n{shown}\n"
        f"Reason: {printable(reply.get('reason', ''))}\nYour answer is for this call only."
    )
    return {
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "allow": {
                    "type": "boolean",
                    "title": "Allow this call",
                    "description": "Say yes only if you want exactly this call.",
                }
            },
            "required": ["allow"],
        },
    }


def is_yes(answer: object) -> bool:
    """Tell whether the user accepted the question and ticked it."""
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return False
    content = answer.get("content")
    return isinstance(content, dict) and content.get("allow") is True


def _shown(name: str) -> str:
    return "'" + printable(name, spell_out="'", limit=200) + "'"
