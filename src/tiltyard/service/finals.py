"""Which submissions play the final: those that a team has chosen, else its best ones."""

from uuid import UUID

from tiltyard.service.entries import entry_of, league_of
from tiltyard.service.models import Competition, Judging, Submission
from tiltyard.service.models.judgings import Phase, State
from tiltyard.service.terms import terms_of
from tiltyard.standings.leaderboard import merit


def finalists(competition: Competition, *, queued: bool = False) -> list[UUID]:
    """Return the submissions that count in the final.

    With `queued`, only submissions count that already have a judging in the final. So the final
    ranking stays what it was when a later rejudging changes which submissions are a team's best.
    """
    found = Submission.objects.filter(competition=competition, cancelled_at=None)
    chosen = dict(found.filter(final=True).values_list("pk", "team_id"))
    judged = Judging.objects.filter(competition=competition, phase=Phase.FINAL)
    allowed = {*judged.values_list("submission_id", flat=True)} if queued else None
    choosers = {*chosen.values()}
    best: dict[int, list[UUID]] = {}
    for judging in _by_merit(competition):
        team = judging.submission.team_id
        if team not in choosers and (allowed is None or judging.submission_id in allowed):
            best.setdefault(team, []).append(judging.submission_id)
    counting = [one for ranked in best.values() for one in ranked[: competition.finals]]
    return [*(one for one in chosen if allowed is None or one in allowed), *counting]


def _by_merit(competition: Competition) -> list[Judging]:
    """Return the judgings that the board could rank, the best first, among equals the earliest."""
    rows = Judging.objects.filter(
        competition=competition,
        phase=Phase.BOARD,
        state=State.SCORED,
        submission__cancelled_at=None,
        submission__disqualified="",
        **terms_of(competition, Phase.BOARD).fields,
    ).select_related("submission__team")
    league = league_of(competition, Phase.BOARD)
    ranked = [one for one in rows.order_by("pk") if not one.objections]
    return sorted(ranked, key=lambda one: merit(entry_of(one, league)))


def is_choice_open(competition: Competition) -> bool:
    """Return whether teams can still choose: until the organizer starts the final."""
    if not competition.finals or competition.final_published_at is not None:
        return False
    return not Judging.objects.filter(competition=competition, phase=Phase.FINAL).exists()
