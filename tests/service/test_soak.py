"""Random disasters while submissions are sent and played: nothing stuck, lost or scored twice.

`make test` plays a few submissions through every disaster. `make soak` plays `TILTYARD_SOAK` short
ones, 200 by default, and those of the season with the real ruleset.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from disasters import Stage, Storm
from small_servers import ATTACK, ROOT, TINY_RULES, Cluster, make_competition, make_team, wait_until
from tiltyard.service.client import Client, ServerError

SUBMISSIONS = int(os.environ.get("TILTYARD_SOAK", "200"))
SECONDS_EACH = 60.0
PATIENCE_SECONDS = 180.0
DESIGN = 'extends = "design"\n'
T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """Ask the database until it answers."""
    from django.db import DatabaseError, connections  # noqa: PLC0415 - after Django is ready

    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except DatabaseError:
            connections.close_all()
            assert time.monotonic() < limit, "the database is away"
            time.sleep(0.5)


def deliver(client: Client, slug: str, name: str, content: bytes) -> str:
    """Submit as `tiltyard submit` does, until the server says that it has accepted."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return client.submit(slug, name, content).submission.id
        except ServerError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.5)


def judged(competition: Any, organizer: Any, seconds: float) -> None:
    """Wait until nothing is open. What the server broke, an organizer retries."""
    from tiltyard.service.actions.judgings import retry  # noqa: PLC0415
    from tiltyard.service.models import Judging  # noqa: PLC0415

    rows = Judging.objects.filter(competition=competition)

    def is_over() -> bool:
        for broken in rows.filter(state="broken"):
            retry(broken, organizer)
        return not rows.filter(state__in=("queued", "running")).exists()

    wait_until(lambda: patiently(is_over), seconds)


def digest_of(path: Path, rules: str, key: Any, store: Path) -> str:
    """Return the digest that `tiltyard evaluate` prints."""
    from tiltyard.rulesets.ruleset import read_ruleset  # noqa: PLC0415
    from tiltyard.runs.evaluate import evaluate  # noqa: PLC0415
    from tiltyard.runs.job import Worlds  # noqa: PLC0415
    from tiltyard.runs.request import Request  # noqa: PLC0415
    from tiltyard.runs.store import Store  # noqa: PLC0415

    request = Request(str(path), read_ruleset(rules))
    return evaluate(request, Store(store), worlds=Worlds(key=key)).report.digest


def check(competition: Any, accepted: list[str], left: int) -> set[str]:
    """Check that each accepted submission has one score. Return the digests of the results."""
    from tiltyard.service.actions.quota import quota_of  # noqa: PLC0415

    assert len({*accepted}) == len(accepted)
    assert {str(one.pk) for one in competition.submissions.all()} == {*accepted}
    for submission in competition.submissions.all():
        (judging,) = submission.judgings.all()
        assert judging.state == "scored", judging.why
        kinds = [*judging.events.values_list("kind", flat=True)]
        assert kinds.count("judging.scored") == 1
        assert judging.final_score is not None
    (team,) = competition.teams.all()
    assert quota_of(team).left == left, "a failure of ours took quota"
    return {*competition.judgings.values_list("results", flat=True)}


def weather(url: str, cluster: Cluster, root: Path, count: int, pause: tuple[float, float]) -> None:
    """Send and play short submissions while everything happens."""
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415
    from tiltyard.service.terms import key_of  # noqa: PLC0415

    competition = make_competition("soak", quota=count + 3)
    team = make_team(competition, "Steadfast")
    account = team.memberships.get().account
    token = make_token(account, "soak").secret
    stage = Stage(url, cluster, root)
    storm = Storm(stage, pause)
    client = Client(f"http://127.0.0.1:{stage.port}", token)
    try:
        storm.start()
        accepted = [
            deliver(client, "soak", "attack.py", ATTACK.format(word=f"soak {number}").encode())
            for number in range(count)
        ]
        storm.wait_for_all(600)
        storm.end()
        judged(competition, account, count * SECONDS_EACH)
    finally:
        storm.end()
        stage.end()
    found = check(competition, accepted, left=3)
    path = root / "attack.py"
    path.write_text(ATTACK.format(word="soak 0"), encoding="utf-8")
    # Every attack finds the same, so every result has the digest of the first.
    assert found == {digest_of(path, TINY_RULES, key_of(competition, "board"), root / "store")}


@pytest.mark.timeout(1_200)
def test_every_disaster_once_costs_no_submission_its_score(
    postgresql: str, cluster: Cluster, tmp_path: Path
) -> None:
    weather(postgresql, cluster, tmp_path, 6, (0.5, 2.0))


@pytest.mark.soak
@pytest.mark.timeout(6 * 3_600)
def test_disasters_cost_no_submission_its_score(
    postgresql: str, cluster: Cluster, tmp_path: Path
) -> None:
    from tiltyard.service.models import Competition  # noqa: PLC0415

    Competition.objects.filter(slug="soak").update(slug="short-soak")
    weather(postgresql, cluster, tmp_path, SUBMISSIONS, (5.0, 30.0))


@pytest.mark.soak
@pytest.mark.timeout(6 * 3_600)
def test_disasters_cost_no_real_submission_its_score(
    postgresql: str, cluster: Cluster, tmp_path: Path
) -> None:
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415
    from tiltyard.service.models import Competition  # noqa: PLC0415
    from tiltyard.service.terms import set_ruleset  # noqa: PLC0415
    from tiltyard.submissions import open_submission  # noqa: PLC0415
    from tiltyard.submissions.packing import pack  # noqa: PLC0415

    Competition.objects.filter(slug="real").update(slug="earlier-real")
    paths = sorted((ROOT / "docs/season/submissions").iterdir())
    paths += sorted((ROOT / "examples").glob("*/"))[:4]
    packed = {
        found.digest: (path, pack(found))
        for path in paths
        for found in [open_submission(path, tmp_path / "opened" / path.parent.name / path.name)]
    }
    assert len(packed) >= 10
    competition = make_competition("real", quota=len(packed), board_key="", board_commitment="")
    set_ruleset(competition, DESIGN)
    competition.save()
    team = make_team(competition, "Real")
    account = team.memberships.get().account
    stage = Stage(postgresql, cluster, tmp_path)
    storm = Storm(stage, (30.0, 120.0))
    client = Client(f"http://127.0.0.1:{stage.port}", make_token(account, "real").secret)
    try:
        storm.start()
        accepted = [
            deliver(client, "real", "submission.zip", content) for _, content in packed.values()
        ]
        judged(competition, account, 4 * 3_600)
    finally:
        storm.end()
        stage.end()
    check(competition, accepted, left=0)
    for judging in competition.judgings.select_related("submission"):
        path, _ = packed[judging.submission.digest]
        assert judging.results == digest_of(path, DESIGN, None, tmp_path / "store")
