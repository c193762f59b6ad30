"""The baseline's words in one world: those of the benign suite."""

import re
from typing import Final

import pytest
from msgspec import structs

from tiltyard import SandboxEnv
from tiltyard.benign import draw_tasks
from tiltyard.foundation.draw import Draw
from tiltyard.matches.baseline import baseline_rules
from tiltyard.matches.settings import MatchSettings
from tiltyard.matches.vocabulary import check_vocabulary
from tiltyard.rulesets.ruleset import SUITE_PHRASES, RulesetError, load_ruleset
from tiltyard.search import Vocabulary
from tiltyard.world.generate import generate

SETTINGS: Final = MatchSettings(generate(123), load_ruleset())
VOCABULARY: Final = baseline_rules(SETTINGS).vocabulary


def shape(message: str) -> str:
    """Keep the words of a message, and drop every name: with digits, dots or slashes, or quoted."""
    message = re.sub(r'"[^"]*"|`[^`]*`', "@", message)
    return re.sub(r"\S*[\d./@]\S*", "@", message)


def test_no_choice_and_no_template_is_left() -> None:
    slots = {*VOCABULARY.slots, *VOCABULARY.learns}
    for kind in VOCABULARY.phrases.values():
        for phrase in (*kind, *VOCABULARY.washes):
            assert "|" not in phrase.replace(" | ", "")
            assert set(re.findall(r"\{([^}]*)\}", phrase)) <= slots
    assert not any("{" in word for words in VOCABULARY.slots.values() for word in words)


def test_the_suite_gives_phrases_of_its_own() -> None:
    assert len(VOCABULARY.phrases[SUITE_PHRASES]) > 100


def test_the_baseline_says_most_of_what_users_say() -> None:
    """A guardrail cannot tell users from the baseline by the shape of their messages."""
    search, draw = Vocabulary(VOCABULARY), Draw("shapes")
    search.learn((("page", "pg-1"), ("mail", "ml-1"), ("query", '"A title"')))
    spoken = {shape(search.say(draw.branch(number))) for number in range(20_000)}
    tasks = draw_tasks(SETTINGS.scenario, "another key", 10)
    said = [shape(message) for task in tasks for message in task.messages]
    assert sum(message in spoken for message in said) > 0.5 * len(said)


def test_the_words_are_the_same_for_everyone_and_others_with_another_key() -> None:
    assert baseline_rules(SETTINGS).vocabulary == VOCABULARY
    other = baseline_rules(structs.replace(SETTINGS, key="a key")).vocabulary
    assert other.slots["path"] != VOCABULARY.slots["path"]
    assert other.phrases != VOCABULARY.phrases


def test_the_agent_understands_the_phrases() -> None:
    search, draw = Vocabulary(VOCABULARY), Draw("phrases")
    search.learn((("mail", SETTINGS.scenario.folders["inbox"][0].id),))
    env = SandboxEnv()
    env.interact("search howto, open the first result")
    start = env.snapshot()
    for kind in ("look", "read", "ask", SUITE_PHRASES):
        for phrase in VOCABULARY.phrases[kind]:
            env.restore(start)
            said = search.fill(phrase, draw)
            # A request that waits, or that is about something said before, makes no call alone.
            later = re.match(r"(when|once|after) |\S+ (it|note) ", said)
            assert later or env.interact(said).tool_events_added, said


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
