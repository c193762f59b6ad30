"""What has happened: events for everybody who waits for them, and the audit log.

Rows are appended. The database refuses to change or delete them: see the migrations.
"""

from django.db import models
from django.db.models.functions import Now


class Event(models.Model):
    """A change of state. Ids grow in the order in which events become visible."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=40)
    competition = models.ForeignKey(
        "service.Competition", models.PROTECT, null=True, related_name="+"
    )
    submission = models.ForeignKey(
        "service.Submission", models.PROTECT, null=True, related_name="events"
    )
    judging = models.ForeignKey("service.Judging", models.PROTECT, null=True, related_name="events")
    data = models.JSONField(default=dict)
    """No figures: whoever hears of an event asks for what they may see."""


class AuditEntry(models.Model):
    """Who has done what that matters for the result."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    account = models.ForeignKey("service.Account", models.PROTECT, null=True, related_name="+")
    """None for the server itself."""
    action = models.CharField(max_length=60)
    competition = models.ForeignKey(
        "service.Competition", models.PROTECT, null=True, related_name="+"
    )
    subject = models.CharField(max_length=100, blank=True)
    data = models.JSONField(default=dict)
