"""Pages for everybody: boards, teams, rules, news, the monitor, and commitments to keys."""

import io
import zipfile
from importlib.resources import files

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.feedgenerator import Atom1Feed

from tiltyard.contracts.tracks import PARTS
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Announcement, Competition, Team
from tiltyard.service.visible import (
    EVERYBODY,
    Viewer,
    is_final_shown,
    may_see_board,
    rows_of,
    submissions_of,
    viewer_of,
)
from tiltyard.service.web.boards import BOARDS, TYPES, Order, render_board
from tiltyard.service.web.guards import Route, account_of
from tiltyard.service.web.lookup import find_competition
from tiltyard.service.web.markdown import render_markdown

_MAX_WORDS = 100


def board(request: HttpRequest, slug: str, which: str = "", form: str = "html") -> HttpResponse:
    """Show a board that the front does not keep: sorted, searched, or not for everybody."""
    found = find_competition(slug)
    return _board(request, found, _board_viewer(request, found), which, form)


def _board_viewer(request: HttpRequest, competition: Competition) -> Viewer:
    """Return everybody if everybody may see the board, so that all see the same board."""
    if may_see_board(competition, EVERYBODY):
        return EVERYBODY
    viewer = viewer_of(account_of(request), competition)
    if not may_see_board(competition, viewer):
        raise ServiceError("The board of this competition is not public.", 403)
    return viewer


def _board(
    request: HttpRequest, found: Competition, viewer: Viewer, which: str, form: str
) -> HttpResponse:
    if which not in BOARDS or (which.startswith("final") and not is_final_shown(found, viewer)):
        raise ServiceError("There is no such board.", 404)
    order = Order(request.GET.get("q", "")[:_MAX_WORDS], request.GET.get("sort", ""))
    rendered = render_board(found, viewer, form, which, live=viewer.organizes, order=order)
    response = HttpResponse(rendered.body, TYPES[form])
    response["Cache-Control"] = "private, no-store"
    return response


def board_json(request: HttpRequest, slug: str, which: str = "") -> HttpResponse:
    return board(request, slug, which, "json")


def board_csv(request: HttpRequest, slug: str, which: str = "") -> HttpResponse:
    return board(request, slug, which, "csv")


def live_board(request: HttpRequest, slug: str, which: str = "") -> HttpResponse:
    """Show an organizer the board as it is, also while it is frozen for everybody else."""
    found = find_competition(slug)
    return _board(request, found, viewer_of(account_of(request), found), which, "html")


def monitor(request: HttpRequest, slug: str) -> HttpResponse:
    return board(request, slug, "", "monitor")


def team_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show a team and its places. Its own members and organizers get to its submissions."""
    found = find_competition(slug)
    viewer = viewer_of(account_of(request), found)
    team = Team.objects.select_related("competition").filter(competition=found, pk=number).first()
    is_own = team is not None and viewer.team == team.pk
    if team is None or not (is_own or may_see_board(found, viewer)):
        raise ServiceError("There is no such team.", 404)
    rows = rows_of(team, EVERYBODY if may_see_board(found, EVERYBODY) else viewer)
    context = {
        "competition": found,
        "team": team,
        "members": team.memberships.select_related("account").order_by("-captain", "joined_at"),
        "rows": [(name, BOARDS[name], row) for name, row in rows.items()],
        "is_own": is_own,
        "submissions": submissions_of(team, viewer) if viewer.organizes else (),
    }
    return render(request, "public_team.html", context)


def rules(request: HttpRequest, slug: str) -> HttpResponse:
    return render(request, "rules.html", {"competition": find_competition(slug)})


def keys(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the commitments to the keys, and the keys once they are published."""
    found = find_competition(slug)
    is_public = found.keys_published_at is not None
    listed = [
        ("the board", found.board_commitment, found.board_key if is_public else ""),
        ("the final", found.final_commitment, found.final_key if is_public else ""),
    ]
    context = {"competition": found, "keys": listed, "is_public": is_public}
    return render(request, "keys.html", context)


def _announcements(competition: Competition) -> list[Announcement]:
    found = Announcement.objects.filter(competition=competition)
    return list(found.annotate(author=F("made_by__username")).order_by("-pk"))


def news(request: HttpRequest, slug: str) -> HttpResponse:
    found = find_competition(slug)
    context = {"competition": found, "announcements": _announcements(found)}
    return render(request, "news.html", context)


def feed(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the announcements as an Atom feed."""
    found = find_competition(slug)
    page = request.build_absolute_uri(f"/c/{slug}/news")
    made = Atom1Feed(found.title, page, "", feed_url=request.build_absolute_uri())
    for one in _announcements(found):
        made.add_item(
            one.title,
            f"{page}#news-{one.pk}",
            str(render_markdown(one.text)),
            pubdate=one.at,
            updateddate=one.at,
            unique_id=f"{page}#news-{one.pk}",
        )
    return HttpResponse(made.writeString("utf-8"), "application/atom+xml; charset=utf-8")


def starter(request: HttpRequest) -> HttpResponse:
    """Return the files of `tiltyard init` as an archive that can be submitted as it is."""
    del request
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for part in PARTS:
            source = files("tiltyard.submissions.starters") / f"{part}.py"
            archive.writestr(zipfile.ZipInfo(f"{part}.py"), source.read_bytes())
    response = HttpResponse(written.getvalue(), "application/zip")
    response["Content-Disposition"] = 'attachment; filename="starter.zip"'
    return response


_ONE = "c/<slug:slug>"
_WHICH = f"{_ONE}/boards/<slug:which>"
ROUTES = (
    Route("starter.zip", starter, "starter"),
    Route(_ONE, board, "board"),
    Route(f"{_ONE}/board.json", board_json, "board-json"),
    Route(f"{_ONE}/board.csv", board_csv, "board-csv"),
    Route(_WHICH, board, "one-board"),
    Route(f"{_WHICH}/board.json", board_json, "one-board-json"),
    Route(f"{_WHICH}/board.csv", board_csv, "one-board-csv"),
    Route(f"{_ONE}/live", live_board, "live-board", access="organizer"),
    Route(f"{_ONE}/live/<slug:which>", live_board, "one-live-board", access="organizer"),
    Route(f"{_ONE}/monitor", monitor, "monitor"),
    Route(f"{_ONE}/t/<int:number>", team_page, "public-team"),
    Route(f"{_ONE}/rules", rules, "rules"),
    Route(f"{_ONE}/keys", keys, "keys"),
    Route(f"{_ONE}/news", news, "news"),
    Route(f"{_ONE}/news.atom", feed, "news-feed"),
)
