"""Pages for everybody: boards, teams, rules, news, monitor and keys."""

import csv
import io
import json
import re
import zipfile
from hashlib import sha256
from itertools import count
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from small_pages import browser, captain_of, enter, organizer, score, text
from small_servers import make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names = count()


@pytest.fixture
def competition() -> Any:
    return make_competition(f"p{next(_names)}", quota=99)


@pytest.fixture
def anyone() -> Any:
    return browser()


def both(competition: Any, name: str, offense: float, defense: float, **figures: Any) -> Any:
    parts = {"offense": offense, "raw": offense, "defense": defense, "breaches": 1.0}
    return enter(competition, name, offense + defense, **{**parts, **figures})


def listed(client: Any, path: str) -> list[tuple[int, str]]:
    """Return rank and team of the rows of a board's page."""
    rows = re.findall(
        r'<tr id="team-\d+".*?data-value="(\d+)">.*?data-value="([^"]*)"',
        text(client, path),
        re.DOTALL,
    )
    return [(int(rank), name) for rank, name in rows]


def test_each_track_has_a_board_with_ranks_of_its_own(competition: Any, anyone: Any) -> None:
    both(competition, "A", 100.0, 900.0)
    both(competition, "B", 500.0, 100.0)
    both(competition, "B", 50.0, 200.0)
    both(competition, "C", 500.0, 0.0)
    enter(competition, "D", 700.0)
    place = f"/c/{competition.slug}"
    assert listed(anyone, f"{place}/boards/offense") == [(1, "D"), (2, "B"), (2, "C"), (4, "A")]
    assert listed(anyone, f"{place}/boards/defense") == [(1, "A"), (2, "B"), (3, "C")]
    data = json.loads(text(anyone, f"{place}/boards/defense/board.json"))
    assert (data["track"], [row["defense"] for row in data["rows"]]) == ("defense", [900, 200, 0])
    api = f"/api/v1/competitions/{competition.slug}/board"
    assert json.loads(text(anyone, f"{api}?track=defense")) == data
    assert anyone.get(f"{api}?track=x").status_code == 422
    assert anyone.get(f"{place}/boards/nonsense").status_code == 404


def test_the_final_has_a_board_once_it_is_published(competition: Any, anyone: Any) -> None:
    from tiltyard.service.actions.judgings import queue_judging  # noqa: PLC0415

    judging = enter(competition, "A", 5.0)
    score(queue_judging(judging.submission, "final", "final"), 8.0)
    place = f"/c/{competition.slug}"
    for path in ("/boards/final", "/boards/final/board.json", "/boards/final-offense/board.csv"):
        assert anyone.get(f"{place}{path}").status_code == 404
    assert "boards/final" not in text(anyone, place)
    assert browser(organizer()).get(f"{place}/live/final").status_code == 200
    competition.final_published_at = competition.made_at
    competition.save()
    assert listed(anyone, f"{place}/boards/final") == [(1, "A")]
    assert f'href="{place}/boards/final"' in text(anyone, place)


def test_a_board_is_searched_and_sorted_without_a_script(competition: Any, anyone: Any) -> None:
    both(competition, "Alpha", 10.0, 90.0, breaches=3.0)
    both(competition, "beta", 20.0, 70.0, breaches=1.0)
    both(competition, "Alphabet", 30.0, 50.0, breaches=2.0)
    enter(competition, "Gamma", 1.0)
    place = f"/c/{competition.slug}"
    assert listed(anyone, f"{place}?q=ALPHA") == [(1, "Alpha"), (3, "Alphabet")]
    names = [name for _, name in listed(anyone, f"{place}?sort=breaches")]
    assert names == ["beta", "Alphabet", "Alpha", "Gamma"]
    names = [name for _, name in listed(anyone, f"{place}?sort=-breaches")]
    assert names == ["Alpha", "Alphabet", "beta", "Gamma"], "a missing figure comes last"
    assert next(name for _, name in listed(anyone, f"{place}?sort=-team")) == "Gamma"
    assert len(listed(anyone, f"{place}?sort=password")) == 4
    assert "Show all teams" in text(anyone, f"{place}?q=nobody")
    hostile = text(anyone, f"{place}?q=%22%3E%3Cscript%3E&sort=%22%3E%3Cscript%3E")
    assert "<script>" not in hostile


def test_every_row_has_an_anchor_a_team_page_and_an_interval(competition: Any, anyone: Any) -> None:
    judging = both(competition, "A", 0.0, 20.0, low=0.0, high=30.0)
    both(competition, "B", 0.0, 10.0)
    number = judging.submission.team_id
    shown = text(anyone, f"/c/{competition.slug}")
    assert f'id="team-{number}"' in shown
    assert f'href="#team-{number}"' in shown
    assert "0–30" in shown
    page = text(anyone, f"/c/{competition.slug}/t/{number}")
    assert f'href="/c/{competition.slug}/boards/defense#team-{number}"' in page
    table = text(anyone, f"/c/{competition.slug}/board.csv")
    row = next(csv.DictReader(io.StringIO(table)))
    assert (row["team"], row["low"], row["high"], row["team_id"]) == (
        "A",
        "0.0",
        "30.0",
        f"{number}",
    )


