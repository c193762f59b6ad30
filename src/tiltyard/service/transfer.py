"""Write a whole competition to a directory, and read it back on another server.

    competition.json       the competition, its teams, submissions and judgings
    ruleset.toml           the ruleset, for `tiltyard evaluate --ruleset`
    board.key, final.key   the keys, for `--key`
    disqualified.toml      for `tiltyard leaderboard --disqualified`
    audit.json             the audit log
    submissions/*.zip      what was submitted, by digest
    runs/RUN/              a run such as `tiltyard evaluate` writes it: `tiltyard verify` plays it

`tiltyard leaderboard DIRECTORY` ranks the runs under the names of the teams. Figures are read from
the reports again when a competition is imported.
"""

import io
import os
import zipfile
import zlib
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from msgspec import Struct, structs

from tiltyard import __version__
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.schema import Report, read_report, write_report
from tiltyard.rulesets.ruleset import RulesetError, read_ruleset
from tiltyard.runs.job import Worlds, make_job
from tiltyard.runs.key import Key
from tiltyard.runs.request import Request, write_request
from tiltyard.runs.store import FULL, REPORT, full_report, load_report
from tiltyard.service.actions.judgings import store_report
from tiltyard.service.actions.records import audit, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import (
    Account,
    AuditEntry,
    Competition,
    Judging,
    Membership,
    Submission,
    Team,
    Upload,
)
from tiltyard.service.models.judgings import DONE, OPEN, State
from tiltyard.service.terms import key_of, ruleset_text_of, set_keys, set_ruleset
from tiltyard.submissions import digest_of

FORMAT: Final = 1
FILE: Final = "competition.json"
_MAX_FILE_BYTES: Final = 512 << 20
_COPIED: Final = (
    "title",
    "rules",
    "budget",
    "opens_at",
    "closes_at",
    "freeze_at",
    "quota",
    "finals",
    "visibility",
    "keys_published_at",
    "final_published_at",
    "made_at",
)


class JudgingFile(Struct, frozen=True, forbid_unknown_fields=True):
    phase: str
    reason: str
    ruleset_digest: str
    budget: str
    key: str
    engine: str
    state: str
    why: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    run: str
    """The directory of its run; empty if it has no report."""


