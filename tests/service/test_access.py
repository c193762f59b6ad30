"""Every address and method against every role. A new route without a row fails."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from small_servers import ATTACK, ROOT, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names = count()
ROLES = ("anonymous", "stranger", "member", "organizer")
OPEN = (200, 200, 200, 200)
SIGNED_IN = (302, 200, 200, 200)
ORGANIZERS = (302, 403, 403, 200)
EXPECTED = {
    "home": OPEN,
    "login": OPEN,
    "signup": OPEN,
    "logout": (302, 302, 302, 302),
    "me": SIGNED_IN,
    "make-token": SIGNED_IN,
    "revoke-token": (302, 404, 302, 404),
    "board": OPEN,
    "board-json": OPEN,
    "board-csv": OPEN,
    "live-board": (302, 403, 403, 200),
    "submit": SIGNED_IN,
    "submission": (302, 404, 200, 200),
    "cancel": (302, 404, 409, 403),
    "report": (302, 404, 200, 200),
    "metrics": OPEN,
    "organize": ORGANIZERS,
    "organize-new": ORGANIZERS,
    "organize-queue": ORGANIZERS,
    "organize-retry-all": (302, 403, 403, 302),
    "organize-retry": (302, 403, 403, 409),
    "organize-audit": ORGANIZERS,
    "organize-competition": ORGANIZERS,
    "organize-edit": ORGANIZERS,
    "organize-submissions": ORGANIZERS,
    "organize-clones": ORGANIZERS,
    "organize-final": (302, 403, 403, 409),
    "organize-publish-final": (302, 403, 403, 409),
    "organize-disqualify": (302, 403, 403, 302),
    "organize-disqualify-team": (302, 403, 403, 302),
    "organize-rejudge": ORGANIZERS,
    "organize-rejudging": ORGANIZERS,
    "organize-rejudging-add": (302, 403, 403, 422),
    "organize-rejudging-publish": (302, 403, 403, 409),
    "organize-rejudging-drop": (302, 403, 403, 302),
    "organize-export": ORGANIZERS,
    "organize-webhooks": ORGANIZERS,
    "organize-webhook-remove": (302, 403, 403, 302),
    "starter": OPEN,
    "one-board": OPEN,
    "one-board-json": OPEN,
    "one-board-csv": OPEN,
    "one-live-board": (302, 403, 403, 200),
    "monitor": OPEN,
    "public-team": OPEN,
    "rules": OPEN,
    "keys": OPEN,
    "news": OPEN,
    "news-feed": OPEN,
    "choose-final": (302, 404, 302, 403),
    "compare": SIGNED_IN,
    "team": SIGNED_IN,
    "invite": (302, 200, 200, 404),
    "revoke-invitation": (302, 404, 302, 404),
    "leave-team": (302, 409, 409, 404),
    "remove-member": (302, 404, 302, 404),
    "join-team": SIGNED_IN,
    "api-description": OPEN,
    "api-queue": OPEN,
    "api-me": (401, 200, 200, 200),
    "api-competitions": OPEN,
    "api-competition": OPEN,
    "api-board": OPEN,
    "api-submissions": (401, 200, 200, 200),
    "api-submit": (401, 422, 422, 422),
    "api-submission": (401, 404, 200, 200),
    "api-cancel": (401, 404, 409, 403),
    "api-report": (401, 404, 200, 200),
    "api-missing": (404, 404, 404, 404),
}
"""The status that each role gets for the first method of a route."""
AS_CAPTAIN_ONLY = {"invite": 403, "revoke-invitation": 403, "remove-member": 403}
"""What a member who is not the captain gets instead of the captain's status."""
AS_TEAMMATE = {"revoke-token": 404, "leave-team": 302, **AS_CAPTAIN_ONLY}
AS_NEWCOMER = {"invite": 404, "leave-team": 404}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def place(sqlite: str) -> Any:
    """Return a competition with a scored submission, and an account for each role."""
    assert sqlite
    from tiltyard.runs.store import load_report  # noqa: PLC0415
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415
    from tiltyard.service.actions.judgings import store_report  # noqa: PLC0415
    from tiltyard.service.actions.teams import invite  # noqa: PLC0415
    from tiltyard.service.models import Webhook  # noqa: PLC0415

    competition = make_competition("access")
    team, other = make_team(competition, "Mine"), make_team(competition, "Others")
    send(other, ATTACK.format(word="others"))
    submission = send(team, ATTACK.format(word="access"))
    judging = submission.judgings.get()
    store_report(judging, load_report(ROOT / "docs/season/reports/rookies.json"), None)
    judging.state, judging.finished_at = "scored", judging.queued_at
    judging.save()
    organizer = make_account("the organizer", is_staff=True)
    member = team.memberships.get().account
    return SimpleNamespace(
        accounts={
            "anonymous": None,
            "stranger": other.memberships.get().account,
            "member": member,
            "organizer": organizer,
            "superuser": make_account("the superuser", is_superuser=True),
            "newcomer": make_account("somebody without a team"),
        },
        token=lambda: make_token(member, "x").id,
        invitation=lambda: (team.invitations.all().delete(), invite(team, member))[1],
        teammate=lambda: _add_member(team),
        submission=submission.pk,
        judging=judging.pk,
        team=team.pk,
        webhook=lambda: Webhook.objects.create(competition=competition, url="https://a.example").pk,
        rejudging=lambda: _open_rejudging(competition, organizer).pk,
        slug=competition.slug,
    )


