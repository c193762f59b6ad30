"""Every address that Django serves. `docs/server.md` lists those of the front."""

from tiltyard.service.web import (
    api,
    organizer,
    pages,
    public,
    rejudgings,
    submissions,
    teams,
    transfer,
)

ROUTES = (
    *pages.ROUTES,
    *public.ROUTES,
    *teams.ROUTES,
    *submissions.ROUTES,
    *organizer.ROUTES,
    *rejudgings.ROUTES,
    *transfer.ROUTES,
    *api.ROUTES,
)
urlpatterns = [route.url() for route in ROUTES]
