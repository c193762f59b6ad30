"""Hidden and frozen figures: no page, export, plot, feed or tag tells an outsider anything new."""

import re
from datetime import datetime, timedelta
from itertools import count
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from small_pages import browser, captain_of, enter, give_report, organizer, real_report, score
from small_servers import ATTACK, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names = count()
NOT_FIGURES = {"metrics", "api-queue"}
"""How much is queued and running, which has no team's name and no score."""
CHANGES_SOMETHING = {"join-team"}


def freeze(competition: Any, hours: float) -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    competition.freeze_at = now() + timedelta(hours=hours)
    competition.save()


def addresses(judging: Any) -> dict[str, str]:
    """Return an address for every route that can be read, with things of another team in it."""
    from tiltyard.service.web.boards import BOARDS  # noqa: PLC0415
    from tiltyard.service.web.urls import ROUTES  # noqa: PLC0415

    values = {
        "<slug:slug>": judging.competition.slug,
        "<path:rest>": "nothing",
        "<uuid:number>": str(judging.submission_id),
        "<int:number>": str(judging.pk),
        "<int:rejudging>": "1",
    }
    found = {}
    for route in ROUTES:
        if "GET" not in route.methods or route.name in NOT_FIGURES | CHANGES_SOMETHING:
            continue
        known = {**values}
        if route.name == "public-team":
            known["<int:number>"] = str(judging.submission.team_id)
        for which in BOARDS if "<slug:which>" in route.path else ("",):
            filled = {**known, "<slug:which>": which or "x"}
            parts: list[str] = re.split(r"(<\w+:\w+>)", route.path)
            path = "".join(filled.get(part, part) for part in parts)
            assert "<" not in path, "a parameter of a new route needs a value here"
            found[f"{route.name} {which}"] = f"/{path}"
    found["compare two"] = f"/c/{judging.competition.slug}/compare?before={judging.pk}&after=1"
    board = f"/api/v1/competitions/{judging.competition.slug}/board"
    found["final by API"] = f"{board}?phase=final"
    found["track by API"] = f"{board}?track=defense"
    found["sorted"] = f"/c/{judging.competition.slug}?sort=-final&q=a"
    return found


def seen(clients: dict[str, Any], judging: Any) -> dict[str, Any]:
    """Return everything that outsiders get: status, tag and bytes, without CSRF tokens."""
    from tiltyard.service.web.boards import BOARDS, TYPES, public_board  # noqa: PLC0415

    found: dict[str, Any] = {}
    for who, client in clients.items():
        for name, path in addresses(judging).items():
            answer = client.get(path)
            body = re.sub(rb'csrfmiddlewaretoken" value="\w+"', b"", answer.getvalue())
            if name.startswith("news-feed"):
                body = re.sub(rb"<updated>[^<]*</updated>", b"", body)  # Now, without news.
            found[f"{who}: {path}"] = (answer.status_code, answer.get("ETag"), body)
    for which in BOARDS:
        for form in TYPES:
            found[f"front: {which} {form}"] = public_board(judging.competition.slug, form, which)
    return found


def act(kind: str, judging: Any, final: float) -> None:
    """Let something happen after the freeze that outsiders may not learn of."""
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415
    from tiltyard.service.models import Judging, Worker  # noqa: PLC0415
    from tiltyard.service.terms import terms_of  # noqa: PLC0415

    competition, submission = judging.competition, judging.submission
    if kind == "later score":
        enter(competition, submission.team.name, final, hours=-0.5, defense=final)
    elif kind == "final":
        score(queue_judging(submission, "final", "final"), final)
        type(submission).objects.filter(pk=submission.pk).update(final=True)
    elif kind == "rejudging":
        other = structs.replace(terms_of(competition, "board"), engine=f"9.{next(_names)}")
        score(queue_judging(submission, "board", "rejudged", other), final)
    elif kind == "duration":
        Judging.objects.filter(pk=judging.pk).update(started_at=competition.made_at)
    elif kind == "running":
        worker = Worker.objects.create(name=f"worker {final}", engine="1", level="A")
        word = ATTACK.format(word=f"hidden {next(_names)}")
        made = send(submission.team, word).judgings.get()
        Judging.objects.filter(pk=made.pk).update(
            state="running", worker=worker, progress=f"{final}", fence=3
        )
    elif kind == "report":
        word = ATTACK.format(word=f"report {next(_names)}")
        give_report(send(submission.team, word).judgings.get(), real_report())
    else:
        made = send(submission.team, ATTACK.format(word=f"b {next(_names)}")).judgings.get()
        Judging.objects.filter(pk=made.pk).update(state="broken", why=f"why {final}")


KINDS = ("later score", "final", "rejudging", "duration", "running", "report", "broken")


# An example reads every page, so a failure is shown as it is found.
@settings(
    max_examples=4,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    happenings=st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(1, 1_999)), min_size=1, max_size=4
    )
)
def test_nothing_that_is_hidden_changes_what_outsiders_get(
    happenings: list[tuple[str, int]],
) -> None:
    competition = make_competition(f"h{next(_names)}", quota=99)
    judging = enter(competition, "Alpha", 500.25, defense=100.0)
    enter(competition, "Beta", 300.5, defense=200.0)
    freeze(competition, -1.0)
    other = make_team(competition, "Gamma")
    clients = {"anyone": browser(), "another team": browser(captain_of(other))}
    before = seen(clients, judging)
    assert any(b"500.25" in str(one).encode() for one in before.values()), "the board is seen"
    for kind, final in happenings:
        act(kind, judging, final + 0.37)
    after = seen(clients, judging)
    changed = [name for name, one in before.items() if after[name] != one]
    assert changed == []
    assert [*after] == [*before]


def test_the_board_of_organizers_and_teams_does_change() -> None:
    """The property above could hold because nothing ever changes."""
    competition = make_competition(f"h{next(_names)}", quota=99)
    judging = enter(competition, "Alpha", 500.25, defense=100.0)
    freeze(competition, -1.0)
    clients = {
        "organizer": browser(organizer()),
        "team": browser(captain_of(judging.submission.team)),
    }
    before = seen(clients, judging)
    for kind in KINDS:
        act(kind, judging, 77.37)
    after = seen(clients, judging)
    changed = {name for name in before if after[name] != before[name]}
    place = f"/c/{competition.slug}"
    assert {f"organizer: {place}/live", f"team: {place}/team", "team: /me"} <= changed
    assert not {one for one in changed if one.startswith("front")}


def test_an_outsider_never_learns_a_duration() -> None:
    """No type that an outsider gets has a moment of a judging."""
    from tiltyard.service.wire import BoardRow, BoardView, QueueView  # noqa: PLC0415

    for kind in (BoardRow, BoardView, QueueView):
        hints = get_type_hints(kind).values()
        assert not any("datetime" in str(hint) or hint is datetime for hint in hints), kind
