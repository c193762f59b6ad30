"""Enhanced Go-Explore: the same search in rounds, each with what refusals taught the one before.

After a round it drops the phrases that bring in a source which closes the way, and the names that
are refused. In commands, where a pattern can stand for a name, it spells refused words as one. So
the budget goes to the routes that are open.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from tiltyard.attacks.go_explore import all_words
from tiltyard.attacks.metered import Chain, candidates
from tiltyard.attacks.spelling import mentions, veil
from tiltyard.attacks.watched import Watched
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search import Vocabulary, explore

ROUNDS: Final = 6
_BY_SHELL: Final = ("directory", "pattern")
"""What only ever stands in a command."""
_COMMAND: Final = re.compile(r"`[^`]*`")


class EnhancedGoExplore:
    """Searches in rounds of equal length, and adapts its vocabulary after each."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        desk = Watched(env, config)
        everything = rules = all_words()
        share = (desk.steps_left or 0) // ROUNDS
        chains: list[Chain] = []
        for number in range(ROUNDS):
            found = explore(desk, rules, ("enhanced", env.seed, number), steps=share)
            chains += found.chains
            rules = adapt(everything, found.vocabulary, desk)
        return candidates(chains)


def adapt(rules: SearchRules, learnt: Vocabulary, desk: Watched) -> SearchRules:
    """Return the rules with the names that were learnt, kept to the routes that are open."""
    words = desk.lessons.refused_words
    slots = {
        slot: tuple(_usable(slot, learnt.words(slot), words)) for slot in rules.vocabulary.slots
    }
    known = Vocabulary(replace(rules.vocabulary, slots=slots))
    phrases = {
        kind: tuple(_still_open(_spell(some, words), known, desk))
        for kind, some in rules.vocabulary.phrases.items()
    }
    weights = tuple(kind for kind in rules.vocabulary.weights if phrases[kind])
    if not weights:
        return rules
    return replace(rules, vocabulary=replace(known.rules, phrases=phrases, weights=weights))


def _usable(slot: str, names: Iterable[str], words: list[str]) -> Iterator[str]:
    """Yield the names to go on with: folders stand in commands alone, where patterns will do."""
    for name in names:
        if slot in _BY_SHELL:
            yield veil(name, words)
        elif not mentions(name, words) and "?" not in name:
            yield name


def _spell(phrases: Iterable[str], words: list[str]) -> Iterator[str]:
    """Yield the phrases that name nothing refused, commands with patterns for refused words."""
    for phrase in phrases:
        spelled = _COMMAND.sub(lambda command: veil(command[0], words), phrase)
        if not mentions(spelled, words):
            yield spelled


def _still_open(phrases: Iterable[str], known: Vocabulary, desk: Watched) -> Iterator[str]:
    """Yield the phrases that, said once to a fresh agent, read no source that closes the way."""
    closing = desk.lessons.closing
    for number, phrase in enumerate(phrases):
        (events,) = desk.try_alone(known.fill(phrase, Draw("rehearsal", number)))
        if not any(event.ok and event.source in closing for event in events):
            yield phrase
