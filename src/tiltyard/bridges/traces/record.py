"""Records of `tiltyard guard --record`: JSON Lines, a file a session."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.messages import SOURCE
from tiltyard.bridges.traces.sessions import Sessions
from tiltyard.bridges.traces.streams import Source
from tiltyard.bridges.traces.transcript import Transcript, as_object, named, read_labels
from tiltyard.bridges.traces.values import objects_of
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.hostile_json import JsonError, copy_json
from tiltyard.episode.reduction import MAX_RESULT_NODES
from tiltyard.studies.recorded import NO_LABELS, Labels, RecordedRun, Skipped

_BEGINS: Final = "session"


def read_record(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read the lines of sessions. Each line of the type `session` begins a run."""
    sessions = Sessions(lambda: _Session(tools))
    for one in objects_of(source):
        if one.value is None:
            sessions.spoil(one.place, one.problem)
            continue
        if one.value.get("type") == _BEGINS or not sessions.is_open:
            yield from sessions.end()
            sessions.begin(named(one.value.get("id") or one.value.get("session"), ""), one.place)
        sessions.add(one.value, one.place)
    yield from sessions.end()


class _Session:
    """One session, line by line."""

    def __init__(self, tools: ToolLists) -> None:
        self._transcript = Transcript()
        self._lists = tools
        self._tools: dict[str, Any] = {}
        """The tools, by the names that the guardrail knows."""
        self._labels: Labels = NO_LABELS

    def add(self, raw: Mapping[str, Any]) -> None:
        kind = raw.get("type")
        if kind == _BEGINS:
            self._labels = read_labels(raw)
        elif kind == "message":
            self._transcript.say(_text(raw, "text"))
        elif kind == "tool" and not raw.get("refused"):
            name = _known_name(raw)
            declared = as_object(raw.get("declaration"), "declaration")
            self._tools[name] = {**declared, "name": name, "server": _text(raw, "server")}
        elif kind == "call":
            self._transcript.call(_known_name(raw), raw.get("args"), raw.get("call"))
        elif kind == "result":
            self._transcript.result(raw.get("call"), _result(raw))

    def finish(self, run_id: str, place: str) -> RecordedRun | None:
        if self._transcript.is_empty:
            return None
        declared = self._lists.read([*self._tools.values()]) if self._tools else None
        return self._transcript.finish(run_id, place, declared, self._labels)


def _known_name(raw: Mapping[str, Any]) -> str:
    """Return the name by which the guardrail knows a tool: two servers may use the same one."""
    return _text(raw, "known_as") or _text(raw, "name")


def _text(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRunError(f"{name} is a {type(value).__name__}; expected a text")
    return value


def _result(raw: Mapping[str, Any]) -> Result:
    ok = raw.get("ok", True)
    if not isinstance(ok, bool):
        raise BadRunError("ok is neither true nor false")
    try:
        structured = copy_json(raw.get("structured"), max_nodes=MAX_RESULT_NODES)
    except JsonError as error:
        raise BadRunError(f"structured{error}") from None
    error_text = _text(raw, "error")
    return Result(
        ok=ok,
        output=_text(raw, "output"),
        error=error_text or (None if ok else "error"),
        source=_text(raw, "source") or SOURCE,
        structured=structured,
    )
