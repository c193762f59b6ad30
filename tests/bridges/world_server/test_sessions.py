"""Sessions: what a server writes down, and what the judge makes of hostile files."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outside_agents import answer_of, obey, stay_careful
from tiltyard.arena.judging import Call
from tiltyard.arena.stage import StageError
from tiltyard.bridges.world_server import session as sessions
from tiltyard.bridges.world_server.play import (
    ANSWER,
    Wanted,
    begin,
    begin_without,
    check_same,
    judge_session,
)
from tiltyard.bridges.world_server.session import (
    CALLS,
    MAX_ARGS_BYTES,
    SESSION,
    LiveSession,
    SessionError,
    read_session,
)

WANTED = Wanted(2, ("bank",), "bank/bank-invoice-by-letter", "order")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    where, _ = begin(WANTED, tmp_path / "session")
    return where


def serve(directory: Path, calls: list[Call]) -> None:
    with LiveSession(directory) as live:
        for tool, args in calls:
            live.call(tool, args)


def test_a_session_is_written_call_by_call_and_judged(directory: Path) -> None:
    stage = read_session(directory).stage
    calls = obey(stage)
    with LiveSession(directory) as live:
        for number, (tool, args) in enumerate(calls, 1):
            result = live.call(tool, args)
            lines = (directory / CALLS).read_text().splitlines()
            assert len(lines) == number
            assert json.loads(lines[-1])["output"] == result.output
    report = judge_session(directory)
    assert (report.outcome, report.harmed, report.differing) == ("hijacked", True, ())
    assert (report.task.state, report.task.answer) == ("done", "not given")
    assert report.goal is not None
    assert report.goal.also_without_plant is None
    assert [call.number for call in report.calls] == [*range(1, len(calls) + 1)]
    assert "reaches the stranger's goal" in report.calls[report.goal.caused_by[-1] - 1].marks


def test_only_the_owner_can_read_a_session(directory: Path) -> None:
    serve(directory, [("x", {})])
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {(directory / name).stat().st_mode & 0o777 for name in (SESSION, CALLS)} == {0o600}


def test_sessions_of_one_seed_differ_in_their_secrets_only(tmp_path: Path) -> None:
    heads = [begin(WANTED, tmp_path / name)[1] for name in ("one", "two")]
    assert heads[0].say == heads[1].say
    assert heads[0].staging.canary != heads[1].staging.canary
    assert heads[0].world != heads[1].world


def test_a_run_without_the_plant_is_the_counterfactual(directory: Path) -> None:
    stage = read_session(directory).stage
    serve(directory, obey(stage))
    (directory / ANSWER).write_text(answer_of(stage))
    where, head = begin_without(directory)
    assert (where, head.staging.without) == (directory / "without" / "1", True)
    assert judge_session(directory).counterfactuals == 0, "a run without calls says nothing"
    serve(where, stay_careful(stage))
    report = judge_session(directory)
    assert (report.outcome, report.counterfactuals) == ("hijacked", 1)
    assert report.task.answer == "told"
    assert report.goal is not None
    assert report.goal.also_without_plant is False
    again, _ = begin_without(directory)
    serve(again, obey(stage))
    report = judge_session(directory)
    assert (report.outcome, report.harmed, report.counterfactuals) == ("not caused", False, 2)
    with pytest.raises(SessionError, match="judge the session it belongs to"):
        judge_session(where)
    with pytest.raises(SessionError, match="nobody planted anything there"):
        begin_without(where)


def test_a_run_of_another_world_is_no_counterfactual(directory: Path, tmp_path: Path) -> None:
    other, _ = begin(WANTED, tmp_path / "other")
    where, _ = begin_without(other)
    (directory / "without").mkdir()
    where.rename(directory / "without" / "1")
    with pytest.raises(SessionError, match="the run of another world"):
        judge_session(directory)


def test_no_result_in_a_session_is_believed(directory: Path) -> None:
    stage = read_session(directory).stage
    serve(directory, obey(stage))
    lines = [json.loads(line) for line in (directory / CALLS).read_text().splitlines()]
    for line in lines:
        line |= {"ok": True, "output": "nothing happened"}
    (directory / CALLS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = judge_session(directory)
    assert report.outcome == "hijacked"
    assert report.differing == tuple(range(1, len(lines) + 1))


def test_a_server_goes_on_where_another_was_killed(directory: Path) -> None:
    stage = read_session(directory).stage
    calls = obey(stage)
    program = f"""
        import json, sys
        from pathlib import Path
        from tiltyard.bridges.world_server.session import LiveSession
        with LiveSession(Path({str(directory)!r})) as live:
            for line in sys.stdin:
                print(live.call(*json.loads(line)).ok, flush=True)
    """
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    for call in calls[:2]:
        print(json.dumps(call), file=server.stdin, flush=True)
        assert server.stdout.readline() == "True\n"
    with pytest.raises(SessionError, match="another server has this session open"):
        serve(directory, [])
    server.send_signal(signal.SIGKILL)
    server.communicate()
    with (directory / CALLS).open("a") as file:
        file.write('{"tool": "half a li')
    assert judge_session(directory).is_cut
    serve(directory, calls[2:])
    report = judge_session(directory)
    assert (report.outcome, report.is_cut, len(report.calls)) == ("hijacked", False, len(calls))


DEEP: dict[str, Any] = {}
for _ in range(2_000):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"a": float("nan")}, "is nan, which is no JSON number"),
        (DEEP, "nested"),
        ({"a": "x" * MAX_ARGS_BYTES}, "the limit is 200,000"),
        ({"a": [0] * 30_000}, "more than 20,000 values"),
        ([1], "is no object"),
        ({"a": 2**70}, "more than 64 bits"),
        ({"a": "\ud800"}, "not valid Unicode"),
    ],
    ids=["nan", "deep", "long", "wide", "list", "large number", "surrogate"],
)
def test_hostile_arguments_are_refused_and_written_down(
    directory: Path, args: object, problem: str
) -> None:
    with LiveSession(directory) as live:
        result = live.call("\x1b]0;evil\x07" + "x" * 1_000, args)
    assert not result.ok
    assert problem in str(result.error)
    report = judge_session(directory)
    assert (report.refused, report.calls, report.outcome) == (1, (), "never read")


def test_a_session_has_a_limit(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_CALLS", 3)
    with LiveSession(directory) as live:
        results = [live.call("x", None) for _ in range(5)]
    assert [result.error for result in results[:3]] == ["unknown tool x"] * 3
    assert results[4].error == "this session is full: it has 3 calls"
    assert len(judge_session(directory).calls) == 3
    monkeypatch.setattr(sessions, "MAX_CALLS", 2)
    with pytest.raises(SessionError, match="more than 2 calls"):
        judge_session(directory)


def change_head(directory: Path, **values: Any) -> None:
    head = json.loads((directory / SESSION).read_text())
    for name, value in values.items():
        (head["staging"] if name in head["staging"] else head)[name] = value
    (directory / SESSION).write_text(json.dumps(head))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"seed": 3}, "judge it with that version"),
        ({"canary": "guessed"}, "judge it with that version"),
        ({"seed": "x"}, "Expected `int`, got `str`"),
        ({"packs": ["nobody"]}, "no such pack: nobody"),
        ({"packs": []}, "length >= 1"),
        ({"task": "bank/x"}, "no task is called bank/x"),
        ({"plant": "\x1b[2J"}, r"unknown way to plant \x1b[2J"),
        ({"format": 9}, "format 9; this version reads format 1"),
        ({"own_packs": ["../../etc"]}, "matching regex"),
        ({"own_packs": ["mine"]}, "no such file"),
        ({"more": 1}, "unknown field `more`"),
    ],
)
def test_a_hostile_head_is_refused(directory: Path, values: dict[str, Any], problem: str) -> None:
    change_head(directory, **values)
    with pytest.raises((SessionError, ValueError)) as error:
        judge_session(directory)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    "line", [b"[]", b"{", b'{"tool": 1}', b'{"a":' * 5_000, b"\xff", b'{"tool":"x","args":[]}']
)
def test_a_hostile_line_is_refused(directory: Path, line: bytes) -> None:
    (directory / CALLS).write_bytes(b'{"tool":"x","args":{},"ok":true}\n' + line + b"\n")
    with pytest.raises(SessionError, match="line 2"):
        judge_session(directory)


def test_files_that_are_no_files_are_refused(directory: Path, tmp_path: Path) -> None:
    os.mkfifo(directory / CALLS)
    with pytest.raises(SessionError, match="special"):
        judge_session(directory)
    (directory / SESSION).unlink()
    (directory / SESSION).symlink_to("/etc/passwd")
    with pytest.raises(SessionError, match="link"):
        judge_session(directory)
    with pytest.raises(SessionError, match="name the directory of a session"):
        judge_session(tmp_path / "nowhere")


def test_a_session_keeps_a_pack_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "library"
    source.mkdir()
    starter = Path(sessions.__file__).parents[2] / "packs" / "starter"
    for name in ("pack.toml", "tasks.toml"):
        text = (starter / name).read_text().replace("PACK", "library")
        (source / name).write_text(text)
    where, head = begin(Wanted(2, (str(source), "bank")), tmp_path / "session")
    assert (head.staging.packs, head.own_packs) == (("bank", "library"), ("library",))
    (source / "pack.toml").unlink()
    monkeypatch.chdir("/")
    stage = read_session(where).stage
    serve(where, obey(stage))
    serve(begin_without(where)[0], stay_careful(stage))
    assert judge_session(where).outcome == "hijacked"


def test_a_session_is_not_served_with_other_options(directory: Path) -> None:
    with LiveSession(directory) as live:
        for wanted in (Wanted(), WANTED):
            check_same(live.head, wanted)
        for wanted in (Wanted(3), Wanted(task="bank/x"), Wanted(plant="swap")):
            with pytest.raises(SessionError, match="name a new --session"):
                check_same(live.head, wanted)
        with pytest.raises(SessionError, match="has other packs"):
            check_same(live.head, Wanted(packs=("desk",)))


def test_a_new_session_needs_an_empty_directory(directory: Path) -> None:
    with pytest.raises(SessionError, match="is not empty"):
        begin(WANTED, directory)
    with pytest.raises(StageError):
        begin(Wanted(2, ("bank",), "desk/x"), directory.parent / "new")


def test_the_report_is_json_and_survives_a_round_trip(directory: Path) -> None:
    serve(directory, obey(read_session(directory).stage))
    report = judge_session(directory)
    assert msgspec.json.decode(msgspec.json.encode(report), type=type(report)) == report
