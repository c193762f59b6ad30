"""The leaderboard as data: leagues, entries and their ranks."""

from msgspec import Struct


class League(Struct, frozen=True, order=True):
    """The conditions that runs must share before they are ranked together."""

    ruleset: str
    ruleset_digest: str
    engine: str
    key: str
    """The fingerprint of the organizer's key; empty for the public seed."""

    @property
    def title(self) -> str:
        seeds = f"official seeds of key {self.key}" if self.key else "public seed"
        return f"ruleset {self.ruleset}, {seeds}, Tiltyard {self.engine}"


class Entry(Struct, frozen=True):
    """The figures of one run that a leaderboard needs; None for a track that was not played."""

    name: str
    run_id: str
    submission: str
    """The digest of the submitted files."""
    results: str
    """The digest of the results."""
    league: League
    final_score: float | None
    offense: float | None
    raw: float | None
    defense: float | None
    breaches: float | None
    false_positives: float | None
    benign_trials: int | None
    why_not: tuple[str, ...] = ()
    """Why the run is not comparable; empty if it is comparable."""


class Unread(Struct, frozen=True, order=True):
    """A file that is not a readable report."""

    path: str
    reason: str


class Standing(Struct, frozen=True):
    """A place on the leaderboard."""

    rank: int
    run: Entry
    runs: int = 1
    """How many comparable runs have this name; `run` is the best of them."""
    same_bytes_as: tuple[str, ...] = ()
    """Other names that submitted the same files."""


class Disqualified(Struct, frozen=True):
    run: Entry
    reason: str


class Board(Struct, frozen=True):
    """The ranks of one league."""

    league: League
    standings: tuple[Standing, ...]
    disqualified: tuple[Disqualified, ...] = ()


class Leaderboard(Struct, frozen=True):
    boards: tuple[Board, ...]
    """One for each league."""
    apart: tuple[Entry, ...] = ()
    """Runs that are not comparable, with the reasons in `why_not`."""
    unread: tuple[Unread, ...] = ()
    unused: tuple[str, ...] = ()
    """Disqualifications that match no run; possibly typing errors."""
