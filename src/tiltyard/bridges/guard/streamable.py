"""The guard over streamable HTTP: an HTTP server for the client, and a client of the MCP server."""

import http.client
import signal
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.frames import MAX_FRAME_BYTES, Message, RefusedError, parse
from tiltyard.bridges.guard.gate import Decider, Gate, Settings
from tiltyard.bridges.guard.http_answers import data_of, inspected_body, inspected_event
from tiltyard.bridges.guard.http_parts import Upstream, Watcher, check_headers, events_of
from tiltyard.bridges.guard.link import Link, SessionError
from tiltyard.bridges.guard.memory import Held, Memory, Outcome
from tiltyard.bridges.guard.stdio import warn

MAX_SESSIONS: Final = 1_000
ASK_SECONDS: Final = 600.0
_SESSION: Final = "Mcp-Session-Id"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_OWN: Final = frozenset(
    ["host", "content-length", "accept-encoding", "connection", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade", "proxy-connection", "proxy-authenticate",
     "proxy-authorization"]
)  # fmt: skip
"""Headers of one connection, which are not forwarded."""


class HttpGuard:
    """Listens for clients, and forwards to one MCP server."""

    def __init__(self, link: Link, settings: Settings, options: dict[str, Any]) -> None:
        self.settings = settings
        self.link = link
        self.shares = bool(options["decider"]["session"])
        self.upstream = urlsplit(options["url"])
        if self.upstream.scheme not in ("http", "https") or not self.upstream.hostname:
            raise SessionError(f"--url {options['url'][:200]!r} is no http or https address")
        host, _, port = options["listen"].rpartition(":")
        host = host.strip("[]")
        if host not in _LOOPBACK or not port.isdecimal():
            raise SessionError("--listen needs a loopback address, such as 127.0.0.1:3002")
        self.path = self.upstream.path or "/"
        self._gates: OrderedDict[str, Gate] = OrderedDict()
        self._stateless = Memory()
        self._lock = threading.Lock()
        self.watcher = Watcher()
        guard = self

        class Handler(_Handler):
            pass

        Handler.guard = guard
        try:
            self._server = _Server((host, int(port)), Handler)
        except OSError as error:
            raise SessionError(f"cannot listen on {options['listen']}: {error.strerror}") from None
        self.port = self._server.server_address[1]
        self._host = f"[{host}]" if ":" in host else host

    def run(self) -> int:
        """Serve until a signal ends the guard."""
        warn(f"listening on http://{self._host}:{self.port}{self.path}")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: threading.Thread(target=self._server.shutdown).start())
        self._server.serve_forever()
        return 0

    def gate(self, session: str, message: Message | None) -> Gate:
        """Return the gate of a session. Requests without a session have a gate each."""
        if not session:
            memory = self._stateless
            if message is not None and message.method == "initialize":
                memory = Memory()
            return Gate(self._decider(""), self.settings, memory)
        with self._lock:
            found = self._gates.pop(session, None)
            gate = Gate(self._decider(session), self.settings) if found is None else found
            self._keep(session, gate)
        return gate

    def adopt(self, session: str, gate: Gate) -> None:
        """Keep the gate of an `initialize` for the session that the server has begun."""
        with self._lock:
            gate.decider = self._decider(session)
            self._keep(session, gate)

    def _keep(self, session: str, gate: Gate) -> None:
        self._gates[session] = gate
        while len(self._gates) > MAX_SESSIONS:
            self._gates.popitem(last=False)

    def forget(self, session: str) -> None:
        with self._lock:
            self._gates.pop(session, None)

    def _decider(self, session: str) -> Decider:
        return self.link if self.shares or not session else _Conversation(self.link, session)


