"""What every mechanism keeps, walked over the registry and every family of policies.

A file per mechanism holds only what is its own; bad data is in `test_bad_inputs`, the
price of every policy edge in `privacy/test_measurements`.
"""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import (
    BlowfishError,
    DataDependentError,
    DomainError,
    EpsilonError,
    InputError,
    PolicyError,
    WorkloadError,
)
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.registry import MECHANISMS

DOMAINS = {"line": bf.Domain(14), "grid": bf.Domain((4, 5))}
ONE_CELL = bf.Domain(1)
ONE_ATTRIBUTE = {
    *("efpa", "noise_first", "ordered", "ordered_hierarchical", "php"),
    "structure_first",
}
HISTOGRAMS = sorted(set(MECHANISMS) - {"kmeans"})
LINEAR = sorted(set(HISTOGRAMS) - {"mwem"})
MAPS = {
    *("adaptive_grid", "hierarchical_kd_tree", "hybrid_tree", "kd_tree"),
    *("quad_tree", "uniform_grid"),
}
PREDICTED = {
    *("hierarchy", "laplace", "nested", "noise_first", "ordered"),
    *("ordered_hierarchical", "privelet", "quad_tree"),
}
"""Mechanisms whose example has an error that is known before any data."""

EXACT_PARTS = {
    *("ahp", "kd_tree", "laplace", "matching", "noise_first"),
    *("ordered", "ordered_hierarchical", "transformed"),
}
"""Mechanisms that publish the total of each connected part of the policy exactly."""

EXPERIMENTS = "add_remove", "full", "blocks"


def example(name, domain, family, epsilon="0.7"):
    policy = policy_families(domain)[family]
    return MECHANISMS[name].example(domain, policy, epsilon)


CASES = [
    (name, domain, family)
    for name in sorted(MECHANISMS)
    for domain in DOMAINS
    if not (domain == "grid" and name in ONE_ATTRIBUTE)
    for family in policy_families(DOMAINS[domain])
]


def noiseless(release, counts):
    """Return the cells that the published rows would give without their noise."""
    (measured,) = release.measurements
    buckets, strategy = measured.buckets, measured.strategy
    rows = strategy.rows(buckets.sum(np.asarray(counts).reshape(-1)))
    silence = np.zeros_like(measured.scales.rates)
    published = strategy.published(rows, silence, measured.scales)
    return buckets.expand(strategy.infer(published, measured.scales))


def unfitted(release):
    return release.estimate if release.unfitted is None else release.unfitted


def check_errors(mechanism, counts, *, predicted):
    """Hold errors and intervals against many releases, given the buckets of each."""
    asked, confidence = mechanism.workload, 0.9
    trials = 150 if predicted else 100
    excess, held = np.empty((trials, asked.queries)), 0
    stated = half = None
    for seed in range(trials):
        release = mechanism.release(counts, rng=seed)
        if stated is None or not predicted:
            stated = np.square(release.standard_errors(asked))
            half = release._half_widths(asked, 1.0 - confidence)
        truth = noiseless(release, counts).reshape(mechanism.domain.shape)
        errors = asked.answer(unfitted(release)) - asked.answer(truth)
        excess[seed] = np.square(errors) - stated
        held = held + (np.abs(errors) <= half + 1e-6)
    total = excess.sum(axis=1)
    # Squares of such noise have long tails, so few releases lie below their mean.
    bar = (4 if predicted else 6) * total.std() / np.sqrt(trials) + 1e-6
    assert total.mean() < bar
    # Boxes that follow noisy cells, which are used again, leave out their loud noise.
    if mechanism.name not in ("adaptive_grid", "kd_tree"):
        assert total.mean() > -bar
    if predicted:
        assert bar < 0.9 * stated.sum() + 1e-5
        bars = 5 * excess.std(axis=0) / np.sqrt(trials) + 1e-6
        assert (np.abs(excess.mean(axis=0)) < bars).all()
    assert held.min() / trials >= confidence - 4 * np.sqrt(0.09 / trials)


