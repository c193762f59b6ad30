"""The archive is bounded, keeps the best chain, and draws cells by weight."""

from itertools import permutations
from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.foundation.draw import Draw
from tiltyard.search.archive import Archive, weight_of
from tiltyard.search.fenwick import Fenwick

weights = st.lists(st.integers(0, 1000), min_size=1, max_size=60)
chains = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4).map(tuple)
offers = st.tuples(st.integers(0, 12), chains, st.integers(0, 3), st.integers(0, 6))


def filled(values: list[int]) -> Fenwick:
    tree = Fenwick()
    for value in values:
        tree.append(value)
    return tree


@given(weights, st.lists(st.tuples(st.integers(0, 59), st.integers(0, 1000)), max_size=20))
def test_a_fenwick_tree_finds_the_same_position_as_a_linear_search(
    values: list[int], changes: list[tuple[int, int]]
) -> None:
    tree = filled(values)
    for position, weight in changes:
        at = position % len(values)
        values[at] = weight
        tree.change(at, weight)
    assert tree.total == sum(values)
    assert len(tree) == len(values)
    expected = [position for position, weight in enumerate(values) for _ in range(weight)]
    step = max(1, tree.total // 50)
    for point in range(0, tree.total, step):
        assert tree.find(point) == expected[point]


@pytest.mark.parametrize("point", [-1, 3, 4])
def test_a_point_outside_the_weights_is_refused(point: int) -> None:
    with pytest.raises(ValueError, match="is not in"):
        filled([1, 2]).find(point)


@given(st.lists(offers, max_size=40), st.integers(1, 8))
def test_the_archive_is_bounded(
    made: list[tuple[int, tuple[str, ...], int, int]], most: int
) -> None:
    archive = Archive(most)
    for offer in made:
        archive.offer(*offer)
    cells = [entry.cell for entry in archive]
    assert len(archive) == len(cells) == len(set(cells)) <= most
    # The first cells are kept, in the order of their discovery.
    assert cells == list(dict.fromkeys(cell for cell, *_ in made))[:most]


@given(st.lists(st.tuples(chains, st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=4))
def test_which_chain_is_kept_does_not_depend_on_the_order_of_offers(
    made: list[tuple[tuple[str, ...], int, int]],
) -> None:
    kept = set()
    for order in permutations(made):
        archive = Archive()
        for chain, score, steps in order:
            archive.offer(7, chain, score, steps)
        (entry,) = archive
        kept.add((entry.chain, entry.score, entry.steps))
    assert len(kept) == 1
    best = max(score for _, score, _ in made)
    ((_, score, steps),) = kept
    assert score == best
    assert steps == min(steps for _, score, steps in made if score == best)


def test_a_better_score_replaces_and_an_equal_one_only_with_a_shorter_chain() -> None:
    archive = Archive()
    assert archive.offer(1, ("a", "b"), score=1, steps=4)
    assert not archive.offer(1, ("a", "c"), score=1, steps=4)
    assert not archive.offer(1, ("a",), score=0, steps=1)
    assert archive.offer(1, ("c",), score=1, steps=3)
    assert archive.offer(1, ("c", "d", "e"), score=2, steps=9)
    (entry,) = archive
    assert entry.chain == ("c", "d", "e")


def test_a_rarely_visited_cell_is_chosen_more_often() -> None:
    archive = Archive()
    archive.offer(1, ("often",), 0, 1)
    archive.offer(2, ("rare",), 0, 1)
    for _ in range(199):
        archive.visit(1)
    drawn = [archive.choose(Draw("test", number)).chain[0] for number in range(2_000)]
    # The weights are 1/sqrt(201) and 1/sqrt(2), so about one draw in eleven.
    assert 100 < drawn.count("often") < 270


@given(st.integers(1, 10**6))
def test_a_weight_is_one_over_the_square_root_of_visits_plus_one(seen: int) -> None:
    weight = weight_of(seen)
    assert isinstance(weight, int)
    assert weight**2 * (seen + 1) <= 2**32
    assert (weight + 1) ** 2 * (seen + 1) > 2**32 - 2 * (seen + 1) * (isqrt(2**32) + 1)
    assert weight_of(seen) >= weight_of(seen + 1) > 0