def _open_rejudging(competition: Any, organizer: Any) -> Any:
    from tiltyard.service.actions.rejudging import begin_rejudging  # noqa: PLC0415

    found = competition.rejudgings.filter(published_at=None, dropped_at=None).first()
    return found or begin_rejudging(competition, organizer, engine=f"9.{next(_names)}")


def _add_member(team: Any) -> Any:
    from tiltyard.service.models import Membership  # noqa: PLC0415

    account = make_account(f"teammate {next(_names)}")
    Membership.objects.create(team=team, account=account, competition=team.competition)
    return account


def routes() -> Iterator[Any]:
    from tiltyard.service.web.urls import ROUTES  # noqa: PLC0415 - after Django is ready

    return iter(ROUTES)


def address(route: Any, place: Any) -> str:
    """Return an address of a route, with things of the member's team in it."""
    number: Callable[[], Any] = {
        "revoke-token": place.token,
        "revoke-invitation": lambda: place.invitation().id,
        "public-team": lambda: place.team,
        "remove-member": lambda: place.teammate().pk,
    }.get(route.name, lambda: place.judging)
    values: dict[str, Callable[[], str]] = {
        "<slug:slug>": lambda: place.slug,
        "<path:rest>": lambda: "nothing",
        "<uuid:number>": lambda: str(place.submission),
        "<int:number>": lambda: str(number()),
        "<int:judging>": lambda: str(place.judging),
        "<int:team>": lambda: str(place.team),
        "<int:rejudging>": lambda: str(place.rejudging()),
        "<int:webhook>": lambda: str(place.webhook()),
        "<slug:which>": lambda: "offense",
        "<slug:secret>": lambda: place.invitation().secret,
    }
    return "/" + re.sub(r"<\w+:\w+>", lambda found: values[found[0]](), route.path)


def status(place: Any, role: str, method: str, path: str) -> int:
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"host": "127.0.0.1"})
    account = place.teammate() if role == "teammate" else place.accounts[role]
    if account is not None:
        client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    answer = client.generic(method, path)
    answer.close()
    return int(answer.status_code)


def test_the_table_has_a_row_for_every_route(place: Any) -> None:
    assert place
    names = [route.name for route in routes()]
    assert sorted(names) == sorted(EXPECTED)
    assert len({*names}) == len(names)


def test_every_role_gets_what_the_table_says(place: Any) -> None:
    found = {
        route.name: tuple(
            status(place, role, route.methods[0], address(route, place)) for role in ROLES
        )
        for route in routes()
    }
    assert found == EXPECTED


def test_a_superuser_gets_what_an_organizer_gets(place: Any) -> None:
    for route in routes():
        got = status(place, "superuser", route.methods[0], address(route, place))
        assert got == EXPECTED[route.name][ROLES.index("organizer")], route.name


def test_a_teammate_gets_what_the_captain_gets_but_does_not_lead(place: Any) -> None:
    for route in routes():
        expected = EXPECTED[route.name][ROLES.index("member")]
        got = status(place, "teammate", route.methods[0], address(route, place))
        assert got == AS_TEAMMATE.get(route.name, expected), route.name


def test_an_account_without_a_team_gets_no_more_than_another_team(place: Any) -> None:
    for route in routes():
        expected = EXPECTED[route.name][ROLES.index("stranger")]
        got = status(place, "newcomer", route.methods[0], address(route, place))
        assert got == AS_NEWCOMER.get(route.name, expected), route.name


def test_other_methods_are_refused(place: Any) -> None:
    for route in routes():
        for method in METHODS:
            if method not in route.methods:
                got = status(place, "organizer", method, address(route, place))
                assert got == 405, (route.name, method)
