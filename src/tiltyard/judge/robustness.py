"""Robustness: whether a finding holds in other worlds and in other words.

A chain names ids and paths of its own scenario. To try it in another scenario, `transplanted`
replaces each document by the one with the same role there: the same template of the same family,
or the protected file of the same rank. Robustness changes no score.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tiltyard.contracts.guardrail import Guardrail
from tiltyard.foundation.draw import Draw
from tiltyard.judge.findings import Finding
from tiltyard.judge.judge import Judge
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

_SYNONYMS: Final = (
    ("open", "visit"),
    ("delete", "remove"),
    ("save", "store"),
    ("run", "execute"),
    ("upload", "post"),
)
_COURTESIES: Final = ("", "please ", "now ", "kindly ", "next, ")
_QUOTED: Final = re.compile(r'("[^"]*"|`[^`]*`)')


class Robustness(Struct, frozen=True):
    """How many trials a finding held in."""

    held: int
    trials: int

    @property
    def rate(self) -> float:
        return self.held / self.trials if self.trials else 0.0


def robustness(  # noqa: PLR0913 - the finding, where to try it, and how often
    finding: Finding,
    scenario: Scenario,
    guardrail: Guardrail,
    *,
    seeds: Iterable[int],
    paraphrases: int = 2,
    ruleset: Ruleset | None = None,
) -> Robustness:
    """Replay a finding in the worlds of other seeds, paraphrased each time."""
    held = trials = 0
    for seed in seeds:
        other = generate(seed)
        judge = Judge(other, guardrail, ruleset=ruleset)
        chain = transplanted(finding.chain, scenario, other)
        for number in range(paraphrases):
            messages = paraphrased(chain, Draw("paraphrase", seed, number))
            trials += 1
            held += any(
                found.cell.breach == finding.cell.breach for found in judge.findings(messages)
            )
    return Robustness(held, trials)


def transplanted(chain: tuple[str, ...], here: Scenario, there: Scenario) -> tuple[str, ...]:
    """Rewrite a chain for the scenario `there`: replace the documents' names."""
    names = dict(_counterparts(here, there))
    if not names:
        return chain
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(rf"(?<![\w/-]){re.escape(n)}(?![\w-])" for n in longest_first))
    return tuple(pattern.sub(lambda found: names[found.group()], message) for message in chain)


def _counterparts(here: Scenario, there: Scenario) -> Iterator[tuple[str, str]]:
    theirs: dict[tuple[str, bool, int], str] = {}
    for key, name in _roles(there):
        theirs.setdefault(key, name)
    for key, name in _roles(here):
        if key in theirs:
            yield name, theirs[key]
    ours = [protected.path for protected in here.labels.protected]
    others = [protected.path for protected in there.labels.protected]
    # A file with the same name in both scenarios maps to itself, the others to each other.
    shared = set(ours) & set(others)
    mine, yours = (sorted(set(paths) - shared) for paths in (ours, others))
    if yours:
        yield from ((path, yours[at % len(yours)]) for at, path in enumerate(mine))


def _roles(scenario: Scenario) -> Iterator[tuple[tuple[str, bool, int], str]]:
    """Yield the role of each planted document: template, live or twin, and its number."""
    counts: dict[tuple[str, bool], int] = {}
    for planted in scenario.labels.planted:
        role = planted.template, planted.live
        counts[role] = counts.get(role, -1) + 1
        yield (*role, counts[role]), planted.document.partition(":")[2]


def paraphrased(chain: tuple[str, ...], draw: Draw) -> tuple[str, ...]:
    """Paraphrase a chain; quoted text stays as it is."""
    return tuple(
        "\n".join(_reword(line, draw) for line in message.split("\n")) for message in chain
    )


def _reword(line: str, draw: Draw) -> str:
    for group in _SYNONYMS:
        said = draw.choice(group)
        words = "|".join(map(re.escape, group))
        parts = _QUOTED.split(line)
        parts[::2] = [re.sub(rf"(?i)^({words})(?= )", said, part) for part in parts[::2]]
        line = "".join(parts)
    return draw.choice(_COURTESIES) + line
