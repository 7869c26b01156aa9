"""Sizes of grids, the number of records, and measurements made one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DataDependentError, InputError
from blowfish_fast.kernels import tree_of_parents
from blowfish_fast.measure.handle import Account, Handle, Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import TreeStrategy
from blowfish_fast.measure.strategies.trees.box_tree import (
    Layer,
    as_records,
    count_epsilon,
    one_measurement,
    parts_per_axis,
    rough_total,
)
from blowfish_fast.policies import AddRemove, Full, Graph
from tests.reference.trees import dense_fit

COUNTS = np.array([3, 0, 4, 1])


def handle(policy, counts=COUNTS):
    return Handle(counts, policy, Account(Fraction(1)), Randomness(1))


def test_a_million_records_at_a_tenth_make_a_hundred_parts():
    # Oracle B8.
    assert parts_per_axis(np.array([[256, 256]]), [1e6], 0.1, 10.0).tolist() == [
        [100, 100]
    ]


def test_parts_stay_between_one_and_the_cells():
    sides = np.array([[8, 3], [8, 3], [5, 1]])
    parts = parts_per_axis(sides, [-5.0, 1e300, 64.0], 1.0, 1.0)
    assert parts.tolist() == [[1, 1], [8, 3], [5, 1]]
    least = parts_per_axis(sides[:1], [0.0], 1.0, 1.0, least=4)
    assert least.tolist() == [[4, 3]]


def test_a_line_is_cut_by_the_power_of_two_thirds():
    assert parts_per_axis(np.array([[1000]]), [10_000.0], 1.0, 10.0).tolist() == [[100]]


def test_a_public_number_is_read_and_a_given_one_is_taken():
    domain = Domain(4)
    read = rough_total(handle(Full(domain)), None, budget=Fraction(1, 10))
    assert read == (8.0, [])
    given = rough_total(handle(AddRemove(domain)), 50, budget=Fraction(1, 10))
    assert given == (50.0, [])


@pytest.mark.parametrize(
    "policy",
    [AddRemove(Domain(4)), Graph(Domain(4), [[0, 1], [2, -1]])],
    ids=["add_remove", "graph"],
)
def test_a_private_number_is_bought(policy):
    private = handle(policy)
    records, (bought,) = rough_total(private, None, budget=Fraction(1, 10))
    assert private.remaining == Fraction(9, 10)
    assert bought is not None
    assert records == max(bought.noisy[0], 0)
    assert bought.scales.measured.tolist() == [True]


def test_a_dry_run_knows_no_number():
    dry_run = Handle(None, Full(Domain(4)), Account(Fraction(1)), None)
    with pytest.raises(DataDependentError, match="records="):
        rough_total(dry_run, None, budget=Fraction(1, 10))
    assert rough_total(dry_run, 7, budget=Fraction(1, 10)).records == 7.0


def test_a_move_changes_two_counts():
    assert count_epsilon(AddRemove(Domain(4)), Fraction(1)) == 1.0
    assert count_epsilon(Full(Domain(4)), Fraction(1)) == 0.5


@pytest.mark.parametrize("value", [-1, 1.5, "many", [1, 2]], ids=str)
def test_records_that_are_no_count_are_refused(value):
    with pytest.raises(InputError, match="records"):
        as_records(value)


def test_layers_are_fitted_together(generator):
    parents = np.array([4, 4, 5, 5, 6, 6, -1])
    buckets = Buckets.single_cells(4)
    none = np.zeros(7, dtype=bool)
    leaf_rates = np.array([4, 4, 4, 4, 0, 0, 0])
    noisy = generator.integers(0, 50, 7)
    fine = Measurement(
        TreeStrategy(tree_of_parents(parents), np.ones(7)).with_noise(
            Scales(leaf_rates, 16, none)
        ),
        noisy,
        buckets,
    )
    coarse = Measurement(
        TreeStrategy(tree_of_parents(np.array([2, 2, -1])), np.ones(3)).with_noise(
            Scales(np.array([1, 1, 0]), 2, np.array([False, False, True]))
        ),
        np.array([30, 12, 44]),
        Buckets(np.array([0, 2, 4])),
    )
    both = one_measurement(
        fine.strategy.tree,
        buckets,
        [Layer(fine, np.arange(7)), Layer(coarse, np.array([4, 5, 6]))],
    )
    assert both.scales.unit == 16
    assert both.scales.rates.tolist() == [4, 4, 4, 4, 8, 8, 0]
    assert both.scales.exact.tolist() == [False] * 6 + [True]
    rows = np.concatenate([noisy[:4], [30, 12, 44]]).astype(float)
    expected = dense_fit(rows, both.scales.variances, parents)
    np.testing.assert_allclose(both.estimate(), expected, atol=1e-4)
    assert both.estimate().sum() == pytest.approx(44)


def test_a_node_is_measured_once():
    one = Measurement(
        TreeStrategy(tree_of_parents(np.array([-1])), np.ones(1)).with_noise(
            Scales(np.array([1]), 1, np.array([False]))
        ),
        np.array([3]),
        Buckets(np.array([0, 1])),
    )
    with pytest.raises(AssertionError, match="twice"):
        one_measurement(one.strategy.tree, one.buckets, [Layer(one, np.array([0]))] * 2)
