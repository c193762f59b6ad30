"""A team chooses its submissions for the final."""

from django.db import transaction

from tiltyard.service.actions.records import audit, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.finals import is_choice_open
from tiltyard.service.models import Account, Submission, Team


@transaction.atomic
def choose_final(submission: Submission, account: Account, *, chosen: bool) -> None:
    """Choose a submission for the final, or withdraw the choice."""
    # Two members who choose at the same time must not choose too many together.
    team = Team.objects.select_for_update(of=("self",)).get(pk=submission.team_id)
    competition = submission.competition
    if not is_choice_open(competition):
        raise ServiceError("The final has started, so the choice stands.", 409)
    if submission.cancelled_at is not None or submission.disqualified:
        raise ServiceError("A cancelled or disqualified submission cannot play the final.", 409)
    others = Submission.objects.filter(team=team, final=True, cancelled_at=None)
    if chosen and others.exclude(pk=submission.pk).count() >= competition.finals:
        raise ServiceError(
            f"Your team has chosen {competition.finals} already. Withdraw one of them first.", 409
        )
    Submission.objects.filter(pk=submission.pk).update(final=chosen)
    action = "submission.choose" if chosen else "submission.unchoose"
    audit(action, account, competition, str(submission.pk))
    record(action, submission)
