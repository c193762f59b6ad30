"""The pages. They read figures through `visible` only, and change things through `actions` only."""

from typing import Any

from django.contrib.auth import authenticate, login, logout, password_validation
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme

from tiltyard.service.actions.accounts import SCOPES, join, make_token, revoke_token, team_in
from tiltyard.service.actions.quota import quota_of
from tiltyard.service.actions.records import audit
from tiltyard.service.actions.submit import check_upload, submit
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, ApiToken, Competition, Judging, Team
from tiltyard.service.visible import (
    report_of,
    submissions_of,
    viewer_of,
)
from tiltyard.service.web.guards import Route, account_of, signed_in
from tiltyard.service.web.lookup import find_competition
from tiltyard.service.web.uploads import read_upload
from tiltyard.submissions import SubmissionError

_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""A report is one file with its scripts in it. The sandbox keeps it away from the session."""


_MAX_TOKEN_DAYS = 366


def _next(request: HttpRequest) -> str:
    """Return where to go after signing in: an address of this server only."""
    wanted = request.POST.get("next") or request.GET.get("next") or "/me"
    allowed = url_has_allowed_host_and_scheme(wanted, None) and wanted.startswith("/")
    return wanted if allowed else "/me"


def home(request: HttpRequest) -> HttpResponse:
    found = Competition.objects.order_by("-pk")
    return render(request, "home.html", {"competitions": found})


def sign_in(request: HttpRequest) -> HttpResponse:
    context = {"next": _next(request), "problem": ""}
    if request.method != "POST":
        return render(request, "login.html", context)
    name, password = request.POST.get("username", ""), request.POST.get("password", "")
    account = authenticate(request, username=name, password=password)
    if account is None:
        context["problem"] = "Name and password do not fit, or there were too many attempts."
        return render(request, "login.html", context, status=403)
    login(request, account)
    is_asked = "next" in request.GET or request.POST.get("next", "/me") != "/me"
    return redirect("/organize" if account.organizes and not is_asked else _next(request))


def sign_up(request: HttpRequest) -> HttpResponse:
    context = {"next": _next(request), "problem": ""}
    if request.method != "POST":
        return render(request, "signup.html", context)
    name, password = request.POST.get("username", ""), request.POST.get("password", "")
    try:
        account = _make_account(name, password)
    except ValidationError as error:
        context["problem"] = " ".join(error.messages)
        return render(request, "signup.html", context, status=422)
    login(request, account, "django.contrib.auth.backends.ModelBackend")
    return redirect(_next(request))


def _make_account(name: str, password: str) -> Account:
    account = Account(username=name)
    if not 1 <= len(name) <= 60:
        raise ValidationError("A name has 1 to 60 characters.")
    UnicodeUsernameValidator()(name)
    password_validation.validate_password(password, account)
    account.set_password(password)
    try:
        with transaction.atomic():
            account.save()
            audit("account.make", account, subject=name)
    except IntegrityError:
        raise ValidationError("This name is taken; choose another.") from None
    return account


def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("/")


def me(request: HttpRequest, **extra: Any) -> HttpResponse:
    account = signed_in(request)
    teams = Team.objects.filter(memberships__account=account).select_related("competition")
    shown = [
        {
            "team": one,
            "quota": quota_of(one),
            "submissions": submissions_of(one, viewer_of(account, one.competition))[:20],
        }
        for one in teams.order_by("-pk")
    ]
    tokens = ApiToken.objects.filter(account=account, revoked_at=None).order_by("-pk")
    context = {"account": account, "teams": shown, "tokens": tokens, "made": "", **extra}
    return render(request, "me.html", context)


def make_one_token(request: HttpRequest) -> HttpResponse:
    """Make a token, and show it this once."""
    name = request.POST.get("name", "").strip() or "token"
    scopes = tuple(request.POST.get("scopes", " ".join(SCOPES)).split())
    days = request.POST.get("days", "")
    if days and not (days.isdecimal() and 0 < int(days) <= _MAX_TOKEN_DAYS):
        raise ServiceError(f"A token ends after 1 to {_MAX_TOKEN_DAYS} days, or never.")
    made = make_token(signed_in(request), name, scopes, int(days) if days else None)
    return me(request, made=made.secret)


def revoke_one_token(request: HttpRequest, number: int) -> HttpResponse:
    revoke_token(signed_in(request), number)
    return redirect("/me")


def upload(request: HttpRequest, slug: str) -> HttpResponse:
    found, account = find_competition(slug), signed_in(request)
    team = team_in(account, found)
    problem, status = "", 200
    if request.method == "POST":
        try:
            if team is None:
                team = join(account, found, request.POST.get("team", ""))
            made, _ = submit(team, account, check_upload(*read_upload(request, "file")))
            return redirect(f"/s/{made.pk}")
        except SubmissionError as error:
            problem, status = str(error), 422
        except ServiceError as error:
            problem, status = str(error), error.status
    quota = None if team is None else quota_of(team)
    context = {
        "competition": found,
        "team": team,
        "quota": quota,
        "problem": problem,
        "has_submitted": team is not None and team.submissions.exists(),
        "origin": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "submit.html", context, status=status)


def report(request: HttpRequest, number: int) -> HttpResponse:
    """Show a report to the team and to organizers; `?full=1` for organizers."""
    from tiltyard.reporting.report_page import render as render_report  # noqa: PLC0415 - heavy

    judging = Judging.objects.select_related("submission", "competition", "report")
    found = judging.filter(pk=number).first()
    viewer = None if found is None else viewer_of(account_of(request), found.competition)
    if found is not None and viewer is not None:
        shown = report_of(found, viewer, full=request.GET.get("full") == "1")
        if shown is not None:
            response = HttpResponse(render_report(shown))
            response["Content-Security-Policy"] = _REPORT_POLICY
            return response
    raise ServiceError("There is no such report.", 404)


ROUTES = (
    Route("", home, "home"),
    Route("login", sign_in, "login", ("GET", "POST")),
    Route("signup", sign_up, "signup", ("GET", "POST")),
    Route("logout", sign_out, "logout", ("POST",), "account"),
    Route("me", me, "me", access="account"),
    Route("me/tokens", make_one_token, "make-token", ("POST",), "account"),
    Route("me/tokens/<int:number>/revoke", revoke_one_token, "revoke-token", ("POST",), "account"),
    Route("c/<slug:slug>/submit", upload, "submit", ("GET", "POST"), "account"),
    Route("j/<int:number>/report", report, "report", access="account"),
)
