"""Teams of several accounts: invite, join, leave, remove."""

import secrets
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tiltyard.service.actions.accounts import Made, digest_of
from tiltyard.service.actions.records import audit
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account, Invitation, Membership, Submission, Team

MAX_MEMBERS: Final = 20
MAX_INVITATIONS: Final = 20
INVITED_FOR: Final = timedelta(days=7)


@transaction.atomic
def invite(team: Team, account: Account) -> Made:
    """Make a link that lets one account into a team, within a week."""
    _lock_as_captain(team, account, "invite")
    if open_invitations(team).count() >= MAX_INVITATIONS:
        raise ServiceError(
            f"A team has at most {MAX_INVITATIONS} open invitations. Revoke one of them first.", 409
        )
    secret = secrets.token_urlsafe(24)
    made = Invitation(team=team, digest=digest_of(secret), made_by=account)
    made.expires_at = Now() + INVITED_FOR
    made.save()
    audit("team.invite", account, team.competition, str(team.pk), invitation=made.pk)
    return Made(made.pk, secret)


def open_invitations(team: Team) -> QuerySet[Invitation]:
    """Return the invitations that somebody can still accept, the newest first."""
    found = Invitation.objects.filter(team=team, used_by=None, expires_at__gt=Now())
    return found.select_related("made_by").order_by("-pk")


@transaction.atomic
def revoke_invitation(team: Team, account: Account, number: int) -> None:
    """End an invitation now."""
    _lock_as_captain(team, account, "revoke an invitation")
    if not open_invitations(team).filter(pk=number).update(expires_at=Now()):
        raise ServiceError("There is no such invitation, or somebody has used it.", 404)
    audit("team.uninvite", account, team.competition, str(team.pk), invitation=number)


def find_invitation(secret: str) -> Invitation:
    """Return the invitation of a link, if it is still open."""
    found = Invitation.objects.filter(
        digest=digest_of(secret), used_by=None, expires_at__gt=Now()
    ).select_related("team__competition", "made_by")
    invitation = found.first()
    if invitation is None:
        raise ServiceError(
            "This invitation was used or revoked, or is older than a week. Ask the captain of the "
            "team for a new one.",
            404,
        )
    return invitation


@transaction.atomic
def accept_invitation(account: Account, secret: str) -> Team:
    team = _locked(find_invitation(secret).team)
    invitation = find_invitation(secret)  # Again, now that nobody else can use it.
    if Membership.objects.filter(account=account, competition=team.competition).exists():
        raise ServiceError("You already have a team in this competition.", 409)
    if team.memberships.count() >= MAX_MEMBERS:
        raise ServiceError(f"A team has at most {MAX_MEMBERS} members.", 409)
    try:
        with transaction.atomic():
            Membership.objects.create(team=team, account=account, competition=team.competition)
    except IntegrityError:
        raise ServiceError("You already have a team in this competition.", 409) from None
    Invitation.objects.filter(pk=invitation.pk).update(used_by=account, used_at=Now())
    audit("team.join", account, team.competition, str(team.pk))
    return team


@transaction.atomic
def leave(team: Team, account: Account) -> None:
    """Leave a team. The captain's role passes to the member who joined first.

    The last member of a team that has submitted stays: somebody must answer for its submissions,
    and nobody gets a new quota by changing teams.
    """
    team = _locked(team)
    own = team.memberships.filter(account=account).first()
    if own is None:
        raise ServiceError("You are not in this team.", 404)
    heir = team.memberships.exclude(account=account).order_by("joined_at", "pk").first()
    if heir is None and Submission.objects.filter(team=team).exists():
        raise ServiceError(
            "You are the last member, and the team has submitted, so you cannot leave it.", 409
        )
    own.delete()
    audit("team.leave", account, team.competition, str(team.pk), name=team.name)
    if heir is None:
        team.delete()
    elif own.captain:
        Membership.objects.filter(pk=heir.pk).update(captain=True)


@transaction.atomic
def remove(team: Team, account: Account, number: int) -> None:
    """Remove the member with this account id from a team."""
    team = _lock_as_captain(team, account, "remove a member")
    if number == account.pk:
        raise ServiceError("Leave the team instead of removing yourself.", 409)
    member = team.memberships.filter(account_id=number).first()
    if member is None:
        raise ServiceError("There is no such member.", 404)
    member.delete()
    audit("team.remove", account, team.competition, str(team.pk), member=number)


def _locked(team: Team) -> Team:
    """Return the team, locked until the transaction ends."""
    found = Team.objects.select_for_update(of=("self",)).select_related("competition")
    known = found.filter(pk=team.pk).first()
    if known is None:
        raise ServiceError("There is no such team any more.", 404)
    return known


def _lock_as_captain(team: Team, account: Account, what: str) -> Team:
    team = _locked(team)
    if not team.memberships.filter(account=account, captain=True).exists():
        raise ServiceError(f"Only the captain of a team can {what}.", 403)
    return team