@pytest.mark.parametrize(("name", "domain", "family"), CASES)
def test_a_release_promises_and_publishes_what_was_asked(name, domain, family):
    mechanism, data = example(name, DOMAINS[domain], family)
    release = mechanism.release(data, rng=1)
    assert release.guarantee.epsilon == mechanism.epsilon
    assert not release.private
    assert "experiment" in str(release.guarantee)
    assert mechanism.policy.neighbours in str(release.guarantee)
    stored = release.to_bytes()
    assert mechanism.release(data, rng=1).to_bytes() == stored
    loaded = type(release).from_bytes(stored)
    assert loaded.to_bytes() == stored
    assert loaded.mechanism == name
    if name == "kmeans":
        return
    assert release.estimate.shape == mechanism.domain.shape
    assert np.isfinite(release.estimate).all()
    if release.interval_scope == "noise":
        intervals = release.intervals(mechanism.workload, of="noise")
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        np.testing.assert_array_equal(
            loaded.intervals(mechanism.workload, of="noise"), intervals
        )


@pytest.mark.parametrize(
    ("name", "domain", "family"), [one for one in CASES if one[0] != "kmeans"]
)
def test_public_totals_stay_exact(name, domain, family):
    mechanism, data = example(name, DOMAINS[domain], family, "0.1")
    components = mechanism.policy.components()
    whole = not components.private.any()
    parts = components.labels is not None and name in EXACT_PARTS
    if not whole and not parts:
        return
    estimate = mechanism.release(data, rng=3).estimate
    if whole:
        assert estimate.sum() == pytest.approx(data.counts.sum())
    if not parts:
        return
    sums = np.bincount(components.labels, estimate.reshape(-1))
    truth = np.bincount(components.labels, data.counts.reshape(-1))
    known = ~components.private
    np.testing.assert_allclose(sums[known], truth[known], atol=1e-6)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_plans_can_be_written_copied_and_given_another_epsilon(name):
    mechanism, data = example(name, DOMAINS["line"], "full")
    written = mechanism.to_dict()
    assert json.loads(json.dumps(written)) == written
    assert written["mechanism"] == name
    assert written["epsilon"] == "7/10"
    assert type(mechanism).__name__ in repr(mechanism)
    copied = pickle.loads(pickle.dumps(mechanism))
    expected = mechanism.release(data, rng=5).to_bytes()
    assert copied.release(data, rng=5).to_bytes() == expected
    other = mechanism.at_epsilon("0.2")
    assert other.release(data, rng=5).guarantee.epsilon * 5 == 1
    assert mechanism.release(data, rng=5).to_bytes() == expected


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_secure_releases_are_private_and_differ(name):
    mechanism, data = example(name, DOMAINS["line"], "add_remove", "0.05")
    first, second = mechanism.release(data), mechanism.release(data)
    assert first.private
    assert "experiment" not in str(first.guarantee)
    assert first.to_bytes() != second.to_bytes()


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("family", ["add_remove", "full"])
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_counts_and_epsilons_work(name, family, epsilon):
    mechanism, _ = example(name, DOMAINS["line"], family, epsilon)
    for counts in (np.zeros(14, int), np.ones(14, int), np.eye(1, 14, 5)[0] * 2.0**60):
        assert np.isfinite(mechanism.release(counts).estimate).all()


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_one_cell_works(name, family):
    mechanism, _ = example(name, ONE_CELL, family)
    release = mechanism.release([7], rng=1)
    assert release.estimate.shape == (1,)
    if family == "full":
        assert release.estimate.tolist() == [7]
    if release.interval_scope == "noise":
        assert release.intervals(mechanism.workload, of="noise").shape[1] == 2


@pytest.mark.parametrize(
    ("name", "domain", "family"),
    [one for one in CASES if one[0] in LINEAR and one[2] in EXPERIMENTS],
)
def test_the_noise_vanishes_for_a_large_epsilon(name, domain, family):
    mechanism, data = example(name, DOMAINS[domain], family, 10**7)
    release = mechanism.release(data, rng=1)
    exact = noiseless(release, data.counts).reshape(release.estimate.shape)
    np.testing.assert_allclose(unfitted(release), exact, atol=1e-3)
    low, high = release.intervals(bf.workloads.Identity(mechanism.domain), of="noise").T
    assert (high - low).max() < 1e-3