class SubmissionFile(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    team: str
    account: str
    name: str
    digest: str
    tracks: tuple[str, ...]
    at: datetime
    cancelled_at: datetime | None
    final: bool
    disqualified: str
    judgings: tuple[JudgingFile, ...]


class TeamFile(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    disqualified: str
    members: dict[str, bool]
    """Each account's name, and whether it is the captain."""


class CompetitionFile(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    slug: str
    engine: str
    ruleset_text: str
    board_key: str
    final_key: str
    fields: dict[str, Any]
    teams: tuple[TeamFile, ...]
    submissions: tuple[SubmissionFile, ...]


def export_competition(competition: Competition, directory: Path) -> int:
    """Write a competition to a new directory. Return how many submissions it has."""
    if directory.exists() and any(directory.iterdir()):
        raise ServiceError(f"{directory} is not empty; name a new directory.", 409)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    rows = competition.submissions.select_related("team", "account").order_by("at", "pk")
    listed = tuple(_write_submission(one, directory) for one in rows)
    teams = tuple(
        TeamFile(one.name, one.disqualified, _members(one))
        for one in competition.teams.order_by("pk")
    )
    written = CompetitionFile(
        FORMAT,
        competition.slug,
        competition.engine,
        competition.ruleset_text,
        competition.board_key,
        competition.final_key,
        {name: getattr(competition, name) for name in _COPIED},
        teams,
        listed,
    )
    write_whole(directory / "ruleset.toml", competition.ruleset_text.encode())
    for name in ("board", "final"):
        secret = getattr(competition, f"{name}_key")
        if secret:
            write_whole(directory / f"{name}.key", f"{secret}\n".encode(), secret=True)
    write_whole(directory / "disqualified.toml", _disqualified(competition).encode())
    write_whole(directory / "audit.json", _audit_log(competition))
    write_whole(directory / FILE, msgspec.json.format(msgspec.json.encode(written)), secret=True)
    return len(listed)


def _members(team: Team) -> dict[str, bool]:
    rows = team.memberships.select_related("account").order_by("pk")
    return {one.account.username: one.captain for one in rows}


def _write_submission(submission: Submission, directory: Path) -> SubmissionFile:
    content = bytes(Upload.objects.get(pk=submission.pk).content)
    place = directory / "submissions"
    place.mkdir(exist_ok=True)
    write_whole(place / f"{submission.digest}.zip", content)
    rows = submission.judgings.select_related("report", "competition").order_by("pk")
    return SubmissionFile(
        str(submission.pk),
        submission.team.name,
        submission.account.username,
        submission.name,
        submission.digest,
        tuple(submission.tracks),
        submission.at,
        submission.cancelled_at,
        submission.final,
        submission.disqualified,
        tuple(_write_judging(one, submission, content, directory) for one in rows),
    )


def _write_judging(
    judging: Judging, submission: Submission, content: bytes, directory: Path
) -> JudgingFile:
    run = ""
    if judging.report is not None and judging.state in DONE:
        run = _write_run(judging, submission, content, directory / "runs")
    return JudgingFile(
        judging.phase,
        judging.reason,
        judging.ruleset_digest,
        judging.budget,
        judging.key,
        judging.engine,
        judging.state,
        judging.why,
        judging.queued_at,
        judging.started_at,
        judging.finished_at,
        run,
    )


def _write_run(judging: Judging, submission: Submission, content: bytes, runs: Path) -> str:
    """Write the directory of a run under the name of its team. Return the directory's name."""
    assert judging.report is not None
    shown = read_report(zlib.decompress(bytes(judging.report.shown)))
    kept = judging.report.full
    full = None if kept is None else read_report(zlib.decompress(bytes(kept)))
    runs.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=runs) as scratch:
        place = Path(scratch) / "run"
        for name, data in _files_in(content).items():
            write_whole(place / "submission" / name, data)
        rules = read_ruleset(ruleset_text_of(judging))
        request = Request(f"{submission.name}.zip", rules, budget=judging.budget)
        write_request(request, place)
        rename = _renaming(judging, submission, request, place, shown)
        if full is not None:
            (place / FULL).mkdir(mode=0o700)
            written = write_report(structs.replace(full, **rename))
            write_whole(place / FULL / REPORT, written, secret=True)
        shown = structs.replace(shown, **rename)
        write_whole(place / REPORT, write_report(shown))
        name = _free_name(runs, shown.run_id)
        place.rename(runs / name)
    return name


def _renaming(
    judging: Judging, submission: Submission, request: Request, place: Path, report: Report
) -> dict[str, Any]:
    """Return the fields of a report that change when its submission has the name of its team.

    The id of a run includes the name. The digest of its results does not. Another version of
    Tiltyard, or tasks that are not here, give no id, so such a run keeps its name.
    """
    team = submission.team.name
    is_ours = judging.engine == __version__ and not (request.ruleset.arena and judging.key)
    if report.submission.name == team or not is_ours:
        return {}
    again = structs.replace(request, submission=str(place / "submission"))
    worlds = Worlds(key=key_of(judging.competition, judging.phase))
    with TemporaryDirectory(prefix="tiltyard-export-") as scratch:
        job = make_job(again, Path(scratch), worlds)
    job = structs.replace(job, submission=structs.replace(job.submission, name=team))
    named = structs.replace(report.submission, name=team)
    return {"run_id": job.run_id, "submission": named}


def _free_name(runs: Path, run_id: str) -> str:
    names = (run_id, *(f"{run_id}-{number}" for number in range(2, 100_000)))
    return next(name for name in names if not (runs / name).exists())


def _files_in(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _disqualified(competition: Competition) -> str:
    rows = competition.submissions.select_related("team").order_by("digest")
    reasons = {one.digest: one.disqualified or one.team.disqualified for one in rows}
    lines = [f"{digest} = {_toml(reason)}" for digest, reason in reasons.items() if reason]
    return "".join(f"{line}\n" for line in lines)


def _toml(text: str) -> str:
    """Return a TOML string. JSON escapes what TOML escapes, and DEL is not printable."""
    return msgspec.json.encode(text).decode()


def _audit_log(competition: Competition) -> bytes:
    rows = AuditEntry.objects.filter(competition=competition).select_related("account")
    entries = [
        {
            "at": one.at,
            "account": one.account.username if one.account else "",
            "action": one.action,
            "subject": one.subject,
            "data": one.data,
        }
        for one in rows.order_by("pk")
    ]
    return msgspec.json.format(msgspec.json.encode(entries))


def import_competition(
    directory: Path, slug: str = "", account: Account | None = None
) -> Competition:
    """Read a competition from the files of an export. All of it is imported, or nothing."""
    found = _read_file(directory)
    try:
        with transaction.atomic():
            competition = _make_competition(found, slug or found.slug)
            teams = {one.name: _make_team(competition, one) for one in found.teams}
            for one in found.submissions:
                _make_submission(competition, teams, one, directory)
            audit("competition.import", account, competition, competition.slug)
            record("competition.made", competition)
    except IntegrityError as error:
        raise ServiceError(
            f"There is a competition {slug or found.slug} already; give this one another --name."
            if Competition.objects.filter(slug=slug or found.slug).exists()
            else f"{directory / FILE} contradicts itself: {error}",
            409,
        ) from None
    except (KeyError, OSError, zipfile.BadZipFile, ValueError, ValidationError) as error:
        raise ServiceError(f"{directory} is not a whole export: {error}", 422) from None
    return competition


def _read_file(directory: Path) -> CompetitionFile:
    path = directory / FILE
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ServiceError(f"{path} is too large.", 422)
        found = msgspec.json.decode(path.read_bytes(), type=CompetitionFile)
        read_ruleset(found.ruleset_text)
    except OSError as error:
        raise ServiceError(f"{path} cannot be read: {error.strerror}", 422) from None
    except (msgspec.MsgspecError, RulesetError) as error:
        raise ServiceError(f"{path} is not the file of an export: {error}", 422) from None
    if found.format != FORMAT:
        raise ServiceError(f"{path} has format {found.format}; this version reads {FORMAT}.", 422)
    return found


def _make_competition(found: CompetitionFile, slug: str) -> Competition:
    competition = Competition(slug=slug)
    set_ruleset(competition, found.ruleset_text)
    set_keys(
        competition,
        Key(found.board_key) if found.board_key else None,
        Key(found.final_key) if found.final_key else None,
    )
    for name in _COPIED:
        setattr(competition, name, found.fields[name])
    competition.engine = found.engine
    competition.clean_fields()
    competition.save()
    competition.refresh_from_db()
    return competition


def _make_team(competition: Competition, found: TeamFile) -> Team:
    team = Team.objects.create(
        competition=competition, name=found.name, disqualified=found.disqualified
    )
    for name, captain in found.members.items():
        Membership.objects.create(
            team=team, competition=competition, account=_account(name), captain=captain
        )
    return team


def _account(name: str) -> Account:
    """Make an account that nobody can sign in to yet, also if the name is somebody else's here."""
    taken = (name, *(f"{name}+{number}" for number in range(2, 10_000)))
    free = next(one for one in taken if not Account.objects.filter(username=one).exists())
    account = Account(username=free)
    account.set_unusable_password()
    account.save()
    return account


def _make_submission(
    competition: Competition, teams: dict[str, Team], found: SubmissionFile, directory: Path
) -> None:
    content = (directory / "submissions" / f"{os.path.basename(found.digest)}.zip").read_bytes()  # noqa: PTH119
    if digest_of(_files_in(content)) != found.digest:
        raise ValueError(f"submissions/{found.digest}.zip has another digest")
    team = teams[found.team]
    captain = team.memberships.order_by("-captain", "pk").select_related("account").first()
    if captain is None:
        raise ValueError(f"the team {found.team} has no member")
    made = Submission(
        competition=competition,
        team=team,
        account=captain.account,
        **{
            name: getattr(found, name)
            for name in ("name", "digest", "at", "cancelled_at", "final", "disqualified")
        },
        tracks=[*found.tracks],
        size=len(content),
    )
    if not Submission.objects.filter(pk=found.id).exists():
        made.pk = found.id
    made.save(force_insert=True)
    Upload.objects.create(submission=made, content=content)
    for one in found.judgings:
        _make_judging(made, competition, one, directory)


def _make_judging(
    submission: Submission, competition: Competition, found: JudgingFile, directory: Path
) -> None:
    names = ("phase", "reason", "ruleset_digest", "budget", "key", "engine", "why", "queued_at")
    judging = Judging(
        submission=submission,
        competition=competition,
        started_at=found.started_at,
        finished_at=found.finished_at,
        **{name: getattr(found, name) for name in names},
    )
    judging.state = State.QUEUED if found.state in OPEN else State(found.state)
    if found.run:
        place = directory / "runs" / Path(found.run).name
        shown = load_report(place / REPORT)
        full = full_report(place, shown)
        if shown.submission.digest != submission.digest:
            raise ValueError(f"{place} is the run of another submission")
        store_report(judging, shown, None if full is shown else full)
        judging.state = State.UNSCORED if shown.final_score is None else State.SCORED
    judging.save(force_insert=True)
    if judging.state == State.QUEUED:
        Judging.objects.filter(pk=judging.pk).update(started_at=None, not_before=Now())
