"""The append-only log."""

from pathlib import Path

import pytest

from tiltyard.foundation import log as recording


def test_a_log_stops_at_its_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_BYTES", 1_000)
    with recording.Log[str](tmp_path / "log", str) as log:
        for number in range(1_000):
            log.add(f"{number:050}")
    assert (tmp_path / "log").stat().st_size < 1_100
    with recording.Log[str](tmp_path / "log", str) as log:
        assert log.replay() == f"{0:050}"
        assert 10 < log.recorded < 30


def test_a_log_that_was_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with recording.Log[str](path, str) as log:
        log.add("first")
        log.flush()
        first = path.stat().st_size
        log.add("second")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with recording.Log[str](path, str) as log:
            read = [value for _ in range(log.recorded) if (value := log.replay())]
            log.add("third")
        assert read == (["first"] if size >= first else [])
        with recording.Log[str](path, str) as log:
            assert log.recorded == len(read) + 1
