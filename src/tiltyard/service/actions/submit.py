"""Accept a submission: check its bytes, its team, the dates and the quota."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard.contracts.tracks import TRACK_OF
from tiltyard.rulesets.ruleset import read_ruleset
from tiltyard.service.actions.judgings import queue_judging
from tiltyard.service.actions.quota import quota_of
from tiltyard.service.actions.records import audit, lock_terms, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, Competition, Submission, Team, Upload
from tiltyard.service.models.judgings import Phase, Reason
from tiltyard.submissions import SubmissionError, open_submission
from tiltyard.submissions.packing import pack


class Checked(Struct, frozen=True):
    """A submission whose bytes were accepted."""

    name: str
    digest: str
    tracks: tuple[str, ...]
    content: bytes


def check_upload(name: str, content: bytes) -> Checked:
    """Read an upload as a match does. `SubmissionError` has the words of `tiltyard validate`."""
    name = os.path.basename(name.replace("\\", "/"))[-100:]  # noqa: PTH119 - any system's name
    if name != name.strip() or "\0" in name or not name:
        raise SubmissionError("The file has no usable name. Rename it.")
    with TemporaryDirectory(prefix="tiltyard-upload-") as scratch:
        path = Path(scratch) / name
        try:
            path.write_bytes(content)
            found = open_submission(path, Path(scratch) / "unpacked")
        except SubmissionError as error:
            raise SubmissionError(str(error).replace(f"{scratch}/", "")) from None
        except (OSError, UnicodeError):
            raise SubmissionError("The file has no usable name. Rename it.") from None
        tracks = tuple(TRACK_OF[part] for part in found.modules)
        return Checked(found.name, found.digest, tracks, pack(found))


@transaction.atomic
def submit(team: Team, account: Account, checked: Checked) -> tuple[Submission, bool]:
    """Accept a submission and queue its judging. Return it, and whether it is new.

    The same bytes of the same team are the same submission, so sending them again is safe.
    """
    # Two uploads of a team at the same time must not both take its last place.
    team = (
        Team.objects.select_for_update(of=("self",)).select_related("competition").get(pk=team.pk)
    )
    known = Submission.objects.filter(team=team, digest=checked.digest, cancelled_at=None).first()
    if known is not None:
        return known, False
    _check_open(team.competition)
    _check_tracks(team.competition, checked)
    quota = quota_of(team)
    if not quota.left:
        free = (
            "" if quota.next_at is None else f" The next one is free at {quota.next_at:%H:%M} UTC."
        )
        raise ServiceError(
            f"Your team has used its {quota.allowed} submissions of the last 24 hours.{free}", 429
        )
    submission = Submission.objects.create(
        competition=team.competition,
        team=team,
        account=account,
        name=checked.name,
        digest=checked.digest,
        tracks=[*checked.tracks],
        size=len(checked.content),
    )
    Upload.objects.create(submission=submission, content=checked.content)
    audit("submission.upload", account, team.competition, str(submission.pk))
    lock_terms(team.competition)
    submission.competition.refresh_from_db()  # A rejudging may have been published meanwhile.
    queue_judging(submission, Phase.BOARD, Reason.SUBMITTED)
    record("submission.accepted", submission)
    return submission, True


def _check_open(competition: Competition) -> None:
    found = Competition.objects.filter(pk=competition.pk)
    if not found.filter(Q(opens_at=None) | Q(opens_at__lte=Now())).exists():
        raise ServiceError(
            f"{competition.title} opens at {competition.opens_at:%Y-%m-%d %H:%M} UTC.", 403
        )
    if not found.filter(Q(closes_at=None) | Q(closes_at__gt=Now())).exists():
        raise ServiceError(
            f"{competition.title} closed at {competition.closes_at:%Y-%m-%d %H:%M} UTC.", 403
        )


def _check_tracks(competition: Competition, checked: Checked) -> None:
    arena = read_ruleset(competition.ruleset_text).arena is not None
    if arena and "defense" not in checked.tracks:
        raise ServiceError("This competition plays guardrails, and the submission has none.", 422)
