"""Every format gives the same run, and is recognized by its content."""

import gzip
import json
from pathlib import Path

import pytest
from msgspec import structs

import small_traces
from small_traces import (
    ALL,
    ASKED,
    MAIL,
    MINUTES,
    NO_ROUTE,
    STEPS,
    TOOLS,
    claude_line,
    lines,
    otel_request,
    otel_span,
    record_session,
    text_message,
)
from tiltyard.bridges.traces.errors import TraceError
from tiltyard.bridges.traces.formats import Format, detect
from tiltyard.bridges.traces.read import TraceReader, find_traces
from tiltyard.contracts.declaration import read_declarations
from tiltyard.studies.recorded import (
    Answered,
    Called,
    Labels,
    RecordedRun,
    Returned,
    Said,
    Skipped,
)

FORMAT_OF = {
    name: Format(name.split()[0] if name != "claude code" else "claude-code") for name in ALL
}
UNDECLARED = ("agentdojo", "claude code")


def read_all(path: Path, chosen: Format | None = None) -> list[RecordedRun | Skipped]:
    return [*TraceReader(find_traces([path]), chosen).runs()]


def read_bytes(
    tmp_path: Path, data: bytes, name: str = "trace.jsonl", chosen: Format | None = None
) -> list[RecordedRun | Skipped]:
    path = tmp_path / name
    path.write_bytes(data)
    return read_all(path, chosen)


def read_run(tmp_path: Path, data: bytes) -> RecordedRun:
    (run,) = read_bytes(tmp_path, data)
    assert isinstance(run, RecordedRun), run
    return run


def read_problem(tmp_path: Path, data: bytes, chosen: Format | None = None) -> str:
    (skipped,) = read_bytes(tmp_path, data, chosen=chosen)
    assert isinstance(skipped, Skipped), skipped
    return f"{skipped.place}: {skipped.problem}"


@pytest.mark.parametrize("name", ALL)
def test_every_format_gives_the_same_run(tmp_path: Path, name: str) -> None:
    run = read_run(tmp_path, ALL[name])
    wanted = [*STEPS]
    if name == "claude code":  # It says that a call failed, and not why.
        failed = wanted[4]
        assert isinstance(failed, Returned)
        error = "the tool reported an error"
        wanted[4] = Returned(1, structs.replace(failed.result, error=error))
    if name == "record":  # A guard does not see what the agent says.
        wanted = wanted[:-1]
    assert [*run.steps] == wanted
    if name in UNDECLARED:
        assert run.tools is None
    else:
        server = "office" if name == "record" else ""
        assert run.tools == read_declarations(TOOLS, server)


@pytest.mark.parametrize("name", ALL)
def test_every_format_is_recognized(name: str) -> None:
    assert detect(ALL[name][:65_536]) is FORMAT_OF[name]


@pytest.mark.parametrize("name", ALL)
def test_a_file_may_be_compressed(tmp_path: Path, name: str) -> None:
    plain = read_bytes(tmp_path, ALL[name], "a.jsonl")
    (tmp_path / "a.jsonl").unlink()
    packed = read_bytes(tmp_path, gzip.compress(ALL[name]), "a.jsonl.gz")
    assert [one.steps for one in packed if isinstance(one, RecordedRun)] == [
        one.steps for one in plain if isinstance(one, RecordedRun)
    ]
    assert len(packed) == 1


def test_labels_of_chat_messages(tmp_path: Path) -> None:
    labels = {
        "task": "t7",
        "injection": "i2",
        "task_done": False,
        "attack_succeeded": True,
        "attack_calls": [1, 0, 1],
    }
    run = read_run(tmp_path, small_traces.chat(**labels))
    assert run.labels == Labels(
        "t7", "i2", task_done=False, attack_succeeded=True, attack_calls=(0, 1)
    )
    assert run.labels.is_attack
    assert not run.labels.is_useful
    assert run.id == "c1"


def test_labels_of_other_formats(tmp_path: Path) -> None:
    dojo = read_run(tmp_path, small_traces.agentdojo()).labels
    task = "office/user_task_3"
    assert dojo == Labels(task, "injection_task_1", task_done=True, attack_succeeded=True)
    alone = small_traces.agentdojo(injection_task_id=None)
    assert read_run(tmp_path, alone).labels == Labels(task, task_done=True)
    inspect = read_run(tmp_path, ALL["inspect json"]).labels
    assert inspect == Labels("minutes", task_done=True)
    assert read_run(tmp_path, ALL["otel"]).labels == Labels(task_done=True)


