"""Transformed keeps its promise on every graph, and planted bugs are caught."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
import blowfish_fast.measure.selectors.partitions.dyadic as dyadic_tree
from blowfish_fast.audit import audit_measurements, audit_release
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost, Partition
from blowfish_fast.measure.strategies import PrefixSums, SpanningTree
from blowfish_fast.measure.strategies.strategy_choice import NAMES, all_choices
from blowfish_fast.policies import Policy
from tests.generated import example_count
from tests.mechanisms.test_transformed import Fixed
from tests.privacy.least_cost import audit_least_cost
from tests.reference.dyadic_partition import intended_law, largest_log_ratio
from tests.reference.policy_examples import any_policy, bins_over
from tests.reference.shifts import worst_price

LINE = bf.Domain(9)
GRID = bf.Domain((3, 3))
CELLS = bf.workloads.Identity(LINE)


def random_graph(seed, *, absent=False):
    generator = np.random.default_rng(seed)
    low = -1 if absent else 0
    pairs = generator.integers(low, 9, size=(14, 2))
    return bf.policies.Graph(LINE, pairs[pairs[:, 0] != pairs[:, 1]])


GRAPHS = {
    "line": bf.policies.Line(LINE),
    "threshold": bf.policies.Threshold(LINE, 3),
    "cycle": bf.policies.Graph(LINE, [[i, (i + 1) % 9] for i in range(9)]),
    "star": bf.policies.Graph(LINE, [[4, i] for i in range(9) if i != 4]),
    "grid": bf.policies.Graph(
        LINE,
        [pair for chunk in bf.policies.Threshold(GRID, 1).edges() for pair in chunk],
    ),
    "random": random_graph(1),
    "random_absent": random_graph(2, absent=True),
    "parts": bf.policies.Blocks(LINE, [0, 0, 1, 1, 1, 2, 0, 2, 3]),
}
CONTIGUOUS = np.array([0, 0, 1, 2, 2, 2, 3, 3, 4])
SCATTERED = np.array([0, 1, 2, 0, 3, 1, 4, 2, 0])


def cost_of_moves(policy, counts, labels, strategy):
    """Return the exact price of every edge of the whole policy, after bucketing."""
    mechanism = bf.Transformed(
        policy,
        CELLS,
        epsilon="0.7",
        partition=Fixed(labels),
        strategy=strategy,
        fit=None,
    )
    return audit_measurements(mechanism, counts)


# Noise on edges is priced draw by draw below: a sum of draws hides one edge there.
@pytest.mark.long
@pytest.mark.parametrize("strategy", [one for one in NAMES if one != "edge_lines"])
@pytest.mark.parametrize("labels", [CONTIGUOUS, SCATTERED], ids=["runs", "scattered"])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_edge_is_paid_for_through_the_buckets(name, labels, strategy):
    policy = GRAPHS[name]
    if strategy == "h_theta" and policy.has_bottom:
        return
    for price in cost_of_moves(policy, np.arange(9), labels, strategy):
        assert price.passed, price


@pytest.mark.long
@settings(deadline=None, max_examples=example_count(60))
@given(any_policy(), st.data())
def test_strategies_on_any_quotient_cost_what_they_say(policy, data):
    labels = data.draw(bins_over(policy.domain))
    buckets = Buckets.from_labels(labels)
    quotient = policy.project(buckets)
    form = bf.workloads.Identity(policy.domain).form(buckets)
    epsilon = Fraction(7, 10)
    for one in all_choices(quotient, form, epsilon, hurried=True):
        if one.strategy is None or not quotient.edge_count:
            continue
        scales = one.strategy.scales(quotient, epsilon)
        assert one.strategy.cost(quotient, scales) <= epsilon
        # The price found anew, over the edges of the policy itself.
        assert worst_price(one.strategy, scales, quotient) <= epsilon


@pytest.mark.parametrize(
    "partition", [LeastCost(), DyadicTree()], ids=["least", "tree"]
)
@pytest.mark.parametrize("name", ["line", "cycle", "star", "random"])
def test_chosen_buckets_and_noise_stay_within_epsilon(name, partition):
    mechanism = bf.Transformed(GRAPHS[name], CELLS, epsilon="0.7", partition=partition)
    for seed in range(4):
        for price in audit_measurements(mechanism, np.arange(9) // 3 * 20, seed=seed):
            assert price.passed, price


def test_a_tree_that_forgets_its_detours_is_caught(monkeypatch):
    monkeypatch.setattr(
        SpanningTree,
        "worst_edge",
        lambda self, weights, policy, power=1: int(weights.max(initial=0)),
    )
    prices = cost_of_moves(GRAPHS["cycle"], np.arange(9), np.arange(9), "tree")
    assert not all(price.passed for price in prices)
    assert prices[0].worst > 7 * Fraction(62, 100)


def test_noise_for_the_buckets_order_alone_is_caught(monkeypatch):
    # Buckets that are scattered along the line are not a line.
    def like_a_line(self, buckets):
        return bf.policies.Line(bf.Domain(buckets.count))

    monkeypatch.setattr(Policy, "project", like_a_line)
    mechanism = bf.Transformed(
        bf.policies.Line(LINE),
        CELLS,
        epsilon=1,
        partition=Fixed(SCATTERED),
        strategy="ordered",
        fit=None,
    )
    assert isinstance(mechanism, bf.Transformed)
    prices = audit_measurements(mechanism, np.arange(9))
    assert not all(price.passed for price in prices)


def test_reading_a_private_total_is_caught(monkeypatch):
    def leaking(self, policy):
        exact = np.zeros(self.cells, dtype=bool)
        exact[-1] = True
        return exact

    monkeypatch.setattr(PrefixSums, "exact_rows", leaking)
    mechanism = bf.Transformed(
        bf.policies.AddRemove(LINE),
        CELLS,
        epsilon=1,
        partition=Fixed(CONTIGUOUS),
        strategy="ordered",
        fit=None,
    )
    price = audit_measurements(mechanism, np.arange(9))[0]
    assert price.worst == np.inf
    assert not price.passed


def test_the_grid_decides_by_a_number_that_no_edge_changes():
    policy = bf.policies.Threshold(GRID, 1)
    asked = bf.workloads.Rectangles.random(GRID, 8, rng=1)
    mechanism = bf.Transformed(policy, asked, epsilon=1)
    counts = np.full((3, 3), 40)
    moved = counts.copy()
    moved[0, 0] -= 1
    moved[0, 1] += 1
    kinds = {
        mechanism.release(data, rng=seed).details["strategy"]
        for data in (counts, moved)
        for seed in range(3)
    }
    assert len(kinds) == 1
    added = counts.copy()
    added[0, 0] += 100_000
    lines = mechanism.release(added, rng=1)
    assert lines.details["strategy"] == "edge_lines"
    (measured,) = lines.measurements
    assert worst_price(measured.strategy, measured.scales, policy) <= 1


LINE_OF_FOUR = bf.Domain(4)
FOUR = bf.workloads.Identity(LINE_OF_FOUR)
ALONG = (np.array([1, 0, 8, 8]), np.array([0, 1, 8, 8]))
ACROSS = (np.array([1, 0, 8, 8]), np.array([0, 0, 9, 8]))
SMALL_GRAPHS = {
    "line": (bf.policies.Line(LINE_OF_FOUR), ALONG),
    "cycle": (
        bf.policies.Graph(LINE_OF_FOUR, [[0, 1], [1, 2], [2, 3], [3, 0]]),
        ALONG,
    ),
    "star": (bf.policies.Graph(LINE_OF_FOUR, [[0, 2], [2, 1], [2, 3]]), ACROSS),
}


@pytest.mark.audit
@pytest.mark.parametrize("name", SMALL_GRAPHS)
@pytest.mark.parametrize("partition", [LeastCost(offset=0), DyadicTree()])
def test_whole_releases_stay_within_epsilon(name, partition):
    policy, pair = SMALL_GRAPHS[name]
    mechanism = bf.Transformed(
        policy,
        FOUR,
        epsilon=1,
        partition=partition,
        share="0.5",
        strategy="edges",
        fit=None,
    )

    def event(release):
        measurement = release.measurements[0]
        first = int(measurement.noisy[0]) // 4
        return tuple(measurement.buckets.edges.tolist()), min(max(first, -2), 4)

    finding = audit_release(mechanism, pair, event=event, samples=600)
    assert finding.passed, str(finding)


class Asked(NamedTuple):
    """What a partition was asked to choose, and under which policy and epsilon."""

    partition: Partition
    policy: Policy
    epsilon: Fraction


def asked_of(policy, partition, epsilon):
    """Run Transformed up to the private choice of buckets."""
    seen = []
    original = type(partition).select

    def watching(self, counts, *, policy, epsilon, rng):
        seen.append(Asked(self, policy, epsilon))
        return original(self, counts, policy=policy, epsilon=epsilon, rng=rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(partition), "select", watching)
        bf.Transformed(policy, FOUR, epsilon=epsilon, partition=partition).release(
            [1, 0, 8, 8], rng=1
        )
    (one,) = seen
    return one


def exact_ratio(asked, pair):
    """Return the exact log-ratio of the sampled partition's law on a pair."""
    partition, distance = asked.partition, dyadic_tree.record_distance(asked.policy)
    laws = [
        intended_law(
            counts.tolist(),
            partition.rate(4, asked.epsilon / distance),
            partition.price * partition.bucket_cost,
            length_weights=partition.length_weights(4),
        )
        for counts in pair
    ]
    return largest_log_ratio(*laws)


