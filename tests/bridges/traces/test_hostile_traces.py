"""Traces are hostile: whatever a file contains, a reader names the problem and goes on."""

import gzip
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import small_traces
from small_traces import ALL, STEPS, chat, lines
from tiltyard.bridges.traces import elements, inspect_logs, streams, values
from tiltyard.bridges.traces.elements import items_of
from tiltyard.bridges.traces.errors import BadFileError, BadRunError
from tiltyard.bridges.traces.formats import Format
from tiltyard.bridges.traces.read import TraceReader
from tiltyard.bridges.traces.strict_json import parse_json
from tiltyard.contracts.policy import NO_POLICY
from tiltyard.episode.conversation import open_locally
from tiltyard.guardrails import AllowAllGuardrail
from tiltyard.studies.recorded import RecordedRun, Skipped
from tiltyard.studies.shadow import play

FORMATS = [*Format]


def read_bytes(path: Path, data: bytes, chosen: Format | None) -> list[RecordedRun | Skipped]:
    path.write_bytes(data)
    return [*TraceReader([path], chosen).runs()]


def check(found: list[RecordedRun | Skipped]) -> None:
    """Every run can be played, and every problem is one short sentence."""
    begin = open_locally(AllowAllGuardrail)
    for one in found:
        if isinstance(one, Skipped):
            assert one.problem
            assert len(one.problem) < 1_000
        else:
            play(one, begin((), NO_POLICY))


KEYS = (
    *("messages", "role", "content", "tool_calls", "id", "function", "name", "arguments", "args"),
    *("tool_call_id", "error", "known_as", "text", "tool", "call", "ok", "output", "structured"),
    *("tools", "server", "type", "message", "sessionId", "input", "tool_use_id", "is_error"),
    *("resourceSpans", "scopeSpans", "spans", "traceId", "parentSpanId", "attributes", "key"),
    *("value", "stringValue", "arrayValue", "values", "startTimeUnixNano", "endTimeUnixNano"),
    *("samples", "metadata", "events", "attachments", "injection", "task_done", "attack_calls"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["user", "assistant", "tool", "a", "call", "result", "session", "message"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(JSON, min_size=1, max_size=4), st.sampled_from(FORMATS))
def test_any_json_is_read_or_named(tmp_path: Path, some: list[Any], chosen: Format) -> None:
    check(read_bytes(tmp_path / "a.jsonl", lines(*some), chosen))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from([None, *FORMATS]))
def test_any_bytes_are_read_or_named(tmp_path: Path, data: bytes, chosen: Format | None) -> None:
    check(read_bytes(tmp_path / "a.jsonl", data, chosen))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([*ALL]), st.integers(0, 5_000), st.none() | st.binary(min_size=1, max_size=8)
)
def test_a_damaged_trace_is_read_or_named(
    tmp_path: Path, name: str, at: int, new: bytes | None
) -> None:
    data = ALL[name]
    at %= len(data)
    damaged = data[:at] if new is None else data[:at] + new + data[at + len(new) :]
    check(read_bytes(tmp_path / "a.jsonl", damaged, None))


def problem_of(tmp_path: Path, data: bytes, chosen: Format = Format.CHAT) -> str:
    """Read a bad trace between two good ones, which are not lost."""
    first, bad, last = read_bytes(tmp_path / "a.jsonl", chat() + data + chat(), chosen)
    for good in (first, last):
        assert isinstance(good, RecordedRun)
        assert good.steps == STEPS
    assert isinstance(bad, Skipped), bad
    assert bad.place == f"{tmp_path / 'a.jsonl'}, line 2"
    return bad.problem


