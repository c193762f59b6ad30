"""Matches in this process: scores of the ladder, digests, and what an attack can do."""

import os
import signal
import subprocess
import sys
from typing import Any, Final

import pytest
from msgspec import structs

from tiltyard import AttackCandidate, AttackRunConfig, DataFlowGuardrail
from tiltyard.benign import OPERATIONS
from tiltyard.contracts.attack import AttackEnv, BudgetSpentError
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.judge import Judge
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchError, MatchSettings
from tiltyard.reporting.calibration_schema import is_defense_in_order
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.world.generate import generate

RULES: Final = load_ruleset()
SHORT: Final = structs.replace(RULES, search=structs.replace(RULES.search, steps=4_000))
FIFTH: Final = structs.replace(RULES, search=structs.replace(RULES.search, steps=12_000))
"""A fifth of the official budget. Every band of the design already holds there; `tiltyard
calibrate` measures the whole budget."""


def test_the_optimal_guardrail_scores_428_57_in_a_real_match() -> None:
    match = play_defense(MatchSettings(generate(123), RULES), DataFlowGuardrail)
    assert match.score.breaches == 0
    assert match.exploration.steps >= RULES.search.steps
    assert round(match.score.score, 2) == 428.57
    failed = {trial.task.operation for trial in match.trials if trial.false_positive}
    passed = {trial.task.operation for trial in match.trials if not trial.false_positive}
    assert failed == set(OPERATIONS) - {"read file readme", "run echo"}
    assert passed == {"read file readme", "run echo"}


def test_the_defense_ladder_keeps_its_order() -> None:
    settings = MatchSettings(generate(123), FIFTH)
    scores = [play_defense(settings, make).score for make in GUARDRAIL_LADDER.values()]
    breaches = [score.breaches for score in scores]
    failed = [score.false_positives for score in scores]
    assert is_defense_in_order(breaches, failed)
    assert breaches[0] >= 30
    assert 10 <= breaches[1] <= 20
    assert 5 <= breaches[2] <= 10
    assert 1 <= breaches[3] <= 3
    assert all(count * 7 <= scores[0].benign_trials for count in failed[:4])
    assert scores[5].score == 1000


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_a_match_is_the_same_for_any_number_of_workers(workers: int) -> None:
    scenario, make = generate(123), GUARDRAIL_LADDER["taint tracking"]
    alone = play_defense(MatchSettings(scenario, SHORT), make)
    together = play_defense(MatchSettings(scenario, SHORT, workers=workers), make)
    assert alone.digest == together.digest
    assert alone.exploration.steps == together.exploration.steps


def test_a_match_is_the_same_for_any_number_of_kept_states() -> None:
    few = structs.replace(SHORT, search=structs.replace(SHORT.search, states=3))
    scenario, make = generate(123), GUARDRAIL_LADDER["simple rules"]
    assert (
        play_defense(MatchSettings(scenario, SHORT), make).digest
        == play_defense(MatchSettings(scenario, few), make).digest
    )


