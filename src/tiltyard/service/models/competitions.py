"""A competition: its terms, its teams, and what it tells the world."""

from django.db import models
from django.db.models.functions import Lower, Now

from tiltyard.service.models.accounts import Account


class Visibility(models.TextChoices):
    """Who sees the board."""

    EVERYBODY = "everybody"
    MEMBERS = "members"
    ORGANIZERS = "organizers"


class Competition(models.Model):
    """What is played, by when, and who sees which figures."""

    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    rules = models.TextField(blank=True)
    """The rules page, in Markdown."""
    ruleset_text = models.TextField()
    """A ruleset in TOML, as the organizer wrote it."""
    ruleset = models.CharField(max_length=120)
    """Name and version of the ruleset."""
    ruleset_digest = models.CharField(max_length=64)
    budget = models.CharField(max_length=16, default="official")
    engine = models.CharField(max_length=40)
    """The version of Tiltyard whose judgings the board shows."""
    opens_at = models.DateTimeField(null=True, blank=True)
    closes_at = models.DateTimeField(null=True, blank=True)
    freeze_at = models.DateTimeField(null=True, blank=True)
    """From here on the board stands still, until the final is published."""
    quota = models.PositiveIntegerField(default=5)
    """Submissions of a team in 24 hours."""
    finals = models.PositiveIntegerField(default=2)
    """How many submissions of a team play the final."""
    visibility = models.CharField(
        max_length=12, choices=Visibility.choices, default=Visibility.EVERYBODY
    )
    board_key = models.CharField(max_length=64, blank=True)
    """The secret key of the board's worlds. Empty for the public seed."""
    final_key = models.CharField(max_length=64, blank=True)
    board_commitment = models.CharField(max_length=64, blank=True)
    final_commitment = models.CharField(max_length=64, blank=True)
    keys_published_at = models.DateTimeField(null=True, blank=True)
    final_published_at = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(closes_at__isnull=True)
                | models.Q(opens_at__isnull=True)
                | models.Q(closes_at__gt=models.F("opens_at")),
                name="closes_after_it_opens",
            ),
        )


class Team(models.Model):
    """One or several accounts that compete together in one competition."""

    competition = models.ForeignKey(Competition, models.PROTECT, related_name="teams")
    name = models.CharField(max_length=60)
    made_at = models.DateTimeField(db_default=Now())
    disqualified = models.CharField(max_length=300, blank=True)
    """Why the team has no rank. Empty if it has one."""

    class Meta:
        constraints = (
            models.UniqueConstraint("competition", Lower("name"), name="one_name_one_team"),
        )


class Membership(models.Model):
    team = models.ForeignKey(Team, models.PROTECT, related_name="memberships")
    account = models.ForeignKey(Account, models.PROTECT, related_name="memberships")
    competition = models.ForeignKey(Competition, models.PROTECT, related_name="memberships")
    captain = models.BooleanField(default=False)
    joined_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "competition"), name="one_team_in_a_competition"
            ),
        )


class Invitation(models.Model):
    """A link that lets one account into a team. The secret part of the link is not stored."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(Account, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_by = models.ForeignKey(Account, models.PROTECT, null=True, related_name="+")
    used_at = models.DateTimeField(null=True)


class Announcement(models.Model):
    competition = models.ForeignKey(Competition, models.PROTECT, related_name="announcements")
    title = models.CharField(max_length=120)
    text = models.TextField(blank=True)
    """In Markdown."""
    made_by = models.ForeignKey(Account, models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())


class Webhook(models.Model):
    """An address that hears about events. `secret` signs each message."""

    competition = models.ForeignKey(Competition, models.PROTECT, related_name="webhooks")
    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=64)
    kinds = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    made_at = models.DateTimeField(db_default=Now())


class Delivery(models.Model):
    """One event for one webhook."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event = models.ForeignKey("service.Event", models.PROTECT, related_name="+")
    tries = models.PositiveIntegerField(default=0)
    status = models.PositiveIntegerField(null=True)
    next_at = models.DateTimeField(null=True, db_default=Now())
    """When to try again. None once the message has arrived, or was given up."""

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("webhook", "event"), name="each_event_once"),
        )
