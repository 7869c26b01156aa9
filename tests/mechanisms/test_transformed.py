"""Transformed: partitions, the quotient, the choice of strategy, fits, bad input."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DataDependentError, InputError, PolicyError, SizeError
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.noise import noise_mean_size
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost, Partition
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.partitions.noisy_sort import NoisySort
from blowfish_fast.measure.strategies import Explicit
from blowfish_fast.measure.strategies.strategy_choice import NAMES, mean_difference_size
from blowfish_fast.mechanisms import transformed
from blowfish_fast.mechanisms.transformed import SHARES
from tests.generated import example_count
from tests.reference.policy_examples import any_policy, bins_over
from tests.reference.policy_graphs import edges_of

LINE = bf.Domain(24)
CELLS = bf.workloads.Identity(LINE)
RANGES = bf.workloads.Ranges.random(LINE, 20, rng=1)
STEPS = np.repeat([2, 30, 0, 9], 6)
PARTITIONS = [
    LeastCost(),
    DyadicTree(),
    MatchingPairs(),
    MatchingPairs(2),
    NoisySort(),
    None,
]
GRAPHS = {
    "line": bf.policies.Line(LINE),
    "threshold": bf.policies.Threshold(LINE, 3),
    "cycle": bf.policies.Graph(LINE, [[i, (i + 1) % 24] for i in range(24)]),
    "star": bf.policies.Graph(LINE, [[0, i] for i in range(1, 24)]),
    "parts": bf.policies.Blocks(LINE, np.arange(24) % 3),
    "absent": bf.policies.Graph(LINE, [[0, 1], [1, -1], [2, 3], [20, -1]]),
    "add_remove": bf.policies.AddRemove(LINE),
    "full": bf.policies.Full(LINE),
}


class Fixed(Partition):
    """Buckets that were agreed on beforehand: a partition that reads nothing."""

    name = "fixed"

    def __init__(self, labels):
        self.buckets = Buckets.from_labels(np.asarray(labels))

    @property
    def default_share(self):
        from fractions import Fraction

        return Fraction(1, 10)

    def _choose(self, counts, policy, epsilon, rng):
        return self.buckets


def part_labels(policy):
    labels = policy.components().labels
    return np.zeros(policy.domain.size, dtype=int) if labels is None else labels


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "partition", PARTITIONS, ids=lambda one: getattr(one, "name", one)
)
def test_every_partition_works_under_every_graph(name, partition):
    policy = GRAPHS[name]
    for workload in (CELLS, RANGES):
        mechanism = bf.Transformed(policy, workload, epsilon=1, partition=partition)
        release = mechanism.release(STEPS, rng=3)
        assert release.estimate.shape == (24,)
        assert float(release.guarantee.epsilon) == 1
        assert release.intervals(workload, of="noise").shape == (workload.queries, 2)
        if not policy.has_bottom:
            labels = part_labels(policy)
            sums = np.bincount(labels, release.estimate)
            np.testing.assert_allclose(sums, np.bincount(labels, STEPS), atol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_little_noise_gives_the_counts_back(name):
    for partition in (None, "best"):
        mechanism = bf.Transformed(
            GRAPHS[name], CELLS, epsilon=10**6, partition=partition
        )
        estimate = mechanism.release(STEPS, rng=1).estimate
        np.testing.assert_allclose(estimate, STEPS, atol=0.05)


@pytest.mark.parametrize("strategy", [one for one in NAMES if one != "edge_lines"])
@pytest.mark.parametrize("name", ["threshold", "cycle", "parts", "full"])
def test_every_strategy_can_be_asked_for(strategy, name):
    policy = GRAPHS[name]
    for partition in (None, LeastCost()):
        mechanism = bf.Transformed(
            policy, RANGES, epsilon=1, partition=partition, strategy=strategy
        )
        assert mechanism.release(STEPS, rng=1).estimate.shape == (24,)
    grid = bf.Domain((4, 6))
    on_grid = bf.policies.Attribute(grid)
    asked = bf.workloads.Rectangles.random(grid, 5, rng=1)
    kind = bf.Transformed(
        on_grid, asked, epsilon=1, partition=None, strategy=strategy
    ).release(STEPS.reshape(4, 6), rng=1)
    assert kind.estimate.shape == (4, 6)


def test_edges_win_on_sparse_graphs_and_cells_on_dense_ones():
    chosen = {
        name: bf.Transformed(policy, CELLS, epsilon=1, partition=None)
        .release(STEPS, rng=1)
        .details["strategy"]
        for name, policy in GRAPHS.items()
    }
    assert chosen["line"] == "prefix_sums"
    assert chosen["cycle"] == "edge_noise"
    assert chosen["full"] == chosen["add_remove"] == "cells"


def test_the_prediction_is_the_best_of_all_strategies():
    for policy in GRAPHS.values():
        for workload in (CELLS, RANGES):
            best = bf.Transformed(policy, workload, epsilon=1, partition=None)
            table = bf.compare(policy, workload, epsilon=1)
            least = min(table[name].total for name in NAMES)
            if best.smoothed:
                continue
            assert best.expected_total_error() == pytest.approx(least)


def test_a_partition_makes_the_error_depend_on_the_data():
    mechanism = bf.Transformed(GRAPHS["cycle"], CELLS, epsilon=1)
    with pytest.raises(DataDependentError):
        mechanism.expected_error()
    plain = bf.Transformed(GRAPHS["cycle"], CELLS, epsilon=1, partition=None)
    assert plain.expected_error().shape == (24,)


def test_a_line_is_smoothed_instead_of_bucketed():
    line = GRAPHS["line"]
    best = bf.Transformed(line, CELLS, epsilon="0.5")
    assert best.partition is None
    assert best.smoothed
    release = best.release(STEPS, rng=1)
    assert release.details["strategy"] == "prefix_sums"
    assert (release.estimate >= 0).all()
    assert release.estimate.sum() == pytest.approx(STEPS.sum())
    # Intervals stand around the linear answer, not around the fit.
    assert release.unfitted is not None
    plain = bf.Transformed(line, CELLS, epsilon="0.5", fit=None)
    assert not plain.smoothed
    assert isinstance(plain.partition, DyadicTree)
    for name in ("threshold", "cycle", "parts", "add_remove"):
        assert not bf.Transformed(GRAPHS[name], CELLS, epsilon=1).smoothed


def test_smoothing_and_buckets_lower_the_error_of_cells_on_a_line():
    domain = bf.Domain(512)
    line, cells = bf.policies.Line(domain), bf.workloads.Identity(domain)
    counts = np.repeat(np.random.default_rng(1).integers(0, 200, 16), 32)

    def error(**settings):
        mechanism = bf.Transformed(line, cells, epsilon="0.05", **settings)
        runs = [mechanism.release(counts, rng=seed).estimate for seed in range(5)]
        return np.mean([((run - counts) ** 2).mean() for run in runs])

    linear = error(partition=None, fit=None)
    assert linear == pytest.approx(4 / 0.05**2, rel=0.2)
    assert error(partition=None) < linear
    assert error() < 0.2 * linear
    assert error(partition=DyadicTree()) < 0.5 * linear


def test_contiguous_buckets_of_a_line_form_a_line():
    line = GRAPHS["line"]
    quotient = line.project(Buckets(np.array([0, 5, 6, 20, 24])))
    assert isinstance(quotient, bf.policies.Line | bf.policies.Threshold)
    assert quotient.edge_count == 3
    release = bf.Transformed(
        line, CELLS, epsilon=1, partition=Fixed(np.arange(24) // 6)
    ).release(STEPS, rng=1)
    assert release.details["strategy"] == "prefix_sums"
    assert release.details["buckets"] == 4
    assert release.details["labels"].tolist() == (np.arange(24) // 6).tolist()


def test_buckets_of_a_grid_are_joined_where_they_touch():
    grid = bf.Domain((4, 4))
    policy = bf.policies.Threshold(grid, 1)
    labels = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 2, 3], [2, 2, 2, 3]])
    quotient = policy.project(labels.reshape(-1))
    pairs = {tuple(pair) for chunk in quotient.edges() for pair in chunk.tolist()}
    assert pairs == {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}


@pytest.mark.long
@settings(deadline=None, max_examples=example_count(60))
@given(any_policy(), st.data())
def test_split_and_collapsed_graphs_have_equal_sensitivities(policy, data):
    # Theorem 4.1: G' on buckets against G'', which joins all cells of joined buckets.
    labels = data.draw(bins_over(policy.domain))
    collapsed = policy.project(labels)
    bins = int(labels.max()) + 1
    joined = edges_of(collapsed)
    cells = range(policy.domain.size)
    split = [
        (u, v)
        for u, v in itertools.combinations(cells, 2)
        if labels[u] == labels[v]
        or (min(labels[u], labels[v]), max(labels[u], labels[v])) in joined
    ]
    split += [(u, -1) for u in cells if (int(labels[u]), -1) in joined]
    fine = bf.policies.Graph(policy.domain, np.array(split).reshape(-1, 2))
    value = st.integers(-3, 3)
    row = st.lists(value, min_size=bins, max_size=bins)
    queries = np.array(data.draw(st.lists(row, min_size=1, max_size=3)))
    on_bins = bf.workloads.Linear(collapsed.domain, queries)
    on_cells = bf.workloads.Linear(policy.domain, queries[:, labels])
    moved = bf.sensitivity(collapsed, on_bins)
    assert float(moved) == float(bf.sensitivity(fine, on_cells))
    # Lemma 4.1: the policy itself moves these queries no further, and just as far.
    assert float(bf.sensitivity(policy, on_cells)) == float(moved)


def test_one_bucket_and_one_cell_per_bucket():
    for name, policy in GRAPHS.items():
        lonely = bf.Transformed(
            policy, CELLS, epsilon=1, partition=Fixed(np.zeros(24, dtype=int))
        ).release(STEPS, rng=1)
        assert lonely.details["buckets"] == 1
        if name not in ("parts", "absent", "add_remove"):
            np.testing.assert_allclose(lonely.estimate, STEPS.mean())
        single = bf.Transformed(
            policy, CELLS, epsilon=1, partition=Fixed(np.arange(24))
        ).release(STEPS, rng=1)
        assert single.details["buckets"] == 24


def test_buckets_that_mix_parts_still_meet_every_public_total():
    policy = bf.policies.Blocks(LINE, np.arange(24) % 3)
    mixing = Fixed(np.arange(24) // 4)
    for workload in (CELLS, RANGES):
        release = bf.Transformed(policy, workload, epsilon=1, partition=mixing).release(
            STEPS, rng=1
        )
        sums = np.bincount(np.arange(24) % 3, release.estimate)
        np.testing.assert_allclose(sums, np.bincount(np.arange(24) % 3, STEPS))
        assert release.unfitted is not None
    # Parts of one cell are exact, whatever the buckets.
    lonely = bf.policies.Graph(LINE, [[0, 1], [1, 2]])
    estimate = (
        bf.Transformed(lonely, CELLS, epsilon=1, partition=mixing)
        .release(STEPS, rng=1)
        .estimate
    )
    np.testing.assert_allclose(estimate[3:], STEPS[3:])
    linear = bf.Transformed(lonely, CELLS, epsilon=1, partition=mixing, fit=None)
    assert linear.release(STEPS, rng=1).unfitted is None


def test_the_price_of_a_bucket_is_that_of_the_noise_in_use():
    seen = []

    class Watching(LeastCost):
        def priced(self, bucket_cost):
            seen.append(bucket_cost)
            return super().priced(bucket_cost)

    for name, expected in (
        ("line", mean_difference_size(1 / 0.05)),
        ("full", noise_mean_size(2 / 0.05)),
        ("add_remove", noise_mean_size(1 / 0.05)),
    ):
        bf.Transformed(
            GRAPHS[name], CELLS, epsilon="0.1", partition=Watching()
        ).release(STEPS, rng=1)
        assert seen.pop() == pytest.approx(expected, rel=1e-6)
    bf.Transformed(
        GRAPHS["line"], CELLS, epsilon="0.1", partition=Watching(), strategy="cells"
    ).release(STEPS, rng=1)
    assert seen.pop() == pytest.approx(noise_mean_size(2 / 0.05), rel=1e-6)


def test_shares_are_spent_as_stated():
    for partition, share in (
        (LeastCost(), "1/2"),
        (DyadicTree(), "1/4"),
        (MatchingPairs(2), str(MatchingPairs(2).default_share)),
        (Fixed(np.arange(24)), "1/10"),
    ):
        mechanism = bf.Transformed(
            GRAPHS["full"], CELLS, epsilon=1, partition=partition
        )
        account = Account(mechanism.epsilon)
        mechanism._run(mechanism._handle(STEPS, account, Randomness(1)))
        assert str(account.calls[0].budget.amount) == share
        assert account.spent == 1
    assert set(SHARES) == {"dyadic_tree", "least_cost", "noisy_sort"}
    half = bf.Transformed(
        GRAPHS["full"], CELLS, epsilon=1, partition=DyadicTree(), share=0.5
    )
    assert str(half.share) == "1/2"


def test_rectangles_on_a_grid_need_no_buckets_when_records_are_many(monkeypatch):
    grid = bf.Domain((16, 16))
    policy = bf.policies.Threshold(grid, 1)
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    mechanism = bf.Transformed(policy, asked, epsilon="0.1")
    many = mechanism.release(np.full((16, 16), 10_000), rng=1)
    assert many.details["strategy"] == "edge_lines"
    few = mechanism.release(np.full((16, 16), 1), rng=1)
    assert few.details["strategy"] != "edge_lines"
    # An error of 2 beside 256 records is small where the limit is a 128th of them.
    monkeypatch.setattr(transformed, "predicted_variance", lambda *_: 4.0 * 20)
    for part, kept in ((2 / 256, True), (1.9 / 256, False)):
        monkeypatch.setattr(transformed, "SMALL_PART", part)
        release = mechanism.release(np.full((16, 16), 1), rng=1)
        assert (release.details["strategy"] == "edge_lines") == kept
    with pytest.raises(DataDependentError):
        mechanism.expected_error()
    kept = bf.Transformed(policy, asked, epsilon="0.1", partition=LeastCost())
    assert kept.release(np.full((16, 16), 10_000), rng=1).details["buckets"] < 256


def test_a_grid_without_buckets_takes_the_best_of_both_orders():
    grid = bf.Domain((8, 8))
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    for policy in (bf.policies.Attribute(grid), bf.policies.AddRemove(grid)):
        best = bf.Transformed(policy, asked, epsilon=1, partition=None)
        table = bf.compare(policy, asked, epsilon=1)
        least = min(table[name].total for name in NAMES)
        assert best.expected_total_error() == pytest.approx(least)


def test_constraints_divide_the_epsilon_that_is_drawn():
    line = bf.Domain(6)
    masks = [[True, True, False, False, False, False]]
    policy = bf.policies.Full(line).with_constraints(
        bf.policies.CountConstraints(line, masks)
    )
    cells = bf.workloads.Identity(line)
    release = bf.Transformed(policy, cells, epsilon=1, partition=None).release(
        np.arange(6), rng=1
    )
    widths = release.measurements[0].scales.widths
    assert widths.max() == pytest.approx(2 * policy.group_size)
    bf.Transformed(policy, cells, epsilon=1).release(np.arange(6), rng=1)


def test_what_cannot_be_done_is_refused():
    line = GRAPHS["line"]
    for settings_, message in (
        ({"partition": "worst"}, "partition must be"),
        ({"strategy": "worst"}, "strategy must be one of"),
        ({"fit": "worst"}, "fit must be"),
        ({"partition": None, "share": 0.5}, "needs a partition"),
        ({"share": 0.5}, "needs a partition"),
        (
            {"partition": LeastCost(), "strategy": Explicit(np.eye(24))},
            "partition=None",
        ),
    ):
        with pytest.raises(InputError, match=message):
            bf.Transformed(line, CELLS, epsilon=1, **settings_)
    with pytest.raises(PolicyError, match="grid of two attributes"):
        bf.Transformed(line, CELLS, epsilon=1, strategy="edge_lines")
    large = bf.Domain(2**14)
    for strategy in ("edges", "tree"):
        dense = bf.Transformed(
            bf.policies.Full(large),
            bf.workloads.Total(large),
            epsilon=1,
            partition=None,
            strategy=strategy,
        )
        with pytest.raises(SizeError, match="134,209,536 edges"):
            dense.release(np.zeros(2**14, dtype=int))


def test_long_buckets_are_cut_where_ranges_are_asked():
    line = bf.Domain(256)
    policy = bf.policies.Threshold(line, theta=10)
    for asked in (bf.workloads.Prefixes(line), bf.workloads.AllRanges(line)):
        partition = bf.Transformed(policy, asked, epsilon=1).partition
        assert partition.longest == Fraction(1, 16)
    # At epsilon .01 one bucket would hold everything; 64 cells are the longest here.
    release = bf.Transformed(policy, bf.workloads.Prefixes(line), epsilon="0.01")
    assert release.release([1] * 256, rng=1).details["buckets"] >= 4
    cells = bf.Transformed(policy, bf.workloads.Identity(line), epsilon=1)
    assert cells.partition.longest is None
    few = bf.Domain(64)
    short = bf.Transformed(bf.policies.Full(few), bf.workloads.Prefixes(few), epsilon=1)
    assert short.partition.longest is None
