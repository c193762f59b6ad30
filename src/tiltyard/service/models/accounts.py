"""Who uses the server: accounts, and the tokens of their programs."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Now


class Account(AbstractUser):
    """A person. An organizer has `is_staff`."""

    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]

    @property
    def organizes(self) -> bool:
        return self.is_active and (self.is_staff or self.is_superuser)


class ApiToken(models.Model):
    """The right of a program to act for an account. The token itself is not stored."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    shown = models.CharField(max_length=12)
    """The beginning of the token, by which its owner recognizes it."""
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    made_at = models.DateTimeField(db_default=Now())
    used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
