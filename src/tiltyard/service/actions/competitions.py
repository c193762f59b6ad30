"""What an organizer changes: competitions, their final, and who has no rank."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from tiltyard.foundation.printable import printable
from tiltyard.rulesets.ruleset import RulesetError
from tiltyard.runs.key import KEY_DIGITS, Key, make_key
from tiltyard.service.actions.judgings import queue_judging
from tiltyard.service.actions.records import audit, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.finals import finalists
from tiltyard.service.models import Account, Competition, Judging, Submission, Team
from tiltyard.service.models.judgings import OPEN, Phase, Reason, State
from tiltyard.service.terms import key_of, set_keys, set_ruleset

_PLAIN = ("title", "rules", "opens_at", "closes_at", "freeze_at", "quota", "finals", "visibility")
_TERMS = ("ruleset_text", "budget", "board_key", "final_key")
NEW_KEY = "new"
"""In place of a key: draw one."""


def make_competition(values: dict[str, Any], account: Account) -> Competition:
    """Make a competition from the fields of its form."""
    made = Competition(slug=values["slug"])
    try:
        with transaction.atomic():
            _assign(made, values)
            made.save()
            audit("competition.make", account, made, made.slug, **_told(made))
            record("competition.made", made)
    except IntegrityError:
        raise ServiceError(f"There is a competition {made.slug} already.", 409) from None
    return made


@transaction.atomic
def edit_competition(
    competition: Competition, values: dict[str, Any], account: Account
) -> Competition:
    """Change a competition. What judgings depend on stays as it is once there are judgings."""
    found = Competition.objects.select_for_update().get(pk=competition.pk)
    before = _told(found)
    if not may_change_terms(found, Phase.BOARD):
        _refuse_changes(found, values, ("ruleset_text", "budget", "board_key"))
    if not may_change_terms(found, Phase.FINAL):
        _refuse_changes(found, values, ("final_key",))
    _assign(found, values)
    found.save()
    after = _told(found)
    changed = {name: [before[name], after[name]] for name in after if before[name] != after[name]}
    if changed:
        audit("competition.edit", account, found, found.slug, changed=changed)
        record("competition.edited", found)
    return found


def may_change_terms(competition: Competition, phase: str) -> bool:
    """Return whether a phase has no judgings yet, so that its terms can change."""
    if competition.keys_published_at is not None:
        return False
    return not Judging.objects.filter(competition=competition, phase=phase).exists()


def _refuse_changes(found: Competition, values: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if values.get(name, getattr(found, name)) != getattr(found, name):
            what = "rejudge" if name in ("ruleset_text", "budget") else "make a new competition"
            raise ServiceError(
                f"{name.replace('_', ' ').capitalize()} cannot change after the first submission; "
                f"{what} instead.",
                409,
            )


def _assign(competition: Competition, values: dict[str, Any]) -> None:
    for name in _PLAIN:
        if name in values:
            setattr(competition, name, values[name])
    if values.get("budget"):
        competition.budget = values["budget"]
    text = values.get("ruleset_text", competition.ruleset_text)
    if text != competition.ruleset_text:
        try:
            set_ruleset(competition, text)
        except RulesetError as error:
            raise ServiceError(str(error), 422) from None
    board = _key(values.get("board_key", competition.board_key))
    final = _key(values.get("final_key", competition.final_key))
    if board is not None and board == final:
        raise ServiceError("Board and final need different keys.", 422)
    set_keys(competition, board, final)


def _key(text: str) -> Key | None:
    if text == NEW_KEY:
        return Key(make_key().strip())
    if text and (len(text) != KEY_DIGITS or not set(text) <= set("0123456789abcdef")):
        raise ServiceError(f"A key has {KEY_DIGITS} hexadecimal digits.", 422)
    return Key(text) if text else None


def _told(competition: Competition) -> dict[str, Any]:
    """Return what the audit log keeps of a competition. Keys are there as commitments."""
    told = {name: getattr(competition, name) for name in _PLAIN if name != "rules"}
    told |= {name: str(told[name] or "") for name in ("opens_at", "closes_at", "freeze_at")}
    names = ("ruleset_digest", "budget", "engine", "board_commitment", "final_commitment")
    return told | {name: getattr(competition, name) for name in names}


@transaction.atomic
def disqualify_team(team: Team, reason: str, account: Account) -> None:
    """Take a team's rank, or give it back with an empty reason."""
    Team.objects.filter(pk=team.pk).update(disqualified=_reason(reason))
    audit("team.disqualify", account, team.competition, str(team.pk), reason=_reason(reason))
    record("board.changed", team.competition)


@transaction.atomic
def disqualify_submission(submission: Submission, reason: str, account: Account) -> None:
    """Take a submission off the board, or put it back with an empty reason."""
    Submission.objects.filter(pk=submission.pk).update(disqualified=_reason(reason))
    audit(
        "submission.disqualify",
        account,
        submission.competition,
        str(submission.pk),
        reason=_reason(reason),
    )
    record("board.changed", submission.competition)


def _reason(text: str) -> str:
    return printable(text, limit=300).strip()


@transaction.atomic
def play_final(competition: Competition, account: Account) -> int:
    """Queue the final of every team: of what it has chosen, else of its best submissions."""
    found = Competition.objects.select_for_update().get(pk=competition.pk)
    if key_of(found, Phase.FINAL) is None:
        raise ServiceError("Give the competition a key for the final first.", 409)
    if found.closes_at is None or not _is_past(found):
        raise ServiceError("The final begins when the competition has closed.", 409)
    added = 0
    allowed = Submission.objects.filter(disqualified="", team__disqualified="")
    for submission in allowed.filter(pk__in=finalists(found)).order_by("team", "at", "pk"):
        known = Judging.objects.filter(submission=submission, phase=Phase.FINAL).exists()
        queue_judging(submission, Phase.FINAL, Reason.FINAL)
        added += not known
    audit("final.play", account, found, found.slug, judgings=added)
    return added


def _is_past(competition: Competition) -> bool:
    return Competition.objects.filter(pk=competition.pk, closes_at__lte=Now()).exists()


@transaction.atomic
def publish_final(competition: Competition, account: Account) -> None:
    """Show the ranks of the final, and both keys, to everybody. It cannot be undone."""
    found = Competition.objects.select_for_update().get(pk=competition.pk)
    finals = Judging.objects.filter(competition=found, phase=Phase.FINAL)
    left = finals.filter(state__in=(*OPEN, State.BROKEN)).count()
    if left or not finals.exists():
        what = f"{left} judgings of it have no result" if left else "nothing of it was played"
        raise ServiceError(f"The final cannot be published: {what}.", 409)
    if found.final_published_at is not None:
        raise ServiceError("The final is published already.", 409)
    Competition.objects.filter(pk=found.pk).update(
        final_published_at=Now(), keys_published_at=Now()
    )
    audit("final.publish", account, found, found.slug)
    record("board.changed", found)
