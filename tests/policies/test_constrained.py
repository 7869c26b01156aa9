"""Policies with constraints: their promise, kept by every release, and plumbing."""

from __future__ import annotations

import json
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import PolicyError, PrivacyError
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Blocks,
    Constrained,
    Full,
    Graph,
    Line,
    Threshold,
    from_dict,
)
from tests.reference import constraints as reference

GRID = bf.Domain((2, 3))
LINE = bf.Domain(6)
PAIRS = bf.policies.CountConstraints(LINE, [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]])

CASES = [
    Full(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 0)),
    Attribute(GRID).with_constraints(
        bf.policies.MarginalConstraints(GRID, [(0,), (1,)])
    ),
    AddRemove(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 1)),
    Line(LINE).with_constraints(PAIRS),
    Full(LINE).with_constraints(PAIRS),
    Threshold(LINE, theta=2).with_constraints(
        bf.policies.RectangleConstraints(LINE, [0, 4], [2, 6])
    ),
    Graph(LINE, [[0, 1], [1, 3], [4, -1], [5, -1]]).with_constraints(PAIRS),
]


def sets_of(policy):
    kinds = policy.constraints.cell_kinds
    held = [
        set(kinds.members[kinds.pointers[kind] : kinds.pointers[kind + 1]])
        for kind in kinds.labels
    ]
    return [
        {cell for cell, queries in enumerate(held) if query in queries}
        for query in range(policy.constraints.queries)
    ]


def worst_neighbour_cost(policy, measurement):
    """Return the exact log-likelihood ratio of the worst pair of neighbours."""
    edges = np.concatenate(list(policy.edges())).tolist()
    scales, worst = measurement.scales, Fraction(0)
    pairs = reference.neighbours(policy.domain.size, 3, edges, sets_of(policy))
    for first, second in pairs:
        counts = [
            np.bincount([v for v in one if v is not None], minlength=policy.domain.size)
            for one in (first, second)
        ]
        change = np.abs(
            np.diff([measurement.strategy.rows(one) for one in counts], axis=0)
        )
        assert not change[0, scales.exact].any()
        worst = max(worst, Fraction(int(change[0] @ scales.rates), scales.unit))
    return worst


@pytest.mark.long
@pytest.mark.parametrize("policy", CASES, ids=repr)
def test_no_neighbours_are_told_apart_beyond_epsilon(policy):
    laplace = bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=1)
    release = laplace.release(np.ones(policy.domain.shape, dtype=int), rng=1)
    assert release.guarantee.epsilon == 1
    worst = worst_neighbour_cost(policy, release.measurements[0])
    assert 0 < worst <= 1


def test_noise_for_the_printed_corollary_breaks_the_promise():
    line = bf.Domain(4)
    known = bf.policies.CountConstraints(line, [[1, 1, 0, 0]])
    policy = Full(line).with_constraints(known)
    printed = Fraction(1, max(known.queries, 1))
    scales = Cells(4).scales(Full(line), printed)
    noise = Cells(4).with_noise(scales)
    drawn = noise, np.zeros(5, dtype=np.int64), Buckets.single_cells(4)
    from blowfish_fast.measure.handle import Measurement

    assert worst_neighbour_cost(policy, Measurement(*drawn)) > Fraction(19, 10)