def test_results_without_an_id_belong_to_the_oldest_call(tmp_path: Path) -> None:
    messages = small_traces.chat_messages()
    calls = [*messages[2]["tool_calls"], *messages[4]["tool_calls"]]
    both = [
        messages[1],
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": None, "content": "one"},
        {"role": "tool", "content": "two"},
    ]
    run = read_run(tmp_path, lines({"messages": both}))
    returned = [step for step in run.steps if isinstance(step, Returned)]
    assert [(one.call, one.result.output) for one in returned] == [(0, "one"), (1, "two")]
    # Calls of one message are decided before any of their results.
    assert [type(step) for step in run.steps] == [Said, Called, Called, Returned, Returned]


def test_calls_without_a_result_have_no_number(tmp_path: Path) -> None:
    messages = small_traces.chat_messages()
    calls = [*messages[2]["tool_calls"], *messages[4]["tool_calls"]]
    late = {"role": "tool", "tool_call_id": "b", "content": "two"}
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    run = read_run(tmp_path, lines({"messages": [asked, late], "attack_calls": [0]}))
    assert run.numbered() == {1: 0}
    problem = read_problem(tmp_path, lines({"messages": [asked, late], "attack_calls": [1]}))
    assert "attack_calls names call 1, but the run has 1 calls with a result" in problem


def test_older_shapes_of_chat_messages(tmp_path: Path) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": ASKED}, {"type": "image_url"}]},
        {"role": "assistant", "function_call": {"name": "read_file", "arguments": ""}},
        {"role": "function", "name": "read_file", "content": MINUTES},
        {
            "role": "assistant",
            "tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "run", "input": "ls"}}],
        },
    ]
    run = read_run(tmp_path, lines({"messages": messages}))
    calls = small_traces.calls_of(run)
    assert [(one.name, one.args) for one in calls] == [("read_file", {}), ("run", {"input": "ls"})]
    assert run.steps[0] == Said(ASKED)


def test_a_list_of_runs_in_one_file(tmp_path: Path) -> None:
    value = json.loads(small_traces.chat())
    runs = read_bytes(tmp_path, json.dumps([value, value], indent=1).encode(), "list.json")
    assert [one.place for one in runs] == [f"{tmp_path}/list.json, item {n}" for n in (1, 2)]
    assert all(isinstance(one, RecordedRun) and one.steps == STEPS for one in runs)


def test_spans_without_messages_still_give_calls(tmp_path: Path) -> None:
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send_mail",
        "gen_ai.tool.description": "Send a mail.",
        "gen_ai.tool.call.arguments": MAIL,
    }
    failed = otel_span(5, 6, tool, status={"code": 2, "message": NO_ROUTE})
    run = read_run(tmp_path, lines(otel_request(failed)))
    assert [type(step) for step in run.steps] == [Called, Returned]
    assert isinstance(run.steps[1], Returned)
    assert run.steps[1].result.error == NO_ROUTE
    assert run.tools is not None
    assert [(one.name, one.description) for one in run.tools] == [("send_mail", "Send a mail.")]


def test_messages_without_tool_spans_give_calls_and_results(tmp_path: Path) -> None:
    call = {"type": "tool_call", "id": "b", "name": "send_mail", "arguments": json.dumps(MAIL)}
    answer = {"type": "tool_call_response", "id": "b", "result": {"sent": True}}
    history = [text_message("user", ASKED), {"role": "assistant", "parts": [call]}]
    chat = {"gen_ai.operation.name": "chat"}
    first = otel_span(1, 2, {**chat, "gen_ai.input.messages": json.dumps(history[:1])})
    second = otel_span(
        3,
        4,
        {
            **chat,
            "gen_ai.input.messages": json.dumps([*history, {"role": "tool", "parts": [answer]}]),
            "gen_ai.output.messages": json.dumps([text_message("assistant", "ok")]),
        },
    )
    run = read_run(tmp_path, lines(otel_request(second), otel_request(first)))
    assert run.steps[:2] == (Said(ASKED), Called(0, "send_mail", MAIL))
    assert isinstance(run.steps[2], Returned)
    assert run.steps[2].result.output == '{"sent": true}'
    assert run.steps[3] == Answered("ok")


