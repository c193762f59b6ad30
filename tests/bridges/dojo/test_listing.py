"""The fixed list of guardrails, and how guardrails are found by name."""

from collections import Counter

import pytest

from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.bridges.dojo.listing import Listed, listed_guardrails, open_entrants
from tiltyard.bridges.dojo.measure import recorded_arena
from tiltyard.contracts.guardrail import check_guardrail
from tiltyard.matches.opponents import OpponentError, plain_name


def test_the_list_has_24_guardrails_and_at_most_three_a_family() -> None:
    listed = listed_guardrails()
    assert len(listed) == 24
    assert len({plain_name(one.name) for one in listed}) == 24
    assert max(Counter(one.family for one in listed).values()) <= 3
    assert Counter(one.family for one in listed)["output filters"] == 2
    assert sum(one.path.startswith("tiltyard.guardrails.declared:") for one in listed) == 5


def test_the_simple_guardrails_can_be_made() -> None:
    for one in listed_guardrails():
        if not one.path.startswith("tiltyard.guardrails.declared:"):
            check_guardrail(one.maker()())


def test_a_guardrail_that_this_version_lacks_is_named() -> None:
    absent = Listed("future", "future", "tiltyard.guardrails.future:FutureGuardrail")
    with pytest.raises(DojoError, match="'future' is not part of this version"):
        absent.maker()


def test_case_and_punctuation_of_a_name_do_not_matter() -> None:
    with open_entrants(["No-Effect-After-A-Read", "ALLOW ALL"]) as entrants:
        assert [one.name for one in entrants] == ["no effect after a read", "allow-all"]
        assert [one.family for one in entrants] == ["order of calls", "constants"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with (
        pytest.raises(OpponentError, match=r"there is no guardrail 'nobody'.*redact orders"),
        open_entrants(["nobody"]),
    ):
        pass


def test_a_name_is_used_once() -> None:
    with pytest.raises(DojoError, match="two guardrails"), open_entrants(["allow-all"] * 2):
        pass


def test_the_arena_has_scored_every_listed_guardrail() -> None:
    assert recorded_arena().keys() >= {one.name for one in listed_guardrails()}
