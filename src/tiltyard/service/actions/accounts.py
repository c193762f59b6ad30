"""Accounts, their tokens, and their own teams. `teams` has what several accounts do together."""

import secrets
from datetime import timedelta
from hashlib import sha256
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from msgspec import Struct

from tiltyard.foundation.printable import printable
from tiltyard.service.actions.records import audit, record
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, ApiToken, Competition, Membership, Team

SCOPES: Final = ("read", "submit")
_PREFIX: Final = "tilt_"
MAX_TOKENS: Final = 50


class Made(Struct, frozen=True):
    """A new secret, which is shown once: only its digest is stored."""

    id: int
    secret: str


def digest_of(secret: str) -> str:
    """Return what is stored of a random secret. It is too long to be guessed from its digest."""
    return sha256(secret.encode()).hexdigest()


def make_token(
    account: Account, name: str, scopes: tuple[str, ...] = SCOPES, days: int | None = None
) -> Made:
    """Make a token with some scopes, for some days or until it is revoked."""
    unknown = sorted({*scopes} - {*SCOPES})
    if unknown or not scopes:
        raise ServiceError(f"A token has scopes among {', '.join(SCOPES)}.")
    if account.tokens.filter(revoked_at=None).count() >= MAX_TOKENS:
        raise ServiceError(f"You have {MAX_TOKENS} tokens. Revoke one of them first.", 409)
    secret = _PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        account=account,
        name=printable(name, limit=100),
        shown=secret[:10],
        digest=digest_of(secret),
        scopes=[*scopes],
        **({} if days is None else {"expires_at": Now() + timedelta(days=days)}),
    )
    audit("token.make", account, subject=str(token.pk), scopes=[*scopes])
    return Made(token.pk, secret)


def find_token(secret: str) -> ApiToken | None:
    """Return the token with this secret, if it is still valid."""
    found = ApiToken.objects.select_related("account").filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        digest=digest_of(secret),
        revoked_at=None,
        account__is_active=True,
    )
    token = found.first()
    if token is not None:
        ApiToken.objects.filter(pk=token.pk).update(used_at=Now())
    return token


def revoke_token(account: Account, number: int) -> None:
    found = ApiToken.objects.filter(pk=number, account=account, revoked_at=None)
    if not found.update(revoked_at=Now()):
        raise ServiceError("There is no such token.", 404)
    audit("token.revoke", account, subject=str(number))


def team_in(account: Account, competition: Competition) -> Team | None:
    """Return the account's team in a competition, if it has one."""
    return Team.objects.filter(memberships__account=account, competition=competition).first()


def join(account: Account, competition: Competition, name: str = "") -> Team:
    """Enter a competition with a team of one's own. Others join by invitation."""
    shown = printable(name or account.username, limit=60).strip()
    if not shown:
        raise ServiceError("A team needs a name.")
    try:
        with transaction.atomic():
            team = Team.objects.create(competition=competition, name=shown)
            Membership.objects.create(
                team=team, account=account, competition=competition, captain=True
            )
            audit("team.make", account, competition, str(team.pk), name=shown)
            record("team.made", competition, team=team.pk)
    except IntegrityError:
        known = team_in(account, competition)
        if known is not None:
            return known
        raise ServiceError(f"Another team is called {shown}; choose another name.", 409) from None
    return team
