"""The public board in the forms in which everybody reads it, and a cache of them.

The board is the page that everybody reloads at a deadline. It is the same for everybody, so one
rendering a second serves all of them, and one thread at a time makes it.
"""

import asyncio
import csv
import io
import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from hashlib import sha256
from typing import Any, Final

import msgspec
from django.template.loader import render_to_string
from msgspec import Struct, structs

from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.reporting import monitor_page
from tiltyard.service.models import Announcement, Competition
from tiltyard.service.models.judgings import Phase
from tiltyard.service.visible import (
    EVERYBODY,
    Viewer,
    board,
    board_view,
    is_final_shown,
    may_see_board,
)
from tiltyard.service.wire import BoardRow, BoardView

TYPES: Final[dict[str, str]] = {
    "html": "text/html; charset=utf-8",
    "monitor": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
}
FRESH_SECONDS: Final = 1.0
STALE_SECONDS: Final = 10.0
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Which(Struct, frozen=True):
    """One of the boards of a competition."""

    phase: str
    track: Track | None
    title: str


BOARDS: Final = {
    "": Which(Phase.BOARD, None, "Overall"),
    **{track: Which(Phase.BOARD, track, track.capitalize()) for track in TRACKS},
    "final": Which(Phase.FINAL, None, "Final"),
    **{f"final-{track}": Which(Phase.FINAL, track, f"Final, {track}") for track in TRACKS},
}
"""The boards by the last part of their address."""


class Order(Struct, frozen=True):
    """What a reader searches for, and the column that sorts the rows."""

    words: str = ""
    column: str = ""
    """The name of a column, with a minus sign for the largest first; empty for the ranks."""


class Rendered(Struct, frozen=True):
    """A document and the tag that changes with it."""

    body: bytes
    etag: str
    form: str


def render_board(  # noqa: PLR0913 - what is shown, to whom, and how
    competition: Competition,
    viewer: Viewer,
    form: str,
    which: str = "",
    *,
    live: bool = False,
    order: Order = Order(),  # noqa: B008 - frozen
) -> Rendered:
    """Return a board that a viewer may see, or the monitor of it."""
    if form == "monitor":
        body = _monitor(competition, viewer).encode()
        return Rendered(body, _tag(body), form)
    view = board_view(competition, viewer, BOARDS[which].phase, BOARDS[which].track)
    if form == "json":
        body = msgspec.json.encode(view)
    elif form == "csv":
        body = _csv(view).encode()
    else:
        context = {
            "competition": competition,
            "board": structs.replace(view, rows=tuple(ordered(view.rows, order))),
            "teams": len(view.rows),
            "live": live,
            "which": which,
            "boards": _boards(competition, viewer),
            "order": order,
            "news": Announcement.objects.filter(competition=competition).order_by("-pk").first(),
        }
        body = render_to_string("board.html", context).encode()
    return Rendered(body, _tag(body), form)


def _tag(body: bytes) -> str:
    return f'"{sha256(body).hexdigest()[:32]}"'


def _boards(competition: Competition, viewer: Viewer) -> dict[str, Which]:
    """Return the boards that a viewer can choose from."""
    phases = {Phase.BOARD, *((Phase.FINAL,) if is_final_shown(competition, viewer) else ())}
    return {name: one for name, one in BOARDS.items() if one.phase in phases}


def ordered(rows: tuple[BoardRow, ...], order: Order) -> list[BoardRow]:
    """Return the rows with all of the words, sorted. A missing figure comes last."""
    words = order.words.lower().split()
    found = [row for row in rows if all(word in row.team.lower() for word in words)]
    column = order.column.removeprefix("-")
    if column not in SORTED:
        return found
    is_known = [row for row in found if getattr(row, column) is not None]
    is_known.sort(key=lambda row: _sortable(getattr(row, column)), reverse=order.column[0] == "-")
    return [*is_known, *(row for row in found if getattr(row, column) is None)]


SORTED: Final = tuple(
    name for name in BoardRow.__struct_fields__ if name not in ("same_bytes_as", "team_id")
)


def _sortable(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _monitor(competition: Competition, viewer: Viewer) -> str:
    from tiltyard.standings.monitoring import monitor  # noqa: PLC0415 - heavy

    found = board(competition, viewer)
    sections = list(monitor_page.sections_of(monitor(found))) if found.standings else []
    if found.standings and not any(one.run.offense is not None for one in found.standings):
        del sections[1:]  # Strategies and advice are about two tracks.
    return render_to_string("monitor.html", {"competition": competition, "sections": sections})


def public_board(slug: str, form: str, which: str = "") -> Rendered | None:
    """Return a board that everybody may see; None if there is none."""
    competition = Competition.objects.filter(slug=slug).first()
    if competition is None or not may_see_board(competition, EVERYBODY):
        return None
    if which not in _boards(competition, EVERYBODY):
        return None
    return render_board(competition, EVERYBODY, form, which)


def _csv(view: BoardView) -> str:
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(BoardRow.__struct_fields__)
    for row in view.rows:
        table.writerow(map(_cell, structs.astuple(row)))
    return written.getvalue()


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    if isinstance(value, tuple):
        value = "; ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class _Kept(Struct, frozen=True):
    rendered: Rendered | None
    at: float


class BoardCache:
    """Keeps rendered boards. However many ask, one thread renders a board, once a second."""

    def __init__(
        self, executor: Executor, render: Callable[[str, str, str], Rendered | None] = public_board
    ) -> None:
        self._executor = executor
        self._render = render
        self._kept: dict[tuple[str, str, str], _Kept] = {}
        self._running: dict[tuple[str, str, str], asyncio.Task[Rendered | None]] = {}

    async def get(self, slug: str, form: str, which: str = "") -> Rendered | None:
        """Return a board that is at most a moment old."""
        wanted = slug, form, which
        kept = self._kept.get(wanted)
        age = STALE_SECONDS if kept is None else time.monotonic() - kept.at
        if kept is not None and age < FRESH_SECONDS:
            return kept.rendered
        if wanted not in self._running:
            self._running[wanted] = asyncio.create_task(self._refresh(wanted))
        if kept is not None and age < STALE_SECONDS:
            return kept.rendered
        return await asyncio.shield(self._running[wanted])

    async def refreshed(self, slug: str, form: str) -> Rendered | None:
        """Return a board as it is now."""
        self.forget(slug, (form,))
        return await self.get(slug, form)

    def forget(self, slug: str, forms: Collection[str] = TYPES) -> None:
        """Render the boards of a competition anew, including those that are being rendered."""
        for wanted in [*self._kept, *self._running]:
            if wanted[0] == slug and wanted[1] in forms:
                self._kept.pop(wanted, None)
                self._running.pop(wanted, None)

    async def _refresh(self, wanted: tuple[str, str, str]) -> Rendered | None:
        task = asyncio.current_task()
        try:
            loop = asyncio.get_running_loop()
            rendered = await loop.run_in_executor(self._executor, self._render, *wanted)
            if self._running.get(wanted) is task:
                self._kept.pop(wanted, None)
                if rendered is not None:  # Names that do not exist must not fill the memory.
                    self._kept[wanted] = _Kept(rendered, time.monotonic())
            return rendered
        finally:
            if self._running.get(wanted) is task:
                del self._running[wanted]
