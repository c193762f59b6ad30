"""Change the reference guardrail in one place at a time, and see whether a defense match notices.

A mutant is `noticed` if another number of breaches or false positives comes out of some episode.
It is `equal` if it decides like the reference in every episode, and `unnoticed` if it decides
differently somewhere and the score stays the same. The search is not played, because a guardrail
can influence it. Prints the mutants that no episode notices: each shows a rule of the reference
that a guardrail may lack.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from mutation.changes import Change, list_changes
from mutation.episodes import draw_episodes
from mutation.sources import load, read_sources
from mutation.verdicts import Bench, Judged, Verdict
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.draw import Draw
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate

TITLES: Final = ("file", "line", "change", "verdict", "episodes", "differing", "looser")
TOLD_EVERY: Final = 50
"""After so many mutants, a line on standard error says how far the work is."""


def sample(changes: Sequence[Change], share: float) -> list[Change]:
    """Draw a share of the changes. The same share always gives the same ones."""
    count = round(share * len(changes))
    chosen = sorted(Draw("mutants").sample(range(len(changes)), count))
    return [changes[number] for number in chosen]


def judge_all(bench: Bench, changes: Sequence[Change]) -> list[Judged]:
    judged: list[Judged] = []
    for change in changes:
        judged.append(bench.judge(change))
        if len(judged) % TOLD_EVERY == 0:
            print(f"{len(judged):,} of {len(changes):,} mutants", file=sys.stderr, flush=True)
    return judged


def show(judged: Sequence[Judged], episodes: int, *, with_noticed: bool) -> None:
    """Print a table of mutants, and the totals of all."""
    print(f"| {' | '.join(TITLES)} |\n{'|---' * len(TITLES)}|")
    for each in judged:
        if with_noticed or each.verdict is not Verdict.NOTICED:
            cells = (getattr(each, title) for title in TITLES)
            print(f"| {' | '.join(str(cell).replace('|', chr(0xA6)) for cell in cells)} |")
    count = Counter(each.verdict for each in judged)
    totals = ", ".join(f"{count[verdict]:,} {verdict}" for verdict in Verdict)
    print(f"\n{len(judged):,} mutants, {episodes} episodes: {totals}.")


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=PUBLIC_SEED, help="the seed of the world")
    parser.add_argument("--key", default="", help="an organizer's key (default: none)")
    parser.add_argument("--quick", action="store_true", help="use the battery of quick budgets")
    parser.add_argument("--share", type=_share, default=1.0, help="the share of mutants to play")
    parser.add_argument("--file", default="", help="only files whose path ends with this")
    parser.add_argument("--all", action="store_true", help="print noticed mutants too")
    parser.add_argument("--json", action="store_true", help="print all as JSON, with examples")
    asked = parser.parse_args()
    rules = load_ruleset()
    ruleset = rules.with_quick_budgets() if asked.quick else rules
    sources = read_sources()
    changes = [
        change for change in list_changes(sources) if change.source.path.endswith(asked.file)
    ]
    settings = MatchSettings(generate(asked.seed), ruleset, asked.key)
    bench = Bench(sources, draw_episodes(settings, load(sources).guardrail))
    judged = judge_all(bench, sample(changes, asked.share))
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(judged)).decode())
    else:
        show(judged, len(bench.episodes), with_noticed=asked.all)


if __name__ == "__main__":
    main()
