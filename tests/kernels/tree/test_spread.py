from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.fit import tree_fit
from blowfish_fast.kernels.tree.shape import regular_tree, tree_levels, tree_of_parents
from blowfish_fast.kernels.tree.spread import tree_spread_pieces, tree_spread_ranges
from tests.generated import example_count
from tests.reference import tree_spread as reference
from tests.reference import trees
from tests.reference.tree_inference import node_rows

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(150)
TREES = {
    "leaves": st.integers(1, 40),
    "branching": st.sampled_from([2, 3, 4, 8, 64]),
    "seed": st.integers(0, 2**32 - 1),
    "unmeasured": st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    "exact": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
}


def random_noise(rng, leaves, branching, unmeasured, exact):
    """Return variances and scales; the two need not belong to one law."""
    nodes = tree_levels(leaves, branching)[1][-1]
    variances = 10.0 ** rng.uniform(-1, 1, nodes)
    scales = rng.uniform(0.1, 3, nodes)
    variances[rng.random(nodes) < unmeasured] = np.inf
    variances[rng.random(nodes) < exact] = 0.0
    return variances, scales


def random_ranges(rng, leaves, count):
    first, last = np.sort(rng.integers(0, leaves, (2, count)), axis=0)
    fractions = np.where(rng.random((2, count)) < 0.5, 1.0, rng.random((2, count)))
    return first, fractions[0], last, np.where(first == last, *fractions)


def random_pieces(rng, leaves, count):
    pointers, starts, ends, values = [0], [], [], []
    for _ in range(count):
        cuts = np.flatnonzero(rng.random(leaves + 1) < rng.choice([0.1, 0.5, 1.0]))
        for start, end in pairwise(cuts):
            if rng.random() < 0.7:
                starts.append(start)
                ends.append(end)
                values.append(rng.choice([1.0, -1.0, rng.normal()]))
        pointers.append(len(starts))
    whole = [np.array(part, dtype=np.int64) for part in (pointers, starts, ends)]
    return *whole, np.array(values, dtype=float)


