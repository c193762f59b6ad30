"""What organizers do: competitions, rejudgings, the final, ranks that are taken, clones."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from small_servers import ATTACK, TINY_RULES, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(10_000))
OTHER_RULES = TINY_RULES.replace("steps = 600", "steps = 500")
LONG = """
class AttackAlgorithm:
    def run(self, env, config):
        {found} = []
        for number in range(10):
            {found}.append(["read the file number " + str(number)])
            if number % 3 == 0:
                {found}.append(["and then", "delete it, " + str(number * 2)])
        return {found} + [["run `rm -rf /`"]]
"""


@pytest.fixture
def organizer() -> Any:
    return make_account(f"organizer{next(_names)}", is_staff=True)


@pytest.fixture
def client(organizer: Any) -> Any:
    from django.test import Client  # noqa: PLC0415 - after Django is ready

    made = Client(headers={"host": "127.0.0.1"})
    made.force_login(organizer, "django.contrib.auth.backends.ModelBackend")
    return made


@pytest.fixture
def competition() -> Any:
    return make_competition(f"o{next(_names)}", quota=9)


def score(judging: Any, final: float, results: str = "") -> Any:
    """Give a judging a result, as a worker does."""
    from django.utils import timezone  # noqa: PLC0415

    judging.state, judging.final_score, judging.offense = "scored", final, final
    judging.raw, judging.results = final, results or f"{final:064.0f}"
    judging.finished_at = timezone.now()
    judging.save()
    return judging


def enter(competition: Any, name: str, final: float | None = None) -> Any:
    submission = send(make_team(competition, name), ATTACK.format(word=f"word {next(_names)}"))
    if final is not None:
        score(submission.judgings.get(), final)
    return submission


def board(competition: Any) -> dict[str, Any]:
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    competition.refresh_from_db()
    return {row.team: row.final for row in board_view(competition, EVERYBODY).rows}


def form(**values: Any) -> dict[str, Any]:
    first = {
        "title": "Spring",
        "slug": f"spring{next(_names)}",
        "ruleset_text": TINY_RULES,
        "budget": "official",
        "quota": 5,
        "finals": 2,
        "visibility": "everybody",
        "board_key": "new",
        "final_key": "new",
    }
    return first | values


def test_the_first_pages_lead_to_a_running_competition(client: Any, organizer: Any) -> None:
    from tiltyard.service.models import AuditEntry, Competition  # noqa: PLC0415

    page = client.get("/organize").content.decode()
    assert "From here to a running competition" in page
    # Every value that the page offers is good; a title and an address are missing.
    offered = client.get("/organize/new")
    assert 'value="new"' in offered.content.decode()
    assert "<code>new</code> draws a key" in offered.content.decode()
    values = form()
    made = client.post("/organize/new", values)
    assert (made.status_code, made["location"]) == (302, f"/organize/c/{values['slug']}")
    found = Competition.objects.get(slug=values["slug"])
    assert len(found.board_key) == len(found.final_key) == 64
    assert found.board_key != found.final_key
    shown = client.get(made["location"]).content.decode()
    assert found.board_commitment in shown
    assert found.board_key not in shown
    assert "Nobody has submitted yet" in shown
    entry = AuditEntry.objects.get(action="competition.make", competition=found)
    assert entry.account == organizer
    assert found.board_key not in str(entry.data)
    assert client.post("/organize/new", values).status_code == 409


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ruleset_text": "steps = ["}, "the ruleset"),
        ({"ruleset_text": 'extends = "nothing"'}, "nothing"),
        ({"board_key": "abc"}, "64 hexadecimal digits"),
        ({"board_key": "a" * 64, "final_key": "a" * 64}, "different keys"),
        ({"opens_at": "2026-02-01T00:00", "closes_at": "2026-01-01T00:00"}, "after it opens"),
        ({"slug": "a/b"}, "valid"),
        ({"title": ""}, "required"),
    ],
)
def test_a_form_says_what_is_wrong(client: Any, changed: dict[str, str], words: str) -> None:
    answer = client.post("/organize/new", form(**changed))
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_what_scores_depend_on_stays_after_the_first_submission(
    client: Any, competition: Any
) -> None:
    page = f"/organize/c/{competition.slug}/edit"
    kept = form(slug=competition.slug, board_key="keep", final_key="keep")
    enter(competition, "A")
    key = competition.board_key
    assert (
        client.post(page, kept | {"quota": 7, "closes_at": "2030-01-01T12:00"}).status_code == 302
    )
    competition.refresh_from_db()
    assert (competition.quota, competition.board_key) == (7, key)
    assert f"{competition.closes_at:%Y-%m-%d %H:%M %Z}" == "2030-01-01 12:00 UTC"
    for change in ({"ruleset_text": OTHER_RULES}, {"budget": "quick"}, {"board_key": "new"}):
        refused = client.post(page, kept | change)
        assert refused.status_code == 409
        assert "cannot change after the first submission" in refused.content.decode()
    # Nobody has played the final yet.
    assert client.post(page, kept | {"final_key": "b" * 64}).status_code == 302
    competition.refresh_from_db()
    assert (competition.final_key, competition.board_key) == ("b" * 64, key)


def test_a_rejudging_is_compared_before_it_is_published(client: Any, competition: Any) -> None:
    first, second = enter(competition, "A", 5.0), enter(competition, "B", 3.0)
    waiting = enter(competition, "C")
    place = f"/organize/c/{competition.slug}/rejudgings"
    same = client.post(place, {"ruleset_text": competition.ruleset_text, "budget": "official"})
    assert same.status_code == 409
    assert "The same terms give the same scores" in same.content.decode()
    one = client.post(place, {"ruleset_text": OTHER_RULES, "budget": "official"})["location"]
    assert client.post(place, {"ruleset_text": OTHER_RULES}).status_code == 409, "one at a time"
    client.post(f"{one}/add", {"submission": [first.pk]})
    again = score(first.judgings.get(reason="rejudged"), 1.0)
    assert again.ruleset_digest != competition.ruleset_digest
    page = client.get(one).content.decode()
    assert "-4.00" in page
    assert client.post(f"{one}/publish").status_code == 409, "the submission of B is missing"
    assert board(competition) == {"A": 5.0, "B": 3.0}
    client.post(f"{one}/add", {"all": "1"})
    same_result = score(second.judgings.get(reason="rejudged"), 3.0)
    assert second.judgings.get(reason="submitted").results == same_result.results
    page = client.get(one).content.decode()
    assert "<h2>Changed ranks</h2>" in page
    assert "the same" in page
    assert client.post(f"{one}/publish").status_code == 302
    assert board(competition) == {"A": 1.0, "B": 3.0}
    # What waited is played under the new terms, and nothing old was overwritten.
    states = {*waiting.judgings.values_list("ruleset_digest", "state")}
    assert (competition.ruleset_digest, "queued") in states
    assert first.judgings.get(reason="submitted").final_score == 5.0
    assert client.post(f"{one}/drop").status_code == 409


def test_a_dropped_rejudging_leaves_everything_as_it_was(client: Any, competition: Any) -> None:
    from tiltyard.service.actions.quota import quota_of  # noqa: PLC0415

    first = enter(competition, "A", 5.0)
    place = f"/organize/c/{competition.slug}/rejudgings"
    terms = {"ruleset_text": OTHER_RULES, "budget": "official"}
    one = client.post(place, terms)["location"]
    client.post(f"{one}/add", {"all": "1"})
    assert client.post(f"{one}/drop").status_code == 302
    assert first.judgings.get(reason="rejudged").state == "cancelled"
    assert board(competition) == {"A": 5.0}
    assert quota_of(first.team).left == 8
    # A later rejudging under the same terms takes it up again.
    again = client.post(place, terms)["location"]
    client.post(f"{again}/add", {"all": "1"})
    assert first.judgings.get(reason="rejudged").state == "queued"


def test_a_frozen_board_is_not_rejudged_in_public(client: Any, competition: Any) -> None:
    first = enter(competition, "A", 5.0)
    competition.freeze_at = first.at + timedelta(microseconds=1)
    competition.save()
    place = f"/organize/c/{competition.slug}/rejudgings"
    one = client.post(place, {"ruleset_text": OTHER_RULES, "budget": "official"})["location"]
    client.post(f"{one}/add", {"all": "1"})
    score(first.judgings.get(reason="rejudged"), 9.0)
    refused = client.post(f"{one}/publish")
    assert refused.status_code == 409
    assert "The board is frozen" in refused.content.decode()


def test_a_worker_plays_a_rejudging_under_its_own_ruleset(competition: Any, organizer: Any) -> None:
    from tiltyard.service.actions.rejudging import begin_rejudging, rejudge  # noqa: PLC0415
    from tiltyard.service.engine.worker import _brief  # noqa: PLC0415

    first = enter(competition, "A", 5.0)
    rejudging = begin_rejudging(competition, organizer, ruleset_text=OTHER_RULES)
    rejudge(rejudging, [first], organizer)
    assert _brief(first.judgings.get(reason="rejudged").pk).ruleset == OTHER_RULES
    assert _brief(first.judgings.get(reason="submitted").pk).ruleset == TINY_RULES


def test_the_final_plays_what_teams_chose_and_else_their_best(
    client: Any, competition: Any
) -> None:
    from tiltyard.service.models import Competition, Submission  # noqa: PLC0415
    from tiltyard.service.visible import EVERYBODY, board_view  # noqa: PLC0415

    page = f"/organize/c/{competition.slug}"
    low, high = enter(competition, "A", 2.0), None
    high = score(send(low.team, ATTACK.format(word="better")).judgings.get(), 8.0).submission
    chosen = enter(competition, "B", 1.0)
    Submission.objects.filter(pk=chosen.pk).update(final=True)
    score(send(chosen.team, ATTACK.format(word="not chosen")).judgings.get(), 7.0)
    out = enter(competition, "C", 9.0)
    client.post(f"/organize/teams/{out.team_id}/disqualify", {"reason": "two accounts"})
    Competition.objects.filter(pk=competition.pk).update(finals=1)
    assert client.post(f"{page}/final").status_code == 409, "it is not closed"
    Competition.objects.filter(pk=competition.pk).update(closes_at=low.at + timedelta(seconds=1))
    Competition.objects.filter(pk=competition.pk).update(closes_at=low.at)
    assert client.post(f"{page}/final").status_code == 302
    finals = competition.judgings.filter(phase="final")
    assert {one.submission_id for one in finals} == {high.pk, chosen.pk}
    assert {one.key for one in finals} == {competition.final_commitment[:16]}
    refused = client.post(f"{page}/final/publish")
    assert refused.status_code == 409
    assert "2 judgings of it have no result" in refused.content.decode()
    for one in finals:
        score(one, 4.0 if one.submission_id == high.pk else 6.0)
    competition.refresh_from_db()
    assert board_view(competition, EVERYBODY, "final").rows == ()
    assert client.post(f"{page}/final/publish").status_code == 302
    competition.refresh_from_db()
    rows = board_view(competition, EVERYBODY, "final").rows
    assert [(row.team, row.final) for row in rows] == [("B", 6.0), ("A", 4.0)]
    assert competition.keys_published_at is not None
    assert client.post(f"{page}/final/publish").status_code == 409


def test_a_disqualified_submission_loses_its_rank_and_gets_it_back(
    client: Any, competition: Any, organizer: Any
) -> None:
    from tiltyard.service.models import AuditEntry  # noqa: PLC0415

    first = enter(competition, "A", 5.0)
    place = f"/organize/s/{first.pk}/disqualify"
    client.post(place, {"reason": "<i>copied</i>"})
    assert board(competition) == {}
    page = client.get(f"/c/{competition.slug}").content.decode()
    assert "&lt;i&gt;copied" in page
    client.post(place, {"reason": ""})
    assert board(competition) == {"A": 5.0}
    told = AuditEntry.objects.filter(action="submission.disqualify", competition=competition)
    assert [(one.account, one.data["reason"]) for one in told.order_by("pk")] == [
        (organizer, "<i>copied</i>"),
        (organizer, ""),
    ]
    log = client.get(f"/organize/audit?action=submission.dis&competition={competition.slug}")
    assert "&lt;i&gt;copied" in log.content.decode() or "\\u003ci\\u003ecopied" in (
        log.content.decode()
    )


def test_clones_are_marked_across_teams_only(client: Any, competition: Any) -> None:
    one = make_team(competition, "Original")
    send(one, LONG.format(found="found"))
    send(one, LONG.format(found="mine"))
    send(make_team(competition, "Renamed"), LONG.format(found="results") + "\n# new\n")
    send(make_team(competition, "Copied"), LONG.format(found="found"))
    send(make_team(competition, "Honest"), ATTACK.format(word="other"))
    page = client.get(f"/organize/c/{competition.slug}/clones").content.decode()
    assert "Honest" not in page
    assert page.count("the same bytes") == 1
    assert page.count("similar code") >= 2
    assert page.count("100%") == 3


def test_the_queue_at_a_glance(client: Any, competition: Any) -> None:
    from tiltyard.service.actions.judgings import Claim, claim, give_back  # noqa: PLC0415
    from tiltyard.service.models import Judging, Worker  # noqa: PLC0415
    from tiltyard.service.overview import glance  # noqa: PLC0415

    judging = enter(competition, "A").judgings.get()
    before = {one for one, _ in glance().stranded}
    assert judging.engine in before, "no worker is there"
    worker = Worker.objects.create(name="<b>w</b>", engine=judging.engine, level="A")
    Worker.objects.filter(pk=worker.pk).update(heartbeat_at=worker.started_at)
    assert glance().stranded == ()
    for number in range(5):
        Judging.objects.filter(pk=judging.pk).update(job=f"job {number}")
        held = claim(judging.pk, f"job {number}", worker)
        assert isinstance(held, Claim)
        give_back(held, "[Errno 28] No space left on device" if number else "it is strange")
    seen = glance()
    assert dict(seen.failures)["disk full"] == 4
    assert dict(seen.failures)["other"] >= 1
    assert seen.broken >= 1
    (row,) = [one for one in seen.workers if one.name == worker.name]
    assert 0 <= row.heartbeat_seconds < 60
    page = client.get("/organize/queue").content.decode()
    assert "&lt;b&gt;w&lt;/b&gt;" in page
    assert "No space left on device" in page
    assert client.post(f"/organize/queue/{judging.pk}/retry").status_code == 302
    judging.refresh_from_db()
    assert (judging.state, judging.failures) == ("queued", 0)
    assert client.post(f"/organize/queue/{judging.pk}/retry").status_code == 409
    Worker.objects.filter(pk=worker.pk).update(ended_at=worker.started_at)


def test_an_organizer_lands_on_the_organizers_page(organizer: Any) -> None:
    from django.test import Client  # noqa: PLC0415

    organizer.set_password("correct horse battery")
    organizer.save()
    client = Client(headers={"host": "127.0.0.1"})
    values = {"username": organizer.username, "password": "correct horse battery", "next": "/me"}
    assert client.post("/login", values)["location"] == "/organize"
    values["next"] = "/c/x"
    assert client.post("/login", values)["location"] == "/c/x"


def test_a_search_goes_on_over_pages(
    client: Any, competition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiltyard.service.web import organizer as pages  # noqa: PLC0415

    monkeypatch.setattr(pages, "_PER_PAGE", 1)
    for name in ("Red & co", "Red & sons", "Blue"):
        enter(competition, name)
    place = f"/organize/c/{competition.slug}/submissions"
    page = client.get(f"{place}?q=Red+%26").content.decode()
    assert "page 1 of 2" in page
    assert 'href="?q=Red%20%26&amp;state=&amp;page=2"' in page
    second = client.get(f"{place}?q=Red+%26&state=&page=2").content.decode()
    assert "Red &amp; co" in second
    assert "Nothing fits" in client.get(f"{place}?q=Green").content.decode()
