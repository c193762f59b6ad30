"""Teams: enter, invite, join, leave and remove, through the pages."""

import re
from itertools import count
from typing import Any

import pytest

from small_pages import browser
from small_servers import ATTACK, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names = count()


@pytest.fixture
def team() -> Any:
    return make_team(make_competition(f"t{next(_names)}"), f"Team {next(_names)}")


@pytest.fixture
def captain(team: Any) -> Any:
    return browser(team.memberships.get().account)


def page(client: Any, team: Any, path: str = "") -> str:
    return str(client.get(f"/c/{team.competition.slug}/team{path}").content.decode())


def invited(captain: Any, team: Any) -> str:
    """Make an invitation, and return the path of its link."""
    made = captain.post(f"/c/{team.competition.slug}/team/invite").content.decode()
    found = re.search(r"http://127\.0\.0\.1(/join/[\w-]+)", made)
    assert found is not None
    return found[1]


def test_an_account_makes_a_team_once_and_under_a_name_of_its_own(team: Any) -> None:
    slug = team.competition.slug
    client = browser(make_account(f"new {next(_names)}"))
    assert "Name of your team" in page(client, team)
    taken = client.post(f"/c/{slug}/team", {"name": team.name})
    assert (taken.status_code, "Another team is called" in taken.content.decode()) == (409, True)
    assert client.post(f"/c/{slug}/team", {"name": "Lancers"}).status_code == 302
    assert "<h1>Lancers</h1>" in page(client, team)
    client.post(f"/c/{slug}/team", {"name": "Another"})
    assert "<h1>Lancers</h1>" in page(client, team)


def test_a_link_lets_one_account_in_and_is_shown_once(team: Any, captain: Any) -> None:
    link = invited(captain, team)
    assert link not in page(captain, team)
    assert "Revoke" in page(captain, team)
    first, second = (browser(make_account(f"guest {next(_names)}")) for _ in "ab")
    asked = first.get(link)
    assert asked.status_code == 200
    assert f"Join {team.name}?" in asked.content.decode()
    assert team.memberships.count() == 1, "to look at an invitation changes nothing"
    assert first.post(link).status_code == 302
    assert f"<h1>{team.name}</h1>" in page(first, team)
    assert second.get(link).status_code == second.post(link).status_code == 404
    assert team.memberships.count() == 2


def test_an_invitation_ends_when_it_is_revoked_or_a_week_old(team: Any, captain: Any) -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    from tiltyard.service.models import Invitation  # noqa: PLC0415

    guest = browser(make_account(f"guest {next(_names)}"))
    link = invited(captain, team)
    number = team.invitations.get().pk
    address = f"/c/{team.competition.slug}/team/invitations/{number}/revoke"
    assert captain.post(address).status_code == 302
    assert guest.post(link).status_code == 404
    assert captain.post(address).status_code == 404
    link = invited(captain, team)
    Invitation.objects.filter(team=team).update(expires_at=now())
    assert guest.post(link).status_code == 404
    assert team.memberships.count() == 1


def test_nobody_is_in_two_teams_of_a_competition(team: Any, captain: Any) -> None:
    other = make_team(team.competition, f"Other {next(_names)}")
    link = invited(captain, team)
    refused = browser(other.memberships.get().account).post(link)
    assert refused.status_code == 409
    assert "already have a team" in refused.content.decode()
    assert team.invitations.get().used_by is None


def test_the_captain_removes_a_member_who_then_sees_nothing(team: Any, captain: Any) -> None:
    submission = send(team, ATTACK.format(word=f"team {next(_names)}"))
    account = make_account(f"guest {next(_names)}")
    guest = browser(account)
    guest.post(invited(captain, team))
    assert guest.get(f"/s/{submission.pk}").status_code == 200
    remove = f"/c/{team.competition.slug}/team/members/{{}}/remove"
    own = team.memberships.get(captain=True).account_id
    assert guest.post(remove.format(own)).status_code == 403
    assert captain.post(remove.format(own)).status_code == 409
    assert captain.post(remove.format(account.pk)).status_code == 302
    assert guest.get(f"/s/{submission.pk}").status_code == 404
    assert captain.post(remove.format(account.pk)).status_code == 404


def test_who_leaves_hands_on_the_team_and_the_last_one_answers_for_it(
    team: Any, captain: Any
) -> None:
    leave = f"/c/{team.competition.slug}/team/leave"
    account = make_account(f"guest {next(_names)}")
    browser(account).post(invited(captain, team))
    send_for(team, f"team {next(_names)}")
    assert captain.post(leave).status_code == 302
    assert [(one.account, one.captain) for one in team.memberships.all()] == [(account, True)]
    refused = browser(account).post(leave)
    assert refused.status_code == 409
    assert "last member" in refused.content.decode()
    empty = make_team(team.competition, f"Empty {next(_names)}")
    assert browser(empty.memberships.get().account).post(leave).status_code == 302
    assert not team.competition.teams.filter(pk=empty.pk).exists()


def send_for(team: Any, word: str) -> None:
    from small_servers import checked  # noqa: PLC0415
    from tiltyard.service.actions.submit import submit  # noqa: PLC0415

    captain = team.memberships.get(captain=True).account
    submit(team, captain, checked(ATTACK.format(word=word)))


def test_a_token_has_scopes_and_an_end_and_is_shown_once() -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    account = make_account(f"owner {next(_names)}")
    client = browser(account)
    made = client.post("/me/tokens", {"name": "<i>ci</i>", "scopes": "read", "days": "7"})
    shown = re.search(r"tilt_[\w-]{20,}", made.content.decode())
    assert shown is not None
    assert "&lt;i&gt;ci&lt;/i&gt;" in made.content.decode()
    assert shown[0] not in client.get("/me").content.decode()
    row = account.tokens.get()
    assert row.scopes == ["read"]
    assert 6 <= (row.expires_at - now()).days <= 7
    for wrong in ({"scopes": "admin"}, {"scopes": ""}, {"days": "0"}, {"days": "1e9"}):
        assert client.post("/me/tokens", wrong).status_code == 400, wrong
    assert account.tokens.count() == 1
