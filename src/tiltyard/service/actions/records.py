"""Append events and entries of the audit log."""

from zlib import crc32

from django.db import connection

from tiltyard.service.models import (
    Account,
    AuditEntry,
    Competition,
    Delivery,
    Event,
    Judging,
    Submission,
    Webhook,
)


def lock(name: str) -> None:
    """Wait until no other transaction has the lock `name`, and keep it until this one ends.

    With SQLite nothing is to do, because only one transaction writes at a time.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [crc32(name.encode())])


def lock_terms(competition: Competition) -> None:
    """Keep the terms of a competition as they are until the transaction ends."""
    lock(f"terms of {competition.pk}")


def try_lock(name: str) -> bool:
    """Take the lock `name` until the transaction ends. Return False if another one has it."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [crc32(name.encode())])
        return bool(cursor.fetchone()[0])


def record(kind: str, about: Judging | Submission | Competition | None, **data: object) -> None:
    """Append an event, as the last thing that a transaction does.

    The lock lets the ids of events grow in the order in which their transactions end. So a reader
    who has seen an event never misses one with a smaller id.
    """
    lock("events")
    event = Event(kind=kind, data=data)
    if isinstance(about, Competition):
        event.competition = about
    elif about is not None:
        event.competition_id = about.competition_id
    if isinstance(about, Submission):
        event.submission = about
    elif isinstance(about, Judging):
        event.judging, event.submission_id = about, about.submission_id
    event.save(force_insert=True)
    if event.competition_id is not None:
        _tell_webhooks(event)


def _tell_webhooks(event: Event) -> None:
    """Queue an event for the webhooks that want it, in the transaction of the event."""
    found = Webhook.objects.filter(competition=event.competition_id, active=True)
    wanted = [one for one in found if event.kind in one.kinds]
    Delivery.objects.bulk_create([Delivery(webhook=one, event=event) for one in wanted])


def audit(
    action: str,
    account: Account | None,
    competition: Competition | None = None,
    subject: str = "",
    **data: object,
) -> None:
    AuditEntry.objects.create(
        action=action, account=account, competition=competition, subject=subject, data=data
    )
