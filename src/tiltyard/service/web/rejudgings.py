"""The organizer's pages of rejudgings: begin, add submissions, compare, publish or drop."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tiltyard import __version__
from tiltyard.service.actions.rejudging import (
    BUDGETS,
    begin_rejudging,
    drop_rejudging,
    publish_rejudging,
    rejudge,
)
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Rejudging, Submission
from tiltyard.service.overview import changes_of
from tiltyard.service.visible import viewer_of
from tiltyard.service.web.guards import Route
from tiltyard.service.web.lookup import find_competition
from tiltyard.service.web.organizer import organizer_of


def begin(request: HttpRequest, slug: str) -> HttpResponse:
    """Propose new terms."""
    found = find_competition(slug)
    text = request.POST.get("ruleset_text", found.ruleset_text).replace("\r\n", "\n")
    budget = request.POST.get("budget", found.budget)
    problem, status = "", 200
    if request.method == "POST":
        try:
            account = organizer_of(request)
            made = begin_rejudging(found, account, ruleset_text=text, budget=budget)
            return redirect(f"/organize/c/{slug}/rejudgings/{made.pk}")
        except ServiceError as error:
            problem, status = str(error), error.status
    context = {
        "competition": found,
        "text": text,
        "budget": budget,
        "budgets": BUDGETS,
        "engine": __version__,
        "problem": problem,
    }
    return render(request, "organizer/rejudge.html", context, status=status)


def _find(slug: str, number: int) -> Rejudging:
    found = Rejudging.objects.select_related("competition", "made_by").filter(
        pk=number, competition__slug=slug
    )
    first = found.first()
    if first is None:
        raise ServiceError("There is no such rejudging.", 404)
    return first


def show(request: HttpRequest, slug: str, rejudging: int) -> HttpResponse:
    """Show the report of differences."""
    found = _find(slug, rejudging)
    changes = changes_of(found, viewer_of(organizer_of(request), found.competition))
    context = {"competition": found.competition, "rejudging": found, "changes": changes}
    return render(request, "organizer/rejudging.html", context)


def add(request: HttpRequest, slug: str, rejudging: int) -> HttpResponse:
    """Judge the chosen submissions again, or all of them."""
    found = _find(slug, rejudging)
    rows = Submission.objects.filter(competition=found.competition, cancelled_at=None)
    if not request.POST.get("all"):
        chosen = request.POST.getlist("submission")
        if not chosen:
            raise ServiceError("Choose submissions, or all of them.", 422)
        try:
            rows = rows.filter(pk__in=chosen)
        except (ValueError, TypeError):
            raise ServiceError("There is no such submission.", 404) from None
    rejudge(found, rows.order_by("at"), organizer_of(request))
    return redirect(f"/organize/c/{slug}/rejudgings/{rejudging}")


def publish(request: HttpRequest, slug: str, rejudging: int) -> HttpResponse:
    publish_rejudging(_find(slug, rejudging), organizer_of(request))
    return redirect(f"/organize/c/{slug}/rejudgings/{rejudging}")


def drop(request: HttpRequest, slug: str, rejudging: int) -> HttpResponse:
    drop_rejudging(_find(slug, rejudging), organizer_of(request))
    return redirect(f"/organize/c/{slug}/rejudgings/{rejudging}")


_ALL: Final = "organize/c/<slug:slug>/rejudgings"
_ONE: Final = f"{_ALL}/<int:rejudging>"
ROUTES = (
    Route(_ALL, begin, "organize-rejudge", ("GET", "POST"), "organizer"),
    Route(_ONE, show, "organize-rejudging", access="organizer"),
    Route(f"{_ONE}/add", add, "organize-rejudging-add", ("POST",), "organizer"),
    Route(f"{_ONE}/publish", publish, "organize-rejudging-publish", ("POST",), "organizer"),
    Route(f"{_ONE}/drop", drop, "organize-rejudging-drop", ("POST",), "organizer"),
)
