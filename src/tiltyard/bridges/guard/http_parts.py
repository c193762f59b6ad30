"""Parts of the guard over HTTP: events, headers, and clients that go away."""

import base64
import http.client
import select
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from email.message import Message as Headers
from typing import Final
from urllib.parse import SplitResult

from tiltyard.bridges.guard.frames import MAX_FRAME_BYTES, Message, RefusedError

_SERVER_SECONDS: Final = 3_600.0


class Watcher:
    """Ends the server's side of an exchange when the client goes away."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, socket.socket] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def add(self, client: socket.socket, server: socket.socket) -> None:
        self._watched[client.fileno()] = server
        self._epoll.register(client.fileno(), select.EPOLLRDHUP)

    def remove(self, client: socket.socket) -> None:
        if self._watched.pop(client.fileno(), None) is not None:
            self._epoll.unregister(client.fileno())

    def _watch(self) -> None:
        while True:
            for number, _ in self._epoll.poll():
                server = self._watched.pop(number, None)
                try:
                    self._epoll.unregister(number)
                    if server is not None:
                        server.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class Upstream:
    """The connection to the MCP server that belongs to one connection of a client."""

    def __init__(self, url: SplitResult) -> None:
        self._url = url
        self._connection: http.client.HTTPConnection | None = None

    def send(
        self, method: str, target: str, frame: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> http.client.HTTPConnection:
        """Send a request. Return the connection on which the answer comes."""
        connection = self._connect()
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if frame is not None:
            connection.putheader("Content-Length", str(len(frame)))
        connection.endheaders(frame)
        return connection

    def _connect(self) -> http.client.HTTPConnection:
        """Return a connection to the server; the last one, if the server keeps it open."""
        if self._connection is not None and self._connection.sock is not None:
            if not select.select([self._connection.sock], [], [], 0)[0]:
                return self._connection
            self.drop()
        host, port = self._url.hostname, self._url.port
        assert host is not None
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                host, port, timeout=_SERVER_SECONDS, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=_SERVER_SECONDS)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def events_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the events of a stream, each with its blank line."""
    kept: list[bytes] = []
    size = 0
    while line := response.readline(MAX_FRAME_BYTES + 1):
        kept.append(line)
        size += len(line)
        if size > MAX_FRAME_BYTES:
            raise http.client.HTTPException("too large")
        if line in (b"\n", b"\r\n"):
            yield b"".join(kept)
            kept, size = [], 0


def check_lines(lines: Sequence[bytes]) -> None:
    if any(b"\r" in line for line in lines):
        # A client ends a line there, and would see other events than the guard.
        raise RefusedError("an event contains a carriage return")


def check_headers(headers: Headers, message: Message) -> None:
    """Raise a RefusedError if headers name another method or tool than the message."""
    for header, said in (("Mcp-Method", message.method), ("Mcp-Name", message.params.get("name"))):
        found = headers.get_all(header) or []
        if header == "Mcp-Name" and message.method != "tools/call":
            continue
        if len(found) > 1 or (found and _decoded(found[0]) != said):
            raise RefusedError(f"{header} differs from the message", -32020, message.id)


def _decoded(value: str) -> str:
    if value.startswith("=?base64?") and value.endswith("?="):
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except ValueError:
            return ""
    return value
