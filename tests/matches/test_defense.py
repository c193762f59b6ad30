"""The defense match: the order of its episodes."""

from typing import Any

import pytest

from small_runs import small_rules
from tiltyard import DataFlowGuardrail
from tiltyard.benign import draw_suite
from tiltyard.matches import defense
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.world.generate import generate


def test_the_order_of_compared_and_benign_episodes_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest may know the time. In a drawn order, the time does not reveal the kind of episode."""
    orders = []
    for salt in ("one", "other", "one"):
        order: list[str] = []
        play, decided = (vars(defense)[name] for name in ("play", "is_decided_again"))
        monkeypatch.setattr(defense, "play", _noting(order, "task", play))
        monkeypatch.setattr(defense, "is_decided_again", _noting(order, "compared", decided))
        settings = MatchSettings(generate(123), small_rules(600), salt=salt)
        match = play_defense(settings, DataFlowGuardrail)
        monkeypatch.undo()
        assert match.inconsistent == 0
        suite = draw_suite(settings.in_new_words().scenario, "", small_rules().defense)
        assert tuple(trial.task for trial in match.trials) == suite.tasks
        orders.append((tuple(order), match.digest))
    assert orders[0] == orders[2]
    assert orders[0][0] != orders[1][0]
    assert orders[0][1] == orders[1][1]
    assert {"task", "compared"} <= set(orders[0][0])
    assert orders[0][0] != tuple(sorted(orders[0][0]))


def _noting(order: list[str], what: str, work: Any) -> Any:
    def noted(*args: Any, **options: Any) -> Any:
        order.append(what)
        return work(*args, **options)

    return noted
