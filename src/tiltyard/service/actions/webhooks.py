"""Webhooks: addresses that hear about events of a competition.

A message names an event and what it is about. It has no figures: a receiver asks the API for what
it may see.
"""

import secrets
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard.service.actions.records import audit
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, Competition, Delivery, Webhook
from tiltyard.service.outbound import Address, AddressError

KINDS: Final = (
    "submission.accepted",
    "judging.scored",
    "judging.unscored",
    "judging.broken",
    "judging.cancelled",
    "team.made",
    "competition.edited",
    "board.changed",
)
MAX_TRIES: Final = 8
_LEASE: Final = timedelta(minutes=2)
"""A delivery that a process has taken is free again after this time."""
_FIRST_PAUSE_SECONDS: Final = 10
_AT_ONCE: Final = 20
_MAX_WEBHOOKS: Final = 20


class Message(Struct, frozen=True):
    """What one delivery sends."""

    delivery: int
    url: str
    secret: str
    kind: str
    body: dict[str, Any]


@transaction.atomic
def add_webhook(competition: Competition, url: str, kinds: list[str], account: Account) -> Webhook:
    """Add a webhook, with a new secret."""
    try:
        Address.parse(url, loopback=settings.WEBHOOKS_TO_LOOPBACK)
    except AddressError as error:
        raise ServiceError(str(error), 422) from None
    if not kinds or not {*kinds} <= {*KINDS}:
        raise ServiceError(f"Choose events among {', '.join(KINDS)}.", 422)
    if competition.webhooks.filter(active=True).count() >= _MAX_WEBHOOKS:
        raise ServiceError(f"A competition has at most {_MAX_WEBHOOKS} webhooks.", 409)
    made = Webhook.objects.create(
        competition=competition, url=url, secret=secrets.token_hex(32), kinds=[*kinds]
    )
    audit("webhook.add", account, competition, str(made.pk), url=url, kinds=[*kinds])
    return made


@transaction.atomic
def remove_webhook(webhook: Webhook, account: Account) -> None:
    """Send no more messages to a webhook."""
    Webhook.objects.filter(pk=webhook.pk).update(active=False)
    Delivery.objects.filter(webhook=webhook).update(next_at=None)
    audit("webhook.remove", account, webhook.competition, str(webhook.pk))


@transaction.atomic
def take_due() -> list[Message]:
    """Take the deliveries that are due, so that no other process sends them now."""
    due: QuerySet[Delivery] = Delivery.objects.select_for_update(skip_locked=True, of=("self",))
    rows = due.filter(Q(webhook__active=True), next_at__lte=Now()).order_by("next_at", "pk")
    taken = list(rows.select_related("webhook", "event__competition")[:_AT_ONCE])
    Delivery.objects.filter(pk__in=[one.pk for one in taken]).update(
        next_at=Now() + _LEASE, tries=F("tries") + 1
    )
    return [_message(one) for one in taken]


def _message(delivery: Delivery) -> Message:
    event = delivery.event
    body = {
        "id": event.pk,
        "kind": event.kind,
        "at": event.at.isoformat(),
        "competition": event.competition.slug if event.competition else "",
        "submission": str(event.submission_id or ""),
        "judging": event.judging_id,
    }
    webhook = delivery.webhook
    return Message(delivery.pk, webhook.url, webhook.secret, event.kind, body)


@transaction.atomic
def note_result(message: Message, status: int | None) -> None:
    """Note how a receiver answered. Everything but 2xx is tried again, later each time."""
    found = Delivery.objects.select_for_update().filter(pk=message.delivery).first()
    if found is None:
        return
    arrived = status is not None and status // 100 == 2
    is_over = arrived or found.tries >= MAX_TRIES
    pause = timedelta(seconds=_FIRST_PAUSE_SECONDS * 3 ** (found.tries - 1))
    Delivery.objects.filter(pk=found.pk).update(
        status=status, next_at=None if is_over else Now() + pause
    )
