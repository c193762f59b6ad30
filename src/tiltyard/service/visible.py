"""What a viewer may see: the one place that hides figures.

Pages, plots, the API, exports and event streams read figures here and nowhere else. The rules:

- An organizer sees everything.
- A team sees the figures of its own judgings for the board, under the terms that the board shows.
- Everybody else sees the board, if the competition lets them. From the freeze on, the board stands
  as it stood then.
- Figures of the final, and those of a rejudging that is not published, are the organizer's until
  the organizer publishes them.
- Nobody sees how long the judgings of others took.
"""

import zlib
from collections.abc import Iterable

from django.db.models import Count, DurationField, ExpressionWrapper, F, Prefetch, Q, QuerySet
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.reporting.leaderboard_schema import Board, League, Standing
from tiltyard.reporting.schema import Report, read_report
from tiltyard.service.entries import entry_of, league_of, played, run_of
from tiltyard.service.finals import finalists
from tiltyard.service.models import (
    Account,
    Competition,
    Judging,
    Membership,
    Submission,
    Team,
    Worker,
)
from tiltyard.service.models.competitions import Visibility
from tiltyard.service.models.judgings import Phase, Reason, State
from tiltyard.service.terms import terms_of
from tiltyard.service.wire import (
    BoardRow,
    BoardView,
    Figures,
    JudgingView,
    QueueView,
    SubmissionView,
)
from tiltyard.standings.leaderboard import make_leaderboard
from tiltyard.standings.report_set import ReportSet


class Viewer(Struct, frozen=True):
    """Who looks at a competition."""

    account: int | None = None
    organizes: bool = False
    team: int | None = None


EVERYBODY = Viewer()


def viewer_of(account: Account | None, competition: Competition) -> Viewer:
    if account is None or not account.is_active:
        return EVERYBODY
    membership = Membership.objects.filter(account=account, competition=competition).first()
    team = None if membership is None else membership.team_id
    return Viewer(account.pk, account.organizes, team)


def may_see_board(competition: Competition, viewer: Viewer) -> bool:
    if viewer.organizes or competition.visibility == Visibility.EVERYBODY:
        return True
    return competition.visibility == Visibility.MEMBERS and viewer.team is not None


def _is_published(competition: Competition, phase: str) -> bool:
    return phase == Phase.BOARD or competition.final_published_at is not None


def _shown(competition: Competition, viewer: Viewer, phase: str) -> QuerySet[Judging]:
    """Return the finished judgings whose figures a viewer may see on the board of a phase."""
    terms = terms_of(competition, phase)
    found = Judging.objects.filter(competition=competition, phase=phase, **terms.fields)
    found = found.filter(state=State.SCORED, submission__cancelled_at=None)
    if viewer.organizes:
        return found
    if not (_is_published(competition, phase) and may_see_board(competition, viewer)):
        return found.none()
    frozen = competition.freeze_at if competition.final_published_at is None else None
    if phase == Phase.FINAL or frozen is None:
        return found
    # Before the freeze, a judging that ends later does not exist yet, so one rule does for both.
    return found.filter(finished_at__lte=frozen)


def board(
    competition: Competition,
    viewer: Viewer,
    phase: str = Phase.BOARD,
    track: Track | None = None,
) -> Board:
    """Return the ranks of a competition, by final score or by the score of one track.

    A viewer who may see nothing gets an empty board.
    """
    league = league_of(competition, phase)
    return ranked(_judgings(competition, viewer, phase), league, track)


def _judgings(competition: Competition, viewer: Viewer, phase: str) -> list[Judging]:
    """Return the judgings that a viewer sees ranked."""
    rows = _shown(competition, viewer, phase).select_related("submission__team")
    found = [one for one in rows.order_by("pk") if not one.objections]
    if phase == Phase.FINAL:
        counting = {*finalists(competition, queued=True)}
        found = [one for one in found if one.submission_id in counting]
    return found


def ranked(judgings: Iterable[Judging], league: League, track: Track | None = None) -> Board:
    """Return the ranks of judgings, without what is disqualified."""
    listed = [one for one in judgings if played(one, track)]
    gone = {
        run_of(one): reason
        for one in listed
        for reason in [one.submission.team.disqualified or one.submission.disqualified]
        if reason
    }
    entries = tuple(entry_of(one, league, track) for one in listed)
    boards = make_leaderboard(ReportSet(entries), gone).boards
    return boards[0] if boards else Board(league, ())


def board_view(
    competition: Competition,
    viewer: Viewer,
    phase: str = Phase.BOARD,
    track: Track | None = None,
) -> BoardView:
    """Return the board as rows, for pages, the API and exports."""
    judgings = _judgings(competition, viewer, phase)
    found = ranked(judgings, league_of(competition, phase), track)
    by_run = {run_of(one): one for one in judgings}
    rows = tuple(_board_row(one, by_run[one.run.run_id]) for one in found.standings)
    out = {one.run.name: one.reason for one in found.disqualified}
    is_frozen = phase == Phase.BOARD and not viewer.organizes and _is_frozen(competition)
    title = found.league.title
    return BoardView(competition.slug, phase, title, rows, out, is_frozen, track or "")


def _board_row(standing: Standing, judging: Judging) -> BoardRow:
    return BoardRow(
        standing.rank,
        standing.run.name,
        judging.final_score,
        judging.offense,
        judging.raw,
        judging.defense,
        judging.breaches,
        judging.false_positives,
        judging.benign_trials,
        judging.low,
        judging.high,
        standing.runs,
        standing.same_bytes_as,
        judging.submission.team_id,
    )


