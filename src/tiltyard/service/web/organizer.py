"""The organizer's pages: competitions, the queue, the final, ranks that are taken, the audit log.

`web/rejudgings.py` has the pages of rejudgings, and `web/transfer.py` those of exports, imports and
webhooks.
"""

from typing import Any, Final
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tiltyard.service.actions.competitions import (
    disqualify_submission,
    disqualify_team,
    edit_competition,
    make_competition,
    play_final,
    publish_final,
)
from tiltyard.service.actions.judgings import retry
from tiltyard.service.clones import clone_marks, fill_sketches
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import (
    Account,
    AuditEntry,
    Competition,
    Judging,
    Submission,
    Team,
    Worker,
)
from tiltyard.service.models.judgings import Phase, State
from tiltyard.service.overview import glance
from tiltyard.service.visible import submission_view, viewer_of
from tiltyard.service.web.forms import CompetitionForm, first_values, values_of, with_kept_keys
from tiltyard.service.web.guards import Route, account_of
from tiltyard.service.web.lookup import find_competition, find_submission

_PER_PAGE: Final = 50


def organizer_of(request: HttpRequest) -> Account:
    account = account_of(request)
    assert account is not None, "the route needs an organizer"
    return account


def home(request: HttpRequest) -> HttpResponse:
    """Show what to do next, the competitions, and the queue."""
    competitions = Competition.objects.annotate(
        team_count=Count("teams", distinct=True),
        submission_count=Count("submissions", distinct=True),
    )
    context = {
        "competitions": competitions.order_by("-pk"),
        "glance": glance(),
        "steps": _first_steps(request),
    }
    return render(request, "organizer/home.html", context)


