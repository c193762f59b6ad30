"""An HTTP client with hard bounds on the size and the time of every reply.

It uses the HTTP client of the `openai` package, so import it only when a model is asked.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock, Timer
from typing import Any, Final, Self

import httpx2

MAX_CONNECT_SECONDS: Final = 10.0
_EVERYWHERE: Final = ("http://", "https://", "all://")


class BoundedClient(httpx2.Client):
    """Reads at most `most` bytes of a reply within `seconds`, and follows no redirect."""

    def __init__(self, seconds: float, most: int, *, proxies: bool) -> None:
        super().__init__(
            follow_redirects=False,
            timeout=httpx2.Timeout(seconds, connect=min(MAX_CONNECT_SECONDS, seconds)),
            # Each request has its own connection, which the deadline ends.
            limits=httpx2.Limits(max_keepalive_connections=0),
            # The proxies of the environment, which may also name trusted certificates.
            mounts=None if proxies else dict.fromkeys(_EVERYWHERE),
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [self._bound]},
        )
        self._seconds = seconds
        self._most = most

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request, and return its reply, read to its end or to the bound."""
        late = httpx2.ReadTimeout("the reply did not end in time", request=request)
        with _Deadline(self._seconds) as deadline:
            request.extensions["trace"] = deadline.watch
            try:
                response = super().send(request, **how)
            except httpx2.RequestError as error:
                raise (late if deadline.passed else error) from None
            if deadline.passed:
                raise late
            return response

    def _bound(self, response: httpx2.Response) -> None:
        # Do not decompress a body: its size is not bounded.
        response.headers.pop("Content-Encoding", None)
        # The server must not choose the codec: some of Python's codecs do not decode text.
        response.headers["Content-Type"] = "application/json"
        response.stream = _BoundedBody(response.stream, self._most)


class _BoundedBody(httpx2.SyncByteStream):
    """A body that ends after `most` bytes."""

    def __init__(self, body: object, most: int) -> None:
        assert isinstance(body, httpx2.SyncByteStream)
        self._body = body
        self._most = most

    def __iter__(self) -> Iterator[bytes]:
        left = self._most
        for part in self._body:
            yield part[:left]
            left -= len(part)
            if left <= 0:
                return

    def close(self) -> None:
        self._body.close()


class _Deadline:
    """Ends the connections of one request when its time is over.

    The client's own timeout restarts with every byte, so a server could send for days.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._handles: list[socket.socket] = []
        self._lock = Lock()
        self._timer = Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()
        for handle in self._handles:
            handle.close()

    def watch(self, event: str, info: dict[str, Any]) -> None:
        """Keep a duplicate of each new connection's handle, which the client cannot close."""
        if not event.endswith("connect_tcp.complete"):
            return
        connected: socket.socket = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._handles.append(connected.dup())
            if self.passed:
                self._end()

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            self._end()

    def _end(self) -> None:
        for handle in self._handles:
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)
