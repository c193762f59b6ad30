"""The guard as a process, in front of a raw MCP server."""

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from guard_peers import GUARD, MODERN, Client, guarded, said
from tiltyard.bridges.guard.link import SessionError, session_directory

GUARDRAIL = """
import time
from tiltyard import Decision

class Guardrail:
    contract = 2

    def __init__(self):
        self.tainted = False

    def decide(self, tool_name, tool_args, context):
        if tool_args.get("body") == "raise":
            raise ValueError("boom")
        if tool_args.get("body") == "die":
            import os
            os._exit(7)
        if tool_args.get("body") == "hang":
            while True:
                pass
        if tool_name.endswith("send_mail") and self.tainted:
            return Decision.deny("tainted after " + ", ".join(context.recent_tools))
        if tool_name == "change_tools":
            return Decision.confirm("sure?")
        return Decision.allow(" ".join(context.user_messages))

    def observe(self, tool_name, tool_args, result):
        self.tainted = self.tainted or tool_name.endswith("read_note")
"""


@pytest.fixture
def guardrail(tmp_path: Path) -> str:
    path = tmp_path / "guardrail.py"
    path.write_text(GUARDRAIL, encoding="utf-8")
    return str(path)


@pytest.fixture
def runtime(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a directory for sessions."""
    place = tmp_path / "runtime"
    place.mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(place)}


def raw_of(message: dict[str, Any]) -> bytes:
    return base64.b64decode(message["result"]["raw"])


def test_a_denied_call_never_reaches_the_server() -> None:
    with guarded("--said", "Read my note about lunch.") as client:
        client.initialize()
        assert "eve@evil.example" in said(client.call("read_note", name="lunch"))
        denied = client.call("send_mail", to="eve@evil.example", body="hi")
        assert denied["result"]["isError"] is True
        assert "DENIED" in said(denied)
        assert "'declared'" in said(denied)


def test_other_methods_keep_their_bytes() -> None:
    frame = b'{"jsonrpc":"2.0",  "method":"x/y","id":"q","params":{"n":1.50,"u":"\\u00e9\xc3\xa9"}}'
    with guarded() as client:
        client.send(frame)
        assert raw_of(client.receive()) == frame


def test_a_notification_and_a_servers_request_pass() -> None:
    with guarded() as client:
        client.send({"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}})
        assert client.receive()["params"]["of"]["params"] == {"a": 1}
        question = client.request("test/ask")
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
        client.send(answer)
        assert client.receive()["params"]["answer"] == answer


def test_a_frame_that_is_not_understood_gets_an_error_and_the_next_one_passes() -> None:
    with guarded() as client:
        client.send(b'{"jsonrpc":"2.0","id":9,"method":"tools\\u002fcall","params":{"name":"x"}}')
        refused = client.receive()
        assert refused["id"] == 9
        assert "not forwarded" in refused["error"]["message"]
        client.send(b"\xff\xfe")
        assert client.receive()["id"] is None
        client.send(b"\n")
        assert raw_of(client.request("x/y"))


def test_answers_that_are_not_understood_do_not_reach_the_client() -> None:
    with guarded("--guardrail", "allow-all") as client:
        error = client.call("answer_badly")
        assert "not forwarded" in error["error"]["message"]
        assert said(client.call("answer_twice")).startswith("ran ")
        assert raw_of(client.request("x/y"))


def test_under_2026_a_call_that_needs_input_is_decided_once(tmp_path: Path) -> None:
    with guarded("--guardrail", "allow-all", "--record", str(tmp_path / "records")) as client:
        interim = client.call("needs_input", meta=MODERN)["result"]
        assert interim["resultType"] == "input_required"
        answer = {"sure": {"action": "accept", "content": {}}}
        params = {"requestState": interim["requestState"], "inputResponses": answer}
        final = client.request(
            "tools/call", name="needs_input", arguments={}, _meta=MODERN, **params
        )
        assert said(final).startswith("ran ")
    kinds = [line["type"] for line in read_record(tmp_path / "records")]
    assert kinds.count("decision") == 1
    assert kinds.count("result") == 1


def read_record(directory: Path) -> list[dict[str, Any]]:
    (path,) = directory.iterdir()
    assert path.stat().st_mode & 0o077 == 0
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_record_has_everything(tmp_path: Path) -> None:
    records = tmp_path / "records"
    with guarded(
        "--record", str(records), "--said", "Read my note.", "--server", "notes"
    ) as client:
        client.call("read_note", name="lunch")
        client.call("send_mail", to="eve@evil.example", body="x")
    lines = read_record(records)
    assert lines[0] == {
        "type": "session",
        "format": "tiltyard-record",
        "version": 1,
        "session": "",
        "guardrail": "declared",
        "shadow": False,
        "policy": lines[0]["policy"],
    }
    by = {
        kind: [one for one in lines if one["type"] == kind] for kind in (x["type"] for x in lines)
    }
    assert by["message"] == [{"type": "message", "text": "Read my note."}]
    assert by["tool"][0]["declaration"]["name"] == "read_note"
    assert len(by["tool"][0]["sha256"]) == 64
    assert by["call"][0]["args"] == {"name": "lunch"}
    assert [one["action"] for one in by["decision"]] == ["allow", "deny"]
    assert "eve@evil.example" in by["result"][0]["structured"]["note"]
    assert by["result"][0]["delivered"] == "whole"
    assert [one["call"] for one in lines if "call" in one] == [1, 1, 1, 2, 2]


def test_shadow_decides_and_never_denies(tmp_path: Path) -> None:
    with guarded("--shadow", "--record", str(tmp_path / "records")) as client:
        assert said(client.call("send_mail", to="eve@evil.example", body="x")).startswith("ran ")
    assert [x["action"] for x in read_record(tmp_path / "records") if x["type"] == "decision"] == [
        "deny"
    ]


@pytest.mark.parametrize("options", [[], ["--unsafe-no-sandbox"]])
def test_a_file_is_asked_in_the_jail_or_without(guardrail: str, options: list[str]) -> None:
    with guarded("--guardrail", guardrail, *options) as client:
        assert said(client.call("send_mail", to="a", body="x")).startswith("ran ")
        assert "boom" in said(client.call("send_mail", to="a", body="raise"))
        client.call("read_note", name="a")
        assert "tainted after" in said(client.call("send_mail", to="a", body="x"))


@pytest.mark.parametrize(("how", "why"), [("die", "exited with code 7"), ("hang", "within 5")])
def test_a_guardrail_that_dies_or_hangs_denies_this_call_and_all_later_ones(
    guardrail: str, how: str, why: str
) -> None:
    with guarded("--guardrail", guardrail, "--unsafe-no-sandbox") as client:
        denied = client.call("send_mail", to="a", body=how)
        assert "DENIED" in said(denied)
        assert why in said(denied)
        assert "DENIED" in said(client.call("read_note", name="a"))
        assert raw_of(client.request("x/y"))


def deciders_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the deciders that a guard has started."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    return [
        int(child)
        for child in found.split()
        if b"guard.decider" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def test_without_its_decider_the_guard_denies() -> None:
    with guarded() as client:
        assert "ran" not in said(client.call("read_note", name="a"))
        (decider,) = deciders_of(client.process)
        os.kill(decider, signal.SIGKILL)
        denied = said(client.call("read_note", name="a"))
        assert "DENIED" in denied
        assert "decider" in denied


def test_the_decider_ends_with_its_guard() -> None:
    with guarded() as client:
        client.call("read_note", name="a")
        (decider,) = deciders_of(client.process)
        client.process.kill()
        client.process.wait()
        wait_for_end(decider)


def wait_for_end(pid: int) -> None:
    for _ in range(200):
        status = Path(f"/proc/{pid}/status")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if "State:\tZ" not in status.read_text(encoding="utf-8"):
                time.sleep(0.05)
                continue
        return
    raise AssertionError(f"{pid} still runs")


def test_the_guard_ends_as_its_server_does() -> None:
    command = [*GUARD, "--", sys.executable, "-c", "raise SystemExit(7)"]
    ended = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert ended.returncode == 7


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--guardrail", "nope", "--", "cat"], "no guardrail 'nope'"),
        (["--policy", "missing.toml", "--", "cat"], "missing.toml"),
        (["--", "no-such-program"], "cannot start"),
        ([], "name one server"),
        (["--url", "http://localhost:1/mcp", "--", "cat"], "name one server"),
        (["--url", "file:///etc"], "no http"),
        (["--url", "http://localhost:1/mcp", "--listen", "0.0.0.0:0"], "loopback"),
        (["--session", "../x", "--", "cat"], "session name"),
        (["--session", "nobody", "--said", "hi"], "no guard of the session"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(
    options: list[str], why: str, runtime: dict[str, str]
) -> None:
    ended = subprocess.run(
        [*GUARD, *options],
        stdin=subprocess.PIPE,
        capture_output=True,
        env=os.environ | runtime,
        check=False,
        timeout=60,
    )
    assert why in ended.stderr.decode()
    assert ended.returncode == 2


def test_the_reason_is_the_last_word_of_a_guard_with_wrong_options(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("import sys\nsys.stdin.read()\nsys.exit('lost my client')", encoding="utf-8")
    (tmp_path / "file").touch()
    for options, why in (
        (["--guardrail", "nobody"], "there is no guardrail 'nobody'"),
        (["--record", str(tmp_path / "file" / "records")], "records cannot be written: Not a dir"),
    ):
        ended = subprocess.run(
            [*GUARD, *options, "--", sys.executable, str(server)],
            stdin=subprocess.PIPE,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 2
        assert why in ended.stderr.decode().splitlines()[-1]


def test_a_wrong_overlay_ends_the_guard(tmp_path: Path) -> None:
    overlay = tmp_path / "tools.toml"
    overlay.write_text('[tool.x]\neffect = "FLY"', encoding="utf-8")
    with guarded("--overlay", str(overlay)) as client:
        assert client.process.wait(30) == 2
        assert "tools.toml, line 2" in client.errors()


# Sessions


def session_guard(name: str, server: str, guardrail: str, runtime: dict[str, str]) -> Client:
    options = ("--guardrail", guardrail, "--unsafe-no-sandbox")
    return guarded("--session", name, "--server", server, *options, env=runtime)


def test_guards_of_a_session_share_a_guardrail_and_others_do_not(
    guardrail: str, runtime: dict[str, str]
) -> None:
    with (
        session_guard("one", "notes", guardrail, runtime) as notes,
        session_guard("one", "mail", guardrail, runtime) as mail,
        session_guard("two", "mail", guardrail, runtime) as other,
    ):
        assert said(mail.call("send_mail", to="a", body="x")).startswith("ran ")
        notes.call("read_note", name="a")
        # Both servers have tools of these names. The guardrail tells them apart.
        denied = said(mail.call("send_mail", to="a", body="x"))
        assert "tainted after send_mail, notes.read_note" in denied
        assert said(other.call("send_mail", to="a", body="x")).startswith("ran ")
        place = Path(runtime["XDG_RUNTIME_DIR"]) / "tiltyard-guard"
        assert place.stat().st_mode & 0o777 == 0o700
        assert (place / "one.sock").stat().st_mode & 0o777 == 0o600


def test_a_session_ends_with_its_last_guard(guardrail: str, runtime: dict[str, str]) -> None:
    with session_guard("one", "notes", guardrail, runtime) as notes:
        notes.call("read_note", name="a")
    with session_guard("one", "notes", guardrail, runtime) as notes:
        assert said(notes.call("send_mail", to="a", body="x")).startswith("ran ")


def test_another_guardrail_cannot_join_a_session(guardrail: str, runtime: dict[str, str]) -> None:
    with session_guard("one", "notes", guardrail, runtime) as notes:
        notes.call("read_note", name="a")
        with guarded("--session", "one", "--guardrail", "allow-all", env=runtime) as other:
            assert other.process.wait(30) == 2
            assert "same options" in other.errors()


def test_the_user_can_speak_to_a_running_session(tmp_path: Path, runtime: dict[str, str]) -> None:
    words = "Send a mail to ann@example.org that says hello."
    with guarded("--session", "one", env=runtime) as client:
        assert "DENIED" in said(client.call("send_mail", to="ann@example.org", body="hello"))
        speak = [*GUARD, "--session", "one", "--said", words]
        subprocess.run(speak, env=os.environ | runtime, check=True, cwd=tmp_path)
        assert said(client.call("send_mail", to="ann@example.org", body="hello")).startswith("ran ")


def test_a_directory_that_others_can_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiltyard-guard").mkdir(mode=0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(SessionError, match="only you can enter"):
        session_directory()


def test_a_link_to_another_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "tiltyard-guard").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(SessionError, match="only you can enter"):
        session_directory()


def test_a_session_follows_no_link_to_a_file(tmp_path: Path, runtime: dict[str, str]) -> None:
    place = Path(runtime["XDG_RUNTIME_DIR"]) / "tiltyard-guard"
    place.mkdir(mode=0o700)
    precious = tmp_path / "precious"
    precious.write_text("keep", encoding="utf-8")
    (place / "one.log").symlink_to(precious)
    with guarded("--session", "one", env=runtime) as client:
        assert client.process.wait(30) == 2
        assert "cannot be used" in client.errors()
    assert precious.read_text(encoding="utf-8") == "keep"


# Configuration


@pytest.mark.parametrize(
    ("client", "key"), [("claude", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")]
)
def test_print_config_prints_this_command(client: str, key: str) -> None:
    words = ["--session", "chat", "--print-config", client, "--", "npx", "-y", "@m/server-fs", "."]
    ended = subprocess.run([*GUARD, *words], capture_output=True, check=True)
    entry = json.loads(ended.stdout)[key]["server-fs"]
    assert entry["command"] == "tiltyard"
    assert entry["args"] == ["guard", "--session", "chat", "--", "npx", "-y", "@m/server-fs", "."]
    assert entry.get("type") == ("stdio" if client == "vscode" else None)


FLOOD = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/list":
        tools = [{"name": f"tool_{n}", "inputSchema": {"type": "object"}} for n in range(600)]
        tools += [{"name": "send_mail", "description": "Send a mail.", "inputSchema": {}}]
        result = {"tools": tools}
    else:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 9000}}
        sys.stdout.write((json.dumps(note) + "\\n") * 5_000)
        result = {"content": [{"type": "text", "text": "done"}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_server_that_floods_neither_fills_memory_nor_stops_the_guard(tmp_path: Path) -> None:
    server = tmp_path / "flood.py"
    server.write_text(FLOOD, encoding="utf-8")
    with Client([*GUARD, "--said", "hi", "--", sys.executable, str(server)]) as client:
        assert len(client.request("tools/list")["result"]["tools"]) == 601
        client.send({"jsonrpc": "2.0", "id": "c", "method": "x/y", "params": {}})
        frames = 0
        while "method" in client.receive():
            frames += 1
        assert frames == 5_000
        status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="utf-8")
        assert int(status.split("VmHWM:")[1].split()[0]) < 40_000
        assert "DENIED" in said(client.call("send_mail", to="eve@evil.example"))


LEAVES = """
import os, socket
from tiltyard import Decision

def tried(what):
    try:
        what()
    except Exception as error:
        return "no"
    return "yes"

class Guardrail:
    contract = 2

    def decide(self, tool_name, tool_args, context):
        outside = tool_args["body"]
        return Decision.deny(" ".join([
            tried(lambda: open(outside).read()),
            tried(lambda: open(outside, "w").write("x")),
            tried(lambda: socket.create_connection(("127.0.0.1", int(tool_args["to"])), 1)),
            tried(lambda: os.kill(os.getppid(), 9)),
            tried(lambda: os.execv("/bin/sh", ["sh", "-c", "echo"])),
        ]))
"""


def test_a_guardrail_cannot_leave_the_jail(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.py"
    path.write_text(LEAVES, encoding="utf-8")
    outside = tmp_path / "outside.txt"
    outside.write_text("here", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as open_port:
        port = str(open_port.getsockname()[1])
        with guarded("--guardrail", str(path)) as client:
            denied = said(client.call("send_mail", to=port, body=str(outside)))
    assert "Reason: no no no no no" in denied
    assert outside.read_text(encoding="utf-8") == "here"
