"""Judgings as entries of a leaderboard, as `tiltyard leaderboard` ranks them."""

from tiltyard.contracts.tracks import Track
from tiltyard.reporting.leaderboard_schema import Entry, League
from tiltyard.service.models import Competition, Judging
from tiltyard.service.terms import terms_of


def league_of(competition: Competition, phase: str) -> League:
    terms = terms_of(competition, phase)
    return League(competition.ruleset, terms.ruleset_digest, terms.engine, terms.key)


def run_of(judging: Judging) -> str:
    """Return a name for a judging that cannot be taken for a digest or for another judging."""
    return f"judging {judging.pk}."


def played(judging: Judging, track: Track | None) -> bool:
    """Return whether a judging has a score in a track; None stands for the final score."""
    return (judging.final_score if track is None else getattr(judging, track)) is not None


def entry_of(judging: Judging, league: League, track: Track | None = None) -> Entry:
    """Return the entry of a scored judging. With a track, the entry has the figures of it alone."""
    submission = judging.submission
    offends, defends = track != "defense", track != "offense"
    return Entry(
        submission.team.name,
        run_of(judging),
        submission.digest,
        judging.results,
        league,
        judging.final_score if track is None else getattr(judging, track),
        judging.offense if offends else None,
        judging.raw if offends else None,
        judging.defense if defends else None,
        judging.breaches if defends else None,
        judging.false_positives if defends else None,
        judging.benign_trials if defends else None,
    )
