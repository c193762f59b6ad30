"""Take the body of a request before Django sees the request.

A thread of Django that waits for a slow browser is a thread that serves nobody. So the front reads
the body, counts it, and stops where it is too large.
"""

import asyncio
from tempfile import SpooledTemporaryFile
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct

from tiltyard.service.web.asgi import Message, Receive, Scope, header
from tiltyard.submissions import LIMITS
from tiltyard.submissions.names import show, too_large

_SMALL_BYTES: Final = 1 << 20
_FORM_BYTES: Final = 64 << 10
"""What a form has besides the file."""
_SECONDS: Final = 300.0
_CHUNK: Final = 256 << 10


class Refused(Struct, frozen=True):
    """Why a body is not accepted."""

    status: int
    text: str


def limit_of(scope: Scope) -> int:
    """Return how many bytes the body of a request may have."""
    parts = scope["path"].strip("/").split("/")
    if parts[0] == "api" and parts[-1] == "submit":
        return LIMITS.archive_bytes
    if parts[0] == "c" and parts[-1] == "submit":
        return LIMITS.archive_bytes + _FORM_BYTES
    return _SMALL_BYTES


def _refusal(scope: Scope, limit: int) -> Refused:
    names = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("name", [])
    shown = show(names[0]) if names else "The upload"
    return Refused(413, str(too_large(shown, min(limit, LIMITS.archive_bytes))))


class Body:
    """A body that has arrived, for an application that may read it or not."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._file = SpooledTemporaryFile(_SMALL_BYTES)  # noqa: SIM115 - `close` closes it
        self._is_read = True

    def close(self) -> None:
        self._file.close()

    async def take(self, scope: Scope) -> Refused | None:
        """Read the whole body. Return why not, if it is refused."""
        limit = limit_of(scope)
        declared = header(scope, b"content-length")
        if not declared and header(scope, b"transfer-encoding"):
            return Refused(411, "Send the length of the body: Content-Length.")
        if declared and (not declared.isdecimal() or int(declared) > limit):
            return _refusal(scope, limit)
        if not declared or declared == "0":
            return None
        try:
            size = await asyncio.wait_for(self._read(limit), _SECONDS)
        except TimeoutError:
            return Refused(408, "The upload took too long.")
        if size is None:
            return Refused(400, "The upload was broken off.")
        if size > limit:
            return _refusal(scope, limit)
        self._file.seek(0)
        self._is_read = False
        return None

    async def _read(self, limit: int) -> int | None:
        """Read until the end or until the limit is passed; None if the browser left."""
        size, more = 0, True
        while more and size <= limit:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return None
            size += len(message.get("body", b""))
            more = bool(message.get("more_body"))
            if size <= limit:
                self._file.write(message.get("body", b""))
        return size

    async def receive(self) -> Message:
        """Give the body to the application, and then what else the browser does."""
        if self._is_read:
            return await self._receive()
        chunk = self._file.read(_CHUNK)
        self._is_read = len(chunk) < _CHUNK
        return {"type": "http.request", "body": chunk, "more_body": not self._is_read}
