"""Read tool calls, and what a client can do, in both protocol families."""

import json
from typing import Any, Final

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.frames import Id, Message, RefusedError, encode
from tiltyard.bridges.guard.memory import Call

MODERN: Final = "2026-07-28"
"""From this revision on, a request carries its version, and a server cannot send requests."""
META: Final = "_meta"
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"


def read_call(message: Message) -> Call:
    params = message.params
    name, args = params.get("name"), params.get("arguments")
    if not message.is_request:
        raise RefusedError("tools/call has no id")
    if not isinstance(name, str) or not (args is None or isinstance(args, dict)):
        why = "tools/call needs a name, and arguments as an object"
        raise RefusedError(why, answers.INVALID_PARAMS, message.id)
    spellings = {key.casefold() for key in args or {}}
    if len(spellings) != len(args or {}):
        raise RefusedError("two arguments differ in case only", id=message.id)
    return Call(message, name, args or {}, is_modern(message))


def is_modern(message: Message) -> bool:
    """Tell whether a request belongs to the stateless revisions."""
    meta = message.params.get(META)
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    return isinstance(version, str) and version >= MODERN


def modern_forms(message: Message) -> bool:
    meta = message.params.get(META)
    return isinstance(meta, dict) and has_forms(meta.get(_CAPABILITIES))


def has_forms(capabilities: object) -> bool:
    """Tell whether a client can show a form. Without details, elicitation means forms."""
    found = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(found, dict) and ("form" in found or "url" not in found)


def input_required(id: Id | None, token: str, asked: dict[str, Any]) -> bytes:  # noqa: A002
    request = {"method": "elicitation/create", "params": {"mode": "form"} | asked}
    result = {
        "resultType": "input_required",
        "inputRequests": {answers.QUESTION: request},
        "requestState": token,
    }
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def declined(reply: dict[str, Any]) -> dict[str, Any]:
    return reply | {"reason": f"the user did not confirm this call ({reply.get('reason', '')})"}


def key_of(id: Id | None) -> tuple[type, Id]:  # noqa: A002
    """1 and "1" are different ids, though some clients take one for the other."""
    assert id is not None
    return type(id), id


def hashable(state: object) -> str:
    return json.dumps(state, sort_keys=True)
