"""Ordered hierarchical end to end: error as predicted, both ends, the printed bug."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.grey_box import edge_cost
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import OrderedHierarchy
from blowfish_fast.measure.strategies.trees.tree_weights import level_tree
from tests.reference.ordered_hierarchy import dense_rows, printed_rates, worst_move

CELLS = 96
LINE = bf.Domain(CELLS)
RANGES = bf.workloads.Ranges.random(LINE, 100, rng=1)
COUNTS = np.repeat([3, 0, 40, 1], 24)
POLICIES = {
    "line": bf.policies.Line(LINE),
    "threshold": bf.policies.Threshold(LINE, theta=12),
    "full": bf.policies.Full(LINE),
    "blocks": bf.policies.Blocks(LINE, np.repeat([1, 0, 2], [10, 36, 50])),
    "add_remove": bf.policies.AddRemove(LINE),
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_isotonic_fit_is_free_monotone_and_bounded(name):
    policy = POLICIES[name]
    raw = bf.mechanisms.OrderedHierarchical(
        policy, RANGES, epsilon=0.1, fit=None
    ).release(COUNTS, rng=3)
    release = bf.mechanisms.OrderedHierarchical(policy, RANGES, epsilon=0.1).release(
        COUNTS, rng=3
    )
    assert release.estimate.min() >= 0
    assert (release.unfitted == raw.estimate).all()
    truth = RANGES.answer(COUNTS)
    assert (
        np.square(release.answer(RANGES) - truth).mean()
        < np.square(raw.answer(RANGES) - truth).mean()
    )
    if name == "blocks":
        for part in (slice(10), slice(10, 46), slice(46, 96)):
            assert release.estimate[part].sum() == pytest.approx(COUNTS[part].sum())
            assert raw.estimate[part].sum() == pytest.approx(COUNTS[part].sum())


@pytest.mark.parametrize("fit", [None, "isotonic"])
def test_under_a_line_policy_it_is_the_ordered_mechanism(fit):
    policy = POLICIES["line"]
    chain = bf.mechanisms.OrderedHierarchical(policy, RANGES, epsilon=0.3, fit=fit)
    ordered = bf.Ordered(policy, RANGES, epsilon=0.3, fit=fit)
    one, two = chain.release(COUNTS, rng=4), ordered.release(COUNTS, rng=4)
    np.testing.assert_allclose(one.estimate, two.estimate, atol=1e-9)
    np.testing.assert_allclose(chain.expected_error(), ordered.expected_error())


@pytest.mark.parametrize("fan_out", [2, 4])
def test_with_one_block_it_is_the_uniform_hierarchy(fan_out):
    line = bf.Domain(64)
    policy = bf.policies.Threshold(line, theta=64)
    asked = bf.workloads.AllRanges(line)
    mechanism = bf.mechanisms.OrderedHierarchical(
        policy, asked, epsilon=1, fan_out=fan_out
    )
    tree = level_tree(64, fan_out, root_exact=True, geometric=False)
    scales = tree.scales(bf.policies.Full(line), Fraction(1))
    total = tree.total_variance(asked.form(Buckets.single_cells(64)), scales)
    assert mechanism.expected_total_error() == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    ("levels", "borders", "cost"), [(1, 0.5, 1.25), (2, 0.5, 1.0), (2, 0.25, 1.125)]
)
def test_o1_the_printed_noise_of_the_first_block_overspends(levels, borders, cost):
    length = 2**levels
    edges, fan_outs = np.arange(0, 4 * length + 1, length), [2] * 4
    rates = printed_rates(edges, fan_outs, levels, borders, 1 - borders)
    rows = dense_rows(edges, fan_outs)
    cells = 4 * length
    far = np.minimum(np.arange(cells) + length, cells - 1)
    units = np.rint(rates * 2**20).astype(int)
    worst = worst_move(units, rows, far, np.zeros(cells, dtype=bool))
    assert worst / 2**20 == pytest.approx(cost)


def test_o1_the_audit_finds_the_printed_noise():
    edges, fan_outs = np.array([0, 2, 4, 6]), np.array([2, 2, 2])
    strategy = OrderedHierarchy(edges, fan_outs, np.ones(3), np.ones(3))
    rates = printed_rates(edges, fan_outs, 1, 0.5, 0.5)
    exact = np.zeros(rates.size, dtype=bool)
    exact[2] = True
    scales = Scales(np.rint(rates * 2**20).astype(np.int64), 2**20, exact)
    nothing = np.zeros(rates.size, dtype=np.int64)
    measured = Measurement(
        strategy.with_noise(scales), nothing, Buckets.single_cells(6)
    )
    assert edge_cost(measured, 1, 2) == Fraction(5, 4)
    assert edge_cost(measured, 3, 4) == 1
    policy = bf.policies.Threshold(bf.Domain(6), theta=2)
    assert strategy.cost(policy, scales) == Fraction(5, 4)


def test_a_wider_reach_costs_accuracy():
    line = bf.Domain(256)
    asked = bf.workloads.AllRanges(line)
    errors = [
        bf.mechanisms.OrderedHierarchical(
            bf.policies.Threshold(line, theta=theta), asked, epsilon=0.5
        ).expected_total_error()
        for theta in (1, 4, 16, 64, 200)
    ]
    assert errors == sorted(errors)


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("fit", [None, "isotonic"])
def test_tiny_lines_work(cells, fit):
    domain = bf.Domain(cells)
    asked = bf.workloads.Identity(domain)
    for policy in (
        bf.policies.Line(domain),
        bf.policies.Full(domain),
        bf.policies.AddRemove(domain),
        bf.policies.Blocks(domain, np.arange(cells)),
    ):
        mechanism = bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=2, fit=fit)
        release = mechanism.release([5] * cells, rng=1)
        assert release.intervals(asked).shape == (cells, 2)
        if not policy.has_bottom:
            assert release.estimate.sum() == pytest.approx(5 * cells)


def test_details_say_what_was_built():
    release = bf.mechanisms.OrderedHierarchical(
        POLICIES["threshold"], RANGES, epsilon=1, fan_out=3
    ).release(COUNTS, rng=1)
    assert release.details["fan_outs"] == [3]
    assert release.details["blocks"] == 8
    assert release.details["block_edges"].tolist() == list(range(0, 97, 12))
