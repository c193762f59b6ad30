"""Play the example submissions, one for each strategy of the design, in the jail.

Prints a Markdown table: the expected score of each strategy, and the score of its example in the
public scenario and, in brackets, in other worlds. The authors of the examples knew these worlds;
use `--seeds` for others.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tiltyard.attacks import Cartographer
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.standings.monitoring import strategies
from tiltyard.submissions import Submission, open_submission
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

ROOT: Final = Path(__file__).parent.parent
OTHER_SEEDS: Final = (1, 2, 3)


EXPECTED: Final = {strategy.name: strategy for strategy in strategies()}
DIRECTORIES: Final = {
    **{name: ROOT / "examples" / name for name in EXPECTED},
    "starter": ROOT / "src/tiltyard/submissions/starters",
}
"""`starter` is no strategy: it is what `tiltyard init` writes."""


class Played(NamedTuple):
    """The results of a submission in one world."""

    offense: float
    defense: float
    breaches: int
    false_positives: int
    taken: int
    """Raw points of the strongest shipped attack against the submission's guardrail."""

    @property
    def total(self) -> float:
        return self.offense + self.defense


def play(submission: Submission, scenario: Scenario, ruleset: Ruleset) -> Played:
    """Play both matches with full budgets, and the strongest attack against the guardrail."""
    with GuestPool(submission, "attack") as guests:
        offense = play_offense(MatchSettings(scenario, ruleset), guests.attack())
    with GuestPool(submission, "guardrail") as guests:
        defense = play_defense(MatchSettings(scenario, ruleset), guests.guardrail)
        harder = play_offense(
            MatchSettings(scenario, ruleset), Cartographer(), make_guardrail=guests.guardrail
        )
    if offense.inconsistent or defense.inconsistent:
        raise SystemExit(f"{submission.name} does not play the same way twice")
    score = defense.score
    return Played(
        offense.score.score, score.score, score.breaches, score.false_positives, harder.score.raw
    )


TITLES: Final = (
    *("strategy", "offense", "expected", "defense", "expected", "breaches", "failed trials"),
    *("total", "expected", "taken by the cartographer"),
)


def row(name: str, worlds: Sequence[Played]) -> str:
    """Return the table row of a strategy."""
    expected = EXPECTED.get(name)
    cells = (
        name,
        _each([played.offense for played in worlds]),
        _range(None if expected is None else expected.offense),
        _each([played.defense for played in worlds]),
        _range(None if expected is None else expected.defense),
        _each([played.breaches for played in worlds]),
        _each([played.false_positives for played in worlds]),
        _each([played.total for played in worlds]),
        _range(None if expected is None else expected.total),
        _each([played.taken for played in worlds]),
    )
    return f"| {' | '.join(cells)} |"


def _each(numbers: Sequence[float]) -> str:
    """Format the public scenario's number, with the others in brackets."""
    first, *others = (f"{number:.0f}" for number in numbers)
    return f"{first} ({' '.join(others)})" if others else first


def _range(expected: tuple[float, float] | None) -> str:
    return "" if expected is None else "{:g} to {:g}".format(*expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="strategies to play (default: all)")
    parser.add_argument(
        "--seeds", type=int, nargs="*", default=OTHER_SEEDS, help="seeds of the other worlds"
    )
    asked = parser.parse_args()
    for name in asked.names:
        if name not in DIRECTORIES:
            parser.error(f"unknown strategy {name!r}; expected one of {', '.join(DIRECTORIES)}")
    ruleset = load_ruleset()
    scenarios = [generate(seed) for seed in (PUBLIC_SEED, *asked.seeds)]
    others = f"; in brackets seeds {', '.join(map(str, asked.seeds))}" if asked.seeds else ""
    print(f"Ruleset `{ruleset.id}`, seed {PUBLIC_SEED}{others}.\n")
    print(f"| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tiltyard-strategies-") as place:
        Path(place).chmod(0o755)  # the guest runs as another user and must read it
        for name in asked.names or DIRECTORIES:
            submission = open_submission(DIRECTORIES[name], Path(place, name))
            print(row(name, [play(submission, world, ruleset) for world in scenarios]), flush=True)


if __name__ == "__main__":
    main()
