"""Junction trees against the product of all factors, written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blowfish_fast.data.tables.merged_tables import sum_down
from blowfish_fast.release.entropy import junction_tree
from blowfish_fast.release.entropy.junction_tree import (
    JunctionTree,
    cliques_of,
    draw_columns,
    tree_cells,
)


def random_law(generator):
    """Return sizes, a tree, its beliefs and the dense law of random factors."""
    count = int(generator.integers(2, 6))
    sizes = tuple(int(one) for one in generator.integers(1, 4, count))
    pairs = list(combinations(range(count), 2))
    generator.shuffle(pairs)
    scopes = [tuple(one) for one in pairs[: generator.integers(0, len(pairs) + 1)]]
    factors = {
        scope: generator.normal(size=[sizes[axis] for axis in scope])
        for scope in [*scopes, (0,)]
    }
    dense = np.zeros(sizes)
    for scope, factor in factors.items():
        shape = [sizes[axis] if axis in scope else 1 for axis in range(count)]
        dense = dense + factor.reshape(shape)
    dense = np.exp(dense)
    tree = JunctionTree(sizes, scopes)
    return sizes, tree, tree.beliefs(factors), dense / dense.sum()


@pytest.mark.parametrize("at_once", [1, 2**22])
def test_every_table_is_that_of_the_product_of_factors(at_once, generator, monkeypatch):
    monkeypatch.setattr(junction_tree, "MOST_AT_ONCE", at_once)
    for _ in range(25):
        sizes, tree, beliefs, dense = random_law(generator)
        every = range(len(sizes))
        for ways in range(1, min(len(sizes), 4) + 1):
            for axes in combinations(every, ways):
                expected = sum_down(dense, every, axes)
                np.testing.assert_allclose(
                    tree.table(beliefs, axes), expected, atol=1e-13
                )
        messages = {}
        for axes in combinations(every, min(len(sizes), 3)):
            # What one table was told another one uses, to the same bits.
            shared = tree.table(beliefs, axes, messages)
            assert np.array_equal(shared, tree.table(beliefs, axes))
        pairs = tree.pairs(beliefs)
        assert sorted(pairs) == list(combinations(every, 2))
        for axes, found in pairs.items():
            np.testing.assert_allclose(found, sum_down(dense, every, axes), atol=1e-13)


def test_tables_of_cliques_are_summed_together_as_one_by_one(generator):
    for _ in range(25):
        sizes, tree, beliefs, dense = random_law(generator)
        scopes = [
            axes
            for clique in tree.cliques
            for ways in range(1, len(clique) + 1)
            for axes in combinations(clique, ways)
        ]
        found = tree.tables(beliefs, scopes)
        assert {*found} == {*scopes}
        for axes, table in found.items():
            expected = sum_down(dense, range(len(sizes)), axes)
            np.testing.assert_allclose(table, expected, atol=1e-13)


def test_messages_about_one_attribute_are_made_once(monkeypatch):
    tree = JunctionTree((2,) * 6, [(axis, axis + 1) for axis in range(5)])
    beliefs, messages = tree.beliefs({}), {}
    made, genuine = [], tree._collect

    def watched(beliefs, clique, came, *rest):
        made.append((clique, came))
        return genuine(beliefs, clique, came, *rest)

    monkeypatch.setattr(tree, "_collect", watched)
    tree.table(beliefs, (0, 1, 5), messages)
    first = len(made)
    assert first > 2
    tree.table(beliefs, (0, 1, 5), messages)
    # The second time the root alone is worked out.
    assert len(made) == first + 1


def test_large_tables_are_summed_once_for_several_scopes(monkeypatch):
    tree = JunctionTree((2, 3, 4, 5), [(0, 1, 2, 3)])
    beliefs = tree.beliefs({})
    summed, genuine = [], junction_tree.sum_down

    def watched(table, axes, onto):
        summed.append(table.size)
        return genuine(table, axes, onto)

    monkeypatch.setattr(junction_tree, "sum_down", watched)
    tree.tables(beliefs, [(0, 1), (0, 2), (1, 2), (0,), (2,)])
    assert summed.count(120) == 1


def test_weights_too_small_to_be_multiplied_are_added_as_logarithms():
    tree = JunctionTree((2, 2, 2), [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
    # Each factor has its own largest cell, and no cell is large in all of them.
    far = np.array([[0.0, -400.0], [-400.0, -400.0]])
    beliefs = tree.beliefs({(0, 1): far, (0, 2): far[::-1, ::-1], (1, 2): far[::-1]})
    assert beliefs is not None
    assert beliefs[0].max() > 0.1
    assert beliefs[0].sum() == pytest.approx(1)


def test_cliques_hold_all_scopes_and_neighbours_share_separators(generator):
    for _ in range(30):
        count = int(generator.integers(2, 9))
        pairs = list(combinations(range(count), 2))
        generator.shuffle(pairs)
        scopes = [tuple(one) for one in pairs[: generator.integers(1, len(pairs) + 1)]]
        tree = JunctionTree([2] * count, scopes)
        assert all(tree.home(one) is not None for one in scopes)
        assert tree_cells([2] * count, scopes) == tree.cells
        for axis in range(count):
            holding = [at for at, one in enumerate(tree.cliques) if axis in one]
            inner = [at for at in holding if axis not in tree.separators[at]]
            # The cliques of an attribute are connected: one of them is the topmost.
            assert len(inner) == 1
    assert cliques_of((2, 3), []) == [(0,), (1,)]


def test_factors_that_leave_nothing_possible_are_noticed():
    tree = JunctionTree((2, 2), [(0, 1)])
    assert tree.beliefs({(0, 1): np.full((2, 2), np.nan)}) is None
    chain = JunctionTree((2, 2, 2), [(0, 1), (1, 2)])
    assert chain.beliefs({(1, 2): np.full((2, 2), np.nan)}) is None


def test_records_follow_the_law(generator):
    sizes, tree, beliefs, dense = random_law(np.random.default_rng(5))
    records = tree.sample(beliefs, 40_000, generator)
    for axes in combinations(range(len(sizes)), 2):
        counts = np.zeros([sizes[axis] for axis in axes])
        np.add.at(counts, tuple(records[axis] for axis in axes), 1 / 40_000)
        expected = sum_down(dense, range(len(sizes)), axes)
        assert np.abs(counts - expected).max() < 0.02


def test_columns_are_drawn_evenly_and_rows_without_weights_too(generator):
    table = np.array([[1.0, 3.0], [0.0, 0.0]])
    drawn = draw_columns(table, np.repeat([0, 1], 1000), generator)
    assert abs(drawn[:1000].sum() - 750) <= 1
    assert abs(drawn[1000:].sum() - 500) <= 1
