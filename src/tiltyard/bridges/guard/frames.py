"""Read JSON-RPC frames strictly.

Two programs read each frame: the guard and the peer behind it. They must agree on what the frame
says, or a call could pass as something else. So a frame that another parser may read differently is
refused: duplicate keys, escapes in the names of methods and fields, batches, numbers that do not
fit, invalid Unicode, line breaks that split a frame in two.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tiltyard.foundation.strict_json import MAX_NUMBER_CHARS, UnclearError, strict_decoder

MAX_FRAME_BYTES: Final = 16 << 20
MAX_VALUES: Final = 1_000_000
CHUNK: Final = 1 << 16
_KEPT: Final = 512
"""How much of the beginning and the end of a frame that is too large is kept, to find its id."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600

_METHOD: Final = re.compile(r"[A-Za-z0-9_$./-]{1,200}")
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PAIR: Final = re.compile(rb"\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_FIRST_ID: Final = re.compile(
    rb'\A\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*,'
)
_LAST_ID: Final = re.compile(
    rb',\s*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'
)

FIELDS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
CALL_FIELDS: Final = frozenset(
    {"name", "arguments", "_meta", "task", "requestState", "inputResponses"}
)
_TELLING: Final = {field.casefold(): field for field in FIELDS | CALL_FIELDS}

Id = str | int


class RefusedError(Exception):
    """The frame is not understood. `id` is the id of the message, if it can be told."""

    def __init__(self, why: str, code: int = INVALID_REQUEST, id: Id | None = None) -> None:  # noqa: A002 - JSON-RPC's word
        super().__init__(why)
        self.why = why
        self.code = code
        self.id = id


class Message(NamedTuple):
    """One JSON-RPC message, with the bytes that it came in."""

    raw: bytes
    """The frame without its line break."""
    body: dict[str, Any]

    @property
    def id(self) -> Id | None:
        found: Id | None = self.body.get("id")
        return found

    @property
    def method(self) -> str:
        """The method of a request or a notification; empty for a response."""
        found: str = self.body.get("method", "")
        return found

    @property
    def params(self) -> dict[str, Any]:
        found = self.body.get("params")
        return found if isinstance(found, dict) else {}

    @property
    def is_request(self) -> bool:
        return "method" in self.body and "id" in self.body

    @property
    def is_response(self) -> bool:
        return "method" not in self.body


def parse(raw: bytes, *, one_line: bool = True) -> Message:
    """Return the message in a frame, or raise a RefusedError.

    Over stdio, a frame is one line. Over HTTP, it may have line breaks between its values.
    """
    if len(raw) > MAX_FRAME_BYTES:
        raise RefusedError(f"the frame has more than {MAX_FRAME_BYTES:,} bytes", id=guess_id(raw))
    if one_line and (b"\r" in raw or b"\n" in raw):
        # Some peers end a frame at a carriage return, and would see other frames than the guard.
        raise RefusedError("the frame contains a line break", PARSE_ERROR)
    _check_bytes(raw)
    body = _read(raw)
    if isinstance(body, list):
        raise RefusedError("batches are not supported; send one message in each frame")
    if not isinstance(body, dict):
        raise RefusedError("the frame is no JSON object")
    found = body.get("id")
    known = found if type(found) in (str, int) else None
    problem = _problem(body)
    # Other escapes cannot spell a letter or a slash.
    if not problem and (b"\\u" in raw or b"\\/" in raw):
        problem = _escape_problem(body, _with_escapes_shown(raw))
    if problem:
        raise RefusedError(problem, INVALID_REQUEST, known)
    return Message(raw, body)


def _check_bytes(raw: bytes) -> None:
    if b"\\u" in raw:
        shown = raw.replace(b"\\\\", b"??")
        if _SURROGATE.search(_PAIR.sub(b"", shown)):
            raise RefusedError("the frame has half of a surrogate pair", PARSE_ERROR)
    if _count(raw) > MAX_VALUES and _count(_STRING.sub(b'""', raw)) > MAX_VALUES:
        raise RefusedError(f"the frame has more than {MAX_VALUES:,} values", PARSE_ERROR)