def with_args(args: str) -> bytes:
    call = {"id": "a", "function": {"name": "f", "arguments": args}}
    return lines({"messages": [{"role": "assistant", "tool_calls": [call]}]})


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'{"messages": [], "messages": []}\n', "the key 'messages' occurs twice"),
        (b'{"messages": NaN}\n', "NaN is no JSON number"),
        (b'{"messages": -Infinity}\n', "-Infinity is no JSON number"),
        (b'{"messages": 1e999}\n', "a number is too large"),
        (b'{"messages": ' + b"9" * 5_000 + b"}\n", "a number has 5,000 digits"),
        (b"[" * 100_000 + b"\n", "nested too deeply"),
        (b'{"a":' * 100_000 + b"\n", "nested too deeply"),
        (b'{"messages": "\xff\xfe"}\n', "is not UTF-8"),
        (b'{"messages": "\\ud800"}\n', "half of a surrogate pair"),
        (b"\x00\x01\x02\n", "is not JSON"),
        (b'{"messages": [\n', "is not JSON"),
        (b'"text"\n', "it is a str; expected an object"),
        (lines({"messages": {}}), "messages is a dict; expected a list"),
        (lines({"messages": [1]}), "a message is a int; expected an object"),
        (lines({"messages": [{"role": "god"}]}), "unknown role 'god'"),
        (lines({"messages": [{"role": "user", "content": 1}]}), "the content of a message is"),
        (lines({"messages": [{"role": "tool", "content": "x"}]}), "belongs to no open call"),
        (
            lines({"messages": [{"role": "tool", "content": "x", "tool_call_id": {}}]}),
            "neither a text nor a number",
        ),
        (lines({"messages": [], "task_done": "yes"}), "task_done is a str"),
        (lines({"messages": [], "attack_calls": [-1]}), "no list of numbers from 0"),
        (lines({"messages": [], "attack_calls": [True]}), "no list of numbers from 0"),
        (lines({"messages": [], "tools": 1}), "tools is a int; expected a list"),
        (lines({"messages": [], "tools": [{"name": "a"}, {"name": "a"}]}), "declared twice"),
        (lines({"messages": [{"role": "user", "content": "x" * 600_000}]}), "500,000 bytes"),
        (with_args("{"), "the arguments of a call of 'f' is not JSON"),
        (with_args('{"a": 1, "a": 2}'), "the key 'a' occurs twice"),
        (with_args('{"a": NaN}'), "NaN is no JSON number"),
        (with_args("[]"), "the arguments of a call of 'f' are not an object"),
        (with_args('{"a": ' + "[" * 40 + "]" * 40 + "}"), "nested more than 32 levels"),
        (with_args('{"a": 99999999999999999999999}'), "more than 64 bits"),
        (with_args(json.dumps({"a": "x" * 500_000})), "the limit is 400,000"),
    ],
)
def test_a_bad_line_is_named_and_the_next_one_read(
    tmp_path: Path, bad: bytes, problem: str
) -> None:
    assert problem in problem_of(tmp_path, bad)


def test_a_huge_line_is_skipped_without_holding_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 100_000)
    huge = b'{"messages": "' + b"x" * 30_000_000 + b'"}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(huge + chat())
    tracemalloc.start()
    try:
        found = [*TraceReader([path], Format.CHAT).runs()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found[0], Skipped)
    assert found[0].problem == values.TOO_LONG
    assert isinstance(found[1], RecordedRun)
    assert peak < 10_000_000


