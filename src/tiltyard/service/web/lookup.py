"""Find what an address names. What a viewer may not see does not exist for them."""

from uuid import UUID

from django.http import HttpRequest

from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Competition, Submission
from tiltyard.service.visible import Viewer, submission_view, viewer_of
from tiltyard.service.web.guards import account_of
from tiltyard.service.wire import SubmissionView


def find_competition(slug: str) -> Competition:
    found = Competition.objects.filter(slug=slug).first()
    if found is None:
        raise ServiceError("There is no such competition.", 404)
    return found


def find_submission(request: HttpRequest, number: UUID) -> tuple[Submission, Viewer]:
    found = Submission.objects.select_related("competition", "team").filter(pk=number).first()
    if found is not None:
        viewer = viewer_of(account_of(request), found.competition)
        if viewer.organizes or viewer.team == found.team_id:
            return found, viewer
    raise ServiceError("There is no such submission.", 404)


def view_of(submission: Submission, viewer: Viewer) -> SubmissionView:
    found = submission_view(submission, viewer)
    if found is None:
        raise ServiceError("There is no such submission.", 404)
    return found