def _count(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


_DECODER: Final = strict_decoder()
_LENIENT: Final = json.JSONDecoder(parse_int=lambda digits: int(digits[:MAX_NUMBER_CHARS]))


def _read(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
        return _DECODER.decode(text)
    except UnicodeDecodeError:
        raise RefusedError("the frame is not valid UTF-8", PARSE_ERROR) from None
    except RecursionError:
        raise RefusedError("the frame is nested too deeply", PARSE_ERROR) from None
    except UnclearError as error:
        raise RefusedError(str(error), PARSE_ERROR, _id_of(text)) from None
    except ValueError:
        raise RefusedError("the frame is not JSON", PARSE_ERROR) from None


def read_object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object that every parser reads alike, or raise a RefusedError."""
    if len(raw) > MAX_FRAME_BYTES:
        raise RefusedError(f"the JSON has more than {MAX_FRAME_BYTES:,} bytes")
    _check_bytes(raw)
    body = _read(raw)
    if not isinstance(body, dict):
        raise RefusedError("the JSON is no object")
    return body


def _id_of(text: str) -> Id | None:
    """Return the id of an unclear message, for the answer to it."""
    try:
        body = _LENIENT.decode(text)
    except (ValueError, RecursionError):
        return None
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _problem(body: dict[str, Any]) -> str:
    """Return what is wrong with a message; empty if nothing is."""
    if body.get("jsonrpc") != "2.0":
        return 'the message has no "jsonrpc": "2.0"'
    # A peer may answer a frame that it could not parse with the id null.
    is_void = body.get("id", 0) is None and "error" in body
    if "id" in body and type(body["id"]) not in (str, int) and not is_void:
        return "the id is neither a string nor an integer"
    problem = _spelling_problem(body, FIELDS)
    if problem:
        return problem
    if "method" in body:
        method = body["method"]
        if not isinstance(method, str) or not _METHOD.fullmatch(method):
            return "the method is no name such as tools/call"
        if "result" in body or "error" in body:
            return "the message is a request and a response"
        params = body.get("params")
        if params is not None and not isinstance(params, dict):
            return "params is no object"
        return _spelling_problem(params or {}, CALL_FIELDS) if method == "tools/call" else ""
    if "id" not in body or ("result" in body) == ("error" in body):
        return "the message is neither a request, nor a notification, nor a response"
    return ""


def _spelling_problem(body: dict[str, Any], known: frozenset[str]) -> str:
    """Return what is wrong with keys: some parsers take `Method` for `method`."""
    for key in body:
        if key not in known and _TELLING.get(key.casefold()) in known:
            return f"a key is spelled almost like {_TELLING[key.casefold()]}"
    return ""


def _with_escapes_shown(raw: bytes) -> Any:
    """Parse a frame whose escapes stand for themselves."""
    shown = raw.replace(b"\\\\", b"??").replace(b'\\"', b"??").replace(b"\\", b"?")
    return _read(shown)


def _escape_problem(body: dict[str, Any], shown: Any) -> str:
    if not isinstance(shown, dict) or shown.keys() != body.keys():
        return "a key of the message is written with escapes"
    if shown.get("method") != body.get("method"):
        return "the method is written with escapes"
    params = body.get("params")
    if isinstance(params, dict) and params.keys() != shown["params"].keys():
        return "a key of params is written with escapes"
    return ""


def guess_id(raw: bytes) -> Id | None:
    """Return the id of a frame that is too large to read, if it stands in a usual place."""
    found = _FIRST_ID.search(raw[:_KEPT]) or _LAST_ID.search(raw[-_KEPT:])
    if found is None:
        return None
    guessed: Id = json.loads(found[1])
    return guessed


class FrameReader:
    """Splits what comes from a descriptor into frames, and keeps no more than one of them.

    A frame that is too large is read to its end, and only its beginning and its end are kept.
    """

    def __init__(self, descriptor: int, limit: int = MAX_FRAME_BYTES) -> None:
        self._descriptor = descriptor
        self._limit = limit

    def __iter__(self) -> Iterator[bytes | RefusedError]:
        """Yield frames without their line breaks, and errors for those that are too large."""
        kept = bytearray()
        lost = False
        while chunk := os.read(self._descriptor, CHUNK):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                kept += end
                yield self._finish(bytes(kept), lost=lost)
                kept.clear()
                lost = False
            kept += rest
            if len(kept) > self._limit:
                lost = True
                del kept[_KEPT:-_KEPT]
        if kept:
            # Half a frame: the peer has ended within it.
            yield (
                self._finish(bytes(kept), lost=lost)
                if lost
                else RefusedError("the last frame has no line break", PARSE_ERROR)
            )

    def _finish(self, raw: bytes, *, lost: bool) -> bytes | RefusedError:
        if lost or len(raw) > self._limit:
            why = f"the frame has more than {self._limit:,} bytes"
            return RefusedError(why, INVALID_REQUEST, guess_id(raw))
        return raw[:-1] if raw.endswith(b"\r") else raw


def encode(body: Any) -> bytes:
    """Return a message as one line of JSON, without the line break."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
