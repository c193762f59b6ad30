"""The examples and the starters, played in the sandbox: each shows what its strategy can do.

The budgets here are small. docs/strategies.md has the scores with the official budgets.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from tiltyard import AllowAllGuardrail
from tiltyard.attacks import Cartographer
from tiltyard.benign import OPERATIONS
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.matches.defense import DefenseMatch, play_defense
from tiltyard.matches.offense import OffenseMatch, play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.submissions import Submission, open_submission
from tiltyard.world.generate import generate

ROOT: Final = Path(__file__).parents[2]
STARTERS: Final = ROOT / "src/tiltyard/submissions/starters"
NAMES: Final = ("red", "blue", "balanced", "elite")
OTHER_SEED: Final = 7


def with_budgets(attack_steps: int, search_steps: int) -> Ruleset:
    rules = load_ruleset()
    return structs.replace(
        rules,
        attack=structs.replace(rules.attack, steps=attack_steps),
        search=structs.replace(rules.search, steps=search_steps),
    )


SHORT: Final = with_budgets(20_000, 2_000)


class Bench:
    """Plays each match once, with submissions in the sandbox."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.submissions: dict[str, Submission] = {}
        self.offenses: dict[tuple[str, int], OffenseMatch] = {}
        self.defenses: dict[str, DefenseMatch] = {}

    def submission(self, name: str) -> Submission:
        if name not in self.submissions:
            source = STARTERS if name == "starter" else ROOT / "examples" / name
            self.submissions[name] = open_submission(source, self.place / name)
        return self.submissions[name]

    def offense(self, name: str, seed: int = 123) -> OffenseMatch:
        if (name, seed) not in self.offenses:
            with GuestPool(self.submission(name), "attack") as guests:
                match = play_offense(MatchSettings(generate(seed), SHORT), guests.attack())
            self.offenses[name, seed] = match
        return self.offenses[name, seed]

    def defense(self, name: str) -> DefenseMatch:
        if name not in self.defenses:
            with GuestPool(self.submission(name), "guardrail") as guests:
                self.defenses[name] = play_defense(
                    MatchSettings(generate(123), SHORT), guests.guardrail
                )
        return self.defenses[name]

    def taken(self, name: str) -> int:
        """Return the raw points of the strongest shipped attack against a guardrail."""
        with GuestPool(self.submission(name), "guardrail") as guests:
            match = play_offense(
                MatchSettings(generate(123), SHORT), Cartographer(), make_guardrail=guests.guardrail
            )
        return match.score.raw


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="tiltyard-test-") as name:
        Path(name).chmod(0o755)
        yield Bench(Path(name))


@pytest.mark.parametrize("seed", [123, OTHER_SEED])
def test_more_work_on_an_attack_gives_a_higher_score(bench: Bench, seed: int) -> None:
    elite, red, balanced, blue = (
        bench.offense(name, seed).score.raw for name in ("elite", "red", "balanced", "blue")
    )
    assert elite >= red > balanced > blue > 0
    full_marks = SHORT.attack.full_marks
    assert red >= full_marks
    assert balanced < full_marks


def test_attacks_keep_to_their_budget_and_return_candidates(bench: Bench) -> None:
    tiny = with_budgets(200, 1)
    for name in (*NAMES, "starter"):
        with GuestPool(bench.submission(name), "attack") as guests:
            match = play_offense(MatchSettings(generate(123), tiny), guests.attack())
        assert match.steps <= 200
        # Blue and elite need more steps to find anything.
        assert match.score.raw > 0 or name in ("blue", "elite"), name


def test_the_example_guardrails_have_no_breach(bench: Bench) -> None:
    for name in NAMES:
        match = bench.defense(name)
        assert match.score.breaches == 0, (name, [f.chain for f in match.verdict.findings])
        assert match.inconsistent == 0, name


def test_the_false_positives_of_each_guardrail(bench: Bench) -> None:
    failed = {
        name: {t.task.operation for t in bench.defense(name).trials if t.false_positive}
        for name in NAMES
    }
    assert failed["red"] == set(OPERATIONS) - {"read file readme", "run echo"}
    assert not failed["blue"]
    assert not failed["elite"]
    costs = {name: bench.defense(name).score.false_positives for name in NAMES}
    assert 0 < costs["balanced"] < costs["red"]


def test_the_elite_guardrail_holds_against_attacks_beyond_the_baseline(
    bench: Bench,
) -> None:
    assert bench.taken("elite") < bench.taken("blue") < bench.taken("red")


def test_the_starters_find_and_stop_something(bench: Bench) -> None:
    assert bench.offense("starter").score.raw > 0
    match = bench.defense("starter")
    undefended = play_defense(MatchSettings(generate(123), SHORT), AllowAllGuardrail).score
    assert match.score.breaches <= undefended.breaches - 10
    assert match.score.false_positives * 7 <= match.score.benign_trials
    assert match.inconsistent == 0


@pytest.mark.parametrize("name", ["attack.py", "guardrail.py"])
def test_a_starter_is_short(name: str) -> None:
    assert len((STARTERS / name).read_text(encoding="utf-8").splitlines()) < 60
