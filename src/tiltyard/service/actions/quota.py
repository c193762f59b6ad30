"""How many submissions a team has left.

Only what a competitor did counts: neither a submission that was cancelled before its start, nor one
that the server failed to play.
"""

from datetime import timedelta
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from tiltyard.service.models import Judging, Submission, Team
from tiltyard.service.models.judgings import DONE, Reason, State
from tiltyard.service.wire import QuotaView

WINDOW: Final = timedelta(hours=24)


def counted(team: Team) -> QuerySet[Submission]:
    """Return the submissions of the last 24 hours that count, the oldest first."""
    free = Judging.objects.filter(
        submission=OuterRef("pk"),
        reason=Reason.SUBMITTED,
        state__in=(State.BROKEN, State.CANCELLED),
    )
    played = Judging.objects.filter(submission=OuterRef("pk"), state__in=DONE)
    recent = Submission.objects.filter(team=team, cancelled_at=None, at__gt=Now() - WINDOW)
    return recent.filter(~Exists(free) | Exists(played)).order_by("at")


def quota_of(team: Team) -> QuotaView:
    allowed = team.competition.quota
    times = list(counted(team).values_list("at", flat=True))
    left = max(0, allowed - len(times))
    next_at = times[len(times) - allowed] + WINDOW if not left and allowed else None
    return QuotaView(allowed, left, next_at)
