"""Pages of a submission: its live state, its choice for the final, and comparisons."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tiltyard.reporting.comparison_schema import Change
from tiltyard.reporting.schema import Report
from tiltyard.service.actions.accounts import team_in
from tiltyard.service.actions.finals import choose_final
from tiltyard.service.actions.judgings import cancel
from tiltyard.service.actions.quota import quota_of
from tiltyard.service.errors import ServiceError
from tiltyard.service.finals import is_choice_open
from tiltyard.service.models import Competition, Judging, Submission
from tiltyard.service.visible import Viewer, report_of, submissions_of, viewer_of
from tiltyard.service.web.guards import Route, account_of, signed_in
from tiltyard.service.web.lookup import find_competition, find_submission, view_of


def submission(request: HttpRequest, number: UUID) -> HttpResponse:
    """Show a submission. With `?fragment`, return the part that changes."""
    found, viewer = find_submission(request, number)
    is_own = viewer.team == found.team_id
    context = {
        "submission": view_of(found, viewer),
        "competition": found.competition,
        "is_own": is_own,
        "quota": quota_of(found.team) if is_own else None,
        "choice_open": is_own and is_choice_open(found.competition),
    }
    template = "submission_state.html" if "fragment" in request.GET else "submission.html"
    return render(request, template, context)


def _own(request: HttpRequest, number: UUID, what: str) -> Submission:
    found, viewer = find_submission(request, number)
    if viewer.team != found.team_id:
        raise ServiceError(f"Only the team can {what} its submission.", 403)
    return found


def cancel_submission(request: HttpRequest, number: UUID) -> HttpResponse:
    cancel(_own(request, number, "cancel"), signed_in(request))
    return redirect(f"/s/{number}")


def choose(request: HttpRequest, number: UUID) -> HttpResponse:
    """Choose a submission for the final, or withdraw the choice with `chosen=no`."""
    found = _own(request, number, "choose")
    choose_final(found, signed_in(request), chosen=request.POST.get("chosen") != "no")
    return redirect(f"/c/{found.competition.slug}/team#submissions")


def compare(request: HttpRequest, slug: str) -> HttpResponse:
    """Compare two judgings, or let the viewer choose two of the team's."""
    found = find_competition(slug)
    viewer = viewer_of(account_of(request), found)
    team = team_in(signed_in(request), found)
    listed = () if team is None else submissions_of(team, viewer)
    scored = [one for one in listed if one.judgings and one.judgings[0].figures is not None]
    context: dict[str, Any] = {"competition": found, "scored": scored, "changes": None}
    wanted = [request.GET.get(name, "") for name in ("before", "after")]
    context |= dict(zip(("before", "after"), wanted, strict=True))
    if any(wanted):
        context |= _comparison(*(_report(one, found, viewer) for one in wanted))
    return render(request, "compare.html", context)


def _report(number: str, competition: Competition, viewer: Viewer) -> Report:
    judgings = Judging.objects.select_related("submission", "competition", "report")
    is_number = number.isdecimal() and len(number) < _MAX_DIGITS
    found = judgings.filter(pk=number, competition=competition).first() if is_number else None
    shown = None if found is None else report_of(found, viewer)
    if shown is None:
        raise ServiceError("There is no such report. Choose two of your scored submissions.", 404)
    return shown


_MAX_DIGITS = 19


def _comparison(before: Report, after: Report) -> dict[str, Any]:
    from tiltyard.studies.comparison import compare_reports  # noqa: PLC0415 - heavy

    compared = compare_reports(before, after)
    return {
        "changes": [(one, _difference(one), _tone(one)) for one in compared.numbers],
        "settings": compared.settings,
        "gained": [one for one in compared.findings if one.fate == "gained"],
        "lost": [one for one in compared.findings if one.fate == "lost"],
        "trials_gained": compared.false_positives_gained,
        "trials_lost": compared.false_positives_lost,
        "is_restricted": before.restricted or after.restricted,
    }


def _difference(change: Change) -> float | None:
    if isinstance(change.before, str | None) or isinstance(change.after, str | None):
        return None
    return change.after - change.before


def _tone(change: Change) -> str:
    """Say whether a change is good. More breaches and more false positives are not."""
    less = _difference(change)
    if not less:
        return ""
    is_cost = change.name.startswith(("breaches", "breached", "false positives"))
    return "better" if (less > 0) != is_cost else "worse"


_ONE = "s/<uuid:number>"
ROUTES = (
    Route(_ONE, submission, "submission", access="account"),
    Route(f"{_ONE}/cancel", cancel_submission, "cancel", ("POST",), "account"),
    Route(f"{_ONE}/final", choose, "choose-final", ("POST",), "account"),
    Route("c/<slug:slug>/compare", compare, "compare", access="account"),
)
