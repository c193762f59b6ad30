"""Load a season as a competition: its submissions, its reports and its disqualifications."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from tiltyard import __version__
from tiltyard.contracts.tracks import TRACK_OF
from tiltyard.reporting.schema import Report
from tiltyard.runs.store import load_report
from tiltyard.service.actions.accounts import join
from tiltyard.service.actions.judgings import queue_judging, store_report
from tiltyard.service.actions.records import audit, record
from tiltyard.service.actions.submit import Checked, submit
from tiltyard.service.models import Account, Competition, Judging, Submission
from tiltyard.service.models.judgings import Phase, Reason, State
from tiltyard.service.terms import set_ruleset
from tiltyard.standings.leaderboard import read_disqualified
from tiltyard.submissions import open_submission
from tiltyard.submissions.packing import pack

SLUG: Final = "season"
_RULESET: Final = 'extends = "design"\n'


class DemoError(Exception):
    """The season is not there; the message says where it should be."""


def load_season(root: Path) -> Competition:
    """Load a season, unless it is loaded already."""
    known = Competition.objects.filter(slug=SLUG).first()
    if known is not None:
        return known
    entrants = sorted(path for path in root.glob("submissions/*") if path.is_dir())
    if not entrants:
        raise DemoError(f"{root} has no submissions; run this command in a clone of Tiltyard")
    with transaction.atomic():
        competition = Competition(slug=SLUG, title="The season")
        set_ruleset(competition, _RULESET)
        competition.save()
        out = read_disqualified(root / "disqualified.toml")
        for entrant in entrants:
            _enter(competition, entrant, root / "reports" / f"{entrant.name}.json", out)
        audit("competition.load", None, competition, SLUG, submissions=len(entrants))
    return competition


def _enter(competition: Competition, entrant: Path, report: Path, out: dict[str, str]) -> None:
    """Enter a submission for a team of its name, with its report if it is of these terms."""
    account, _ = Account.objects.get_or_create(username=entrant.name)
    account.set_unusable_password()
    account.save()
    with TemporaryDirectory(prefix="tiltyard-season-") as scratch:
        found = open_submission(entrant, Path(scratch) / "unpacked")
        tracks = tuple(TRACK_OF[part] for part in found.modules)
        checked = Checked(found.name, found.digest, tracks, pack(found))
    made, _ = submit(join(account, competition), account, checked)
    reason = next((why for word, why in out.items() if found.digest.startswith(word)), "")
    Submission.objects.filter(pk=made.pk).update(disqualified=reason)
    if report.is_file():
        _score(made, load_report(report))


def _score(submission: Submission, report: Report) -> None:
    judging = queue_judging(submission, Phase.BOARD, Reason.SUBMITTED)
    setting = report.setting
    if (report.engine, setting.ruleset_digest) != (__version__, judging.ruleset_digest):
        return  # A worker plays it.
    store_report(judging, report, None)
    judging.state = State.UNSCORED if report.final_score is None else State.SCORED
    judging.save()
    Judging.objects.filter(pk=judging.pk).update(started_at=Now(), finished_at=Now())
    record(f"judging.{judging.state}", judging)
