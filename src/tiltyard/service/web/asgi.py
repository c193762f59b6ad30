"""Answers of plain ASGI: small, quick, with the headers that keep a browser safe."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SAFETY: Final = {
    b"content-security-policy": POLICY,
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}


def with_safety(send: Send, *, https: bool) -> Send:
    """Add the headers of a safe answer, where the answer has none of its own."""
    extra = {b"strict-transport-security": b"max-age=31536000; includeSubDomains"} if https else {}
    wanted = {**_SAFETY, **extra}

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            known = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in wanted.items() if name not in known]
            message = {**message, "headers": headers}
        await send(message)

    return send_safely


async def reply(send: Send, status: int, body: bytes, kind: str, headers: Headers = ()) -> None:
    listed = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


def header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), "")