@pytest.mark.parametrize("policy", CASES, ids=repr)
def test_edges_and_totals_are_those_of_the_policy_without_constraints(policy):
    base = policy.unconstrained
    assert policy.domain == base.domain
    assert policy.has_constraints
    assert policy.group_size == max(policy.chains.cycle, policy.chains.path, 1)
    assert policy.has_bottom == base.has_bottom
    assert policy.has_moves == base.has_moves
    assert policy.edge_count == base.edge_count
    for mine, theirs in zip(policy.edges(), base.edges(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(policy.bottom_cells(), base.bottom_cells())
    np.testing.assert_array_equal(
        policy.components().private, base.components().private
    )
    cells = np.arange(policy.domain.size)
    np.testing.assert_array_equal(policy.distance(0, cells), base.distance(0, cells))
    np.testing.assert_array_equal(policy.joins(0, cells), base.joins(0, cells))
    assert (policy.bandwidth() is None) == (base.bandwidth() is None)
    values = np.arange(policy.domain.size, dtype=float)[None]
    assert policy.largest_change(values) == base.largest_change(values)


@pytest.mark.parametrize("policy", CASES, ids=repr)
def test_policies_with_constraints_survive_json(policy):
    labels = np.arange(policy.domain.size) // 2
    for one in (policy, policy.project(labels)):
        again = from_dict(json.loads(json.dumps(one.to_dict())))
        assert again == one
        assert hash(again) == hash(one)
        assert again.group_size == policy.group_size
        assert again.domain == one.domain
        assert again.describe() == one.describe()
    assert policy != policy.unconstrained
    assert policy != policy.project(labels)


@pytest.mark.parametrize("policy", CASES, ids=repr)
def test_a_projection_keeps_the_factor_and_the_parent(policy):
    labels = np.arange(policy.domain.size) // 2
    bins = policy.project(labels)
    assert isinstance(bins, Constrained)
    assert bins.parent is policy
    assert bins.group_size == policy.group_size
    assert bins.unconstrained == policy.unconstrained.project(labels)
    assert bins.implies(policy)
    twice = bins.project([0, 0, 1])
    assert twice.unconstrained == policy.unconstrained.project(
        np.array([0, 0, 1])[labels]
    )
    assert twice.group_size == policy.group_size
    assert "seen through" in repr(bins)


def test_a_policy_implies_what_its_releases_keep_private():
    plain, known = Line(LINE), PAIRS
    policy = plain.with_constraints(known)
    assert policy.implies(policy)
    assert policy.implies(plain)
    assert not plain.implies(policy)
    assert not policy.implies(Full(LINE))
    assert Full(LINE).with_constraints(known).implies(policy)
    stricter = Line(LINE).with_constraints(
        bf.policies.RectangleConstraints(LINE, [2], [4])
    )
    assert stricter.group_size < policy.group_size
    assert not stricter.implies(policy)
    assert policy.implies(stricter)


def test_the_handle_divides_once_and_charges_in_full():
    policy = Full(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 0))
    account = Account(Fraction(1))
    handle = Handle(np.arange(6), policy, account, Randomness(3))
    assert handle.policy == Full(GRID)
    half = Fraction(1, 2)
    first = handle.measure(Cells(6), budget=half)
    second = handle.coarsened(Buckets.from_labels([0, 0, 1, 1, 2, 2])).measure(
        Cells(3), budget=half
    )
    assert account.spent == 1
    assert [call.budget for call in account.calls] == [half, half]
    for one in (first, second):
        cells = one.strategy.cells
        cost = one.strategy.cost(Full(bf.Domain(cells)), one.scales)
        assert half / 2 * Fraction(999, 1000) < cost <= half / 2
    np.testing.assert_array_equal(handle.public_totals, [15])


def test_a_selector_is_handed_the_divided_epsilon():
    class Recording:
        name = "recording"

        def select(self, counts, *, policy, epsilon, rng):
            return policy, epsilon

    policy = Line(LINE).with_constraints(PAIRS)
    account = Account(Fraction(3))
    handle = Handle(np.arange(6), policy, account, Randomness(3))
    seen, epsilon = handle.coarsened(Buckets.single_cells(6)).select(
        Recording(), budget=Fraction(3)
    )
    assert epsilon == Fraction(3, policy.group_size)
    assert not seen.has_constraints
    assert account.spent == 3


def test_a_strategy_with_wrong_scales_is_refused_by_the_constrained_price():
    class Cheap(Cells):
        def scales(self, policy, epsilon):
            return super().scales(policy, epsilon * 2)

    policy = Full(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 0))
    account = Account(Fraction(1))
    handle = Handle(np.arange(6), policy, account, Randomness(3))
    with pytest.raises(PrivacyError, match="nothing was drawn"):
        handle.measure(Cheap(6), budget=Fraction(1))
    assert account.spent == 0


