"""Hidden and frozen figures: through the query layer, and through everything that reads it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from small_servers import ATTACK, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(100_000))


def score(judging: Any, final: float, *, hours: float = -2.0) -> Any:
    """Give a judging a score that it reached some hours from now."""
    from django.utils.timezone import now  # noqa: PLC0415

    from tiltyard.service.models import Judging  # noqa: PLC0415

    Judging.objects.filter(pk=judging.pk).update(
        state="scored", final_score=final, offense=final, raw=final, results=f"{final}"
    )
    Judging.objects.filter(pk=judging.pk).update(finished_at=now() + timedelta(hours=hours))
    return judging


def enter(competition: Any, name: str, final: float, *, hours: float = -2.0) -> Any:
    team = competition.teams.filter(name=name).first() or make_team(competition, name)
    source = ATTACK.format(word=f"visible {next(_names)}")
    return score(send(team, source).judgings.get(), final, hours=hours)


def freeze(competition: Any, hours: float) -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    competition.freeze_at = now() + timedelta(hours=hours)
    competition.save()


def viewers(competition: Any, team: Any) -> dict[str, Any]:
    from tiltyard.service.visible import EVERYBODY, viewer_of  # noqa: PLC0415

    other = make_team(competition, f"Other {next(_names)}")
    organizer = make_account(f"organizer {next(_names)}", is_staff=True)
    return {
        "anonymous": EVERYBODY,
        "member": viewer_of(team.memberships.get().account, competition),
        "other": viewer_of(other.memberships.get().account, competition),
        "organizer": viewer_of(organizer, competition),
    }


def scores_seen(competition: Any, viewer: Any, phase: str = "board") -> dict[str, float | None]:
    from tiltyard.service.visible import board_view  # noqa: PLC0415

    return {row.team: row.final for row in board_view(competition, viewer, phase).rows}


def test_ties_share_a_rank_and_a_team_has_its_best_run() -> None:
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=9)
    for name, final in (("A", 5.0), ("A", 9.0), ("B", 7.0), ("C", 7.0), ("D", 1.0)):
        enter(competition, name, final)
    rows = board_view(competition, EVERYBODY).rows
    assert [(row.rank, row.team, row.final, row.runs) for row in rows] == [
        (1, "A", 9.0, 2),
        (2, "B", 7.0, 1),
        (2, "C", 7.0, 1),
        (4, "D", 1.0, 1),
    ]


def test_a_frozen_board_stands_still_for_all_but_organizers() -> None:
    competition = make_competition(f"v{next(_names)}", quota=9)
    early = enter(competition, "A", 5.0)
    freeze(competition, -1.0)
    enter(competition, "A", 9.0, hours=-0.5)
    seen = viewers(competition, early.submission.team)
    for name, viewer in seen.items():
        expected = 9.0 if name == "organizer" else 5.0
        assert scores_seen(competition, viewer) == {"A": expected}, name


def test_a_team_sees_its_own_figures_and_nobody_elses() -> None:
    from tiltyard.service.visible import submission_view, submissions_of  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=9)
    judging = enter(competition, "A", 5.0)
    freeze(competition, -3.0)
    team = judging.submission.team
    seen = viewers(competition, team)
    for name in ("member", "organizer"):
        view = submission_view(judging.submission, seen[name])
        assert view is not None
        figures = view.judgings[0].figures
        assert figures is not None
        assert figures.final_score == 5.0
    for name in ("anonymous", "other"):
        assert submission_view(judging.submission, seen[name]) is None
        assert submissions_of(team, seen[name]) == ()


def test_the_final_is_the_organizers_until_it_is_published() -> None:
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415
    from tiltyard.service.models import Submission  # noqa: PLC0415
    from tiltyard.service.visible import report_of, submission_view  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=9)
    first = enter(competition, "A", 5.0)
    final = score(queue_judging(first.submission, "final", "final"), 8.0)
    Submission.objects.filter(pk=first.submission_id).update(final=True)
    seen = viewers(competition, first.submission.team)
    assert scores_seen(competition, seen["organizer"], "final") == {"A": 8.0}
    for name in ("anonymous", "member", "other"):
        assert scores_seen(competition, seen[name], "final") == {}
        assert scores_seen(competition, seen[name]) == {"A": 5.0}
    view = submission_view(first.submission, seen["member"])
    assert view is not None
    assert [one.phase for one in view.judgings] == ["board"]
    assert report_of(final, seen["member"]) is None
    competition.final_published_at = competition.made_at
    competition.save()
    assert scores_seen(competition, seen["anonymous"], "final") == {"A": 8.0}


def test_a_rejudging_under_another_version_waits_for_its_publication() -> None:
    from tiltyard.service.actions.rejudging import (  # noqa: PLC0415
        begin_rejudging,
        publish_rejudging,
        rejudge,
    )
    from tiltyard.service.visible import EVERYBODY, submission_view  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=9)
    first = enter(competition, "A", 5.0)
    seen = viewers(competition, first.submission.team)
    organizer = make_account(f"o{next(_names)}")
    rejudging = begin_rejudging(competition, organizer, engine="9.9.9")
    rejudge(rejudging, [first.submission], organizer)
    score(first.submission.judgings.get(engine="9.9.9"), 1.0)
    assert scores_seen(competition, EVERYBODY) == {"A": 5.0}
    view = submission_view(first.submission, seen["member"])
    assert view is not None
    assert [one.engine for one in view.judgings] == [first.engine]
    publish_rejudging(rejudging, organizer)
    competition.refresh_from_db()
    assert scores_seen(competition, EVERYBODY) == {"A": 1.0}


def test_visibility_names_who_sees_the_board() -> None:
    competition = make_competition(f"v{next(_names)}", quota=9)
    seen = viewers(competition, enter(competition, "A", 5.0).submission.team)
    expected = {
        "everybody": {"anonymous", "member", "other", "organizer"},
        "members": {"member", "other", "organizer"},
        "organizers": {"organizer"},
    }
    for visibility, names in expected.items():
        competition.visibility = visibility
        competition.save()
        assert {name for name in seen if scores_seen(competition, seen[name])} == names


def test_disqualified_entries_have_no_rank_but_a_reason() -> None:
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=9)
    enter(competition, "A", 5.0)
    team = enter(competition, "B", 9.0).submission.team
    team.disqualified = "Two accounts."
    team.save()
    view = board_view(competition, EVERYBODY)
    assert [(row.rank, row.team) for row in view.rows] == [(1, "A")]
    assert view.disqualified == {"B": "Two accounts."}


_SCORES = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 2_000)), min_size=1, max_size=5)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=_SCORES, after=_SCORES)
def test_nothing_that_ends_after_the_freeze_changes_what_outsiders_get(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    """Pages, JSON, CSV and their tags stay the same to the byte, and no stream says a word."""
    from tiltyard.service.models import Event  # noqa: PLC0415
    from tiltyard.service.web.boards import BoardCache, public_board  # noqa: PLC0415
    from tiltyard.service.web.streams import Broadcaster  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}", quota=99)
    for name, final in before:
        enter(competition, name, float(final))
    freeze(competition, -1.0)
    first = {form: public_board(competition.slug, form) for form in ("html", "json", "csv")}

    for name, final in after:
        enter(competition, name, float(final), hours=-0.5)
    again = {form: public_board(competition.slug, form) for form in ("html", "json", "csv")}
    assert again == first
    numbers = [*Event.objects.filter(competition=competition).values_list("pk", flat=True)]

    async def listen() -> int:
        with ThreadPoolExecutor(1) as executor:
            broadcaster = Broadcaster(executor, BoardCache(executor))
            queue = broadcaster.listen(f"board:{competition.slug}")
            assert first["json"] is not None
            broadcaster.note_board(competition.slug, first["json"].etag)
            for number in numbers:
                await broadcaster._send_board(number, competition.slug)
            return queue.qsize()

    assert asyncio.run(listen()) == 0


def test_an_event_stream_carries_no_figures() -> None:
    from tiltyard.service.web.streams import Message  # noqa: PLC0415

    sent = Message(7, "board:x", "changed").encode()
    assert sent == b'id: 7\nevent: change\ndata: {"kind":"changed"}\n\n'


def test_keys_are_secret_until_they_are_published() -> None:
    from tiltyard.service.web.api import competition_view  # noqa: PLC0415

    competition = make_competition(f"v{next(_names)}")
    shown = msgspec.json.encode(competition_view(competition)).decode()
    assert competition.board_commitment in shown
    assert competition.board_key not in shown
    assert competition.final_key not in shown
    competition.keys_published_at = competition.made_at
    assert competition.board_key in msgspec.json.encode(competition_view(competition)).decode()
