"""Enhanced Go-Explore: the same search in rounds, and each round learns from refusals.

After a round the attack drops phrases that read a blocking source, and names that the guardrail
refuses. In shell commands it replaces refused words by wildcard patterns. So the budget goes to
the routes that are open.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from tiltyard.attacks.budgeted_env import Chain, candidates
from tiltyard.attacks.go_explore import all_words
from tiltyard.attacks.learning_env import LearningEnv
from tiltyard.attacks.spelling import disguise, mentions
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search import Vocabulary, explore

ROUNDS: Final = 6
_BY_SHELL: Final = ("directory", "pattern")
"""Slots that occur only in shell commands."""
_COMMAND: Final = re.compile(r"`[^`]*`")


class EnhancedGoExplore:
    """Searches in rounds of equal length, and adapts its vocabulary after each round."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        learning = LearningEnv(env, config)
        everything = rules = all_words()
        share = (learning.steps_left or 0) // ROUNDS
        chains: list[Chain] = []
        for number in range(ROUNDS):
            found = explore(learning, rules, ("enhanced", env.seed, number), steps=share)
            chains += found.chains
            rules = adapt(everything, found.vocabulary, learning)
        return candidates(chains)


def adapt(rules: SearchRules, learnt: Vocabulary, learning: LearningEnv) -> SearchRules:
    """Return the rules with the learnt names, without phrases and names that are refused."""
    words = learning.lessons.refused_words
    slots = {
        slot: tuple(_usable(slot, learnt.words(slot), words)) for slot in rules.vocabulary.slots
    }
    known = Vocabulary(replace(rules.vocabulary, slots=slots))
    phrases = {
        kind: tuple(_still_open(_spell(some, words), known, learning))
        for kind, some in rules.vocabulary.phrases.items()
    }
    weights = tuple(kind for kind in rules.vocabulary.weights if phrases[kind])
    if not weights:
        return rules
    return replace(rules, vocabulary=replace(known.rules, phrases=phrases, weights=weights))


def _usable(slot: str, names: Iterable[str], words: list[str]) -> Iterator[str]:
    """Yield the names to keep. In commands a pattern replaces a refused word."""
    for name in names:
        if slot in _BY_SHELL:
            yield disguise(name, words)
        elif not mentions(name, words) and "?" not in name:
            yield name


def _spell(phrases: Iterable[str], words: list[str]) -> Iterator[str]:
    """Yield the phrases without refused words; in commands patterns replace them."""
    for phrase in phrases:
        spelled = _COMMAND.sub(lambda command: disguise(command[0], words), phrase)
        if not mentions(spelled, words):
            yield spelled


def _still_open(phrases: Iterable[str], known: Vocabulary, learning: LearningEnv) -> Iterator[str]:
    """Yield the phrases that read no blocking source when sent to a fresh agent."""
    blocking = learning.lessons.blocking_sources
    for number, phrase in enumerate(phrases):
        (events,) = learning.try_alone(known.fill(phrase, Draw("rehearsal", number)))
        if not any(event.ok and event.source in blocking for event in events):
            yield phrase