@pytest.mark.long
@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("family", EXPERIMENTS)
def test_stated_errors_are_measured_and_intervals_hold(name, family):
    """Given the buckets that were chosen, which are what a release says it knows."""
    domain = DOMAINS["grid" if name in MAPS else "line"]
    mechanism, data = example(name, domain, family, 1)
    check_errors(mechanism, data.counts, predicted=name in PREDICTED)


VARIANTS = {
    "laplace_edges": (bf.Laplace, {"strategy": "edges"}),
    "laplace_queries": (bf.Laplace, {"strategy": "queries"}),
    "ordered_unfitted": (bf.Ordered, {"fit": None}),
    "ordered_piecewise": (bf.Ordered, {"fit": "piecewise"}),
    "ordered_hierarchical_isotonic": (
        bf.mechanisms.OrderedHierarchical,
        {"fit": "isotonic", "fan_out": 3},
    ),
    "quad_tree_unfitted": (bf.mechanisms.QuadTree, {"fit": None}),
    "uniform_grid_of_known_size": (bf.mechanisms.UniformGrid, {"records": 60}),
    "kd_tree_of_cells": (bf.KdTree, {"rule": None}),
    **{
        f"hierarchy_{weights}": (bf.Hierarchy, {"strategy": weights, "fan_out": 3})
        for weights in ("uniform", "geometric", "greedy")
    },
    **{
        f"dawa_{strategy}": (bf.Dawa, {"partition": None, "strategy": strategy})
        for strategy in ("greedy", "uniform", "geometric", "cells")
    },
    **{
        f"transformed_{strategy}": (
            bf.Transformed,
            {"partition": None, "strategy": strategy, "fit": None},
        )
        for strategy in ("edges", "cells", "tuned_tree")
    },
}
"""Options under which an error is known before any data, or computed in another way."""

FOR_VARIANTS = {
    "line": ("add_remove", "full", "threshold"),
    "grid": ("full", "attribute"),
}


VARIANT_CASES = [
    (variant, domain, family)
    for variant, (kind, options) in VARIANTS.items()
    for domain, families in FOR_VARIANTS.items()
    for family in families
    if not (domain == "grid" and kind.name in ONE_ATTRIBUTE)
    if not (family == "add_remove" and options.get("fit") == "piecewise")
]


def a_variant(variant, domain, family):
    """Return a mechanism with unusual options, and counts for it."""
    kind, options = VARIANTS[variant]
    over = DOMAINS[domain]
    asked = bf.workloads.random_boxes(over, 8, rng=1)
    policy = policy_families(over)[family]
    counts = (np.arange(over.size) * 3 % 17).reshape(over.shape)
    return kind(policy, asked, epsilon="0.8", **options), counts


@pytest.mark.parametrize(("variant", "domain", "family"), VARIANT_CASES)
def test_predicted_errors_are_those_that_a_release_states(variant, domain, family):
    mechanism, counts = a_variant(variant, domain, family)
    release = mechanism.release(counts, rng=1)
    stated = np.square(release.standard_errors(mechanism.workload))
    np.testing.assert_allclose(mechanism.expected_error(), stated, atol=1e-9)
    assert mechanism.expected_total_error() == pytest.approx(stated.sum())


@pytest.mark.long
@pytest.mark.parametrize(("variant", "domain", "family"), VARIANT_CASES)
def test_predicted_errors_are_measured_and_intervals_hold(variant, domain, family):
    mechanism, counts = a_variant(variant, domain, family)
    check_errors(mechanism, counts, predicted=True)


@pytest.mark.parametrize(("name", "domain", "family"), CASES)
def test_predictions_draw_nothing_and_are_the_variances_of_a_release(
    name, domain, family, monkeypatch
):
    mechanism, data = example(name, DOMAINS[domain], family)
    with monkeypatch.context() as patched:
        patched.setattr(Randomness, "stream", None)
        patched.setattr(Randomness, "laplace", None)
        if name not in PREDICTED:
            for ask in (mechanism.expected_error, mechanism.expected_total_error):
                with pytest.raises(DataDependentError, match="cannot be predicted"):
                    ask()
            return
        predicted = mechanism.expected_error()
        assert mechanism.expected_total_error() == pytest.approx(predicted.sum())
    release = mechanism.release(data, rng=1)
    stated = np.square(release.standard_errors(mechanism.workload))
    np.testing.assert_allclose(predicted, stated, atol=1e-9)