def _first_steps(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the way from a new server to a running competition; empty once it is behind."""
    latest = Competition.objects.order_by("-pk").first()
    link = "/organize/new" if latest is None else f"/c/{latest.slug}"
    submit = "" if latest is None else f"{link}/submit"
    steps = [
        ("Sign in as an organizer", True, "", "You are here."),
        ("Make a competition", latest is not None, "/organize/new", "A title is enough."),
        (
            "Start a worker",
            Worker.objects.filter(ended_at=None).exists(),
            "/organize/queue",
            "`tiltyard serve` starts one; `tiltyard worker --database URL` adds machines.",
        ),
        (
            "Submit something yourself",
            latest is not None and latest.submissions.exists(),
            submit,
            "`tiltyard init` writes a submission that works.",
        ),
        (
            "See it on the board",
            Judging.objects.filter(state=State.SCORED).exists(),
            link if latest is not None else "",
            "The board refreshes by itself.",
        ),
        (
            "Invite competitors",
            Team.objects.exclude(memberships__account=organizer_of(request)).exists(),
            link if latest is not None else "",
            "Send them the address of the competition. They sign up by themselves.",
        ),
    ]
    if all(done for _, done, _, _ in steps):
        return []
    names = ("title", "done", "link", "hint")
    return [dict(zip(names, step, strict=True)) for step in steps]


def queue(request: HttpRequest) -> HttpResponse:
    broken = Judging.objects.filter(state=State.BROKEN).select_related("submission__team")
    waiting = Judging.objects.filter(state__in=(State.QUEUED, State.RUNNING))
    context = {
        "glance": glance(),
        "broken": broken.order_by("pk")[:_PER_PAGE],
        "waiting": waiting.select_related("submission__team", "worker").order_by("pk")[:_PER_PAGE],
    }
    return render(request, "organizer/queue.html", context)


def make(request: HttpRequest) -> HttpResponse:
    """Make a competition."""
    form = CompetitionForm(request.POST or None, initial=first_values())
    problem, status = "", 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = make_competition(form.cleaned_data, organizer_of(request))
                return redirect(f"/organize/c/{made.slug}")
            except ServiceError as error:
                problem, status = str(error), error.status
    context = {"form": form, "problem": problem, "competition": None}
    return render(request, "organizer/edit.html", context, status=status)


def edit(request: HttpRequest, slug: str) -> HttpResponse:
    found = find_competition(slug)
    posted = {**request.POST.dict(), "slug": found.slug} if request.method == "POST" else None
    form = CompetitionForm(posted, initial=values_of(found))
    problem, status = "", 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            values = with_kept_keys(form.cleaned_data, found)
            try:
                edit_competition(found, values, organizer_of(request))
                return redirect(f"/organize/c/{slug}")
            except ServiceError as error:
                problem, status = str(error), error.status
    context = {"form": form, "problem": problem, "competition": found}
    return render(request, "organizer/edit.html", context, status=status)


def competition(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a competition: its terms, its final, and its rejudgings."""
    found = find_competition(slug)
    states = Judging.objects.filter(competition=found).values("phase", "state")
    context = {
        "competition": found,
        "counts": states.annotate(number=Count("pk")).order_by("phase", "state"),
        "teams": found.teams.count(),
        "submissions": found.submissions.filter(cancelled_at=None).count(),
        "rejudgings": found.rejudgings.order_by("-pk"),
        "finals": Judging.objects.filter(competition=found, phase=Phase.FINAL).count(),
    }
    return render(request, "organizer/competition.html", context)


def submissions(request: HttpRequest, slug: str) -> HttpResponse:
    """List submissions, to look for one, to take its rank, or to rejudge some."""
    found = find_competition(slug)
    viewer = viewer_of(organizer_of(request), found)
    words, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    rows = Submission.objects.filter(competition=found).select_related("team", "competition")
    if words:
        rows = rows.filter(
            Q(team__name__icontains=words)
            | Q(name__icontains=words)
            | Q(digest__startswith=words.lower())
        )
    if state in State.values:
        rows = rows.filter(judgings__state=state).distinct()
    page = Paginator(rows.order_by("-at"), _PER_PAGE).get_page(request.GET.get("page"))
    shown = [(one, submission_view(one, viewer)) for one in page]
    context = {
        "competition": found,
        "page": page,
        "rows": shown,
        "q": words,
        "state": state,
        "states": State.values,
        "rejudging": found.rejudgings.filter(published_at=None, dropped_at=None).first(),
    }
    return render(request, "organizer/submissions.html", context)


def clones(request: HttpRequest, slug: str) -> HttpResponse:
    """Show teams with similar code."""
    found = find_competition(slug)
    left = fill_sketches(found)
    marks = clone_marks(found, viewer_of(organizer_of(request), found))
    context = {"competition": found, "marks": marks, "left": left}
    return render(request, "organizer/clones.html", context)


def start_final(request: HttpRequest, slug: str) -> HttpResponse:
    play_final(find_competition(slug), organizer_of(request))
    return redirect(f"/organize/c/{slug}")


def end_final(request: HttpRequest, slug: str) -> HttpResponse:
    publish_final(find_competition(slug), organizer_of(request))
    return redirect(f"/organize/c/{slug}")


def disqualify_one(request: HttpRequest, number: UUID) -> HttpResponse:
    found, _ = find_submission(request, number)
    disqualify_submission(found, request.POST.get("reason", ""), organizer_of(request))
    return redirect(f"/organize/c/{found.competition.slug}/submissions")


def disqualify_all(request: HttpRequest, team: int) -> HttpResponse:
    found = Team.objects.select_related("competition").filter(pk=team).first()
    if found is None:
        raise ServiceError("There is no such team.", 404)
    disqualify_team(found, request.POST.get("reason", ""), organizer_of(request))
    return redirect(f"/organize/c/{found.competition.slug}/submissions")


def retry_one(request: HttpRequest, judging: int) -> HttpResponse:
    found = Judging.objects.select_related("competition").filter(pk=judging).first()
    if found is None:
        raise ServiceError("There is no such judging.", 404)
    retry(found, organizer_of(request))
    return redirect("/organize/queue")


def retry_all(request: HttpRequest) -> HttpResponse:
    for one in Judging.objects.filter(state=State.BROKEN).select_related("competition"):
        retry(one, organizer_of(request))
    return redirect("/organize/queue")


def audit_log(request: HttpRequest) -> HttpResponse:
    rows = AuditEntry.objects.select_related("account", "competition").order_by("-pk")
    action, slug = request.GET.get("action", ""), request.GET.get("competition", "")
    if action:
        rows = rows.filter(action__startswith=action)
    if slug:
        rows = rows.filter(competition__slug=slug)
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "action": action, "slug": slug}
    return render(request, "organizer/audit.html", context)


_ONE: Final = "organize/c/<slug:slug>"
ROUTES = (
    Route("organize", home, "organize", access="organizer"),
    Route("organize/new", make, "organize-new", ("GET", "POST"), "organizer"),
    Route("organize/queue", queue, "organize-queue", access="organizer"),
    Route("organize/queue/retry", retry_all, "organize-retry-all", ("POST",), "organizer"),
    Route(
        "organize/queue/<int:judging>/retry", retry_one, "organize-retry", ("POST",), "organizer"
    ),
    Route("organize/audit", audit_log, "organize-audit", access="organizer"),
    Route(_ONE, competition, "organize-competition", access="organizer"),
    Route(f"{_ONE}/edit", edit, "organize-edit", ("GET", "POST"), "organizer"),
    Route(f"{_ONE}/submissions", submissions, "organize-submissions", access="organizer"),
    Route(f"{_ONE}/clones", clones, "organize-clones", access="organizer"),
    Route(f"{_ONE}/final", start_final, "organize-final", ("POST",), "organizer"),
    Route(f"{_ONE}/final/publish", end_final, "organize-publish-final", ("POST",), "organizer"),
    Route(
        "organize/s/<uuid:number>/disqualify",
        disqualify_one,
        "organize-disqualify",
        ("POST",),
        "organizer",
    ),
    Route(
        "organize/teams/<int:team>/disqualify",
        disqualify_all,
        "organize-disqualify-team",
        ("POST",),
        "organizer",
    ),
)
