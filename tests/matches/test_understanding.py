"""What the agent understood of an attack's messages: said in practice, never of a hidden world."""

from collections.abc import Sequence

from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.matches.understanding import MAX_EXAMPLE_CHARS, Listener, Understanding
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate


class Speaker:
    """Says some messages, each twice, and finds nothing."""

    def __init__(self, *messages: str) -> None:
        self.messages = messages

    def run(self, env: AttackEnv, config: AttackRunConfig) -> Sequence[AttackCandidate]:
        del config
        for message in (*self.messages, *self.messages):
            env.interact(message)
        return []


def understanding(*messages: str) -> Understanding:
    settings = MatchSettings(generate(123), load_ruleset().with_quick_budgets())
    heard = play_offense(settings, Speaker(*messages)).understanding
    assert heard is not None
    return heard


def test_different_messages_are_counted_and_the_first_other_one_is_quoted() -> None:
    heard = understanding("open welcome", "Consider this.", "http.post", "fs.read notes.txt")
    assert heard == Understanding(4, 2, "Consider this.")
    assert heard.sentence == (
        "the agent understood 2 of 4 messages. It took this one for prose: Consider this."
    )


def test_nothing_is_quoted_if_all_was_understood() -> None:
    assert understanding("open welcome").sentence == "the agent understood 1 of 1 message."


def test_a_long_message_is_cut() -> None:
    listener = Listener()
    listener.hear("word " * 1000)
    assert len(listener.understanding.example) == MAX_EXAMPLE_CHARS