class _Conversation:
    """Asks the decider about one of several conversations."""

    def __init__(self, link: Link, session: str) -> None:
        self._link = link
        self._session = session

    def ask(self, header: dict[str, Any], frame: bytes = b"") -> dict[str, Any]:
        return self._link.ask(header | {"conversation": self._session}, frame)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET

    def __init__(self, address: tuple[str, int], handler: type["_Handler"]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client goes away."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    guard: HttpGuard
    _streaming = False

    def setup(self) -> None:
        super().setup()
        self._upstream = Upstream(self.guard.upstream)

    def log_message(self, *_: Any) -> None:
        """Log nothing: the standard error belongs to the guard's own words."""

    def do_POST(self) -> None:
        body = self._accepted_body()
        if body is None:
            return
        try:
            message = parse(body, one_line=False)
            check_headers(self.headers, message)
            session = self.headers.get(_SESSION, "")
            gate = self.guard.gate(session, message)
            outcome = gate.from_client(message, lambda request: self._list_page(gate, request))
        except RefusedError as refused:
            status = 400 if refused.id is None else 200
            self._reply(status, answers.refusal(refused))
            return
        self._carry_out(gate, message, outcome)

    def do_GET(self) -> None:
        if self._is_accepted(well_known=True):
            gate = self.guard.gate(self.headers.get(_SESSION, ""), None)
            self._forward(gate, None)

    def do_DELETE(self) -> None:
        if self._is_accepted():
            session = self.headers.get(_SESSION, "")
            self._forward(self.guard.gate(session, None), None)
            self.guard.forget(session)

    def _is_accepted(self, *, well_known: bool = False) -> bool:
        """Refuse web pages that reach this server under another name, and other paths."""
        host = urlsplit(f"//{self.headers.get('Host', '')}")
        origin = self.headers.get("Origin")
        names = [host.hostname] if origin is None else [host.hostname, urlsplit(origin).hostname]
        if any(name not in _LOOPBACK for name in names):
            self._fail(403, "this address is for programs on this machine")
            return False
        path = urlsplit(self.path).path
        if path != self.guard.path and not (well_known and path.startswith("/.well-known/")):
            self._fail(404, f"the MCP endpoint is {self.guard.path}")
            return False
        return True

    def _accepted_body(self) -> bytes | None:
        lengths = self.headers.get_all("Content-Length") or []
        if len(lengths) != 1 or not lengths[0].isdecimal() or "Transfer-Encoding" in self.headers:
            self._fail(411, "send one Content-Length")
            return None
        if int(lengths[0]) > MAX_FRAME_BYTES:
            self._fail(413, f"the frame has more than {MAX_FRAME_BYTES:,} bytes")
            return None
        body = self.rfile.read(int(lengths[0]))
        if not self._is_accepted():
            return None
        if self.headers.get_content_type() != _JSON:
            self._fail(415, f"send {_JSON}")
            return None
        return body

    def _fail(self, status: int, why: str) -> None:
        self.close_connection = True
        self._reply(status, answers.error(None, -32600, why))

    def _reply(self, status: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.send_response_only(status)
        for name, value in headers or (("Content-Type", _JSON),):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _carry_out(self, gate: Gate, message: Message, outcome: Outcome) -> None:
        held = outcome.held
        if held is not None and held.answered.is_set():
            self._reply(202, b"")  # The waiting request carries it out.
        elif held is not None and outcome.to_client is not None:
            self._ask(gate, held, outcome.to_client)
        elif outcome.to_server is not None:
            if self._changes_headers(message, outcome.to_server):
                reply = {"reason": "its arguments also stand in headers, which cannot be reduced"}
                denied = answers.denial(message.id, message.params["name"], reply, modern=True)
                self._reply(200, denied)
            else:
                self._forward(gate, outcome.to_server)
        elif outcome.to_client is not None:
            self._reply(200, outcome.to_client)
        else:
            self._reply(202, b"")

    def _changes_headers(self, message: Message, frame: bytes) -> bool:
        if frame == message.raw or not any(
            name.lower().startswith("mcp-param-") for name in self.headers
        ):
            return False
        return parse(frame).params.get("arguments") != message.params.get("arguments")

    def _ask(self, gate: Gate, held: Held, question: bytes) -> None:
        """Send the guard's question on the stream of the call, and wait for the answer."""
        self._begin_stream(200, [("Content-Type", _EVENTS), ("Cache-Control", "no-cache")])
        self._send_event(b"event: message\ndata: " + question + b"\n\n")
        if not held.answered.wait(ASK_SECONDS):
            reply = held.reply | {"reason": "the user gave no answer in time"}
            held.outcome = Outcome(
                to_client=answers.denial(
                    held.call.message.id, held.call.name, reply, modern=held.call.modern
                )
            )
        if held.outcome.to_server is not None:
            self._forward(gate, held.outcome.to_server)
        elif held.outcome.to_client is not None:
            self._send_event(b"event: message\ndata: " + held.outcome.to_client + b"\n\n")
        self._end_stream()

    # To the server

    def _forward(self, gate: Gate, frame: bytes | None) -> None:
        headers = [
            (name, value) for name, value in self.headers.items() if name.lower() not in _OWN
        ]
        try:
            self._relay(gate, self._send_upstream(self.command, self.path, frame, headers))
        except (OSError, http.client.HTTPException) as error:
            self._upstream.drop()
            self.close_connection = True
            if not self._streaming:
                self._fail(502, f"the server did not answer ({type(error).__name__})")
        finally:
            self.guard.watcher.remove(self.connection)

    def _send_upstream(
        self, method: str, target: str, frame: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> http.client.HTTPResponse:
        connection = self._upstream.send(method, target, frame, headers)
        self.guard.watcher.add(self.connection, connection.sock)
        return connection.getresponse()

    def finish(self) -> None:
        self._upstream.drop()
        super().finish()

    # From the server

    def _relay(self, gate: Gate, response: http.client.HTTPResponse) -> None:
        session = response.headers.get(_SESSION)
        if session and session != self.headers.get(_SESSION):
            self.guard.adopt(session, gate)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise http.client.HTTPException("encoded")
        headers = [
            (name, value) for name, value in response.getheaders() if name.lower() not in _OWN
        ]
        kind = response.headers.get_content_type()
        if kind == _EVENTS and response.status == 200:
            self._relay_events(gate, response, headers)
            return
        body = response.read(MAX_FRAME_BYTES + 1)
        if len(body) > MAX_FRAME_BYTES:
            raise http.client.HTTPException("too large")
        if body and kind == _JSON and urlsplit(self.path).path == self.guard.path:
            body = inspected_body(gate, body, response.status)
        if self._streaming:
            self._send_event(b"event: message\ndata: " + body + b"\n\n")
        else:
            self._reply(response.status, body, headers or [("Cache-Control", "no-cache")])

    def _relay_events(
        self, gate: Gate, response: http.client.HTTPResponse, headers: list[tuple[str, str]]
    ) -> None:
        if not self._streaming:
            self._begin_stream(response.status, headers)
            nested = False
        else:
            nested = True
        for event in events_of(response):
            kept = inspected_event(gate, event)
            if kept:
                self._send_event(kept)
        if not nested:
            self._end_stream()

    def _list_page(self, gate: Gate, request: dict[str, Any]) -> Message | None:
        """Send a request of the guard with the client's headers, and return the answer."""
        token, frame, answer = gate.begin_own(request)
        headers = [
            (name, request["method"] if name.lower() == "mcp-method" else value)
            for name, value in self.headers.items()
            if name.lower() not in _OWN and not name.lower().startswith(("mcp-name", "mcp-param-"))
        ]
        try:
            response = self._send_upstream("POST", self.path, frame, headers)
            if response.headers.get_content_type() == _EVENTS:
                frames: Iterator[bytes] = map(data_of, events_of(response))
            else:
                frames = iter([response.read(MAX_FRAME_BYTES)])
            for data in frames:
                if not data.strip():
                    continue
                gate.from_server(parse(data, one_line=False))
                if not answer.empty():
                    response.read(MAX_FRAME_BYTES)
                    return answer.get()
        except (OSError, http.client.HTTPException, RefusedError):
            self._upstream.drop()
        finally:
            self.guard.watcher.remove(self.connection)
        gate.end_own(token)
        return None

    # The stream to the client

    def _begin_stream(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self._streaming = True
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _send_event(self, event: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.flush()

    def _end_stream(self) -> None:
        self._streaming = False
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
