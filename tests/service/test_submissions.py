"""Pages of a submission: live state, choice of finals, history, comparison and replays."""

import json
import re
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from msgspec import structs

from small_pages import browser, captain_of, enter, give_report, organizer, real_report, score, text
from small_servers import ATTACK, make_competition, make_team, send
from tiltyard.reporting.restriction import restricted

pytestmark = pytest.mark.usefixtures("sqlite")
_names = count()


@pytest.fixture
def competition() -> Any:
    return make_competition(f"s{next(_names)}", quota=9, finals=2)


def sent(competition: Any, name: str) -> Any:
    team = competition.teams.filter(name=name).first() or make_team(competition, name)
    return send(team, ATTACK.format(word=f"submission {next(_names)}"))


def ranks(competition: Any) -> list[tuple[str, float | None, int]]:
    from tiltyard.service.visible import Viewer, board_view  # noqa: PLC0415

    rows = board_view(competition, Viewer(organizes=True), "final").rows
    return [(row.team, row.final, row.runs) for row in rows]


def test_the_page_says_where_a_submission_stands(competition: Any) -> None:
    from django.utils.timezone import now  # noqa: PLC0415

    from tiltyard.service.models import Judging, Worker  # noqa: PLC0415

    first, second = sent(competition, "A"), sent(competition, "A")
    client = browser(captain_of(first.team))
    Judging.objects.exclude(competition=competition).update(state="cancelled", final_score=None)
    assert "Next in the queue." in text(client, f"/s/{first.pk}")
    assert "1 before it in the queue." in text(client, f"/s/{second.pk}?fragment")
    assert "7 of 9 submissions left today." in text(client, f"/s/{second.pk}")
    worker = Worker.objects.create(name="<b>forge</b>", engine="1", level="A")
    Worker.objects.filter(pk=worker.pk).update(heartbeat_at=now() - timedelta(seconds=8))
    Judging.objects.filter(submission=first).update(
        state="running", worker=worker, progress="defense, world 2 of 3", fence=2
    )
    shown = text(client, f"/s/{first.pk}?fragment")
    assert "&lt;b&gt;forge&lt;/b&gt;" in shown
    assert "defense, world 2 of 3" in shown
    assert re.search(r"<dd>(8|9|10) s ago</dd>", shown)
    assert "Start 2: an earlier worker was lost." in shown
    assert "Cancel this submission" not in shown


def test_a_full_quota_says_when_the_next_submission_is_free(competition: Any) -> None:
    competition.quota = 1
    competition.save()
    submission = sent(competition, "A")
    client = browser(captain_of(submission.team))
    free = f"{submission.at + timedelta(hours=24):%Y-%m-%d %H:%M} UTC"
    for path in (f"/s/{submission.pk}", f"/c/{competition.slug}/team", "/me"):
        assert f"The next one is free at {free}." in text(client, path), path
    assert client.post(f"/s/{submission.pk}/cancel").status_code == 302
    assert "1 of 1 submissions left today." in text(client, f"/s/{submission.pk}")


def test_a_team_chooses_at_most_so_many_finals_until_the_final_starts(competition: Any) -> None:
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415

    made = [enter(competition, "A", final).submission for final in (1.0, 2.0, 3.0)]
    client = browser(captain_of(made[0].team))
    for one, status in zip(made, (302, 302, 409), strict=True):
        assert client.post(f"/s/{one.pk}/final").status_code == status
    assert client.post(f"/s/{made[0].pk}/final", {"chosen": "no"}).status_code == 302
    assert client.post(f"/s/{made[2].pk}/final").status_code == 302
    chosen = competition.submissions.filter(final=True)
    assert {*chosen} == {made[1], made[2]}
    stranger = browser(captain_of(make_team(competition, "B")))
    assert stranger.post(f"/s/{made[0].pk}/final").status_code == 404
    assert browser(organizer()).post(f"/s/{made[0].pk}/final").status_code == 403
    queue_judging(made[1], "final", "final")
    refused = client.post(f"/s/{made[1].pk}/final", {"chosen": "no"})
    assert (refused.status_code, "has started" in refused.content.decode()) == (409, True)


