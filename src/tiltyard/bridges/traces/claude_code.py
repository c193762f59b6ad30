"""Transcripts of Claude Code: JSON Lines, a file a session."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.messages import to_result
from tiltyard.bridges.traces.sessions import Sessions
from tiltyard.bridges.traces.streams import Source
from tiltyard.bridges.traces.transcript import Transcript, as_object, named, text_of
from tiltyard.bridges.traces.values import objects_of
from tiltyard.studies.recorded import RecordedRun, Skipped

_SPOKEN: Final = ("user", "assistant")
_FAILED: Final = "the tool reported an error"


def read_claude_code(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read the lines of users and assistants. A new `sessionId` begins a new run.

    Transcripts do not declare tools.
    """
    del tools
    sessions = Sessions(_Session)
    for one in objects_of(source):
        if one.value is None:
            sessions.spoil(one.place, one.problem)
            continue
        if one.value.get("type") not in _SPOKEN:
            continue
        session = named(one.value.get("sessionId"), "")
        if sessions.is_open and sessions.id != session:
            yield from sessions.end()
        if not sessions.is_open:
            sessions.begin(session, one.place)
        sessions.add(one.value, one.place)
    yield from sessions.end()


class _Session:
    """One session, line by line."""

    def __init__(self) -> None:
        self._transcript = Transcript()

    def add(self, raw: Mapping[str, Any]) -> None:
        message = as_object(raw.get("message"), "message")
        content = message.get("content")
        # An agent writes the prompts of its subagents, and Claude Code writes meta messages.
        by_user = raw["type"] == "user" and not raw.get("isSidechain") and not raw.get("isMeta")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise BadRunError("the content of a message is neither a text nor a list")
        for block in content:
            self._add_block(as_object(block, "a block"), raw["type"], by_user=by_user)

    def _add_block(self, block: Mapping[str, Any], role: str, *, by_user: bool) -> None:
        kind = block.get("type")
        if kind == "tool_use" and role == "assistant":
            self._transcript.call(block.get("name"), block.get("input"), block.get("id"))
        elif kind == "tool_result" and role == "user":
            output = text_of(block.get("content"), "a result")
            error = _FAILED if block.get("is_error") is True else None
            self._transcript.result(block.get("tool_use_id"), to_result(output, error))
        elif kind == "text" and role == "assistant":
            self._transcript.answer(text_of([block], "a block"))
        elif kind == "text" and by_user:
            self._transcript.say(text_of([block], "a block"))

    def finish(self, run_id: str, place: str) -> RecordedRun | None:
        if self._transcript.is_empty:
            return None
        return self._transcript.finish(run_id, place)
