"""The guard over streamable HTTP, in front of a raw HTTP server."""

import http.client
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guard_peers import GUARD, MODERN, said

TOOLS = [
    {"name": "read_note", "description": "Read a note.", "inputSchema": {"type": "object"}},
    {"name": "send_mail", "description": "Send a mail.", "inputSchema": {"type": "object"}},
]
GUARDRAIL = """
from tiltyard import Decision

class Guardrail:
    contract = 2
    tainted = False

    def decide(self, tool_name, tool_args, context):
        if tool_name == "ask_first":
            return Decision.confirm("sure?")
        if tool_name == "send_mail" and self.tainted:
            return Decision.deny("tainted")
        return Decision.allow()

    def observe(self, tool_name, tool_args, result):
        self.tainted = self.tainted or tool_name == "read_note"
"""


class Upstream(BaseHTTPRequestHandler):
    """Answers with JSON, or with events if the tool's arguments ask for them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen: list[tuple[str, dict[str, str], bytes]]

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body))
        message = json.loads(body)
        if "id" not in message or "method" not in message:
            self.reply(202, b"", {})
            return
        headers = {"Content-Type": "application/json", "X-Kept": "yes"}
        if message["method"] == "initialize":
            headers["Mcp-Session-Id"] = message["params"]["clientInfo"]["name"]
        if message["method"] == "tools/list":
            result: dict[str, Any] = {"tools": TOOLS}
        else:
            text = {"type": "text", "text": message["method"]}
            result = {"content": [text], "protocolVersion": "2025-11-25"}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        args = message.get("params", {}).get("arguments") or {}
        if args.get("events"):
            self.stream(answer)
        else:
            self.reply(200, json.dumps(answer, indent=1).encode(), headers)

    def stream(self, answer: dict[str, Any]) -> None:
        progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
        smuggled = json.dumps(answer | {"id": str(answer["id"])})
        final = json.dumps(answer)
        events = f"id: 1\ndata:\n\n: comment\ndata: {progress}\n\ndata: {smuggled}\n\n"
        body = f"{events}id: 2\nevent: message\ndata: {final}\n\n".encode()
        self.reply(200, body, {"Content-Type": "text/event-stream"})

    def do_GET(self) -> None:
        self.seen.append((self.path, dict(self.headers), b""))
        self.reply(405, b"", {})

    def do_DELETE(self) -> None:
        self.seen.append((self.path, dict(self.headers), b""))
        self.reply(200, b"", {})

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Peer:
    """A guard, and a client of it."""

    def __init__(self, port: int, seen: list[tuple[str, dict[str, str], bytes]]) -> None:
        self.port = port
        self.seen = seen
        self._id = 0
        self._open: list[http.client.HTTPConnection | http.client.HTTPResponse] = []

    def raw(
        self, method: str, body: bytes | None, path: str = "/mcp", **headers: str
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent = {"Content-Type": "application/json"} | sent
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        self._open += [connection, response]
        return response

    def close(self) -> None:
        for one in self._open:
            one.close()

    def post(self, method: str, params: dict[str, Any], **headers: str) -> Any:
        self._id += 1
        body = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        response = self.raw("POST", json.dumps(body).encode(), **headers)
        data = response.read()
        assert response.headers.get_content_type() == "application/json", data
        return json.loads(data)

    def call(self, name: str, session: str = "", **args: Any) -> Any:
        headers = {"Mcp_Session_Id": session} if session else {}
        return self.post("tools/call", {"name": name, "arguments": args}, **headers)

    def begin(self, session: str, **capabilities: Any) -> None:
        params = {"clientInfo": {"name": session}, "capabilities": capabilities}
        assert self.post("initialize", params)["result"]


@contextmanager
def guarded_http(*options: str) -> Iterator[Peer]:
    seen: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(Upstream):
        pass

    Handler.seen = seen
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{upstream.server_address[1]}/mcp"
    guard = subprocess.Popen([*GUARD, "--url", url, *options], stderr=subprocess.PIPE)
    assert guard.stderr is not None
    try:
        found = re.search(rb"listening on http://127.0.0.1:(\d+)/mcp", guard.stderr.readline())
        assert found, guard.stderr.read()
        peer = Peer(int(found[1]), seen)
        yield peer
        peer.close()
    finally:
        guard.terminate()
        assert guard.wait(30) == 0
        guard.stderr.close()
        upstream.shutdown()
        upstream.server_close()


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    path = tmp_path_factory.mktemp("guard") / "guardrail.py"
    path.write_text(GUARDRAIL, encoding="utf-8")
    with guarded_http("--guardrail", str(path), "--unsafe-no-sandbox", "--ask") as found:
        yield found


def test_sessions_do_not_share_state_and_headers_pass(peer: Peer) -> None:
    for name in ("a", "b"):
        peer.begin(name)
    assert said(peer.call("read_note", "a")) == "tools/call"
    assert "DENIED" in said(peer.call("send_mail", "a"))
    assert said(peer.call("send_mail", "b")) == "tools/call"
    before = len(peer.seen)
    body = b'{"jsonrpc":"2.0",\n"id":"x", "method":"x/y"}'
    response = peer.raw("POST", body, Mcp_Session_Id="a", Authorization="Bearer t")
    assert response.headers["X-Kept"] == "yes"
    assert (
        response.read()
        == json.dumps(
            {
                "jsonrpc": "2.0",
                "id": "x",
                "result": {
                    "content": [{"type": "text", "text": "x/y"}],
                    "protocolVersion": "2025-11-25",
                },
            },
            indent=1,
        ).encode()
    )
    ((path, headers, got),) = peer.seen[before:]
    assert (path, got) == ("/mcp", body)
    assert headers["Authorization"] == "Bearer t"
    assert headers["Mcp-Session-Id"] == "a"


def events_of(response: http.client.HTTPResponse) -> list[str]:
    return response.read().decode().split("\n\n")[:-1]


def test_events_keep_their_bytes_and_an_answer_under_another_id_is_dropped(peer: Peer) -> None:
    params = {"name": "other", "arguments": {"events": True}}
    body = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
    response = peer.raw("POST", json.dumps(body).encode(), Accept="text/event-stream")
    events = events_of(response)
    assert events[0] == "id: 1\ndata:"
    assert events[1].startswith(": comment\ndata: ")
    assert len(events) == 3
    assert events[2].startswith("id: 2\nevent: message\ndata: ")
    assert json.loads(events[2].partition("data: ")[2])["id"] == 77


def test_the_question_to_the_user_travels_on_the_stream_of_the_call(peer: Peer) -> None:
    peer.begin("asks", elicitation={})
    params = {"name": "ask_first", "arguments": {}}
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    response = peer.raw("POST", json.dumps(body).encode(), Mcp_Session_Id="asks")
    assert response.readline() == b"event: message\n"
    question = json.loads(response.readline().removeprefix(b"data: "))
    assert question["method"] == "elicitation/create"
    yes = {"action": "accept", "content": {"allow": True}}
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": yes}
    assert peer.raw("POST", json.dumps(answer).encode(), Mcp_Session_Id="asks").status == 202
    final = json.loads("".join(events_of(response)).strip().partition("data: ")[2])
    assert (final["id"], said(final)) == (5, "tools/call")


def test_stateless_requests_with_the_same_id_are_apart(peer: Peer) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "other", "arguments": {}, "_meta": MODERN}
    for _ in range(2):
        response = peer.raw("POST", json.dumps(body | {"params": params}).encode())
        assert said(json.loads(response.read())) == "tools/call"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Content_Type": "text/plain"}, 415),
        ({"Transfer_Encoding": "chunked"}, 411),
        ({"Mcp_Method": "ping"}, 200),
    ],
)
def test_a_web_page_cannot_reach_the_guard(
    peer: Peer, headers: dict[str, str], status: int
) -> None:
    before = len(peer.seen)
    body = b'{"jsonrpc":"2.0","id":1,"method":"x/y"}'
    response = peer.raw("POST", body, **headers)
    assert response.status == status
    data = response.read()
    forwarded = status == 200 and "Mcp_Method" not in headers
    assert (len(peer.seen) > before) == forwarded
    assert (b"error" in data) != forwarded


def test_other_paths_and_frames_are_refused(peer: Peer) -> None:
    before = len(peer.seen)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_mail"}}'
    assert peer.raw("POST", body, path="/mcp/").status == 404
    assert peer.raw("POST", b"[" + body + b"]").status == 400
    assert peer.raw("POST", b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}').status == 200
    assert peer.raw("POST", b" ", Content_Length=str(100 << 20)).status == 413
    assert len(peer.seen) == before


def test_get_and_delete_pass(peer: Peer) -> None:
    assert peer.raw("GET", None, Mcp_Session_Id="a").status == 405
    assert peer.raw("DELETE", None, Mcp_Session_Id="a").status == 200
    assert [path for path, _, _ in peer.seen[-2:]] == ["/mcp", "/mcp"]


def test_a_dead_server_is_an_error() -> None:
    guard = subprocess.Popen([*GUARD, "--url", "http://127.0.0.1:9/mcp"], stderr=subprocess.PIPE)
    assert guard.stderr is not None
    found = re.search(rb":(\d+)/mcp", guard.stderr.readline())
    assert found
    peer = Peer(int(found[1]), [])
    assert peer.raw("POST", b'{"jsonrpc":"2.0","id":1,"method":"x/y"}').status == 502
    peer.close()
    guard.terminate()
    guard.wait(30)
    guard.stderr.close()
