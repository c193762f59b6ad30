"""Submissions, their judgings, and the workers that play them.

A submission is bytes that never change. A judging is one evaluation of a submission under a
ruleset, a budget, a key and a version of Tiltyard. A score belongs to a judging, and nothing that a
judging has found is ever overwritten.
"""

from typing import Final
from uuid import uuid4

from django.db import models
from django.db.models.functions import Now

from tiltyard.service.models.accounts import Account
from tiltyard.service.models.competitions import Competition, Team


class Submission(models.Model):
    """What a team has submitted, under the digest of all names and contents."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    competition = models.ForeignKey(Competition, models.PROTECT, related_name="submissions")
    team = models.ForeignKey(Team, models.PROTECT, related_name="submissions")
    account = models.ForeignKey(Account, models.PROTECT, related_name="submissions")
    name = models.CharField(max_length=100)
    """The name of the uploaded file."""
    digest = models.CharField(max_length=64, db_index=True)
    tracks = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now())
    cancelled_at = models.DateTimeField(null=True)
    final = models.BooleanField(default=False)
    """Whether the team has chosen it for the final."""
    disqualified = models.CharField(max_length=300, blank=True)

    class Meta:
        indexes = (models.Index(fields=("team", "at"), name="submissions_of_a_team"),)
        constraints = (
            # Uploading the same bytes again returns the submission that is there.
            models.UniqueConstraint(
                fields=("team", "digest"),
                condition=models.Q(cancelled_at__isnull=True),
                name="the_same_bytes_once",
            ),
        )


class Upload(models.Model):
    """The bytes of a submission: a zip archive without compression, its names in order."""

    submission = models.OneToOneField(Submission, models.PROTECT, primary_key=True)
    content = models.BinaryField()


class StoredReport(models.Model):
    """The report of an evaluation, compressed. Judgings of the same bytes share it."""

    shown = models.BinaryField()
    """What the competitor may see."""
    full = models.BinaryField(null=True)
    """What only the organizer may see; None if `shown` is everything."""
    at = models.DateTimeField(db_default=Now())


class Worker(models.Model):
    """A process that plays judgings. Every start has a row of its own."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    name = models.CharField(max_length=100)
    engine = models.CharField(max_length=40)
    level = models.CharField(max_length=1)
    started_at = models.DateTimeField(db_default=Now())
    heartbeat_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    """When the worker left, or was given up."""
    lost = models.BooleanField(default=False)
    """Whether it was given up: its heartbeat had stopped."""


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SCORED = "scored"
    UNSCORED = "unscored"
    """A match of the submission failed, so it has a report and no score."""
    BROKEN = "broken"
    """The server failed to play it. It takes no quota, and an organizer can retry it."""
    CANCELLED = "cancelled"


OPEN: Final = (State.QUEUED, State.RUNNING)
DONE: Final = (State.SCORED, State.UNSCORED)


class Phase(models.TextChoices):
    BOARD = "board"
    FINAL = "final"


class Reason(models.TextChoices):
    SUBMITTED = "submitted"
    REJUDGED = "rejudged"
    FINAL = "final"


class Judging(models.Model):
    id = models.BigAutoField(primary_key=True)
    """Also the order of the queue."""
    submission = models.ForeignKey(Submission, models.PROTECT, related_name="judgings")
    competition = models.ForeignKey(Competition, models.PROTECT, related_name="judgings")
    phase = models.CharField(max_length=8, choices=Phase.choices)
    reason = models.CharField(max_length=12, choices=Reason.choices)
    ruleset_digest = models.CharField(max_length=64)
    budget = models.CharField(max_length=16)
    key = models.CharField(max_length=16, blank=True)
    """The fingerprint of the key; empty for the public seed."""
    engine = models.CharField(max_length=40)

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    fence = models.PositiveIntegerField(default=0)
    """Grows with each start. A result counts only under the fence of its own start."""
    failures = models.PositiveIntegerField(default=0)
    """How often the server has failed to play it since it was queued or retried."""
    job = models.CharField(max_length=80, blank=True)
    """The workflow that plays it; empty if it has none yet."""
    jobs = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(db_default=Now())
    worker = models.ForeignKey(Worker, models.PROTECT, null=True, related_name="judgings")
    progress = models.CharField(max_length=120, blank=True)
    why = models.CharField(max_length=500, blank=True)
    """Why there is no score."""
    queued_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    report = models.ForeignKey(StoredReport, models.PROTECT, null=True, related_name="judgings")
    run_id = models.CharField(max_length=16, blank=True)
    results = models.CharField(max_length=64, blank=True)
    """The digest of the results: the one that `tiltyard evaluate` prints."""
    final_score = models.FloatField(null=True)
    offense = models.FloatField(null=True)
    raw = models.FloatField(null=True)
    defense = models.FloatField(null=True)
    breaches = models.FloatField(null=True)
    false_positives = models.FloatField(null=True)
    benign_trials = models.IntegerField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    objections = models.JSONField(default=list)
    """Why the run cannot be ranked, apart from the terms of the competition."""

    class Meta:
        indexes = (
            models.Index(fields=("state", "id"), name="the_queue"),
            models.Index(fields=("competition", "state"), name="the_board"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("submission", "ruleset_digest", "budget", "key", "engine"),
                name="judged_once_under_the_same_terms",
            ),
            models.CheckConstraint(
                condition=models.Q(state=State.SCORED, final_score__isnull=False)
                | (~models.Q(state=State.SCORED) & models.Q(final_score__isnull=True)),
                name="a_score_and_its_state",
            ),
        )
