"""OpenTelemetry's GenAI spans, as OTLP writes them in JSON: one request a line.

A trace is a run. Its spans may be spread over many lines, so the reader holds a trace until its
root span has come: the root ends last. It holds a bounded number of bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.otel_run import Span, make_run
from tiltyard.bridges.traces.streams import Source
from tiltyard.bridges.traces.transcript import as_list, as_object
from tiltyard.bridges.traces.values import objects_of
from tiltyard.studies.recorded import RecordedRun, Skipped

MAX_HELD_CHARS: Final = 64_000_000
_MAX_ENDED: Final = 10_000
_KEPT: Final = ("gen_ai.", "tiltyard.", "error.type")
_FAILED: Final = (2, "STATUS_CODE_ERROR")


def read_otel(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read requests with `resourceSpans`."""
    held = _Held(tools)
    # A whole request may also be one file with line breaks.
    for one in objects_of(source):
        if one.value is None:
            yield Skipped(one.place, one.problem)
            continue
        try:
            yield from held.add(one.value, one.place)
        except BadRunError as error:
            yield Skipped(one.place, str(error))
        except RecursionError:
            yield Skipped(one.place, "it is nested too deeply")
    yield from held.end()


class _Trace(Struct):
    place: str
    spans: list[Span]
    size: int = 0
    ended: bool = False


class _Held:
    """The traces that have begun and not ended, oldest first."""

    def __init__(self, tools: ToolLists) -> None:
        self._tools = tools
        self._traces: dict[str, _Trace] = {}
        self._size = 0
        self._ended: dict[str, None] = {}
        """The last traces that ended, to recognize spans that come too late."""

    def add(self, raw: Mapping[str, Any], place: str) -> Iterator[RecordedRun | Skipped]:
        late: set[str] = set()
        for span in _spans_of(raw):
            trace_id, is_root, kept = _read_span(span)
            if trace_id in self._ended:
                if kept is not None:
                    late.add(trace_id)
                continue
            trace = self._traces.setdefault(trace_id, _Trace(place, []))
            trace.ended = trace.ended or is_root
            if kept is not None:
                size = len(str(kept.attributes))
                trace.spans.append(kept)
                trace.size += size
                self._size += size
        for trace_id in sorted(late):
            yield Skipped(place, f"spans of trace {trace_id[:32]!r} came after its root span")
        for trace_id in [one for one, trace in self._traces.items() if trace.ended]:
            yield from self._finish(trace_id)
        while self._size > MAX_HELD_CHARS:
            yield from self._finish(next(iter(self._traces)))

    def end(self) -> Iterator[RecordedRun | Skipped]:
        for trace_id in [*self._traces]:
            yield from self._finish(trace_id)

    def _finish(self, trace_id: str) -> Iterator[RecordedRun | Skipped]:
        trace = self._traces.pop(trace_id)
        self._size -= trace.size
        self._ended[trace_id] = None
        if len(self._ended) > _MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        if not trace.spans:
            return
        try:
            run = make_run(trace.spans, trace_id, trace.place, self._tools)
        except BadRunError as error:
            yield Skipped(trace.place, f"trace {trace_id[:32]!r}: {error}")
        except RecursionError:
            yield Skipped(trace.place, f"trace {trace_id[:32]!r} is nested too deeply")
        else:
            if run is not None:
                yield run


def _spans_of(raw: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for resource in as_list(raw.get("resourceSpans"), "resourceSpans"):
        scopes = as_object(resource, "a resource").get("scopeSpans")
        for scope in as_list(scopes, "scopeSpans"):
            for span in as_list(as_object(scope, "a scope").get("spans"), "spans"):
                yield as_object(span, "a span")


def _read_span(raw: Mapping[str, Any]) -> tuple[str, bool, Span | None]:
    """Return the trace of a span, whether it is the root, and what a run needs of it."""
    trace_id = raw.get("traceId")
    if not isinstance(trace_id, str) or not trace_id:
        raise BadRunError("a span has no traceId")
    attributes = {
        name: value for name, value in _pairs(raw.get("attributes")) if name.startswith(_KEPT)
    }
    kept = None
    if any(name.startswith(("gen_ai.", "tiltyard.")) for name in attributes):
        status = raw.get("status")
        code = status.get("code") if isinstance(status, Mapping) else None
        message = status.get("message") if isinstance(status, Mapping) else None
        error = attributes.get("error.type") or ((message or "error") if code in _FAILED else None)
        kept = Span(
            _nanoseconds(raw.get("startTimeUnixNano")),
            _nanoseconds(raw.get("endTimeUnixNano")),
            attributes,
            None if error is None else str(error),
        )
    return trace_id, not raw.get("parentSpanId"), kept


def _nanoseconds(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadRunError("a span has no time")


def _pairs(raw: object) -> Iterator[tuple[str, Any]]:
    for one in as_list(raw, "attributes"):
        pair = as_object(one, "an attribute")
        name = pair.get("key")
        if not isinstance(name, str):
            raise BadRunError("an attribute has no key")
        yield name, _value(pair.get("value"))


def _value(raw: object) -> Any:
    """Return the JSON value of OTLP's AnyValue."""
    value = as_object(raw if raw is not None else {}, "a value")
    if "arrayValue" in value:
        items = as_object(value["arrayValue"], "arrayValue").get("values")
        return [_value(item) for item in as_list(items, "values")]
    if "kvlistValue" in value:
        return dict(_pairs(as_object(value["kvlistValue"], "kvlistValue").get("values")))
    if "intValue" in value:
        return _whole(value["intValue"])
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if name in value:
            return value[name]
    return None


def _whole(value: object) -> int:
    """Return a 64-bit number, which OTLP writes as text."""
    text = str(value)
    if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit() or len(text) > 20:
        raise BadRunError("an intValue is no number")
    return int(text)