def test_a_team_page_has_its_places_and_nothing_of_its_submissions(
    competition: Any, anyone: Any
) -> None:
    both(competition, "A", 5.0, 5.0)
    judging = both(competition, "B", 1.0, 7.0)
    team = judging.submission.team
    address = f"/c/{competition.slug}/t/{team.pk}"
    shown = text(anyone, address)
    ranks = re.findall(r'data-label="rank">(\d)</td>', shown)
    assert ranks == ["2", "2", "1"], "overall, offense and defense"
    assert str(judging.submission_id) not in shown
    assert str(judging.submission_id) in text(browser(organizer()), address)
    assert "your team's own page" in text(browser(captain_of(team)), address)
    assert anyone.get(f"/c/{competition.slug}/t/999999").status_code == 404
    elsewhere = make_team(make_competition(f"p{next(_names)}"), "Elsewhere")
    assert anyone.get(f"/c/{competition.slug}/t/{elsewhere.pk}").status_code == 404
    competition.visibility = "members"
    competition.save()
    assert anyone.get(address).status_code == 404
    assert browser(captain_of(team)).get(address).status_code == 200


HOSTILE = """
# Title

<script>window.owned = 1</script> <img src=x onerror=window.owned=1>

[one](javascript:window.owned=1) [two](data:text/html,x) [three](https://example.org/)
![four](https://example.org/x.png) <https://example.org/auto> [five]( jAvAsCrIpT:x)

| a | b |
|---|---|
| <b>1</b> | 2 |
"""


def test_rules_and_news_are_markdown_without_markup_of_their_own(
    competition: Any, anyone: Any
) -> None:
    from tiltyard.service.models import Announcement  # noqa: PLC0415

    competition.rules = HOSTILE
    competition.save()
    Announcement.objects.create(
        competition=competition, title="<i>News</i>", text=HOSTILE, made_by=organizer()
    )
    for path in ("rules", "news"):
        shown = text(anyone, f"/c/{competition.slug}/{path}").partition("<main")[2]
        assert "<h2>Title</h2>" in shown, path
        assert 'href="https://example.org/"' in shown
        assert "<td>&lt;b&gt;1&lt;/b&gt;</td>" in shown
        for banned in ("<script", "<img", "<b>", "<i>"):
            assert banned not in shown, (path, banned)
        assert not re.search(r'href="\s*(javascript|data):', shown, re.IGNORECASE)
    feed = ET.fromstring(text(anyone, f"/c/{competition.slug}/news.atom"))  # noqa: S314
    space = "{http://www.w3.org/2005/Atom}"
    entry = feed.find(f"{space}entry")
    assert entry is not None
    assert entry.findtext(f"{space}title") == "<i>News</i>"
    assert "<script" not in (entry.findtext(f"{space}summary") or "")
    assert "&lt;i&gt;News" in text(anyone, f"/c/{competition.slug}"), "the board has the last one"


def test_the_monitor_draws_the_public_board(competition: Any, anyone: Any) -> None:
    empty = text(anyone, f"/c/{competition.slug}/monitor")
    assert "before the first score" in empty
    both(competition, "A</script><b>", 400.0, 300.0)
    both(competition, "B", 100.0, 800.0)
    shown = text(anyone, f"/c/{competition.slug}/monitor")
    assert "Median offense" in shown
    plots = re.findall(r'<script type="application/json">(.*?)</script>', shown)
    assert len(plots) == 4, "two histograms, the runs, and the success of strategies"
    names = {row.get("name") for plot in plots for row in json.loads(plot)["values"]}
    assert {"A</script><b>", "B"} <= names


def test_keys_are_committed_to_and_shown_once_published(competition: Any, anyone: Any) -> None:
    address = f"/c/{competition.slug}/keys"
    hidden = text(anyone, address)
    assert competition.board_commitment in hidden
    assert competition.final_commitment in hidden
    assert competition.board_key not in hidden
    competition.keys_published_at = competition.made_at
    competition.save()
    shown = text(anyone, address)
    assert competition.final_key in shown
    # The recipe on the page: printf 'tiltyard key %s' KEY | sha256sum
    assert (
        "printf &#39;tiltyard key %s&#39; KEY | sha256sum" in shown or "printf 'tiltyard" in shown
    )
    recipe = sha256(f"tiltyard key {competition.board_key}".encode()).hexdigest()
    assert recipe == competition.board_commitment


def test_the_starter_is_a_submission_that_the_server_accepts(anyone: Any) -> None:
    from tiltyard.service.actions.submit import check_upload  # noqa: PLC0415

    content = anyone.get("/starter.zip").content
    assert zipfile.ZipFile(io.BytesIO(content)).namelist() == ["attack.py", "guardrail.py"]
    assert check_upload("starter.zip", content).tracks == ("offense", "defense")


def test_every_empty_page_says_what_to_do_next(competition: Any, anyone: Any) -> None:
    client = browser(captain_of(make_team(competition, "New")))
    place = f"/c/{competition.slug}"
    for path, words in {
        place: "Be the first:",
        f"{place}/monitor": "Submit something",
        f"{place}/news": "subscribe to the feed",
        f"{place}/rules": "Download the starter",
        f"{place}/team": "Download the starter",
        f"{place}/compare": "You need two scored submissions",
        f"{place}/submit": "Download the starter",
        "/me": "Download the starter",
    }.items():
        assert words in text(client, path), path
    assert "You have no token" in text(client, "/me")
    newcomer = browser(captain_of(make_team(make_competition(f"p{next(_names)}"), "Other")))
    assert "Name of your team" in text(newcomer, f"{place}/team")
    assert anyone.get("/").status_code == 200


def test_the_board_names_clones(competition: Any, anyone: Any) -> None:
    source = "class AttackAlgorithm:\n    def run(self, env, config):\n        return []\n"
    for name in ("A", "B"):
        score(send(make_team(competition, name), source).judgings.get(), 3.0)
    assert "same bytes as B" in text(anyone, f"/c/{competition.slug}")
