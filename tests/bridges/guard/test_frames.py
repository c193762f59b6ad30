"""The guard reads a frame as every peer does, or refuses it."""

import json
import os
import threading
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.bridges.guard.frames import (
    MAX_FRAME_BYTES,
    FrameReader,
    Message,
    RefusedError,
    encode,
    parse,
)

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": {}}}


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"", "not JSON"),
        (b"no", "not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', "not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', "not JSON"),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', "not JSON"),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xc0\xaf"}}', "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}', "surrogate"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\udc00\\ud800"}}', "surrogate"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]', "batches"),
        (b'"text"', "no JSON object"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', "occurs twice"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":1,"b":2}}}', "occurs twice"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","\\u006dethod":"tools/call"}', "occurs twice"),
        (b'{"jsonrpc":"2.0","id":1,"\\u006dethod":"tools/call"}', "escapes"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools\\u002fcall"}', "escapes"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools\\/call"}', "escapes"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\\u0061me":"a"}}',
            "escapes",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}', "almost like method"),
        (
            '{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}'.encode(),
            "almost like params",
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}',
            "almost like name",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call ","params":{}}', "method"),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', "method"),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "id"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', "jsonrpc"),
        (b'{"id":1,"method":"ping"}', "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1}', "neither"),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', "neither"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","result":1}', "request and a response"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', "params"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', "NaN"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', "number"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":' + b"9" * 5000 + b"}}", "64 bits"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":18446744073709551616}}', "64 bits"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":0.' + b"1" * 99 + b"}}", "number"),
        (b"[" * 100_000, "deeply"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[' + b"1," * 2**20 + b"1]}}",
            "values",
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[\r%b\r]}}' % encode(CALL),
            "line break",
        ),
    ],
)
def test_a_frame_that_peers_may_read_differently_is_refused(frame: bytes, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        parse(frame)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b'{"jsonrpc":"2.0","id":"a","result":{},"unknown":{"Method":1}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
        b'{"jsonrpc":"2.0","id":-1,"method":"x/y","params":{"a":"\\n\\u00e9\\ud83d\\ude00\\\\ud800"}}',
        b' { "jsonrpc" : "2.0" , "id" : 1 , "method" : "ping" , "params" : null } ',
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":"' + b"," * 2**21 + b'"}}',
    ],
)
def test_a_plain_frame_keeps_its_bytes(frame: bytes) -> None:
    assert parse(frame).raw == frame
    assert parse(frame).body == json.loads(frame)


def test_a_refused_frame_names_the_id_where_it_can_be_told() -> None:
    with pytest.raises(RefusedError) as refused:
        parse(b'{"jsonrpc":"2.0","id":5,"method":"tools\\u002fcall"}')
    assert refused.value.id == 5


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(frame: bytes) -> None:
    try:
        message = parse(frame)
    except RefusedError:
        return
    assert isinstance(message, Message)
    assert message.raw == frame


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_any_arguments_are_read_as_they_were_written(args: dict[str, Any]) -> None:
    body = CALL | {"params": {"name": "a", "arguments": args}}
    assert parse(json.dumps(body).encode()).body == body
    assert parse(encode(body)).body == body


FRAGMENTS = st.sampled_from(
    [
        *('"method"', '"Method"', '"\\u006dethod"', '"tools/call"', '"tools\\u002fcall"', '"ping"'),
        *('"jsonrpc"', '"2.0"', '"id"', '"params"', '"name"', '"arguments"', '"result"', '"a"'),
        *("{", "}", "[", "]", ":", ",", "1", "1e5", "1e999", "NaN", "null", " ", "\r", "\t", "\\"),
        *("\ufeff", "\u2028", '"\ud83d\ude00"'.encode("utf-16", "surrogatepass").decode("utf-16")),
    ]
)
START = '{"jsonrpc":"2.0","id":1,"method":"ping"'


@given(st.lists(FRAGMENTS, max_size=12), st.sampled_from(["", START, START + ",", START[:-6]]))
def test_what_is_accepted_is_no_hidden_call(parts: list[str], start: str) -> None:
    """No lenient parser finds a tool call in a frame that the guard takes for something else."""
    frame = (start + "".join(parts) + ("}" if start else "")).encode()
    try:
        message = parse(frame)
    except RefusedError:
        return
    assert msgspec.json.decode(frame) == message.body
    for lenient in (_last_wins, _first_wins):
        seen = json.loads(frame, object_pairs_hook=lenient)
        assert (seen.get("method") == "tools/call") == (message.method == "tools/call")
    for part in frame.replace(b"\r", b"\n").split(b"\n"):
        assert part == frame


def _last_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Ignore case, as some parsers do, and take the last of equal keys."""
    return {key.casefold(): value for key, value in pairs}


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _last_wins(pairs[::-1])


def read_all(data: bytes, sizes: list[int]) -> list[bytes | RefusedError]:
    ours, theirs = os.pipe()

    def write() -> None:
        at = 0
        for size in [*sizes, len(data)]:
            part = data[at : at + size]
            while part:
                part = part[os.write(theirs, part) :]
            at += size
        os.close(theirs)

    writer = threading.Thread(target=write)
    writer.start()
    found = [*FrameReader(ours)]
    writer.join()
    os.close(ours)
    return found


@given(
    st.lists(st.binary(max_size=30).filter(lambda one: b"\n" not in one and b"\r" not in one)),
    st.lists(st.integers(1, 20), max_size=20),
)
def test_frames_do_not_depend_on_how_the_bytes_arrive(
    frames: list[bytes], sizes: list[int]
) -> None:
    data = b"".join(frame + b"\n" for frame in frames)
    assert read_all(data, sizes) == frames


def test_half_a_frame_is_refused() -> None:
    whole, half = read_all(b'{"a":1}\n{"jsonrpc":"2.0","id":1', [])
    assert whole == b'{"a":1}'
    assert isinstance(half, RefusedError)


def test_a_frame_of_100_megabytes_takes_little_memory() -> None:
    ours, theirs = os.pipe()
    chunk = b"x" * (1 << 20)

    def write() -> None:
        with os.fdopen(theirs, "wb") as file:
            file.write(b'{"jsonrpc":"2.0","id":3,"method":"a","params":{"a":"')
            for _ in range(100):
                file.write(chunk)
            file.write(b'"}}\n{"jsonrpc":"2.0","id":4,"method":"ping"}\n')

    tracemalloc.start()
    writer = threading.Thread(target=write)
    writer.start()
    large, after = FrameReader(ours)
    writer.join()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    os.close(ours)
    assert isinstance(large, RefusedError)
    assert large.id == 3
    assert after == b'{"jsonrpc":"2.0","id":4,"method":"ping"}'
    assert peak < 4 * MAX_FRAME_BYTES


def test_the_id_of_a_large_answer_is_found_at_its_end() -> None:
    data = b'{"result":{"a":"' + b"x" * MAX_FRAME_BYTES + b'"},"jsonrpc":"2.0","id":"q"}\n'
    (large,) = read_all(data, [])
    assert isinstance(large, RefusedError)
    assert large.id == "q"
