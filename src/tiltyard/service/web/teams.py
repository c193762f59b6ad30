"""Pages of a team: its members, its invitations, and how to enter a competition."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tiltyard.service.actions.accounts import join, team_in
from tiltyard.service.actions.quota import quota_of
from tiltyard.service.actions.teams import (
    accept_invitation,
    find_invitation,
    invite,
    leave,
    open_invitations,
    remove,
    revoke_invitation,
)
from tiltyard.service.errors import ServiceError
from tiltyard.service.finals import is_choice_open
from tiltyard.service.models import Competition, Team
from tiltyard.service.visible import submissions_of, viewer_of
from tiltyard.service.web.guards import Route, signed_in
from tiltyard.service.web.lookup import find_competition
from tiltyard.service.web.plots import history_plot


def my_team(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one's team, or make one."""
    found, account = find_competition(slug), signed_in(request)
    team = team_in(account, found)
    if team is not None:
        return redirect(request.path) if request.method == "POST" else _show(request, team)
    problem, status = "", 200
    if request.method == "POST":
        try:
            join(account, found, request.POST.get("name", ""))
            return redirect(request.path)
        except ServiceError as error:
            problem, status = str(error), error.status
    context = {"competition": found, "account": account, "problem": problem}
    return render(request, "team_none.html", context, status=status)


def _show(request: HttpRequest, team: Team, **extra: Any) -> HttpResponse:
    account = signed_in(request)
    members = team.memberships.select_related("account").order_by("-captain", "joined_at", "pk")
    submissions = submissions_of(team, viewer_of(account, team.competition))
    context = {
        "competition": team.competition,
        "submissions": submissions,
        "history": history_plot(submissions),
        "choice_open": is_choice_open(team.competition),
        "team": team,
        "account": account,
        "members": members,
        "is_captain": any(one.captain and one.account_id == account.pk for one in members),
        "invitations": open_invitations(team),
        "quota": quota_of(team),
        "link": "",
        **extra,
    }
    return render(request, "team.html", context)


def _own(request: HttpRequest, slug: str) -> tuple[Competition, Team]:
    found = find_competition(slug)
    team = team_in(signed_in(request), found)
    if team is None:
        raise ServiceError("You have no team in this competition.", 404)
    return found, team


def make_invitation(request: HttpRequest, slug: str) -> HttpResponse:
    """Make an invitation, and show its link this once."""
    _, team = _own(request, slug)
    made = invite(team, signed_in(request))
    return _show(request, team, link=request.build_absolute_uri(f"/join/{made.secret}"))


def revoke_one_invitation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    _, team = _own(request, slug)
    revoke_invitation(team, signed_in(request), number)
    return redirect(f"/c/{slug}/team")


def leave_team(request: HttpRequest, slug: str) -> HttpResponse:
    _, team = _own(request, slug)
    leave(team, signed_in(request))
    return redirect(f"/c/{slug}/team")


def remove_member(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    _, team = _own(request, slug)
    remove(team, signed_in(request), number)
    return redirect(f"/c/{slug}/team")


def join_team(request: HttpRequest, secret: str) -> HttpResponse:
    """Ask whether to accept an invitation, and accept it."""
    if request.method == "POST":
        team = accept_invitation(signed_in(request), secret)
        return redirect(f"/c/{team.competition.slug}/team")
    return render(request, "join.html", {"invitation": find_invitation(secret)})


_TEAM = "c/<slug:slug>/team"
ROUTES = (
    Route(_TEAM, my_team, "team", ("GET", "POST"), "account"),
    Route(f"{_TEAM}/invite", make_invitation, "invite", ("POST",), "account"),
    Route(
        f"{_TEAM}/invitations/<int:number>/revoke",
        revoke_one_invitation,
        "revoke-invitation",
        ("POST",),
        "account",
    ),
    Route(f"{_TEAM}/leave", leave_team, "leave-team", ("POST",), "account"),
    Route(
        f"{_TEAM}/members/<int:number>/remove", remove_member, "remove-member", ("POST",), "account"
    ),
    Route("join/<slug:secret>", join_team, "join-team", ("GET", "POST"), "account"),
)
