"""Where values stand: many texts are searched as one by one, and nothing is left behind."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard import Result
from tiltyard.guardrails.declared.origins import Origins, Reading
from tiltyard.guardrails.declared.words import Sought, Texts, speaks_of

WORDS = st.sampled_from(
    ["ann", "Ann's", "12", "1,200", "12.5", "2026-11-18", "18 November", "nov 18th", "a@b.example",
     "https://b.example/", "b.example", "#team", "team", "+44 20 7946 0958", "442079460958", "\n",
     " ", "  ", "x12", "\u2019", "0.5", "50", "9" * 400]
)  # fmt: skip
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=5)
VALUES = WORDS | st.integers(-5, 2_000) | st.floats(-1, 1_300) | st.booleans() | st.none()


@settings(max_examples=300)
@given(TEXTS, VALUES)
def test_texts_contain_what_they_contain_one_by_one(texts: list[str], value: object) -> None:
    sought, together = Sought(value), Texts(texts)
    alone = [Texts([text]) for text in texts]
    assert [*together.with_value(sought)] == [
        at for at, one in enumerate(alone) if one.with_value(sought)
    ]
    assert [*together.leading_to(value)] == [
        at for at, one in enumerate(alone) if one.leading_to(value)
    ]


def test_a_value_does_not_go_from_one_text_into_the_next() -> None:
    assert not Texts(["pay ann", "brown today"]).with_value(Sought("ann brown"))
    assert speaks_of("pay Ann  Brown today", "ann brown")
    assert not speaks_of("pay Joann", "ann")


def result(output: str) -> Result:
    return Result(ok=True, output=output, error=None, source="tool")


def test_a_search_goes_on_with_later_results() -> None:
    origins = Origins(records=True)
    origins.add(result("the fee is 12.50"), Reading())
    assert [piece.text for piece in origins.holding("1250")] == ["the fee is 12.50"]
    origins.add(result("order 1250"), Reading())
    assert [piece.text for piece in origins.holding("1250")] == ["order 1250"]
    origins.add(result("again 1250"), Reading())
    assert [piece.text for piece in origins.holding("1250")] == ["order 1250", "again 1250"]


def test_equal_results_are_cut_once_and_belong_to_each_conversation_alone() -> None:
    first, second = Origins(records=True), Origins(records=True)
    first.add(result('[{"name": "Ann"}, {"name": "Bob"}]'), Reading(by_author=True))
    first.add(result('[{"name": "Ann"}, {"name": "Bob"}]'), Reading())
    second.add(result('[{"name": "Ann"}, {"name": "Bob"}]'), Reading())
    assert len({piece.record for piece in first.holding("Ann")}) == 2
    assert [piece.by_named_author for piece in first.holding("Ann")] == [True, False]
    assert [piece.by_named_author for piece in second.holding("Ann")] == [False]


def test_a_restored_state_finds_the_same() -> None:
    origins = Origins(records=True)
    origins.add(result("the fee is 12.50\n\nfor Ann"), Reading())
    before = pickle.dumps(origins)
    found = origins.holding("Ann")
    assert pickle.dumps(origins) == before, "a search is no part of the state"
    restored = pickle.loads(before)  # noqa: S301 - written above
    assert restored.holding("Ann") == found
    assert restored.record(found[0].record) == origins.record(found[0].record)
