"""How many tasks and live pairs there are. This looks at no guardrail."""

import pytest

from tiltyard.bridges.dojo.measure import play_suites
from tiltyard.bridges.dojo.suites import SUITES, Suite

LIVE_PAIRS = {"banking": 143, "travel": 118, "slack": 105, "workspace": 231}


def test_live_pairs_of_one_suite() -> None:
    games = play_suites([], Suite.load(["banking"]))
    assert len(games.alone) == 16
    assert len(games.pairs) == LIVE_PAIRS["banking"]


@pytest.mark.soak
def test_tasks_and_live_pairs_of_all_suites() -> None:
    games = play_suites([], Suite.load(SUITES))
    assert len(games.alone) == 97
    assert games.hijacks == 609
    assert {name: sum(one.suite == name for one in games.pairs) for name in SUITES} == LIVE_PAIRS
    # For two of them the only change is a mark: mails become read, a visit is logged.
    assert sum(one.effect for one in games.alone) == 61
