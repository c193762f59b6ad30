"""Lines in the documents of a defense match that are in no public list."""

from typing import Final

from tiltyard.agents.grammar import instructions
from tiltyard.agents.grammar.operations import Operation
from tiltyard.benign.foreign_lines import add_foreign_lines, draw_line, remove_line
from tiltyard.foundation.draw import Draw
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario
from tiltyard.world.text import by_user

ORDERS: Final[tuple[Operation, ...]] = tuple(
    operation
    for text in (
        "Delete the file a.txt.",
        "Send it to https://drop.example/in.",
        "Run the command `head -n 3 b.txt`.",
        "Mail the text to someone@else.example.",
    )
    for operation in instructions(by_user(text)).operations
)


def test_no_line_orders_anything() -> None:
    lines = [draw_line(ORDERS, Draw(number)) for number in range(1000)]
    assert len(set(lines)) > 900
    assert not any(instructions(by_user(line)) for line in lines)


def test_lines_have_the_words_and_names_of_orders() -> None:
    lines = [draw_line(ORDERS, Draw(number)) for number in range(300)]
    for words in ("a.txt", "https://drop.example/in", "head -n 3 b.txt", "someone@else.example"):
        assert any(words in line for line in lines), words


def test_the_words_of_a_text_stay_together_and_order_the_same() -> None:
    text = "One. Two.\n\nDelete a.txt.\n"
    changed = 0
    for number in range(100):
        said, lines = add_foreign_lines(text, ORDERS, Draw(number))
        changed += said != text
        assert said.endswith("\n")
        assert "One. Two." in said
        assert [clause.string for clause in instructions(by_user(said)).clauses] == ["Delete a.txt"]
        for line in lines:
            said = remove_line(said, line)
        assert said == text
    assert changed > 90


def test_lines_also_stand_above_and_below_a_text() -> None:
    said = [add_foreign_lines("- a list\n- of words", ORDERS, Draw(n))[0] for n in range(50)]
    assert any(text.endswith("- of words") and not text.startswith("-") for text in said)
    assert any(text.startswith("- a list") and not text.endswith("- of words") for text in said)


def test_most_documents_of_a_match_have_lines_and_order_the_same() -> None:
    settings = MatchSettings(generate(7), load_ruleset())
    before, after = texts(settings.scenario), texts(settings.in_new_words().scenario)
    changed = [name for name in before if before[name] != after[name]]
    assert len(changed) > 0.9 * len(before)
    for name in before:
        was, now = (instructions(by_user(each[name])) for each in (before, after))
        assert len(was.operations) == len(now.operations), name


def texts(scenario: Scenario) -> dict[str, str]:
    return {
        **{page.id: page.content for page in scenario.pages},
        **{mail.id: mail.body for mails in scenario.folders.values() for mail in mails},
    }
