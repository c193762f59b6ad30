"""Intervals and concordance on results that can be calculated by hand."""

import pytest

from tiltyard.bridges.dojo.statistics import Resampled, Tally, concordance


def tallies(*shares: tuple[int, ...], tasks: int = 20, pairs: int = 10) -> list[Tally]:
    """Return tasks in two suites; `shares` are the held pairs of each guardrail, task by task."""
    return [
        Tally("ab"[at % 2], f"task {at}", pairs, tuple(one[at % len(one)] for one in shares))
        for at in range(tasks)
    ]


def test_a_share_is_over_pairs_and_tasks_weigh_by_their_pairs() -> None:
    resampled = Resampled([Tally("a", "x", 9, (9,)), Tally("a", "y", 1, (0,))])
    share = resampled.share(0)
    assert share.value == 0.9
    assert share.pairs == 10
    # A replicate draws x twice, y twice, or both.
    assert (share.low, share.high) == (0.0, 1.0)


def test_tasks_are_resampled_within_suites() -> None:
    # All variance is between the suites, so no replicate differs.
    resampled = Resampled([Tally("ab"[at % 2], f"{at}", 4, (4 * (at % 2),)) for at in range(10)])
    share = resampled.share(0)
    assert (share.low, share.value, share.high) == (0.5, 0.5, 0.5)


def test_an_interval_is_close_to_the_normal_one() -> None:
    # 400 tasks with one pair each, half of them held: 0.5 ± 1.96 × sqrt(0.25 / 400).
    resampled = Resampled([Tally("a", f"{at}", 1, (at % 2,)) for at in range(400)])
    share = resampled.share(0)
    assert share.low == pytest.approx(0.451, abs=0.005)
    assert share.high == pytest.approx(0.549, abs=0.005)


def test_the_same_results_give_the_same_numbers() -> None:
    one, two = (Resampled(tallies((3, 9, 5, 1))) for _ in range(2))
    assert one.share(0) == two.share(0)


def test_differences_are_paired() -> None:
    # The shares vary much from task to task, and their difference does not.
    resampled = Resampled(tallies((1, 3, 9, 7), (0, 2, 8, 6)))
    assert resampled.share(0).high - resampled.share(0).low > 0.1
    assert resampled.is_resolved(0, 1)
    assert {round(one, 9) for one in resampled.differences(0, 1)} == {0.1}


def test_a_small_or_an_uncertain_difference_is_not_resolved() -> None:
    small = Resampled(tallies((50,), (48,), pairs=100))
    assert not small.is_resolved(0, 1)
    uncertain = Resampled(tallies((10, 0, 0, 0), (0, 0, 9, 0)))
    assert not uncertain.is_resolved(0, 1)


def test_each_pair_of_families_weighs_the_same() -> None:
    # a1, a2, a3 of family A hold 9, 8, 7 of 10 pairs; b holds 5; c holds 3.
    resampled = Resampled(tallies((9,), (8,), (7,), (5,), (3,)))
    families = ["A", "A", "A", "B", "C"]
    # The arena puts one of A above B and above C, and B level with C.
    found = concordance(resampled, families, [90, 20, 10, 30, 30])
    assert found is not None
    a_b, a_c, b_c = 1 / 3, 1 / 3, 1 / 2
    assert found.value == pytest.approx((a_b + a_c + b_c) / 3)
    assert found.pairs == 7
    assert found.families == 3
    assert 1 / 3 <= found.low <= found.value <= found.high <= 1 / 2 + 1e-9


def test_the_same_order_is_full_concordance() -> None:
    resampled = Resampled(tallies((9,), (5,), (1,)))
    found = concordance(resampled, ["A", "B", "C"], [800, 500, 100])
    assert found is not None
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    reverse = concordance(resampled, ["A", "B", "C"], [100, 500, 800])
    assert reverse is not None
    assert reverse.value == 0.0


def test_relatives_and_unscored_guardrails_are_not_compared() -> None:
    resampled = Resampled(tallies((9,), (5,), (1,)))
    assert concordance(resampled, ["A", "A", "A"], [1, 2, 3]) is None
    found = concordance(resampled, ["A", "B", "C"], [3, None, 1])
    assert found is not None
    assert found.pairs == 1


def test_without_pairs_nothing_is_resolved() -> None:
    resampled = Resampled([])
    assert resampled.share(0).pairs == 0
    assert not resampled.is_resolved(0, 1)
