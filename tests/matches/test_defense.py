"""The defense match: the order and the secrets of its episodes."""

from typing import Any

import pytest

from small_runs import small_rules
from tiltyard import AllowAllGuardrail, DataFlowGuardrail
from tiltyard.benign import draw_suite
from tiltyard.judge.rotation import rotated
from tiltyard.matches import defense
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.world import files
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


def test_benign_trials_have_the_secrets_that_the_judge_would_draw() -> None:
    """With other secrets, a guardrail would know that it serves a user."""
    settings = MatchSettings(generate(123), small_rules(100)).in_new_words()
    suite = draw_suite(settings.scenario, "", settings.ruleset.defense)
    episodes = vars(defense)["_MixedEpisodes"](settings, AllowAllGuardrail, suite, (), 0)
    packaged = {c for each in settings.scenario.labels.protected for c in each.canaries}
    read = 0
    for trial in episodes.play_rest():
        place = settings.in_scenario(suite.scenario_of(trial.task))
        judge = place.make_judge(AllowAllGuardrail())
        world = rotated(place.scenario, "first", *judge.names, *trial.task.messages)
        for event in trial.trace.events:
            output = event.result.output
            assert not any(canary in output.string for canary in packaged)
            if event.call.tool == "fs.read" and any(o.protected for o in output.origins()):
                file = files.find(world.files, str(event.call.plain_args()["path"]))
                assert isinstance(file, files.File)
                read += file.content.string == output.string
    assert read > 0


def _noting(order: list[str], what: str, work: Any) -> Any:
    def noted(*args: Any, **options: Any) -> Any:
        order.append(what)
        return work(*args, **options)

    return noted
