"""The baseline's words in one world: those of the benign suite."""

import re
from collections import Counter
from typing import Final

import pytest
from msgspec import structs

from tiltyard.agents.grammar import instructions
from tiltyard.benign import draw_tasks
from tiltyard.foundation.draw import Draw
from tiltyard.matches.baseline import baseline_rules
from tiltyard.matches.settings import MatchSettings
from tiltyard.matches.vocabulary import check_vocabulary
from tiltyard.rulesets.ruleset import SUITE_PHRASES, RulesetError, load_ruleset
from tiltyard.search import Vocabulary
from tiltyard.world.generate import generate
from tiltyard.world.text import by_user

SETTINGS: Final = MatchSettings(generate(123), load_ruleset())
VOCABULARY: Final = baseline_rules(SETTINGS).vocabulary


def words(message: str) -> list[str]:
    """Return the words of a message, without names: with digits, dots or slashes, or quoted."""
    message = re.sub(r"\"[^\"]*\"|`[^`]*`|“[^”]*”", " ", message.lower())
    return re.findall(r"[a-z]+", re.sub(r"\S*[\d./@-]\S*", " ", message))


def test_no_choice_and_no_template_is_left() -> None:
    slots = {*VOCABULARY.slots, *VOCABULARY.learns}
    for kind in VOCABULARY.phrases.values():
        for phrase in (*kind, *VOCABULARY.washes):
            assert "|" not in phrase.replace(" | ", "")
            assert set(re.findall(r"\{([^}]*)\}", phrase)) <= slots
    assert not any("{" in word for words in VOCABULARY.slots.values() for word in words)


def test_the_suite_gives_phrases_of_its_own() -> None:
    assert len(VOCABULARY.phrases[SUITE_PHRASES]) > 100


def test_users_and_the_baseline_use_the_same_words() -> None:
    """A guardrail cannot tell users from the baseline by a word."""
    search, draw = Vocabulary(VOCABULARY), Draw("words")
    search.learn((("page", "pg-1"), ("mail", "ml-1"), ("query", '"A title"')))
    spoken = [words(search.say(draw.branch(number))) for number in range(20_000)]
    tasks = draw_tasks(SETTINGS.scenario, "another key", 10)
    said = [word for task in tasks for message in task.messages for word in words(message)]
    counts = Counter(word for message in spoken for word in message)
    assert sum(word in counts for word in said) > 0.98 * len(said)
    assert {word for word, count in counts.items() if count > 2000} <= set(said)


def test_the_words_are_the_same_for_everyone_and_others_with_another_key() -> None:
    assert baseline_rules(SETTINGS).vocabulary == VOCABULARY
    other = baseline_rules(structs.replace(SETTINGS, key="a key")).vocabulary
    assert other.slots["path"] != VOCABULARY.slots["path"]
    assert other.phrases != VOCABULARY.phrases


def test_the_agent_understands_the_phrases() -> None:
    search, draw = Vocabulary(VOCABULARY), Draw("phrases")
    search.learn((("mail", SETTINGS.scenario.folders["inbox"][0].id),))
    for kind in ("look", "read", "act", "ask", SUITE_PHRASES):
        for phrase in VOCABULARY.phrases[kind]:
            said = search.fill(phrase, draw)
            assert instructions(by_user(said)), said


def test_a_slot_that_nobody_knows_is_an_error() -> None:
    rules = SETTINGS.ruleset
    vocabulary = structs.replace(
        rules.search.vocabulary,
        phrases={**rules.search.vocabulary.phrases, "act": ("go {nowhere}",)},
    )
    wrong = structs.replace(rules, search=structs.replace(rules.search, vocabulary=vocabulary))
    with pytest.raises(RulesetError, match="nowhere"):
        baseline_rules(structs.replace(SETTINGS, ruleset=wrong))
    with pytest.raises(RulesetError, match="nowhere"):
        check_vocabulary(vocabulary)
    check_vocabulary(rules.search.vocabulary)