def test_predicted_error_grows_with_the_factor_and_totals_stay_exact():
    policy = Full(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 0))
    asked = bf.workloads.Identity(GRID)
    guarded = bf.Laplace(policy, asked, epsilon=1)
    plain = bf.Laplace(Full(GRID), asked, epsilon=Fraction(1, policy.group_size))
    np.testing.assert_allclose(guarded.expected_error(), plain.expected_error())
    counts = np.arange(6).reshape(2, 3)
    release = guarded.release(counts, rng=4)
    assert release.estimate.sum() == pytest.approx(counts.sum())
    sentence = str(release.guarantee)
    assert "edge-closed" in sentence
    assert "weaker than the printed" in sentence
    assert "eps / 2" in sentence
    assert from_dict(release.guarantee.policy) == policy


def test_dawa_runs_under_constraints():
    policy = Line(LINE).with_constraints(PAIRS)
    dawa = bf.Dawa(policy, bf.workloads.Identity(LINE), epsilon=30)
    release = dawa.release([9, 9, 9, 50, 50, 50], rng=2)
    assert release.guarantee.epsilon == 30
    assert release.estimate.sum() == pytest.approx(177)


def test_block_totals_stay_public():
    policy = Blocks(LINE, [0, 0, 0, 1, 1, 1]).with_constraints(
        bf.policies.CountConstraints(LINE, [[1, 0, 0, 0, 0, 0]])
    )
    handle = Handle(np.arange(6), policy, Account(Fraction(1)), Randomness(1))
    np.testing.assert_array_equal(handle.public_totals, [3, 12])
    hidden = AddRemove(GRID).with_constraints(bf.policies.MarginalConstraints(GRID, 1))
    with pytest.raises(PrivacyError, match="private under this policy"):
        _ = Handle(
            np.arange(6), hidden, Account(Fraction(1)), Randomness(1)
        ).public_totals


def test_misplaced_constraints_are_refused():
    with pytest.raises(PolicyError, match="share one domain"):
        Full(GRID).with_constraints(PAIRS)
    with pytest.raises(PolicyError, match="received 'everything'"):
        Full(GRID).with_constraints("everything")
    with pytest.raises(PolicyError, match="stated at once"):
        Full(LINE).with_constraints(PAIRS).with_constraints(PAIRS)


def test_c11_averaging_succeeds_against_plain_noise_and_fails_under_constraints(capsys):
    script = Path(__file__).parents[2] / "examples" / "averaging_attack.py"
    example = runpy.run_path(str(script))
    results = example["main"]()
    printed = capsys.readouterr().out
    assert results["plain"] > 0.95
    assert results["constrained"] < 0.1
    assert "not sparse" in printed
    assert "eps / 128" in printed


@pytest.mark.parametrize("constrained", [False, True])
def test_c11_the_attack_has_the_predicted_variance(constrained):
    values, epsilon, trials = 16, Fraction(1, 4), 600
    domain = bf.Domain(values)
    pairs = [np.isin(np.arange(values), (i, i + 1)) for i in range(values - 1)]
    policy = AddRemove(domain)
    if constrained:
        policy = Line(domain).with_constraints(
            bf.policies.CountConstraints(domain, pairs)
        )
        assert policy.group_size == values // 2
    counts = np.full(values, 9)
    mechanism = bf.Laplace(policy, bf.workloads.Identity(domain), epsilon=epsilon)
    signs = np.where(np.arange(values) % 2, -1, 1)
    errors = np.array(
        [
            signs @ (mechanism.release(counts, rng=trial).estimate - counts) / values
            for trial in range(trials)
        ]
    )
    # 2 / (k eps^2) for plain noise; k^2 times that where k / 2 moves of two cells each
    # may have to share epsilon.
    predicted = 2 / (values * float(epsilon) ** 2)
    predicted *= values**2 if constrained else 1
    assert errors.var() == pytest.approx(predicted, rel=4 * np.sqrt(2 / trials))


@pytest.mark.parametrize(("queries", "exact"), [(20, True), (21, False)])
def test_many_rectangles_are_bounded_without_a_walk(queries, exact):
    line, starts = bf.Domain(100), 4 * np.arange(queries)
    known = bf.policies.RectangleConstraints(line, starts, starts + 2)
    found = bf.policies.Line(line).with_constraints(known)
    # None is next to another, so a record that leaves one enters none.
    assert found.chains == (0, 2, exact)
