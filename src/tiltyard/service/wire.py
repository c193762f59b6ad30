"""What the API says, as types that both sides share. This module needs nothing of the server."""

from datetime import datetime

from msgspec import Struct

PREFIX = "/api/v1"


class Problem(Struct, frozen=True):
    """Why a request was refused, and what to do."""

    error: str


class Figures(Struct, frozen=True):
    """The scores of a judging."""

    final_score: float | None
    offense: float | None
    raw: float | None
    defense: float | None
    breaches: float | None
    false_positives: float | None
    benign_trials: int | None
    low: float | None
    high: float | None
    results: str


class JudgingView(Struct, frozen=True):
    """A judging, as its viewer may see it."""

    id: int
    phase: str
    state: str
    engine: str
    key: str
    why: str
    figures: Figures | None
    """None if there are none, or if the viewer may not see them."""
    position: int | None = None
    """How many judgings are in the queue before this one; None if it is not queued."""
    worker: str = ""
    progress: str = ""
    heartbeat_at: datetime | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    starts: int = 0
    heartbeat_seconds: float | None = None
    """The age of the worker's heartbeat; None if the judging is not running."""


class SubmissionView(Struct, frozen=True):
    id: str
    competition: str
    team: str
    name: str
    digest: str
    tracks: tuple[str, ...]
    at: datetime
    final: bool
    disqualified: str
    can_cancel: bool
    judgings: tuple[JudgingView, ...]

    @property
    def state(self) -> str:
        """Return the state of the judging that the board shows."""
        return self.judgings[0].state if self.judgings else "cancelled"

    @property
    def shown_score(self) -> float | None:
        """Return the final score of the judging that the board shows, if it has one."""
        figures = self.judgings[0].figures if self.judgings else None
        return None if figures is None else figures.final_score


class QueueView(Struct, frozen=True):
    """The queue at a glance. It has no figure of any judging."""

    queued: int
    running: int
    broken: int
    workers: int


class BoardRow(Struct, frozen=True):
    rank: int
    team: str
    final: float | None
    offense: float | None
    raw: float | None
    defense: float | None
    breaches: float | None
    false_positives: float | None
    benign_trials: int | None
    low: float | None
    high: float | None
    runs: int
    same_bytes_as: tuple[str, ...]
    team_id: int
    """Also the anchor of the row: `#team-7`."""


class BoardView(Struct, frozen=True):
    """The ranks of a competition."""

    competition: str
    phase: str
    league: str
    rows: tuple[BoardRow, ...]
    disqualified: dict[str, str]
    """The reason for each team that has no rank."""
    frozen: bool
    """Whether newer figures are hidden."""
    track: str = ""
    """The track that ranks the rows; empty for the final score."""


class CompetitionView(Struct, frozen=True):
    slug: str
    title: str
    ruleset: str
    ruleset_digest: str
    engine: str
    budget: str
    opens_at: datetime | None
    closes_at: datetime | None
    freeze_at: datetime | None
    quota: int
    finals: int
    board_commitment: str
    final_commitment: str
    board_key: str
    """The key itself, once the organizer has published it."""
    final_key: str


class QuotaView(Struct, frozen=True):
    """How many submissions a team may still make."""

    allowed: int
    left: int
    next_at: datetime | None


class TeamView(Struct, frozen=True):
    competition: str
    team: str
    quota: QuotaView


class Me(Struct, frozen=True):
    account: str
    organizes: bool
    teams: tuple[TeamView, ...]


class Accepted(Struct, frozen=True):
    """A submission that was accepted."""

    submission: SubmissionView
    new: bool
    """False if the team had sent the same bytes before."""
    quota: QuotaView
