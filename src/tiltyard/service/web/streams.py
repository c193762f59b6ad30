"""Event streams: one reader of the database in each process, any number of listeners.

An event says that something has changed, and never what. The listener then asks for what it may
see, so a stream cannot tell more than a page does.
"""

import asyncio
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

import msgspec
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import Max
from msgspec import Struct

from tiltyard.service.models import Event
from tiltyard.service.web.boards import BoardCache

POLL_SECONDS: Final = 0.5
MAX_LISTENERS: Final = 5_000
_MAX_WAITING: Final = 100
_MAX_ROWS: Final = 1_000


class Message(Struct, frozen=True):
    number: int
    topic: str
    kind: str

    def encode(self) -> bytes:
        data = msgspec.json.encode({"kind": self.kind})
        return b"id: %d\nevent: change\ndata: %s\n\n" % (self.number, data)


class _Row(Struct, frozen=True):
    id: int
    submission: object
    competition: str | None


class Broadcaster:
    """Reads new events, and passes each to the listeners of its topics."""

    def __init__(self, executor: Executor, boards: BoardCache) -> None:
        self._executor = executor
        self._boards = boards
        self._etags: dict[str, str] = {}
        self._listeners: dict[str, set[asyncio.Queue[Message | None]]] = {}
        self._last: int | None = None

    @property
    def listeners(self) -> int:
        return sum(map(len, self._listeners.values()))

    def listen(self, topic: str) -> "asyncio.Queue[Message | None]":
        """Return a queue of messages. None in it means that the listener was too slow."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue(_MAX_WAITING)
        self._listeners.setdefault(topic, set()).add(queue)
        return queue

    def note_board(self, slug: str, etag: str) -> None:
        """Remember the board that the first listener has seen."""
        self._etags.setdefault(slug, etag)

    def leave(self, topic: str, queue: "asyncio.Queue[Message | None]") -> None:
        self._listeners.get(topic, set()).discard(queue)
        if not self._listeners.get(topic):
            self._listeners.pop(topic, None)

    async def run(self) -> None:
        """Read events until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            events = await loop.run_in_executor(self._executor, self._read)
            for event in events:
                self._send(Message(event.id, f"submission:{event.submission}", "changed"))
            # At a deadline many events come at once, and one look at the board does for all.
            boards = {event.competition: event.id for event in events if event.competition}
            for slug, number in boards.items():
                await self._send_board(number, slug)
            await asyncio.sleep(POLL_SECONDS)

    def _read(self) -> list[_Row]:
        """Return the events since the last time. While the database is away, there are none."""
        try:
            close_old_connections()
            if self._last is None:
                self._last = Event.objects.aggregate(last=Max("pk"))["last"] or 0
            rows = Event.objects.filter(pk__gt=self._last).order_by("pk")
            listed = rows.values_list("id", "submission_id", "competition__slug")[:_MAX_ROWS]
            found = [_Row(*row) for row in listed]
        except DatabaseError:
            connection.close()
            return []
        if found:
            self._last = found[-1].id
        return found

    async def _send_board(self, number: int, slug: str) -> None:
        """Tell the listeners of a board, if the board that everybody sees has changed."""
        topic = f"board:{slug}"
        if topic not in self._listeners:
            self._etags.pop(slug, None)
            return
        rendered = await self._boards.refreshed(slug, "json")
        etag = "" if rendered is None else rendered.etag
        if self._etags.get(slug) != etag:
            self._etags[slug] = etag
            self._boards.forget(slug)  # Who asks now must not get an older page.
            self._send(Message(number, topic, "changed"))

    def _send(self, message: Message) -> None:
        for queue in tuple(self._listeners.get(message.topic, ())):
            with suppress(asyncio.QueueFull):
                queue.put_nowait(message)
                continue
            # A browser that lost its stream connects again and asks for the current state.
            self.leave(message.topic, queue)
            queue.get_nowait()
            queue.put_nowait(None)