@pytest.mark.parametrize("name", sorted(ONE_ATTRIBUTE))
def test_several_attributes_are_refused_where_one_is_ordered(name):
    grid = DOMAINS["grid"]
    cells = bf.workloads.Identity(grid)
    with pytest.raises(DomainError, match="one ordered attribute"):
        MECHANISMS[name](bf.policies.Full(grid), cells, epsilon=1)


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_arguments_that_state_no_request_are_refused(name):
    kind, line = MECHANISMS[name], DOMAINS["line"]
    policy, cells = bf.policies.Full(line), bf.workloads.Identity(line)
    with pytest.raises(PolicyError, match="state the policy first"):
        kind(cells, policy, epsilon=1)
    with pytest.raises(WorkloadError, match="state the workload second"):
        kind(policy, policy, epsilon=1)
    with pytest.raises(DomainError, match="share one domain"):
        kind(bf.policies.Full(bf.Domain(3)), cells, epsilon=1)
    for epsilon in (0, -1, float("nan"), "much"):
        with pytest.raises(EpsilonError, match="epsilon"):
            kind(policy, cells, epsilon=epsilon)
    mechanism = kind(policy, cells, epsilon=1)
    with pytest.raises(BlowfishError, match=r"rng|seed"):
        mechanism.release(np.ones(14, int), rng=-1)


OPTIONS = {
    "epsilon": ([0, -1, float("nan"), "much"], EpsilonError, "must"),
    "rho": ([0, -1, float("nan"), "much"], EpsilonError, "must"),
    "delta": ([0, 1, -1, float("nan"), "small"], EpsilonError, "must"),
    "fit": (["nice", "prune", 3], InputError, "must be"),
    "nest": (["states", [0, 0, 1]], InputError, "must be"),
    "strategy": (["fast"], InputError, "must be"),
    "partition": (["good"], InputError, "must be"),
    "rule": (["median"], InputError, "must be"),
    "assign": (["some"], InputError, "must be"),
    "share": ([0, 1], EpsilonError, "must lie strictly between"),
    "levels": ([-1, 65 * 2**10, 2.5], InputError, "must"),
    "floor": ([-0.1, 1.5, float("nan"), "low", None, True], InputError, "must"),
    "fan_out": ([1, 0, 2.5, "many", [2, 3], True], InputError, "must"),
    "records": ([-3, "many"], InputError, "must"),
    "rounds": ([0], InputError, "must"),
    "passes": ([0], InputError, "must"),
    "buckets": ([0], InputError, "must"),
    "largest_count": ([0], InputError, "must"),
    "clusters": ([0], InputError, "must"),
    "start": ([[[-1.0]]], InputError, "must"),
    "threshold": ([-1], InputError, "must"),
    "price": ([0, -1, float("inf")], InputError, "must"),
    "fewest_parts": ([0], InputError, "must"),
    "sweeps": ([], InputError, "must"),
    "joins": (["yes", 1, None], InputError, "is True or False"),
}
"""Bad values of every option, one word for one thing."""


def own_options(name):
    """Return the options of a mechanism beyond policy and workload."""
    given = MECHANISMS[name].__init__.__annotations__
    return sorted(set(given) - {"policy", "workload", "return"})


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_bad_options_are_refused_by_name(name):
    mechanism, _ = example(name, DOMAINS["line"], "full")
    stated = [mechanism.policy]
    if name != "kmeans":
        stated.append(mechanism.workload)
    for option in own_options(name):
        values, error, message = OPTIONS[option]
        # A budget in rho stands alone; everything else is given beside an epsilon.
        beside = {} if option == "rho" else {"epsilon": 1}
        for value in values:
            with pytest.raises(error, match=f"{option} {message}"):
                MECHANISMS[name](*stated, **{**beside, option: value})