def test_a_match_is_the_same_under_any_hash_seed() -> None:
    code = """
from test_matches import SHORT, GUARDRAIL_LADDER, MatchSettings, generate, play_defense
settings = MatchSettings(generate(123), SHORT)
print(play_defense(settings, GUARDRAIL_LADDER["pattern matching"]).digest)
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=os.path.dirname(__file__),  # noqa: PTH120
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "77")
    }
    assert len(digests) == 1


def test_another_key_is_another_match() -> None:
    scenario, make = generate(123), GUARDRAIL_LADDER["allow-all"]
    ours, theirs = (
        play_defense(MatchSettings(scenario, SHORT, key=key), make) for key in ("", "organizer")
    )
    assert ours.digest != theirs.digest
    assert {t.task.messages for t in ours.trials} != {t.task.messages for t in theirs.trials}


class Attack:
    """An attack that plays its messages, and returns them as candidates."""

    def __init__(self, *messages: str, stubborn: bool = False) -> None:
        self.messages = messages
        self.stubborn = stubborn
        self.left: list[int | None] = []

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        assert config.max_steps == env.steps_left
        for message in self.messages:
            env.reset()
            env.interact(message)
            self.left.append(env.steps_left)
        while self.stubborn:
            env.interact("run echo")
        return [AttackCandidate((message,)) for message in self.messages]


def offense(attack: Any, ruleset: Ruleset = RULES) -> Any:
    return play_offense(MatchSettings(generate(123), ruleset), attack)


def test_an_attack_cannot_spend_more_than_its_steps() -> None:
    few = structs.replace(RULES, attack=structs.replace(RULES.attack, steps=30))
    match = offense(Attack("run echo", stubborn=True), few)
    assert match.steps == 30
    assert match.candidates == 0

    class Catches(Attack):
        def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
            with pytest.raises(BudgetSpentError, match="no steps are left"):
                super().run(env, config)
            return [AttackCandidate(("run echo",))]

    assert offense(Catches(stubborn=True), few).candidates == 1


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 21))]
)
def test_the_best_rungs_have_no_breach_in_other_worlds_either(seed: int) -> None:
    settings = MatchSettings(generate(seed), SHORT)
    match = play_defense(settings, DataFlowGuardrail)
    assert match.score.breaches == 0
    assert round(match.score.score, 2) == 428.57
    assert play_defense(settings, GUARDRAIL_LADDER["reference"]).score.score == 1000


class Returns:
    def __init__(self, made: Any) -> None:
        self.made = made

    def run(self, env: AttackEnv, config: AttackRunConfig) -> Any:
        del env, config
        return self.made() if callable(self.made) else self.made


def raises() -> Any:
    raise RuntimeError("oh dear")


@pytest.mark.parametrize(
    ("made", "complaint"),
    [(None, "NoneType"), (1.5, "float"), (raises, "RuntimeError: oh dear")],
)
def test_an_attack_that_raises_has_no_score_and_a_reason(made: Any, complaint: str) -> None:
    with pytest.raises(MatchError, match=complaint):
        offense(Returns(made))


def test_candidates_may_come_from_any_iterable_and_have_a_limit() -> None:
    match = offense(Returns(lambda: (("run echo",) for _ in range(3))))
    assert match.candidates == 3
    endless = offense(Returns(lambda: iter(lambda: ("run echo",), 0)))
    assert endless.candidates == 10 * RULES.attack.max_candidates
    assert len(endless.verdict.refused) == 9 * RULES.attack.max_candidates


@pytest.mark.parametrize("attack", [object(), Attack, "attack"])
def test_an_object_without_run_is_refused(attack: Any) -> None:
    with pytest.raises(MatchError, match="an object with a `run"):
        offense(attack)


def test_an_attack_cannot_see_the_scenario_or_the_guardrail() -> None:
    class Looks:
        def run(self, env: Any, config: AttackRunConfig) -> list[AttackCandidate]:
            del config
            for name in ("scenario", "guardrail", "episode"):
                assert not hasattr(env, name)
            return []

    assert offense(Looks()).candidates == 0


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_attack_that_raises_ends_its_match_and_not_the_process(
    error: type[BaseException],
) -> None:
    class Raises:
        def run(self, env: Any, config: AttackRunConfig) -> list[AttackCandidate]:
            del env, config
            raise error("oh dear")

    with pytest.raises(MatchError, match=f"{error.__name__}: oh dear"):
        offense(Raises())


def test_a_real_interrupt_ends_the_process() -> None:
    class Interrupted:
        def run(self, env: Any, config: AttackRunConfig) -> list[AttackCandidate]:
            del env, config
            signal.raise_signal(signal.SIGINT)
            return []

    with pytest.raises(KeyboardInterrupt):
        offense(Interrupted())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"steps": 0}, "`steps` is 0"), ({"steps": -1}, "`steps`"), ({"workers": 0}, "`workers`")],
)
def test_settings_refuse_numbers_below_one(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(MatchError, match=complaint):
        MatchSettings(generate(123), SHORT, **options)


def test_a_match_makes_its_own_guardrails() -> None:
    made: Any = DataFlowGuardrail()
    with pytest.raises(MatchError, match="pass the class DataFlowGuardrail"):
        play_defense(MatchSettings(generate(123), SHORT), made)
    cls: Any = DataFlowGuardrail
    with pytest.raises(TypeError, match=r"DataFlowGuardrail\(\)"):
        Judge(generate(123), cls)