def _is_frozen(competition: Competition) -> bool:
    if competition.freeze_at is None or competition.final_published_at is not None:
        return False
    return Competition.objects.filter(pk=competition.pk, freeze_at__lte=Now()).exists()


def rows_of(team: Team, viewer: Viewer) -> dict[str, BoardRow]:
    """Return the rows of a team on the boards that a viewer may see."""
    competition = team.competition
    found: dict[str, BoardRow] = {}
    for phase in Phase.values:
        judgings = _judgings(competition, viewer, phase)
        by_run = {run_of(one): one for one in judgings}
        for track in (None, *TRACKS):
            for one in ranked(judgings, league_of(competition, phase), track).standings:
                judging = by_run[one.run.run_id]
                if judging.submission.team_id == team.pk:
                    prefix = "final" if phase == Phase.FINAL else ""
                    name = "-".join(part for part in (prefix, track) if part)
                    found[name] = _board_row(one, judging)
    return found


def is_final_shown(competition: Competition, viewer: Viewer) -> bool:
    """Return whether a viewer sees the board of the final."""
    if viewer.organizes:
        return Judging.objects.filter(competition=competition, phase=Phase.FINAL).exists()
    return competition.final_published_at is not None and may_see_board(competition, viewer)


def submissions_of(team: Team, viewer: Viewer) -> tuple[SubmissionView, ...]:
    """Return a team's submissions, the newest first; empty for other teams."""
    if not (viewer.organizes or viewer.team == team.pk):
        return ()
    judgings = Prefetch("judgings", Judging.objects.select_related("worker"))
    found = Submission.objects.filter(team=team).select_related("competition", "team")
    found = found.prefetch_related(judgings).order_by("-at", "-pk")
    return tuple(view for one in found if (view := submission_view(one, viewer)) is not None)


def submission_view(submission: Submission, viewer: Viewer) -> SubmissionView | None:
    """Return a submission for its team and for organizers; None for everybody else."""
    if not (viewer.organizes or viewer.team == submission.team_id):
        return None
    competition = submission.competition
    rows = submission.judgings.all()
    seen = [one for one in rows if _may_see_judging(one, competition, viewer)]
    # The judging that the board shows comes first.
    current = terms_of(competition, Phase.BOARD)
    seen.sort(key=lambda one: (one.phase != Phase.BOARD, one.engine != current.engine, -one.pk))
    return SubmissionView(
        str(submission.pk),
        competition.slug,
        submission.team.name,
        submission.name,
        submission.digest,
        tuple(submission.tracks),
        submission.at,
        submission.final,
        submission.disqualified or submission.team.disqualified,
        viewer.team == submission.team_id
        and bool(seen)
        and all(one.state == State.QUEUED and one.reason == Reason.SUBMITTED for one in rows),
        tuple(_judging_view(one) for one in seen),
    )


def _may_see_judging(judging: Judging, competition: Competition, viewer: Viewer) -> bool:
    if viewer.organizes:
        return True
    if not _is_published(competition, judging.phase):
        return False
    terms = terms_of(competition, judging.phase)
    return all(getattr(judging, name) == value for name, value in terms.fields.items())


def _judging_view(judging: Judging) -> JudgingView:
    is_running = judging.state == State.RUNNING and judging.worker is not None
    return JudgingView(
        judging.pk,
        judging.phase,
        judging.state,
        judging.engine,
        judging.key,
        judging.why,
        _figures(judging),
        _position(judging),
        judging.worker.name if is_running and judging.worker else "",
        judging.progress if is_running else "",
        judging.worker.heartbeat_at if is_running and judging.worker else None,
        judging.queued_at,
        judging.started_at,
        judging.finished_at,
        judging.fence,
        _heartbeat_age(judging.worker) if is_running and judging.worker else None,
    )


def _heartbeat_age(worker: Worker) -> float | None:
    """Return how old a worker's heartbeat is in seconds, by the database's clock."""
    passed = ExpressionWrapper(Now() - F("heartbeat_at"), DurationField())
    found = Worker.objects.filter(pk=worker.pk).annotate(age=passed)
    age = found.values_list("age", flat=True).first()
    return None if age is None else max(0.0, age.total_seconds())


def _figures(judging: Judging) -> Figures | None:
    if judging.state != State.SCORED:
        return None
    return Figures(**{name: getattr(judging, name) for name in Figures.__struct_fields__})


def _position(judging: Judging) -> int | None:
    if judging.state != State.QUEUED:
        return None
    return Judging.objects.filter(state=State.QUEUED, pk__lt=judging.pk).count()


def report_of(judging: Judging, viewer: Viewer, *, full: bool = False) -> Report | None:
    """Return the report of a judging, as far as its viewer may see it."""
    submission = judging.submission
    if not (viewer.organizes or viewer.team == submission.team_id) or judging.report is None:
        return None
    if not _may_see_judging(judging, judging.competition, viewer):
        return None
    stored = judging.report.shown
    if full and viewer.organizes and judging.report.full is not None:
        stored = judging.report.full
    return read_report(zlib.decompress(bytes(stored)))


def queue_view() -> QueueView:
    counts = Judging.objects.aggregate(
        queued=Count("pk", filter=Q(state=State.QUEUED)),
        running=Count("pk", filter=Q(state=State.RUNNING)),
        broken=Count("pk", filter=Q(state=State.BROKEN)),
    )
    return QueueView(**counts, workers=Worker.objects.filter(ended_at=None).count())
