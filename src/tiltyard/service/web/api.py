"""The JSON API. The commands `submit` and `status` use it, and so do the pages."""

from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse

from tiltyard.contracts.tracks import TRACKS
from tiltyard.reporting.schema import Report, write_report
from tiltyard.service.actions.accounts import join, team_in
from tiltyard.service.actions.judgings import cancel
from tiltyard.service.actions.quota import quota_of
from tiltyard.service.actions.submit import check_upload, submit
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Competition, Judging, Team
from tiltyard.service.models.judgings import Phase
from tiltyard.service.visible import (
    board_view,
    may_see_board,
    queue_view,
    report_of,
    submissions_of,
    viewer_of,
)
from tiltyard.service.web.guards import Route, account_of, answer, signed_in
from tiltyard.service.web.lookup import find_competition, find_submission, view_of
from tiltyard.service.web.uploads import read_body
from tiltyard.service.wire import (
    Accepted,
    BoardView,
    CompetitionView,
    Me,
    QueueView,
    SubmissionView,
    TeamView,
)


def competition_view(one: Competition) -> CompetitionView:
    """Return what everybody may know of a competition. Its keys stay secret until published."""
    is_public = one.keys_published_at is not None
    return CompetitionView(
        one.slug,
        one.title,
        one.ruleset,
        one.ruleset_digest,
        one.engine,
        one.budget,
        one.opens_at,
        one.closes_at,
        one.freeze_at,
        one.quota,
        one.finals,
        one.board_commitment,
        one.final_commitment,
        one.board_key if is_public else "",
        one.final_key if is_public else "",
    )


def competitions(request: HttpRequest) -> HttpResponse:
    del request
    return answer([competition_view(one) for one in Competition.objects.order_by("-pk")])


def competition(request: HttpRequest, slug: str) -> HttpResponse:
    del request
    return answer(competition_view(find_competition(slug)))


def board(request: HttpRequest, slug: str) -> HttpResponse:
    found = find_competition(slug)
    viewer = viewer_of(account_of(request), found)
    if not may_see_board(found, viewer):
        raise ServiceError("The board of this competition is not public.", 403)
    phase, track = request.GET.get("phase", Phase.BOARD), request.GET.get("track", "")
    if phase not in Phase.values or track not in ("", *TRACKS):
        raise ServiceError("`phase` is board or final, and `track` is offense or defense.", 422)
    ranked = next((one for one in TRACKS if one == track), None)
    return answer(board_view(found, viewer, phase, ranked))


def me(request: HttpRequest) -> HttpResponse:
    account = signed_in(request)
    teams = Team.objects.filter(memberships__account=account).select_related("competition")
    views = tuple(
        TeamView(one.competition.slug, one.name, quota_of(one)) for one in teams.order_by("pk")
    )
    return answer(Me(account.username, account.organizes, views))


def submissions(request: HttpRequest, slug: str) -> HttpResponse:
    """List the submissions of one's team."""
    found, account = find_competition(slug), signed_in(request)
    team = team_in(account, found)
    return answer([] if team is None else submissions_of(team, viewer_of(account, found)))


def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Submit the body: a .zip or a .py file, whose name is in the query."""
    found, account = find_competition(slug), signed_in(request)
    team = team_in(account, found) or join(account, found)
    name = request.GET.get("name", "submission.zip")
    made, is_new = submit(team, account, check_upload(name, read_body(request, name)))
    view = view_of(made, viewer_of(account, found))
    return answer(Accepted(view, is_new, quota_of(team)), 201 if is_new else 200)


def submission(request: HttpRequest, number: UUID) -> HttpResponse:
    return answer(view_of(*find_submission(request, number)))


def cancel_submission(request: HttpRequest, number: UUID) -> HttpResponse:
    found, viewer = find_submission(request, number)
    if viewer.team != found.team_id:
        raise ServiceError("Only the team can cancel its submission.", 403)
    cancel(found, signed_in(request))
    return answer(view_of(found, viewer))


def report(request: HttpRequest, number: int) -> HttpResponse:
    """Return the report of a judging: to an organizer in full, with `?full=1`."""
    judging = Judging.objects.select_related("submission", "competition", "report")
    found = judging.filter(pk=number).first()
    if found is not None:
        viewer = viewer_of(account_of(request), found.competition)
        shown = report_of(found, viewer, full=request.GET.get("full") == "1")
        if shown is not None:
            return HttpResponse(write_report(shown), "application/json")
    raise ServiceError("There is no such report.", 404)


def queue(request: HttpRequest) -> HttpResponse:
    del request
    return answer(queue_view())


def description(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI description of these routes."""
    from tiltyard.service.web.openapi import describe  # noqa: PLC0415 - it reads `ROUTES`

    del request
    return HttpResponse(msgspec.json.encode(describe(ROUTES)), "application/json")


def missing(request: HttpRequest, rest: str) -> HttpResponse:
    del request, rest
    raise ServiceError("There is no such address. /api/v1/openapi.json lists them.", 404)


_ONE = "api/v1/competitions/<slug:slug>"
_SUBMISSION = "api/v1/submissions/<uuid:number>"
ROUTES = (
    Route("api/v1/openapi.json", description, "api-description", returns=dict),
    Route("api/v1/queue", queue, "api-queue", returns=QueueView),
    Route("api/v1/me", me, "api-me", access="account", returns=Me),
    Route("api/v1/competitions", competitions, "api-competitions", returns=list[CompetitionView]),
    Route(_ONE, competition, "api-competition", returns=CompetitionView),
    Route(f"{_ONE}/board", board, "api-board", returns=BoardView),
    Route(
        f"{_ONE}/submissions",
        submissions,
        "api-submissions",
        access="account",
        returns=list[SubmissionView],
    ),
    Route(
        f"{_ONE}/submit",
        upload,
        "api-submit",
        ("POST",),
        "account",
        "submit",
        returns=Accepted,
    ),
    Route(_SUBMISSION, submission, "api-submission", access="account", returns=SubmissionView),
    Route(
        f"{_SUBMISSION}/cancel",
        cancel_submission,
        "api-cancel",
        ("POST",),
        "account",
        "submit",
        returns=SubmissionView,
    ),
    Route(
        "api/v1/judgings/<int:number>/report",
        report,
        "api-report",
        access="account",
        returns=Report,
    ),
    Route("api/<path:rest>", missing, "api-missing", ("GET", "POST"), returns=dict),
)
