"""Make a database ready: its tables, and an organizer who can log in."""

import secrets

from django.core.management import call_command
from django.db import transaction

from tiltyard.service.actions.records import audit, lock
from tiltyard.service.models import Account


def migrate() -> None:
    """Bring the tables of the database to this version."""
    call_command("migrate", interactive=False, verbosity=0)


@transaction.atomic
def first_organizer() -> tuple[str, str] | None:
    """Make an organizer if there is none. Return name and password; None if there is one."""
    lock("first organizer")
    if Account.objects.filter(is_staff=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    account = Account.objects.create_user("organizer", password=password)
    account.is_staff = account.is_superuser = True
    account.save()
    audit("organizer.make", None, subject=account.username)
    return account.username, password