def assert_same(found, expected):
    for mine, right in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-8, atol=1e-11)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_ranges_equal_the_definition(leaves, branching, seed, unmeasured, exact):
    rng = np.random.default_rng(seed)
    noise = random_noise(rng, leaves, branching, unmeasured, exact)
    ranges = random_ranges(rng, leaves, 12)
    queries = reference.rows_of_ranges(leaves, *ranges)
    assert_same(
        tree_spread_ranges(*noise, regular_tree(leaves, branching), *ranges),
        reference.spreads(queries, *noise, leaves, branching),
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(**TREES)
def test_pieces_equal_the_definition(leaves, branching, seed, unmeasured, exact):
    rng = np.random.default_rng(seed)
    noise = random_noise(rng, leaves, branching, unmeasured, exact)
    pieces = random_pieces(rng, leaves, 12)
    queries = reference.rows_of_pieces(leaves, *pieces)
    assert_same(
        tree_spread_pieces(*noise, regular_tree(leaves, branching), *pieces),
        reference.spreads(queries, *noise, leaves, branching),
    )


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(st.integers(1, 300), st.sampled_from([2, 5, 16]), st.integers(0, 2**32 - 1))
def test_ranges_and_pieces_agree_on_plain_ranges(leaves, branching, seed):
    rng = np.random.default_rng(seed)
    noise = random_noise(rng, leaves, branching, 0.3, 0.05)
    first, last = np.sort(rng.integers(0, leaves, (2, 20)), axis=0)
    ones = np.ones(20)
    ranges = tree_spread_ranges(
        *noise, regular_tree(leaves, branching), first, ones, last, ones
    )
    pieces = tree_spread_pieces(
        *noise, regular_tree(leaves, branching), np.arange(21), first, last + 1, ones
    )
    assert_same(ranges, pieces)


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(st.integers(1, 12), st.sampled_from([2, 3, 8]), st.integers(0, 2**32 - 1))
def test_is_the_spread_of_what_the_fit_does_to_unit_noise(leaves, branching, seed):
    rng = np.random.default_rng(seed)
    variances, scales = random_noise(rng, leaves, branching, 0.3, 0.1)
    first, first_fraction, last, last_fraction = random_ranges(rng, leaves, 8)
    queries = reference.rows_of_ranges(
        leaves, first, first_fraction, last, last_fraction
    )
    measured = np.flatnonzero(np.isfinite(variances) & (variances > 0))
    units = np.eye(variances.size)[measured]
    responses = np.array(
        [
            tree_fit(unit, variances, regular_tree(leaves, branching))[:leaves]
            for unit in units
        ]
    ).reshape(measured.size, leaves)
    weights = queries @ responses.T
    scaled = np.abs(weights * scales[measured])
    assert_same(
        tree_spread_ranges(
            variances,
            scales,
            regular_tree(leaves, branching),
            first,
            first_fraction,
            last,
            last_fraction,
        ),
        (
            (weights**2 * variances[measured]).sum(axis=1),
            (scaled**2).sum(axis=1),
            scaled.max(axis=1, initial=0.0),
        ),
    )


@settings(deadline=None, max_examples=EXAMPLES // 5)
@given(st.integers(2, 12), st.sampled_from([2, 3, 4]), st.integers(0, 2**32 - 1))
def test_survives_variances_over_24_decades(leaves, branching, seed):
    rng = np.random.default_rng(seed)
    nodes = tree_levels(leaves, branching)[1][-1]
    variances = 10.0 ** rng.uniform(-12, 12, nodes)
    scales = np.sqrt(variances / 2)
    first, last = np.sort(rng.integers(0, leaves, (2, 20)), axis=0)
    ones = np.ones(20)
    variance, square, largest, *_ = tree_spread_ranges(
        variances, scales, regular_tree(leaves, branching), first, ones, last, ones
    )
    expected = exact_variances(variances, leaves, branching, first, last)
    np.testing.assert_allclose(variance, expected, rtol=1e-7)
    np.testing.assert_allclose(square, expected / 2, rtol=1e-7)
    assert (largest**2 <= square * (1 + 1e-12)).all()
    assert (largest**2 * nodes >= square * (1 - 1e-12)).all()


def exact_variances(variances, leaves, branching, first, last):
    """Return query variances from the inverse normal matrix in 60 digits."""
    rows = node_rows(leaves, branching)
    with mpmath.workdps(60):
        normal = mpmath.zeros(leaves)
        for row, variance in zip(rows, variances, strict=True):
            members = np.flatnonzero(row)
            for i in members:
                for j in members:
                    normal[int(i), int(j)] += 1 / mpmath.mpf(float(variance))
        inverse = normal**-1
        return np.array(
            [
                float(
                    mpmath.fsum(
                        inverse[i, j]
                        for i in range(int(a), int(b) + 1)
                        for j in range(int(a), int(b) + 1)
                    )
                )
                for a, b in zip(first, last, strict=True)
            ]
        )


def test_total_of_two_binary_levels_has_four_thirds_of_the_variance():
    variances = np.array([1.0] * 6 + [np.inf])
    whole = np.array([0]), np.ones(1), np.array([3]), np.ones(1)
    variance, square, largest, *_ = tree_spread_ranges(
        3 * variances, np.ones(7), regular_tree(4, 2), *whole
    )
    # Coefficients 2/3 on both inner nodes and 1/3 on the four leaves.
    assert variance[0] == pytest.approx(3 * 4 / 3, rel=1e-15)
    assert square[0] == pytest.approx(4 / 3, rel=1e-15)
    assert largest[0] == pytest.approx(2 / 3, rel=1e-15)


def test_queries_without_leaves_carry_no_noise():
    none = np.zeros(0, dtype=np.int64)
    found = tree_spread_pieces(
        np.ones(7),
        np.ones(7),
        regular_tree(4, 2),
        np.zeros(3, dtype=np.int64),
        none,
        none,
        none,
    )
    for part in found[:4]:
        np.testing.assert_array_equal(part, [0, 0])
    empty = tree_spread_ranges(
        np.ones(7), np.ones(7), regular_tree(4, 2), none, none, none, none
    )
    assert [part.shape for part in empty] == [(0,)] * 5


def test_malformed_queries_are_refused():
    tree = np.ones(7), np.ones(7), regular_tree(4, 2)
    one, zero = np.ones(1), np.zeros(1, dtype=np.int64)
    with pytest.raises(InputError, match="one number per node"):
        tree_spread_ranges(
            np.ones(6), np.ones(7), regular_tree(4, 2), zero, one, zero, one
        )
    with pytest.raises(InputError, match="scales"):
        tree_spread_ranges(
            np.ones(7), np.ones(6), regular_tree(4, 2), zero, one, zero, one
        )
    with pytest.raises(InputError, match="one length"):
        tree_spread_ranges(*tree, zero, one, zero, np.ones(2))
    with pytest.raises(InputError, match=r"within 0\.\.3"):
        tree_spread_ranges(*tree, zero, one, zero + 4, one)
    with pytest.raises(InputError, match=r"within 0\.\.3"):
        tree_spread_ranges(*tree, zero + 2, one, zero + 1, one)
    pieces = np.array([0, 2]), np.array([0, 1]), np.array([2, 3])
    with pytest.raises(InputError, match="sorted and disjoint"):
        tree_spread_pieces(*tree, *pieces, np.ones(2))
    with pytest.raises(InputError, match="one value"):
        tree_spread_pieces(*tree, pieces[0], np.array([0, 2]), pieces[2], np.ones(3))


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 16), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.7]))
def test_irregular_trees_equal_dense_algebra(leaves, seed, unmeasured):
    rng = np.random.default_rng(seed)
    parents = trees.random_parents(rng, leaves)
    tree = tree_of_parents(parents)
    variances = rng.uniform(0.5, 3.0, parents.size)
    variances[rng.random(parents.size) < unmeasured] = np.inf
    scales = rng.uniform(0.5, 2.0, parents.size)
    noisy = np.isfinite(variances)
    fits = [trees.dense_fit(one, variances, parents) for one in np.eye(parents.size)]
    response = np.stack(fits, axis=1)[:, noisy]
    pieces, ranges = random_pieces(rng, leaves, 6), random_ranges(rng, leaves, 6)
    for found, queries in (
        (
            tree_spread_pieces(variances, scales, tree, *pieces),
            reference.rows_of_pieces(leaves, *pieces),
        ),
        (
            tree_spread_ranges(variances, scales, tree, *ranges),
            reference.rows_of_ranges(leaves, *ranges),
        ),
    ):
        weights = queries @ response
        scaled = weights * scales[noisy]
        expected = (
            (weights**2 * variances[noisy]).sum(axis=1),
            (scaled**2).sum(axis=1),
            np.abs(scaled).max(axis=1, initial=0.0),
        )
        for got, want in zip(found[:3], expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