def test_the_chosen_submissions_count_in_the_final_else_the_best_ones(competition: Any) -> None:
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415
    from tiltyard.service.finals import finalists  # noqa: PLC0415
    from tiltyard.service.models import Submission  # noqa: PLC0415

    # The submission that is best in the final is neither chosen nor among the two best ones.
    board = {"A": (10.0, 20.0, 30.0), "B": (10.0, 20.0, 30.0)}
    final = {10.0: 99.0, 20.0: 5.0, 30.0: 7.0}
    made = {
        (name, one): enter(competition, name, one).submission
        for name, finals in board.items()
        for one in finals
    }
    Submission.objects.filter(pk=made["A", 20.0].pk).update(final=True)
    assert {*finalists(competition)} == {
        made["A", 20.0].pk,
        made["B", 20.0].pk,
        made["B", 30.0].pk,
    }
    assert finalists(competition, queued=True) == []
    for (_, one), submission in made.items():
        score(queue_judging(submission, "final", "final"), final[one])
    assert ranks(competition) == [("B", 7.0, 2), ("A", 5.0, 1)]


def test_a_later_rejudging_does_not_change_who_played_the_final(competition: Any) -> None:
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415
    from tiltyard.service.finals import finalists  # noqa: PLC0415
    from tiltyard.service.models import Submission  # noqa: PLC0415

    competition.finals = 1
    competition.save()
    low, high = enter(competition, "A", 1.0), enter(competition, "A", 2.0)
    assert finalists(competition) == [high.submission_id]
    score(queue_judging(high.submission, "final", "final"), 50.0)
    score(low, 3.0)
    assert finalists(competition) == [low.submission_id]
    assert ranks(competition) == [("A", 50.0, 1)]
    Submission.objects.filter(pk=low.submission_id).update(disqualified="Copied.")
    assert finalists(competition) == [high.submission_id]


def test_the_history_of_a_team_is_a_plot_of_its_own_scores(competition: Any) -> None:
    from tiltyard.service.models import Submission  # noqa: PLC0415

    made = [enter(competition, "A", final) for final in (5.0, 9.0, 7.0)]
    sent(competition, "A")
    name = "</script><b>"
    Submission.objects.filter(pk=made[1].submission_id).update(name=name)
    shown = text(browser(captain_of(made[0].submission.team)), f"/c/{competition.slug}/team")
    found = re.search(r'<script type="application/json">(.*?)</script>', shown)
    assert found is not None
    rows = json.loads(found[1])["values"]
    assert [(row["submission"], row["final"], row["best so far"]) for row in rows] == [
        (1, 5, 5),
        (2, 9, 9),
        (3, 7, 9),
    ]
    assert rows[1]["name"] == name
    other = make_team(competition, "B")
    assert "application/json" not in text(browser(captain_of(other)), f"/c/{competition.slug}/team")


def test_two_runs_are_compared_as_far_as_the_viewer_may_see_them(competition: Any) -> None:
    after = real_report()
    fewer = structs.replace(after.offense, found=after.offense.found[1:], score=1.25)
    before = structs.replace(after, offense=fewer, run_id="0" * 16)
    first = give_report(sent(competition, "A").judgings.get(), before)
    second = give_report(sent(competition, "A").judgings.get(), after)
    address = f"/c/{competition.slug}/compare?before={first.pk}&after={second.pk}"
    client = browser(captain_of(first.submission.team))
    shown = text(client, address)
    row = re.search(r"offense score</th>.*?(\d[\d,.]*)</td>.*?(\d[\d,.]*)</td>", shown)
    assert row is not None
    assert [float(one.replace(",", "")) for one in row.groups()] == [
        pytest.approx(first.offense, abs=0.01),
        pytest.approx(second.offense, abs=0.01),
    ]
    assert "Findings gained: 1" in shown
    assert f"/j/{second.pk}/report#{after.offense.found[0].id}" in shown
    stranger = browser(captain_of(make_team(competition, "B")))
    assert stranger.get(address).status_code == 404
    for wrong in ("", "x", "9" * 30, "-1"):
        bad = f"/c/{competition.slug}/compare?before={wrong}&after={second.pk}"
        assert client.get(bad).status_code == 404, wrong
    assert browser(organizer()).get(address).status_code == 200


def test_only_a_judging_on_the_public_seed_has_replays(competition: Any) -> None:
    open_one = give_report(sent(competition, "A").judgings.get(), real_report())
    hidden = give_report(sent(competition, "A").judgings.get(), restricted(real_report()))
    client = browser(captain_of(open_one.submission.team))

    def findings(judging: Any) -> int:
        page = text(client, f"/j/{judging.pk}/report")
        found = re.search(r'id="contents">(.*?)</script>', page)
        assert found is not None
        return str(json.loads(found[1])).count("'chain'")

    assert findings(open_one) > 0
    assert findings(hidden) == 0
    assert "the report has scores and counts only" in text(client, f"/s/{hidden.submission_id}")
    competition.board_key = ""
    competition.save()
    type(open_one).objects.filter(pk=open_one.pk).update(key="")
    assert "Report with replays" in text(client, f"/s/{open_one.submission_id}")
