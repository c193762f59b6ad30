"""Judge submissions again under new terms, look at what changes, and publish it or drop it.

A competitor's board, reports and quota do not change before the publication, and a competitor
cannot cancel these judgings.
"""

from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tiltyard import __version__
from tiltyard.rulesets.ruleset import RulesetError, read_ruleset
from tiltyard.service.actions.judgings import queue_judging
from tiltyard.service.actions.records import audit, lock_terms, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, Competition, Judging, Rejudging, Submission
from tiltyard.service.models.judgings import DONE, OPEN, Phase, Reason, State
from tiltyard.service.terms import Terms, terms_of, terms_of_rejudging

BUDGETS = ("official", "quick")
_TERMS = ("ruleset_text", "ruleset", "ruleset_digest", "budget", "engine")


def begin_rejudging(
    competition: Competition,
    account: Account,
    *,
    engine: str = __version__,
    ruleset_text: str = "",
    budget: str = "",
) -> Rejudging:
    """Propose new terms. Nothing is judged yet."""
    text = ruleset_text or competition.ruleset_text
    if budget and budget not in BUDGETS:
        raise ServiceError("The budget is official or quick.", 422)
    try:
        rules = read_ruleset(text, "the ruleset")
    except RulesetError as error:
        raise ServiceError(str(error), 422) from None
    made = Rejudging(
        competition=competition,
        made_by=account,
        engine=engine,
        ruleset_text=text,
        ruleset=rules.id,
        ruleset_digest=rules.digest,
        budget=budget or competition.budget,
        before={name: getattr(competition, name) for name in _TERMS},
    )
    if terms_of_rejudging(made) == terms_of(competition, Phase.BOARD):
        raise ServiceError(
            f"These are the terms of the board already: {made.ruleset}, {made.budget}, Tiltyard "
            f"{made.engine}. The same terms give the same scores.",
            409,
        )
    try:
        with transaction.atomic():
            made.save()
            audit("rejudging.begin", account, competition, str(made.pk), engine=engine)
    except IntegrityError:
        raise ServiceError("Publish or drop the open rejudging first.", 409) from None
    return made


@transaction.atomic
def rejudge(rejudging: Rejudging, submissions: Iterable[Submission], account: Account) -> int:
    """Queue a judging of each submission under the new terms. Return how many are new."""
    found = _open(rejudging)
    terms = terms_of_rejudging(found)
    added = 0
    for submission in submissions:
        if submission.competition_id != found.competition_id or submission.cancelled_at is not None:
            continue
        known = submission.judgings.filter(**terms.fields).first()
        if known is None:
            queue_judging(submission, Phase.BOARD, Reason.REJUDGED, terms)
        elif known.state == State.CANCELLED:
            _queue_again(known)
        added += known is None or known.state == State.CANCELLED
    audit("rejudging.add", account, found.competition, str(found.pk), judgings=added)
    return added


def _queue_again(judging: Judging) -> None:
    """Queue a judging of a rejudging that was dropped."""
    Judging.objects.filter(pk=judging.pk).update(
        state=State.QUEUED, job="", finished_at=None, queued_at=Now(), not_before=Now()
    )
    record("judging.queued", judging)


def missing_from(rejudging: Rejudging) -> "QuerySet[Submission]":
    """Return the submissions with a result on the board and none under the new terms."""
    old = terms_of_before(rejudging)
    done = Judging.objects.filter(phase=Phase.BOARD, state__in=DONE)
    shown = done.filter(competition=rejudging.competition, **old.fields).values("submission")
    judged = done.filter(**terms_of_rejudging(rejudging).fields).values("submission")
    found = Submission.objects.filter(pk__in=shown, cancelled_at=None).exclude(pk__in=judged)
    return found.order_by("at")


def terms_of_before(rejudging: Rejudging) -> Terms:
    """Return the terms that the board had when a rejudging began."""
    key = terms_of_rejudging(rejudging).key
    before = rejudging.before
    return Terms(before["ruleset_digest"], before["budget"], key, before["engine"])


@transaction.atomic
def publish_rejudging(rejudging: Rejudging, account: Account) -> None:
    """Let the board show the new terms. Submissions that still wait move to them."""
    found = _open(rejudging)
    lock_terms(found.competition)
    competition = Competition.objects.select_for_update().get(pk=found.competition_id)
    left = missing_from(found).count()
    if left:
        raise ServiceError(
            f"{left} submissions on the board have no result under the new terms. Add them, and "
            "wait for their results.",
            409,
        )
    frozen = Competition.objects.filter(pk=competition.pk, freeze_at__lte=Now()).exists()
    if frozen and competition.final_published_at is None:
        raise ServiceError("The board is frozen. Publish after the final, or lift the freeze.", 409)
    old = terms_of(competition, Phase.BOARD)
    for name in _TERMS:
        setattr(competition, name, getattr(found, name))
    competition.save()
    _move_open(competition, old)
    Rejudging.objects.filter(pk=found.pk).update(published_at=Now())
    audit("rejudging.publish", account, competition, str(found.pk))
    record("board.changed", competition)


def _move_open(competition: Competition, old: Terms) -> None:
    """Queue under the current terms what has no result under the old ones."""
    waiting = Judging.objects.filter(
        competition=competition, phase=Phase.BOARD, **old.fields, state__in=(*OPEN, State.BROKEN)
    )
    for judging in waiting.select_related("submission__competition"):
        judging.submission.competition = competition
        queue_judging(judging.submission, Phase.BOARD, Reason.SUBMITTED)
    still = waiting.exclude(state=State.RUNNING)
    still.update(state=State.CANCELLED, finished_at=Now(), job="", reason=Reason.REJUDGED)


@transaction.atomic
def drop_rejudging(rejudging: Rejudging, account: Account) -> None:
    """Give up new terms. Results stay in the database; what waits is cancelled."""
    found = _open(rejudging)
    waiting = Judging.objects.filter(
        competition=found.competition,
        reason=Reason.REJUDGED,
        state__in=(State.QUEUED, State.BROKEN),
        **terms_of_rejudging(found).fields,
    )
    waiting.update(state=State.CANCELLED, finished_at=Now(), job="")
    Rejudging.objects.filter(pk=found.pk).update(dropped_at=Now())
    audit("rejudging.drop", account, found.competition, str(found.pk))


def _open(rejudging: Rejudging) -> Rejudging:
    found = Rejudging.objects.select_for_update(of=("self",)).select_related("competition")
    current = found.get(pk=rejudging.pk)
    if not current.is_open:
        raise ServiceError("This rejudging is published or dropped already.", 409)
    return current
