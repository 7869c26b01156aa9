"""Which intervals hold the true answer, and which the noise alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import InputError, IntervalError, NoiseOnlyWarning
from blowfish_fast.release import grants
from blowfish_fast.release.grants import interval_label

LINE = bf.Domain(64)
GRID = bf.Domain((8, 8))
RANGES = bf.workloads.Ranges(LINE, [0, 3, 10, 40], [64, 4, 33, 41])
BOXES = bf.workloads.Rectangles(GRID, [[0, 0], [1, 2]], [[8, 8], [5, 3]])
COUNTS = np.random.default_rng(3).poisson(20, 64)


def release_of(name, domain, asked, **options):
    policy = bf.policies.AddRemove(domain)
    made = getattr(bf.mechanisms, name)(policy, asked, epsilon=1, **options)
    return made.release(COUNTS.reshape(domain.shape), rng=5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Laplace", {}),
        ("Hierarchy", {}),
        ("Privelet", {}),
        ("NoiseFirst", {}),
        ("Dawa", {"partition": None}),
        ("Transformed", {"partition": None}),
    ],
)
def test_mechanisms_without_buckets_hold_the_truth(name, options):
    release = release_of(name, LINE, RANGES, **options)
    assert release.holds_truth(RANGES).all()
    assert release.interval_kind(RANGES) == "truth"
    truth = release.intervals(RANGES, of="truth")
    assert (truth == release.intervals(RANGES, of="noise")).all()


@pytest.mark.parametrize(
    ("name", "domain", "asked"),
    [
        ("Efpa", LINE, RANGES),
        ("KdTree", GRID, BOXES),
        ("AdaptiveGrid", GRID, BOXES),
        ("UniformGrid", GRID, BOXES),
    ],
)
def test_dropped_coefficients_and_reused_noise_are_never_granted(name, domain, asked):
    release = release_of(name, domain, asked)
    assert not release.holds_truth(asked).any()
    with pytest.raises(IntervalError, match="hold the noise and not the true"):
        release.intervals(asked, of="truth")


def test_queries_that_cut_no_bucket_hold_the_truth_under_any_partition():
    release = release_of("StructureFirst", LINE, RANGES, buckets=4)
    edges = np.append(0, release.measurements[0].buckets.edges[1:])
    whole = bf.workloads.Ranges(LINE, edges[:-1], edges[1:])
    assert release.holds_truth(whole).all()
    wide = np.flatnonzero(np.diff(edges) > 1)
    cut = bf.workloads.Ranges(LINE, edges[:-1][wide], edges[:-1][wide] + 1)
    assert not release.holds_truth(cut).any()
    both = bf.workloads.Ranges(
        LINE, np.append(edges[0], cut.starts), np.append(edges[1], cut.ends)
    )
    with pytest.raises(IntervalError) as refused:
        release.intervals(both, of="truth")
    assert refused.value.data["queries"].tolist() == list(range(1, both.queries))
    with pytest.warns(NoiseOnlyWarning, match="even inside 4 buckets"):
        release.intervals(both)


def test_leaves_that_were_not_measured_are_taken_as_even():
    tree = bf.kernels.regular_tree(8, 2)
    weights = np.ones(tree.nodes)
    weights[:2] = 0.0
    strategy = bf.strategies.TreeStrategy(tree, weights)
    domain = bf.Domain(8)
    scales = strategy.scales(
        bf.policies.AddRemove(domain),
        bf.Laplace(
            bf.policies.AddRemove(domain), bf.workloads.Identity(domain), epsilon=1
        ).epsilon,
    )
    from blowfish_fast.data.buckets import Buckets
    from blowfish_fast.measure.handle import Measurement

    measured = Measurement(
        strategy.with_noise(scales),
        np.zeros(tree.nodes, np.int64),
        Buckets.single_cells(8),
    )
    cells = bf.workloads.Identity(domain)
    assert grants.bias_of(measured).absent(cells).tolist() == [False] * 2 + [True] * 6
    pairs = bf.workloads.Ranges(domain, [0, 2], [2, 4])
    assert grants.bias_of(measured).absent(pairs).all()


def test_boxes_that_cut_cells_hold_the_noise_only():
    release = release_of("Laplace", GRID, BOXES)
    cut = bf.workloads.Rectangles(GRID, [[0, 0], [0.5, 1]], [[2, 2], [3, 2]])
    assert release.holds_truth(cut).tolist() == [True, False]


def test_a_spike_in_a_bucket_lies_outside_the_noise_and_is_not_promised():
    counts = np.zeros(64, dtype=np.int64)
    counts[7] = 5000
    policy = bf.policies.AddRemove(LINE)
    cell = bf.workloads.Ranges(LINE, [7], [8])
    made = bf.mechanisms.StructureFirst(policy, cell, epsilon=1, buckets=1)
    release = made.release(counts, rng=1)
    low, high = release.intervals(cell, of="noise")[0]
    assert high < 5000
    assert not release.holds_truth(cell).any()
    unbiased = bf.Hierarchy(policy, cell, epsilon=1).release(counts, rng=1)
    low, high = unbiased.intervals(cell, of="truth")[0]
    assert low < 5000 < high


def test_true_answers_are_missed_as_seldom_as_stated():
    missed = np.zeros(RANGES.queries)
    hierarchy = bf.Hierarchy(bf.policies.AddRemove(LINE), RANGES, epsilon=1)
    truth = RANGES.answer(COUNTS)
    together = 0
    for seed in range(400):
        release = hierarchy.release(COUNTS, rng=seed)
        low, high = release.intervals(RANGES, 0.9, of="truth").T
        missed += (truth < low) | (truth > high)
        low, high = release.intervals(RANGES, 0.9, of="truth", together=True).T
        together += ((truth < low) | (truth > high)).any()
    allowed = 0.1 + 3 * np.sqrt(0.09 / 400)
    assert (missed / 400 <= allowed).all()
    assert missed.mean() / 400 > 0.05
    assert together / 400 <= allowed


def test_what_intervals_are_of_is_one_of_two_words():
    release = release_of("Laplace", LINE, RANGES)
    with pytest.raises(InputError, match='of must be "truth", "noise"'):
        release.intervals(RANGES, of="both")
    with pytest.raises(InputError, match='of must be "truth", "noise"'):
        release.intervals(RANGES, of=np.array(["truth", "noise"]))
    assert interval_label("noise", 0.9) == "noise only, 90 %"


def test_a_saved_release_still_knows_what_its_intervals_hold():
    for name in ("Laplace", "Efpa"):
        release = release_of(name, LINE, RANGES)
        again = bf.Release.from_bytes(release.to_bytes())
        assert (again.holds_truth(RANGES) == release.holds_truth(RANGES)).all()


@pytest.mark.long
@pytest.mark.parametrize("theta", [None, 1, 8])
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from(["0.05", "0.5", "1"]))
@settings(max_examples=25, deadline=None)
def test_every_answer_lies_in_its_own_interval(theta, seed, epsilon):
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(64) < 0.3, rng.integers(0, 30, 64), 0)
    ends = np.sort(rng.integers(0, 64, (2, 50)), axis=0)
    asked = bf.workloads.Ranges(LINE, ends[0], ends[1] + 1)
    if theta is None:
        mechanism = bf.Laplace(bf.policies.AddRemove(LINE), asked, epsilon=epsilon)
    else:
        policy = bf.policies.Threshold(LINE, theta=theta)
        mechanism = bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=epsilon)
    release = mechanism.release(counts, rng=seed)
    sides = release.where({0: slice(0, 40)})
    for one in (
        release,
        release.rounded(),
        release + mechanism.release(counts, seed + 1),
    ):
        for of in ("truth", "noise"):
            low, high = one.intervals(asked, of=of).T
            answers = one.answer(asked)
            assert ((low <= answers) & (answers <= high)).all()
    low, high = release.cdf_intervals().T
    assert ((low <= release.cdf()) & (release.cdf() <= high)).all()
    low, high = release.quantile_intervals([0.1, 0.5]).T
    assert (low <= release.quantile([0.1, 0.5])).all()
    assert (release.quantile([0.1, 0.5]) <= high).all()
    for answer in (sides.count(), sides.sum(0), sides.mean(0), sides.quantile(0)):
        low, high = answer.interval()
        assert low <= answer <= high


@pytest.mark.parametrize("name", ["Laplace", "Hierarchy", "Transformed"])
def test_nobody_changes_the_scales_that_later_releases_are_drawn_at(name):
    made = getattr(bf.mechanisms, name)(bf.policies.Full(LINE), RANGES, epsilon=1)
    scales = made.release(COUNTS, rng=1).measurements[0].scales
    for array in (scales.exact, scales.rates):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1


@pytest.mark.parametrize("heavy", [2.0**17, 2.0**22, 2.0**26])
def test_a_bias_does_not_hide_behind_larger_coefficients(heavy):
    counts = np.zeros(64, dtype=np.int64)
    counts[20] = 4 * 10**10
    policy = bf.policies.AddRemove(LINE)
    wide = bf.mechanisms.StructureFirst(policy, RANGES, epsilon=1, buckets=2)
    release = wide.release(counts, rng=1)
    cut = int(release.measurements[0].buckets.edges[1])
    rows = np.zeros((2, 64))
    rows[:, :cut] = heavy
    rows[0, 20 if cut > 20 else 0] += 1.0
    rows[0, 20 if cut <= 20 else 63] += 1.0
    asked = bf.workloads.Linear(LINE, rows)
    assert release.holds_truth(asked).tolist() == [False, True]
    low, high = release.intervals(asked, 0.999, of="noise").T
    true = rows @ counts
    assert not low[0] <= true[0] <= high[0]
    assert low[1] <= true[1] <= high[1]


def test_what_is_left_of_made_up_counts_is_worked_out_once_for_a_mechanism():
    policy = bf.policies.AddRemove(LINE)
    mechanism = bf.Laplace(policy, RANGES, epsilon=1)
    first, second = (mechanism.release(COUNTS, rng=seed) for seed in (1, 2))
    assert first._bias is second._bias
    assert first._bias.nothing
    assert second.holds_truth(RANGES).all()
    # Another law is tried by itself, however alike it is.
    other = bf.Laplace(policy, RANGES, epsilon=1).release(COUNTS, rng=1)
    assert other._bias is not first._bias
    # Buckets that were drawn are tried anew for each release.
    cut = release_of("Dawa", LINE, RANGES, partition=bf.partitions.LeastCost())
    fresh = grants.Bias(cut.measurements[0].law, cut.measurements[0].buckets)
    assert np.array_equal(cut._bias.absent(RANGES), fresh.absent(RANGES))


def test_a_law_that_leaves_something_over_leaves_it_for_every_release():
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=1)
    measurement = mechanism.release(COUNTS, rng=1).measurements[0]

    class EvenLaw:
        """Takes all cells as even, whatever was measured."""

        scales = measurement.scales
        strategy = SimpleNamespace(
            rows=lambda counts: counts,
            published=lambda rows, noise, scales: rows,
            infer=lambda rows, scales: np.full(64, rows.mean()),
        )

    even = SimpleNamespace(law=EvenLaw(), buckets=measurement.buckets)
    for _ in "ab":
        bias = grants.bias_of(even)
        assert not bias.nothing
        assert bias.absent(RANGES).tolist() == [True, False, False, False]


def test_large_domains_are_not_remembered(monkeypatch):
    monkeypatch.setattr(grants, "FEW_CELLS", 63)
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=1)
    first, second = (mechanism.release(COUNTS, rng=seed) for seed in (1, 2))
    assert first._bias is not second._bias


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
@pytest.mark.parametrize("workload", [bf.workloads.Identity, bf.workloads.Total])
def test_half_widths_are_worked_out_once_for_all_releases(policy, workload):
    mechanism = bf.Laplace(policy(LINE), RANGES, epsilon=1)
    first, second = (mechanism.release(COUNTS, rng=seed) for seed in (1, 2))
    asked = workload(LINE)
    one, other = (each._half_widths(asked, 0.05) for each in (first, second))
    assert one is other
    measurement = first.measurements[0]
    form = asked.explicit_form(measurement.buckets)
    assert np.array_equal(one, measurement.law.half_widths(form, 0.05))
    narrower = first._half_widths(asked, 0.5)
    assert (narrower <= one).all()
    assert policy is bf.policies.Full or (narrower < one).all()
    # Another mechanism has another law, of the same cells.
    dearer = bf.Laplace(policy(LINE), RANGES, epsilon=2).release(COUNTS, rng=1)
    assert dearer._half_widths(asked, 0.05) is not one
    # What all releases share cannot be changed by whoever was handed it.
    with pytest.raises(ValueError, match="read-only"):
        one[0] = 0.0


def test_half_widths_over_buckets_and_of_other_queries_are_their_own():
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=1)
    first, second = (mechanism.release(COUNTS, rng=seed) for seed in (1, 2))
    one, other = (each._half_widths(RANGES, 0.05) for each in (first, second))
    assert one is not other
    assert np.array_equal(one, other)
    asked = bf.workloads.Ranges.random(LINE, 30, rng=1)
    dawa = bf.Dawa(bf.policies.AddRemove(LINE), asked, epsilon=9)
    release = dawa.release(np.repeat([0, 900], 32), rng=1)
    assert release.details["buckets"] < 64
    cells = bf.workloads.Identity(LINE)
    assert release._half_widths(cells, 0.05).shape == (64,)
