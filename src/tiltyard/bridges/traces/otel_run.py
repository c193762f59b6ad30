"""Build a run from the GenAI spans of one trace."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.messages import to_result
from tiltyard.bridges.traces.strict_json import parse_json
from tiltyard.bridges.traces.transcript import (
    Transcript,
    as_list,
    as_object,
    read_labels,
    text_of,
)
from tiltyard.studies.recorded import RecordedRun

_INFERENCE: Final = ("chat", "generate_content", "text_completion")
_AGENT: Final = "invoke_agent"
_TOOL: Final = "execute_tool"
_LABEL: Final = "tiltyard."


class Span(Struct, frozen=True):
    """What a run needs of a span."""

    start: int
    end: int
    attributes: dict[str, Any]
    error: str | None = None

    @property
    def operation(self) -> object:
        return self.attributes.get("gen_ai.operation.name")

    def messages(self, which: str) -> list[Any]:
        """Return the input or output messages, which may be JSON in a text."""
        return as_list(_json(self.attributes.get(f"gen_ai.{which}.messages"), which), which)


class _Moment(Struct, frozen=True):
    """Something that happened, with what it takes to add it to the transcript."""

    time: int
    kind: str
    """`say`, `answer`, `call` or `result`."""
    text: str = ""
    name: object = None
    args: object = None
    call_id: object = None
    error: str | None = None


def make_run(
    spans: Sequence[Span], trace_id: str, place: str, tools: ToolLists
) -> RecordedRun | None:
    """Return the run of a trace; None if no model and no tool has a part in it."""
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    talks = [span for span in ordered if span.operation in _INFERENCE and _speaks(span)]
    talks = talks or [span for span in ordered if span.operation == _AGENT]
    executed = [span for span in ordered if span.operation == _TOOL]
    if not talks and not executed:
        return None
    moments = [*_talk(talks)]
    if executed:
        moments = _with_spans(moments, executed)
    transcript = Transcript()
    # Sorting keeps the order of moments with the same time.
    for moment in sorted(moments, key=lambda one: one.time):
        _add(transcript, moment)
    labels = {
        name.removeprefix(_LABEL): _json(value, name)
        for span in ordered
        for name, value in span.attributes.items()
        if name.startswith(_LABEL)
    }
    declared = _tools_of(ordered, tools)
    return transcript.finish(trace_id[:200], place, declared, read_labels(labels))


def _speaks(span: Span) -> bool:
    return any(name.endswith(".messages") for name in span.attributes)


def _talk(spans: Sequence[Span]) -> Iterator[_Moment]:
    """Yield what messages say. Each call of a model repeats the conversation so far."""
    seen: dict[str, int] = {}
    for span in spans:
        for which, time in (("input", span.start), ("output", span.end)):
            counts: dict[str, int] = {}
            for raw in span.messages(which):
                message = as_object(raw, "a message")
                key = json.dumps([message.get("role"), message.get("parts")], sort_keys=True)
                counts[key] = counts.get(key, 0) + 1
                if which == "output" or counts[key] > seen.get(key, 0):
                    seen[key] = seen.get(key, 0) + 1
                    yield from _parts(message, time)


def _parts(message: Mapping[str, Any], time: int) -> Iterator[_Moment]:
    role = message.get("role")
    for raw in as_list(message.get("parts"), "parts"):
        part = as_object(raw, "a part")
        kind = part.get("type")
        if kind == "tool_call":
            yield _Moment(time, "call", "", part.get("name"), part.get("arguments"), part.get("id"))
        elif kind == "tool_call_response":
            response = part.get("response", part.get("result"))
            yield _Moment(time, "result", _text(response), call_id=part.get("id"))
        elif kind == "text" and role in ("user", "assistant"):
            spoken = text_of([part], "a part")
            yield _Moment(time, "say" if role == "user" else "answer", spoken)


def _with_spans(moments: Sequence[_Moment], executed: Sequence[Span]) -> list[_Moment]:
    """Return what was said, with the calls that spans report.

    Spans know when a call ran. What they do not tell, messages may: arguments and results.
    """
    calls = {one.call_id: one for one in moments if one.kind == "call" and _is_id(one.call_id)}
    results = {one.call_id: one for one in moments if one.kind == "result" and _is_id(one.call_id)}
    found = [one for one in moments if one.kind in ("say", "answer")]
    for number, span in enumerate(executed):
        told = span.attributes.get("gen_ai.tool.call.id")
        known = calls.get(told) if _is_id(told) else None
        args = span.attributes.get("gen_ai.tool.call.arguments")
        if args is None and known is not None:
            args = known.args
        # Spans need no id, and a call may be retried under the same one.
        call_id = f"span {number}"
        name = span.attributes.get("gen_ai.tool.name")
        found.append(_Moment(span.start, "call", "", name, args, call_id))
        if "gen_ai.tool.call.result" in span.attributes:
            output = _text(span.attributes["gen_ai.tool.call.result"])
        else:
            answer = results.get(told) if _is_id(told) else None
            output = "" if answer is None else answer.text
        found.append(_Moment(span.end, "result", output, call_id=call_id, error=span.error))
    return found


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and value != ""


def _add(transcript: Transcript, moment: _Moment) -> None:
    if moment.kind == "say":
        transcript.say(moment.text)
    elif moment.kind == "answer":
        transcript.answer(moment.text)
    elif moment.kind == "call":
        transcript.call(moment.name, moment.args, moment.call_id)
    else:
        transcript.result(moment.call_id, to_result(moment.text, moment.error))


def _tools_of(spans: Sequence[Span], tools: ToolLists) -> Any:
    for span in spans:
        listed = _json(span.attributes.get("gen_ai.tool.definitions"), "tool definitions")
        if isinstance(listed, list) and listed:
            return tools.read(listed)
    described = {
        name: {"name": name, "description": text}
        for span in spans
        if isinstance(name := span.attributes.get("gen_ai.tool.name"), str)
        and isinstance(text := span.attributes.get("gen_ai.tool.description"), str)
    }
    return tools.read([*described.values()]) if described else None


def _json(value: Any, what: str) -> Any:
    """Return a value that may be JSON in a text."""
    if isinstance(value, str) and value[:1] in ("[", "{", "t", "f", "n"):
        try:
            return parse_json(value, what)
        except BadRunError:
            if value[:1] in ("[", "{"):
                raise
    return value


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        found = text_of(value, "a result")
        if found:
            return found
    return json.dumps(value, ensure_ascii=False)