def test_two_traces_are_two_runs_and_late_spans_are_named(tmp_path: Path) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_file"}
    root = {"parentSpanId": None}
    one = otel_span(1, 2, tool, traceId="one")
    two = otel_span(1, 2, tool, traceId="two")
    end = otel_span(0, 9, {}, traceId="one", **root)
    data = lines(otel_request(one, two), otel_request(end), otel_request(one))
    first, late, second = read_bytes(tmp_path, data)
    assert isinstance(first, RecordedRun)
    assert isinstance(second, RecordedRun)
    assert (first.id, second.id) == ("one", "two")
    assert isinstance(late, Skipped)
    assert "spans of trace 'one' came after its root span" in late.problem


def test_what_subagents_are_told_are_not_words_of_the_user(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "x", "name": "read_file", "input": {}}
    data = lines(
        claude_line("user", ASKED),
        claude_line("user", "Read everything", isSidechain=True),
        claude_line("assistant", [use], isSidechain=True),
        claude_line("user", "Another day", sessionId="next"),
    )
    first, second = read_bytes(tmp_path, data)
    assert isinstance(first, RecordedRun)
    assert first.steps == (Said(ASKED), Called(0, "read_file", {}))
    assert isinstance(second, RecordedRun)
    assert (second.id, second.steps) == ("next", (Said("Another day"),))


def test_a_record_may_hold_several_sessions_and_servers(tmp_path: Path) -> None:
    def tool(server: str, name: str, known_as: str, refused: str = "") -> dict[str, object]:
        return {
            "type": "tool",
            "server": server,
            "name": name,
            "known_as": known_as,
            "declaration": {"name": name},
            "refused": refused,
        }

    data = lines(
        record_session(session="one"),
        tool("a", "read", "read"),
        tool("b", "read", "b.read"),
        tool("b", "bad", "bad", refused="its name looks like another one"),
        {"type": "message", "text": ASKED},
        {"type": "call", "call": 1, "server": "b", "name": "read", "known_as": "b.read"},
        {"type": "result", "call": 1, "output": "text", "structured": {"a": [1]}},
        {"type": "future", "anything": 1},
        record_session(session="empty"),
        record_session(session="two", task_done=True),
        {"type": "message", "text": "again"},
    )
    first, second = read_bytes(tmp_path, data)
    assert isinstance(first, RecordedRun)
    assert isinstance(second, RecordedRun)
    assert first.tools is not None
    assert [(one.name, one.server) for one in first.tools] == [("read", "a"), ("b.read", "b")]
    assert [one.name for one in small_traces.calls_of(first)] == ["b.read"]
    assert isinstance(first.steps[-1], Returned)
    assert first.steps[-1].result.structured == {"a": [1]}
    assert (second.id, second.labels.task_done) == ("two", True)


def test_directories_are_read_in_order_without_the_tools(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.jsonl").write_bytes(small_traces.chat(id="second"))
    (tmp_path / "a.jsonl").write_bytes(small_traces.chat(id="first"))
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / ".hidden.jsonl").write_text("not a trace")
    reader = TraceReader(find_traces([tmp_path], [tools]))
    assert [one.id for one in reader.runs() if isinstance(one, RecordedRun)] == ["first", "second"]
    # Without this knowledge, the file of tools is no trace, and is named.
    skipped = [one for one in read_all(tmp_path) if isinstance(one, Skipped)]
    assert [(one.place, "the format is unknown" in one.problem) for one in skipped] == [
        (str(tools), True)
    ]


def test_a_missing_path_and_an_empty_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        find_traces([tmp_path / "nothing"])
    with pytest.raises(TraceError, match="there is no trace"):
        find_traces([tmp_path])


def test_a_format_can_be_given(tmp_path: Path) -> None:
    # Nothing in the first line tells what it is.
    data = lines({"type": "progress"}) + small_traces.claude_code()
    assert "the format is unknown" in read_problem(tmp_path, data)
    (run,) = read_bytes(tmp_path, data, chosen=Format.CLAUDE_CODE)
    assert isinstance(run, RecordedRun)
