"""All formats, and how to recognize each by the beginning of a file."""

import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final

from tiltyard.bridges.traces.chat import read_agentdojo, read_chat
from tiltyard.bridges.traces.claude_code import read_claude_code
from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.inspect_logs import ZIP_START, read_inspect
from tiltyard.bridges.traces.otel import read_otel
from tiltyard.bridges.traces.record import read_record
from tiltyard.bridges.traces.streams import Source
from tiltyard.studies.recorded import RecordedRun, Skipped

Reader = Callable[[Source, ToolLists], Iterator[RecordedRun | Skipped]]


class Format(StrEnum):
    CHAT = "chat"
    """Chat Completions messages, one conversation a line."""
    AGENTDOJO = "agentdojo"
    INSPECT = "inspect"
    OTEL = "otel"
    CLAUDE_CODE = "claude-code"
    RECORD = "record"
    """`tiltyard guard --record`."""


READERS: Final[dict[Format, Reader]] = {
    Format.CHAT: read_chat,
    Format.AGENTDOJO: read_agentdojo,
    Format.INSPECT: read_inspect,
    Format.OTEL: read_otel,
    Format.CLAUDE_CODE: read_claude_code,
    Format.RECORD: read_record,
}
_RECORD: Final = "tiltyard-record"
_MARKS: Final = (
    (Format.OTEL, re.compile(rb'"resourceSpans"\s*:')),
    (Format.AGENTDOJO, re.compile(rb'"(user_task_id|injection_task_id|pipeline_name)"\s*:')),
    (Format.INSPECT, re.compile(rb'^\s*\{\s*"(version|status)"\s*:.*"eval"\s*:\s*\{', re.DOTALL)),
    (Format.RECORD, re.compile(rb'"format"\s*:\s*"tiltyard-record"')),
    (Format.CLAUDE_CODE, re.compile(rb'"(parentUuid|isSidechain|leafUuid|sessionId)"\s*:')),
    (Format.CHAT, re.compile(rb'"messages"\s*:')),
)


def detect(head: bytes) -> Format | None:
    """Return the format of a file that begins with these bytes; None if it is no known one."""
    if head.startswith(ZIP_START):
        return Format.INSPECT
    first = head.lstrip().split(b"\n", 1)[0]
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return _detect_object(found)
    return next((one for one, mark in _MARKS if mark.search(head)), None)


def _detect_object(found: dict[str, Any]) -> Format | None:
    """Return the format by the keys of the first object."""
    if "resourceSpans" in found:
        return Format.OTEL
    if isinstance(found.get("messages"), list):
        return Format.AGENTDOJO if "user_task_id" in found else Format.CHAT
    if found.get("format") == _RECORD:
        return Format.RECORD
    if "eval" in found and "version" in found:
        return Format.INSPECT
    if "type" in found and found.keys() & {"sessionId", "uuid", "leafUuid", "messageId"}:
        return Format.CLAUDE_CODE
    return None
