"""What a guardrail sees of the answer to a tool call, and what is left of it afterwards."""

from typing import Any, Final

import msgspec

from tiltyard.contracts.guardrail import Passage, Result
from tiltyard.inference import Source

SOURCE: Final = "tool"
TOOL_ERROR: Final = "tool_error"
PROTOCOL_ERROR: Final = "protocol_error"
_BY: Final = {Source.OWNER: "owner", Source.SYSTEM: "system", Source.STRANGERS: "person"}


def read_answer(body: dict[str, Any], said: object) -> Result:
    """Return an answer as a guardrail sees it. `said` is the operator's word on who wrote it."""
    by = _BY.get(Source[said]) if isinstance(said, str) and said in Source.__members__ else None
    passages = () if by is None else (Passage("", by=by),)
    error = body.get("error")
    if error is not None:
        told = error if isinstance(error, dict) else {"message": error}
        text = told.get("message")
        output = text if isinstance(text, str) else ""
        return Result(False, output, PROTOCOL_ERROR, SOURCE, told.get("data"), passages)  # noqa: FBT003
    result = _payload(body)
    ok = result.get("isError") is not True
    output = "\n".join(text for block in _blocks(result) if (text := _text_of(block)) is not None)
    structured = result.get("structuredContent")
    return Result(ok, output, None if ok else TOOL_ERROR, SOURCE, structured, passages)


def write_answer(body: dict[str, Any], before: Result, kept: Result) -> dict[str, Any]:
    """Return the parts of the message that replace others, so that it says only what is kept."""
    error = body.get("error")
    if error is not None:
        told = dict(error) if isinstance(error, dict) else {}
        told["message"] = kept.output
        if kept.structured is None:
            told.pop("data", None)
        elif "data" in told:
            told["data"] = kept.structured
        return {"error": told}
    result = dict(_payload(body))
    if kept.output != before.output:
        left = [block for block in _blocks(result) if _text_of(block) is None]
        result["content"] = [{"type": "text", "text": kept.output}, *left]
    if kept.structured != before.structured:
        result["structuredContent"] = kept.structured
        if kept.structured is None:
            del result["structuredContent"]
    outer = body.get("result")
    if isinstance(outer, dict) and "content" not in outer and isinstance(outer.get("result"), dict):
        return {"result": outer | {"result": result}}
    return {"result": result}


def _payload(body: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the tool. A finished task may carry it as a field."""
    result = body.get("result")
    if not isinstance(result, dict):
        return {}
    inner = result.get("result")
    return inner if isinstance(inner, dict) and "content" not in result else result


def _blocks(result: dict[str, Any]) -> list[Any]:
    found = result.get("content")
    return found if isinstance(found, list) else []


def _text_of(block: Any) -> str | None:
    """Return the text of a content block; None for an image or a sound."""
    if not isinstance(block, dict):
        return msgspec.json.encode(block).decode()
    kind = block.get("type")
    if kind in ("image", "audio"):
        return None
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        text = resource.get("text", "")
        uri = resource.get("uri", "")
        return f"{uri}\n{text}" if isinstance(text, str) else str(uri)
    # Links, and kinds that are not known here: the agent reads all of their text.
    return msgspec.json.encode(block).decode()
