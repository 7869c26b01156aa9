"""Two measurements as one: combination, spread, intervals, file."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.noise import laplace_variance
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import Cells, StackedBuckets
from blowfish_fast.measure.strategies.stacked_buckets import stacked
from blowfish_fast.workloads import Ranges
from tests.reference.forms import dense_form
from tests.reference.spread import dense_spread

COUNTS = np.array([4, 4, 5, 90, 88, 0, 0, 1])
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2])


def two_steps(policy, labels, *, first="0.3", second="0.5", seed=1):
    handle = Handle(COUNTS, policy, Account(Fraction(2)), Randomness(seed))
    cells = handle.measure(Cells.under(policy), budget=Fraction(first))
    boxed = handle.coarsened(Buckets.from_labels(labels))
    fresh = boxed.measure(Cells.under(boxed.policy), budget=Fraction(second))
    return cells, fresh


def policies():
    line = bf.Domain(8)
    return {
        "add_remove": bf.policies.AddRemove(line),
        "full": bf.policies.Full(line),
        "blocks": bf.policies.Blocks(line, [0, 0, 0, 1, 1, 1, 1, 1]),
        "graph": bf.policies.Graph(line, [[0, 1], [1, 2], [3, 4], [5, 6], [7, -1]]),
    }


LABELLED = {"graph": np.array([0, 0, 0, 1, 1, 2, 2, 3])}


def dense_least_squares(both):
    """Return the estimate of every cell along the order, exact rows met exactly."""
    rows = np.stack(
        [both.strategy.rows(one) for one in np.eye(8, dtype=np.int64)], axis=1
    ).astype(float)
    variances = both.scales.variances
    kept = np.isfinite(variances)
    exact = kept & (variances == 0)
    noisy = kept & ~exact
    inner = rows[noisy].T @ (rows[noisy] / variances[noisy, None])
    right = rows[noisy].T @ (both.noisy[noisy] / variances[noisy])
    known = rows[exact]
    system = np.block([[inner, known.T], [known, np.zeros((len(known), len(known)))]])
    solved, *_ = np.linalg.lstsq(
        system, np.concatenate([right, both.noisy[exact]]), rcond=None
    )
    return solved[:8]


@pytest.mark.parametrize("name", ["add_remove", "full", "blocks", "graph"])
def test_cells_are_those_of_dense_least_squares(name):
    policy = policies()[name]
    both = stacked(*two_steps(policy, LABELLED.get(name, LABELS)), uniform=False)
    found = both.strategy.infer(both.noisy, both.scales)
    np.testing.assert_allclose(found, dense_least_squares(both), atol=1e-8)


@pytest.mark.parametrize("name", ["add_remove", "full", "blocks", "graph"])
def test_uniform_cells_keep_the_totals_of_their_buckets(name):
    policy = policies()[name]
    measured = two_steps(policy, LABELLED.get(name, LABELS))
    exact = stacked(*measured, uniform=False)
    even = stacked(*measured, uniform=True)
    edges = even.strategy.edges
    totals = np.add.reduceat(
        exact.strategy.infer(exact.noisy, exact.scales), edges[:-1]
    )
    expected = np.repeat(totals / np.diff(edges), np.diff(edges))
    found = even.strategy.infer(even.noisy, even.scales)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("name", ["add_remove", "full", "blocks"])
def test_spread_is_what_unit_noises_give(name, uniform):
    policy = policies()[name]
    both = stacked(*two_steps(policy, LABELS), uniform=uniform)
    form = Ranges.random(policy.domain, 20, rng=3).explicit_form(both.buckets)
    got = both.strategy.spread(form, both.scales)
    want = dense_spread(both.strategy, both.scales, form, 8)
    np.testing.assert_allclose(got.variance, want.variance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.square, want.square, rtol=1e-9, atol=1e-9)
    assert (got.largest >= want.largest * (1 - 1e-9) - 1e-12).all()
    total = both.strategy.total_variance(form, both.scales)
    assert total == pytest.approx(want.variance.sum())


def test_k2_two_counts_of_nine_cells_combine_to_nine_tenths():
    """Nine cells at half of epsilon 1 and a fresh count: 8 * 9 / 10 if continuous."""
    line = bf.Domain(9)
    policy = bf.policies.AddRemove(line)
    handle = Handle(np.zeros(9, int), policy, Account(Fraction(1)), Randomness(1))
    cells = handle.measure(Cells.under(policy), budget=Fraction(1, 2))
    boxed = handle.coarsened(Buckets(np.array([0, 9])))
    fresh = boxed.measure(Cells.under(boxed.policy), budget=Fraction(1, 2))
    both = stacked(cells, fresh, uniform=True)
    form = bf.workloads.Total(line).explicit_form(both.buckets)
    spread = both.strategy.spread(form, both.scales)
    discrete = float(laplace_variance(2.0))
    assert spread.variance[0] == pytest.approx(discrete * 9 / 10)
    # The paper's continuous noise, as in ALGORITHMS: 2 b^2 = 8 in place of 7.83.
    assert pytest.approx(7.2) == 8 * 9 / 10
    assert both.noisy[:9].sum() != both.noisy[9]
    weights = np.array([1 / 9, 1]) / discrete
    combined = (weights * [both.noisy[:9].sum(), both.noisy[9]]).sum() / weights.sum()
    assert both.estimate().sum() == pytest.approx(combined)


def test_k6_a_merged_quarter_has_a_sixteenth_of_the_variance():
    line = bf.Domain(4)
    policy = bf.policies.AddRemove(line)
    one = bf.workloads.Ranges(line, [0], [1])
    handle = Handle(np.full(4, 100), policy, Account(Fraction(1)), Randomness(1))
    boxed = handle.coarsened(Buckets(np.array([0, 4])))
    merged = boxed.measure(Cells.under(boxed.policy), budget=Fraction(1))
    merged_spread = merged.strategy.spread(
        one.explicit_form(merged.buckets), merged.scales
    )
    apart = bf.Laplace(policy, one, epsilon=1).expected_error()
    assert merged_spread.variance / apart == pytest.approx(1 / 16)


def test_units_of_both_steps_are_brought_together():
    policy = policies()["add_remove"]
    cells, fresh = two_steps(policy, LABELS, first="0.01", second="1")
    both = stacked(cells, fresh, uniform=True)
    assert cells.scales.unit != fresh.scales.unit
    expected = np.concatenate([cells.scales.widths[:8], fresh.scales.widths])
    np.testing.assert_array_equal(both.scales.widths, expected)


def test_packs_and_unpacks():
    both = stacked(*two_steps(policies()["full"], LABELS), uniform=True)
    copy = StackedBuckets.unpack(both.strategy.pack())
    np.testing.assert_array_equal(
        copy.infer(both.noisy, both.scales),
        both.strategy.infer(both.noisy, both.scales),
    )
    form = Ranges.random(bf.Domain(8), 5, rng=1).explicit_form(both.buckets)
    assert dense_form(form, 8).shape == (5, 8)


def test_refuses_buckets_that_do_not_fit():
    both = stacked(*two_steps(policies()["full"], LABELS), uniform=True)
    packed = both.strategy.pack()
    with pytest.raises(InputError, match="bucket"):
        StackedBuckets.unpack({**packed, "edges": np.array([0, 4, 8])})


@pytest.mark.parametrize("kind", ["Identity", "Total", "Prefixes", "AllRanges"])
def test_totals_over_uniform_buckets_are_those_of_the_list(kind, monkeypatch):
    both = stacked(*two_steps(policies()["full"], LABELS), uniform=True)
    asked = getattr(bf.workloads, kind)(bf.Domain(8))
    found = both.strategy.total_variance(asked.form(both.buckets), both.scales)
    listed = asked.explicit_form(both.buckets)
    assert found == pytest.approx(both.strategy.total_variance(listed, both.scales))
    monkeypatch.setattr("blowfish_fast.measure.linear_strategy.MOST_LISTED", 7)
    with pytest.raises(SizeError, match="too many to list"):
        both.strategy.total_variance(asked.form(both.buckets), both.scales)


def test_refuses_parts_that_are_torn_apart():
    line = bf.Domain(8)
    policy = bf.policies.Blocks(line, [0, 0, 1, 1, 0, 0, 1, 1])
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    with pytest.raises(InputError, match="next to each other"):
        stacked(*two_steps(policy, labels), uniform=True)


@pytest.mark.parametrize("uniform", [True, False])
def test_cells_with_too_much_noise_leave_the_fresh_counts(uniform):
    policy = policies()["add_remove"]
    cells, fresh = two_steps(policy, LABELS, first="1e-15", second="1")
    assert not cells.scales.measured.any()
    both = stacked(cells, fresh, uniform=uniform)
    sums = fresh.buckets.sum(both.estimate())
    np.testing.assert_allclose(sums, fresh.noisy[:3])
    ranges = bf.workloads.Ranges(policy.domain, [0, 0], [3, 1])
    spread = both.strategy.spread(ranges.explicit_form(both.buckets), both.scales)
    assert spread.variance[0] == pytest.approx(fresh.scales.variances[0])
    assert np.isinf(spread.variance[1]) == (not uniform)


def test_fresh_counts_with_too_much_noise_leave_the_cells():
    policy = policies()["add_remove"]
    cells, fresh = two_steps(policy, LABELS, first="1", second="1e-15")
    both = stacked(cells, fresh, uniform=False)
    np.testing.assert_allclose(both.estimate(), cells.noisy[:8])


def test_could_be_measured_in_one_step_too():
    policy = policies()["full"]
    strategy = stacked(*two_steps(policy, LABELS), uniform=True).strategy
    scales = strategy.scales(policy, Fraction(1))
    assert strategy.cost(policy, scales) <= 1
    # A move changes two cells and two buckets: a quarter of epsilon each.
    assert scales.widths[0] == pytest.approx(4, rel=1e-6)
    assert strategy.rows(COUNTS)[8:].tolist() == [13, 178, 1, 192]
    exact = stacked(*two_steps(policy, LABELS), uniform=False).strategy
    form = bf.workloads.Prefixes(policy.domain).form(Buckets.single_cells(8))
    listed = bf.workloads.Prefixes(policy.domain).explicit_form(Buckets.single_cells(8))
    assert exact.total_variance(form, scales) == pytest.approx(
        exact.spread(listed, scales).variance.sum()
    )


@pytest.mark.parametrize("edges", [[0], [1, 2, 3], [0, 2, 2], [0, 3, 2]])
def test_bucket_edges_rise_from_0(edges):
    with pytest.raises(InputError, match="bucket edges rise from 0"):
        StackedBuckets(np.array([2, 2, -1]), np.array(edges), uniform=True)


def test_a_bucket_weighs_its_draws_by_their_squares():
    """Its total is a share of each cell's draw and the rest of the fresh one."""
    policy = policies()["add_remove"]
    both = stacked(*two_steps(policy, LABELS), uniform=False)
    combined = both.strategy.combined(both.scales)
    share = combined.share
    assert ((share > 0.05) & (share < 0.95)).all()
    expected = [3 * share[0] ** 2, 2 * share[1] ** 2, 3 * share[2] ** 2]
    expected += (1 - share) ** 2
    np.testing.assert_allclose(combined.squares[:3], expected)
