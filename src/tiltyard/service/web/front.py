"""The front: cached boards, event streams and static files in plain ASGI, and Django for the rest.

Django runs as WSGI in a few threads, because under ASGI every one of its middlewares changes
threads. What thousands ask for at the same time never reaches it.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
from a2wsgi import WSGIMiddleware
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, close_old_connections, connection
from django.http import HttpRequest

from tiltyard.service.models import Account, Submission
from tiltyard.service.visible import viewer_of
from tiltyard.service.web.asgi import App, Receive, Scope, Send, header, reply, with_safety
from tiltyard.service.web.boards import TYPES, BoardCache, Rendered
from tiltyard.service.web.bodies import Body, Refused
from tiltyard.service.web.environment import shared_assets
from tiltyard.service.web.streams import MAX_LISTENERS, Broadcaster
from tiltyard.service.wire import Problem

_DJANGO_THREADS: Final = 4
_FRONT_THREADS: Final = 3
_KEEP_ALIVE_SECONDS: Final = 15.0
_DRAIN_SECONDS: Final = 3.0
_BOARD: Final = re.compile(
    r"/c/([-a-zA-Z0-9_]+)(?:/boards/([-a-z]+))?(?:/board\.(json|csv)|/(monitor))?\Z"
)
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_JSON: Final = "application/json"


class Front:
    """The ASGI application of a web process."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_FRONT_THREADS, "front")
        self._boards = BoardCache(self._executor)
        self._broadcaster = Broadcaster(self._executor, self._boards)
        self._static = _read_static()
        django: Any = get_wsgi_application()  # Both are typed, in two ways.
        threaded: Any = WSGIMiddleware(django, workers=_DJANGO_THREADS)
        self._django: App = threaded
        self._https = bool(settings.SECURE_SSL_REDIRECT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, with_safety(send, https=self._https))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        reading = asyncio.create_task(self._broadcaster.run())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["method"] in ("GET", "HEAD"):
            found = _BOARD.match(path)
            if found is not None and not scope.get("query_string"):
                form = found[3] or found[4] or "html"
                rendered = await self._boards.get(found[1], form, found[2] or "")
                if rendered is not None:
                    await _send_board(scope, send, rendered)
                    return
            if path == "/healthz":
                await self._report_health(send)
                return
            if path == "/events":
                await self._stream(scope, receive, send)
                return
            if path in self._static:
                await _send_static(scope, send, *self._static[path])
                return
        await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let Django answer, once the body is here."""
        body = Body(receive)
        try:
            refused = await body.take(scope)
            if refused is None:
                await self._django(scope, body.receive, send)
            else:
                await _refuse(scope, receive, send, refused)
        finally:
            body.close()

    async def _report_health(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        is_well = await loop.run_in_executor(self._executor, _ask_database)
        body = msgspec.json.encode({"status": "ok" if is_well else "the database is away"})
        await reply(send, 200 if is_well else 503, body, _JSON, [(b"cache-control", b"no-store")])

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a line for each change of a submission or of a board, until the browser leaves."""
        topic = await self._topic(scope)
        if not topic:
            await reply(send, 404, b"There is nothing to listen to.\n", "text/plain")
            return
        if self._broadcaster.listeners >= MAX_LISTENERS:
            await reply(send, 503, b"Too many listeners.\n", "text/plain")
            return
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        queue = self._broadcaster.listen(topic)
        leaving = asyncio.create_task(_wait_for_end(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await _send_more(send, b"retry: 2000\n\n")
            while not leaving.done():
                waiting = asyncio.create_task(queue.get())
                await asyncio.wait(
                    (waiting, leaving),
                    timeout=_KEEP_ALIVE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not waiting.done():
                    waiting.cancel()
                    await _send_more(send, b": still here\n\n")
                    continue
                message = waiting.result()
                if message is None:
                    break
                await _send_more(send, message.encode())
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()
            self._broadcaster.leave(topic, queue)

    async def _topic(self, scope: Scope) -> str:
        """Return what a listener asks for, if they may hear of it."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        slug = query.get("board", [""])[0]
        if slug:
            rendered = await self._boards.get(slug, "json")
            if rendered is None:
                return ""
            self._broadcaster.note_board(slug, rendered.etag)
            return f"board:{slug}"
        wanted = query.get("submission", [""])[0]
        loop = asyncio.get_running_loop()
        cookie = header(scope, b"cookie")
        return await loop.run_in_executor(self._executor, _submission_topic, cookie, wanted)


def _submission_topic(cookie: str, wanted: str) -> str:
    """Return the topic of a submission for members of its team and for organizers."""
    try:
        number = UUID(wanted)
        key = SimpleCookie(cookie)[settings.SESSION_COOKIE_NAME].value
    except (ValueError, KeyError, CookieError):
        return ""
    close_old_connections()
    request = HttpRequest()
    request.session = SessionStore(key)
    account: Any = get_user(request)
    found = Submission.objects.select_related("competition").filter(pk=number).first()
    if found is None or not isinstance(account, Account):
        return ""
    viewer = viewer_of(account, found.competition)
    return f"submission:{number}" if viewer.organizes or viewer.team == found.team_id else ""


def _ask_database() -> bool:
    try:
        close_old_connections()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        connection.close()
        return False
    return True


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_more(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _send_board(scope: Scope, send: Send, rendered: Rendered) -> None:
    headers = [(b"etag", rendered.etag.encode()), (b"cache-control", b"no-cache")]
    await _send_tagged(scope, send, rendered.body, TYPES[rendered.form], headers)


async def _send_static(scope: Scope, send: Send, body: bytes, kind: str, etag: str) -> None:
    headers = [(b"etag", etag.encode()), (b"cache-control", b"public, max-age=300")]
    await _send_tagged(scope, send, body, kind, headers)


async def _send_tagged(
    scope: Scope, send: Send, body: bytes, kind: str, headers: list[tuple[bytes, bytes]]
) -> None:
    """Send a document, or 304 if the browser has it. The first header is the tag."""
    if header(scope, b"if-none-match") == headers[0][1].decode():
        await reply(send, 304, b"", kind, headers)
    elif scope["method"] == "HEAD":
        await reply(send, 200, b"", kind, headers)
    else:
        await reply(send, 200, body, kind, headers)


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    """Say why a body is refused, and give the browser a moment to read it."""
    body = msgspec.json.encode(Problem(refused.text))
    kind = _JSON
    if not scope["path"].startswith("/api/"):
        body, kind = f"{refused.text}\n".encode(), "text/plain; charset=utf-8"
    headers = [(b"content-type", kind.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await _send_more(send, body)
    with suppress(TimeoutError):
        await asyncio.wait_for(_drain(receive), _DRAIN_SECONDS)
    await send({"type": "http.response.body", "body": b""})


async def _drain(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return


def _read_static() -> dict[str, tuple[bytes, str, str]]:
    """Return the static files by their address, with type and tag."""
    found = shared_assets()
    for entry in (files("tiltyard.service") / "web" / "static").iterdir():
        found[entry.name] = entry.read_bytes()
    return {
        f"/static/{name}": (body, kind, f'"{sha256(body).hexdigest()[:32]}"')
        for name, body in found.items()
        for ending, kind in _KINDS.items()
        if name.endswith(ending)
    }
