"""A scripted server: everything that an OpenAI-compatible endpoint may do, over real HTTP.

It keeps every request, and ends with the `with` block, even while clients wait.
"""

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

SOON = {"retry-after-ms": "1"}
"""Makes the official client retry at once."""


class Request(NamedTuple):
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    """With names in lower case."""
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.raw)
        return body

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


class Wire:
    """The connection to the client."""

    def __init__(self, handler: BaseHTTPRequestHandler, stopped: threading.Event) -> None:
        self._handler = handler
        self._stopped = stopped

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(data)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in {"Connection": "close", **headers}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def wait(self, seconds: float) -> bool:
        """Wait, and return False if the server stops meanwhile."""
        return not self._stopped.wait(seconds)


Reply = Callable[[Wire], None]
Script = Sequence[Reply] | Callable[[Request], Reply]
"""Replies in order, the last one repeated; or a function from a request to its reply."""


class ScriptedServer:
    """An endpoint on this machine."""

    def __init__(
        self, script: Script, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.requests: list[Request] = []
        self._server = _Server((host, 0), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://{host}:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            at = len(self.requests)
            self.requests.append(request)
        if callable(self._script):
            return self._script(request)
        return self._script[min(at, len(self._script) - 1)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.close_connection = True
                raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = outer._answer(Request(self.path, headers, raw))
                with suppress(OSError):  # The client closed the connection.
                    reply(Wire(self, outer._stopped))

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # Closing waits for the threads.

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*_)  # type: ignore[arg-type]


def answer(status: int, body: str | bytes, headers: dict[str, str] | None = None) -> Reply:
    """Send these bytes in a correct reply."""
    data = body.encode() if isinstance(body, str) else body

    def reply(wire: Wire) -> None:
        wire.head(
            status,
            {"Content-Type": "application/json", "Content-Length": str(len(data))}
            | (headers or {}),
        )
        wire.send(data)

    return reply


def failure(status: int, said: str = "no", headers: dict[str, str] | None = None) -> Reply:
    return answer(status, json.dumps({"error": {"message": said}}), SOON | (headers or {}))


def completion(
    content: str | None = None,
    *,
    ended: str = "stop",
    tokens: tuple[int, int] = (0, 0),
    **more: Any,
) -> str:
    """Return the JSON of a chat completion."""
    message = {"role": "assistant", "content": content, **more}
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "finish_reason": ended, "message": message}],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]},
        }
    )


def says(content: str | None = None, **more: Any) -> Reply:
    return answer(200, completion(content, **more))


def acts(tool: str, /, **arguments: Any) -> Reply:
    """Call a tool by structured output."""
    return says(json.dumps({"action": {"tool": tool, "arguments": arguments}}))


def ends(text: str) -> Reply:
    """Answer by structured output."""
    return says(json.dumps({"action": {"answer": text}}))


def calls(*made: tuple[str, Any]) -> Reply:
    """Call tools by the endpoint's own tool calls."""
    return says(tool_calls=[native(name, args) for name, args in made], ended="tool_calls")


def native(name: str, args: Any) -> dict[str, Any]:
    packed = args if isinstance(args, str) else json.dumps(args)
    return {"id": "x", "type": "function", "function": {"name": name, "arguments": packed}}


def cut_short(body: str) -> Reply:
    """Send fewer bytes than announced."""

    def reply(wire: Wire) -> None:
        wire.head(200, {"Content-Length": str(len(body) + 100)})
        wire.send(body.encode())

    return reply


def cut_chunks(body: str) -> Reply:
    """Close the connection before the last chunk."""

    def reply(wire: Wire) -> None:
        wire.head(200, {"Transfer-Encoding": "chunked"})
        wire.send(f"{len(body):x}\r\n{body}\r\n".encode())

    return reply


def hang(wire: Wire) -> None:
    """Send nothing."""
    wire.wait(600)


def trickle(status: int = 200) -> Reply:
    """Send a blank from time to time, without end."""

    def reply(wire: Wire) -> None:
        wire.head(status, {"Content-Length": "1000000"})
        while wire.wait(0.05):
            wire.send(b" ")

    return reply


def trickle_headers(wire: Wire) -> None:
    """Send a header that never ends."""
    wire.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while wire.wait(0.05):
        wire.send(b"x")


def trickle_chunk(wire: Wire) -> None:
    """Send a chunk whose first line never ends."""
    wire.head(200, {"Transfer-Encoding": "chunked"})
    wire.send(b"5;")
    while wire.wait(0.05):
        wire.send(b"x")


def trickle_unmeasured(wire: Wire) -> None:
    """Send a body without a length, and keep the connection open."""
    wire.head(200, {})
    wire.send(b"{")
    while wire.wait(0.05):
        wire.send(b" ")


def endless(status: int, sent: list[int]) -> Reply:
    """Send up to 100 MB until the client leaves, and count the bytes in `sent`."""
    block = b" " * 65_536

    def reply(wire: Wire) -> None:
        wire.head(status, {"Content-Length": str(len(block) * 1_600)})
        for _ in range(1_600):
            wire.send(block)
            sent[0] += len(block)

    return reply


def strings(value: object) -> Iterator[str]:
    """Yield every string in a request's body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
