"""What an organizer works with: rejudgings before they are published, and marks of clones."""

from django.db import models
from django.db.models.functions import Now

from tiltyard.service.models.accounts import Account
from tiltyard.service.models.competitions import Competition
from tiltyard.service.models.judgings import Submission


class Rejudging(models.Model):
    """New terms for a competition: a version of Tiltyard, a ruleset and a budget.

    Its judgings are those of the competition under these terms. The board shows them once it is
    published. A published rejudging keeps the terms that it has replaced.
    """

    competition = models.ForeignKey(Competition, models.PROTECT, related_name="rejudgings")
    made_by = models.ForeignKey(Account, models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())
    engine = models.CharField(max_length=40)
    ruleset_text = models.TextField()
    ruleset = models.CharField(max_length=120)
    ruleset_digest = models.CharField(max_length=64)
    budget = models.CharField(max_length=16)
    before = models.JSONField(default=dict)
    """The terms of the competition when the rejudging began."""
    published_at = models.DateTimeField(null=True)
    dropped_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("competition",),
                condition=models.Q(published_at=None, dropped_at=None),
                name="one_open_rejudging",
            ),
        )

    @property
    def is_open(self) -> bool:
        return self.published_at is None and self.dropped_at is None


class Sketch(models.Model):
    """A short picture of a submission's code, by which similar ones are found."""

    submission = models.OneToOneField(
        Submission, models.PROTECT, primary_key=True, related_name="sketch"
    )
    values = models.JSONField()