def test_many_runs_need_no_more_memory_than_few(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    def peak_of(runs: int) -> int:
        path.write_bytes(chat(padding="x" * 10_000) * runs)
        tracemalloc.start()
        try:
            assert sum(1 for _ in TraceReader([path]).runs()) == runs
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak_of(1)
    assert peak_of(1_000) < peak_of(200) * 1.2 + 100_000


def test_a_damaged_gzip_file_gives_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(chat() + lines({"messages": [], "noise": str([*range(90_000)])}))
    for damaged in (packed[:-20], packed[:-200] + b"\x00" * 200):
        found = read_bytes(tmp_path / "a.jsonl.gz", damaged, Format.CHAT)
        assert isinstance(found[0], RecordedRun)
        assert isinstance(found[-1], Skipped)
        assert "the compressed file is damaged" in found[-1].problem


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = b"[" + b" " * 80_000_000 + b"]"
    data = small_traces.inspect_eval(bomb, small_traces.inspect_sample())
    assert len(data) < 100_000
    bad, good = read_bytes(tmp_path / "a.eval", data, None)
    assert isinstance(bad, Skipped)
    assert bad.problem == values.TOO_LONG
    assert isinstance(good, RecordedRun)


def lying_zip(size: int) -> bytes:
    """Return a zip file whose member is larger than its directory says."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/a.json", b" " * 80_000_000)
    data = bytearray(out.getvalue())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        for at in (22, archive.start_dir + 24):
            data[at : at + 4] = size.to_bytes(4, "little")
    return bytes(data)


def test_a_zip_file_may_lie_about_sizes(tmp_path: Path) -> None:
    (bad,) = read_bytes(tmp_path / "a.eval", lying_zip(10), None)
    assert isinstance(bad, Skipped)


def test_a_zstandard_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = small_traces.inspect_eval(b" " * 2_000_000, method=zipfile.ZIP_STORED)
    bomb = small_traces.as_zstandard(stored, claimed=10)
    monkeypatch.setattr(inspect_logs, "MAX_LINE_BYTES", 1_000_000)
    (bad,) = read_bytes(tmp_path / "a.eval", bomb, None)
    assert isinstance(bad, Skipped)
    assert bad.problem == values.TOO_LONG


def test_special_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (bad,) = TraceReader([tmp_path / "pipe.jsonl"]).runs()
    assert isinstance(bad, Skipped)
    assert bad.problem == "it is not a regular file"


def test_a_missing_attachment_is_named(tmp_path: Path) -> None:
    sample = {**small_traces.inspect_sample(), "attachments": {}}
    data = small_traces.inspect_json(sample, small_traces.inspect_sample())
    bad, good = read_bytes(tmp_path / "a.json", data, None)
    assert isinstance(bad, Skipped)
    assert bad.problem == "the attachment 'attachment://0123' is missing"
    assert isinstance(good, RecordedRun)


def test_one_bad_line_spoils_its_session_only(tmp_path: Path) -> None:
    begins = small_traces.record_session()
    said = {"type": "message", "text": "hello"}
    data = lines(begins, said) + b"{]\n" + lines(said, {**begins, "session": "two"}, said)
    bad, good = read_bytes(tmp_path / "a.jsonl", data, None)
    assert isinstance(bad, Skipped)
    assert bad.place.endswith("line 3")
    assert isinstance(good, RecordedRun)
    assert good.id == "two"


def pieces(data: bytes, size: int) -> Any:
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    return lambda: cut.pop(0) if cut else b""


@given(st.lists(JSON, max_size=6), JSON, st.integers(1, 40), st.sampled_from([None, 2]))
def test_a_list_is_split_into_its_items(
    items: list[Any], other: Any, size: int, indent: int | None
) -> None:
    inside = json.dumps({"before": other, "samples": items, "after": other}, indent=indent)
    found = [json.loads(one or b"") for one in items_of(pieces(inside.encode(), size), "samples")]
    assert str(found) == str(json.loads(json.dumps(items)))
    outer = json.dumps(items, indent=indent).encode()
    found = [json.loads(one or b"") for one in items_of(pieces(outer, size), "samples")]
    assert str(found) == str(json.loads(json.dumps(items)))


@given(st.binary(max_size=60), st.integers(1, 10))
def test_splitting_any_bytes_ends(data: bytes, size: int) -> None:
    try:
        found = [*items_of(pieces(data, size), "samples")]
    except BadFileError:
        return
    assert sum(len(one or b"") for one in found) <= len(data)


def test_an_item_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "MAX_LINE_BYTES", 50)
    data = json.dumps([1, "x" * 100, {"a": "]"}]).encode()
    assert [*items_of(pieces(data, 7), "")] == [b"1", None, b' {"a": "]"}']


def test_numbers_and_texts_are_read_as_they_are() -> None:
    assert parse_json(b'{"a": [1, -2.5, true, null, "\\u00e9\\ud83d\\ude00"]}') == {
        "a": [1, -2.5, True, None, "é😀"]
    }
    with pytest.raises(BadRunError, match="the value is not JSON: Extra data"):
        parse_json("1 2", "the value")
