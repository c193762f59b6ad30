"""The organizer's pages of exports and webhooks, and the figures for Prometheus."""

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from tiltyard.service.actions.records import audit
from tiltyard.service.actions.webhooks import KINDS, add_webhook, remove_webhook
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Delivery, Webhook
from tiltyard.service.overview import Glance, glance
from tiltyard.service.transfer import export_competition
from tiltyard.service.web.guards import Route
from tiltyard.service.web.lookup import find_competition
from tiltyard.service.web.organizer import organizer_of


def export(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Send a whole competition as a zip archive, with its keys."""
    found = find_competition(slug)
    audit("competition.export", organizer_of(request), found, slug)
    packed = TemporaryFile(prefix="tiltyard-export-")  # noqa: SIM115 - the response closes it
    with TemporaryDirectory(prefix="tiltyard-export-") as scratch:
        root = Path(scratch) / slug
        export_competition(found, root)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(root.rglob("*")):
                archive.write(path, path.relative_to(scratch))
    packed.seek(0)
    return FileResponse(packed, as_attachment=True, filename=f"{slug}.zip")


def webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    """List webhooks with their last messages, and add one. Its secret is shown this once."""
    found = find_competition(slug)
    url, chosen = request.POST.get("url", "").strip(), request.POST.getlist("kind")
    made, problem, status = None, "", 200
    if request.method == "POST":
        try:
            made = add_webhook(found, url, chosen, organizer_of(request))
        except ServiceError as error:
            problem, status = str(error), error.status
    rows = [
        (one, Delivery.objects.filter(webhook=one).select_related("event").order_by("-pk")[:5])
        for one in found.webhooks.filter(active=True).order_by("pk")
    ]
    context = {
        "competition": found,
        "rows": rows,
        "kinds": KINDS,
        "chosen": chosen if problem else KINDS,
        "url": url if problem else "",
        "made": made,
        "problem": problem,
    }
    return render(request, "organizer/webhooks.html", context, status=status)


def remove(request: HttpRequest, webhook: int) -> HttpResponse:
    found = Webhook.objects.select_related("competition").filter(pk=webhook, active=True).first()
    if found is None:
        raise ServiceError("There is no such webhook.", 404)
    remove_webhook(found, organizer_of(request))
    return redirect(f"/organize/c/{found.competition.slug}/webhooks")


def metrics(request: HttpRequest) -> HttpResponse:
    """Return the queue's figures in the text format of Prometheus. No score is among them."""
    del request
    waiting = Delivery.objects.exclude(next_at=None).count()
    text = prometheus(glance(), waiting)
    return HttpResponse(text, "text/plain; version=0.0.4; charset=utf-8")


def prometheus(seen: Glance, deliveries: int) -> str:
    found: dict[str, dict[str, float]] = {
        "tiltyard_judgings": {
            '{state="queued"}': seen.queued,
            '{state="running"}': seen.running,
            '{state="broken"}': seen.broken,
        },
        "tiltyard_judged_last_hour": {"": seen.done_hour},
        "tiltyard_queue_oldest_seconds": {"": seen.oldest_seconds or 0.0},
        "tiltyard_queue_median_wait_seconds": {"": seen.waited_seconds or 0.0},
        "tiltyard_workers": {"": len(seen.workers)},
        "tiltyard_heartbeat_oldest_seconds": {
            "": max((one.heartbeat_seconds for one in seen.workers), default=0.0)
        },
        "tiltyard_failures_last_day": {
            f'{{kind="{kind}"}}': number for kind, number in seen.failures
        },
        "tiltyard_judgings_without_worker": {"": sum(number for _, number in seen.stranded)},
        "tiltyard_webhook_messages_waiting": {"": deliveries},
    }
    lines: list[str] = []
    for name, values in found.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{labels} {value:g}" for labels, value in values.items()]
    return "\n".join((*lines, ""))


_ONE: Final = "organize/c/<slug:slug>"
ROUTES = (
    Route(f"{_ONE}/export", export, "organize-export", access="organizer"),
    Route(f"{_ONE}/webhooks", webhooks, "organize-webhooks", ("GET", "POST"), "organizer"),
    Route(
        "organize/webhooks/<int:webhook>/remove",
        remove,
        "organize-webhook-remove",
        ("POST",),
        "organizer",
    ),
    Route("metrics", metrics, "metrics"),
)