STAR = bf.policies.Graph(LINE_OF_FOUR, [[3, 0], [3, 1], [3, 2]])
CYCLE = SMALL_GRAPHS["cycle"][0]
PAIRS = [
    (STAR, (np.array([4, 4, 0, 9]), np.array([4, 5, 0, 8]))),
    (STAR, (np.array([0, 5, 9, 9]), np.array([1, 5, 9, 8]))),
    (CYCLE, (np.array([0, 5, 9, 9]), np.array([1, 5, 9, 8]))),
    (CYCLE, (np.array([9, 0, 0, 9]), np.array([8, 1, 0, 9]))),
]
PRICES = (0.05, 0.5, 2.0, 8.0)


@pytest.mark.audit
def test_dropping_the_half_of_epsilon_is_caught(monkeypatch):
    # A record that moves is a removal and an addition: at the full epsilon the choice
    # of buckets alone reveals more than was paid for it.
    for policy, pair in PAIRS:
        for price in PRICES:
            asked = asked_of(policy, DyadicTree(price=price), 16)
            assert asked.epsilon == 4
            assert exact_ratio(asked, pair) <= asked.epsilon
    monkeypatch.setattr(dyadic_tree, "record_distance", lambda policy: 1)
    worst = max(
        exact_ratio(asked_of(policy, DyadicTree(price=price), 16), pair)
        for policy, pair in PAIRS
        for price in PRICES
    )
    assert worst > 4


@pytest.mark.audit
def test_the_least_cost_choice_is_asked_for_at_its_share_and_stays_within():
    for policy, pair in PAIRS:
        asked = asked_of(policy, LeastCost(offset=0), 2)
        assert asked.epsilon == 1
        finding = audit_least_cost(
            asked.partition, asked.policy, pair, epsilon=asked.epsilon, samples=100_000
        )
        assert finding.passed, str(finding)
