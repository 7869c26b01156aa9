"""Sweeps lower the error of greedy weights, and never raise it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast._support.compiler_watch import in_plain_python
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import (
    shares_from_weights,
    tree_levels,
    weights_from_shares,
)
from blowfish_fast.kernels.tree_scaling import weight_sweeps
from blowfish_fast.kernels.tree_scaling.budget_shares import (
    levels_within,
    regular_levels,
)
from blowfish_fast.kernels.tree_scaling.gradients import (
    error_gradients,
    gradients_within,
)
from blowfish_fast.kernels.tree_scaling.greedy_weights import greedy_scaling_fractions
from blowfish_fast.kernels.tree_scaling.range_queries import (
    copy_ranges,
    separate_inside,
    sorted_ranges,
)
from blowfish_fast.kernels.tree_scaling.weight_sweeps import (
    optimal_share_within,
    refine_scaling,
    tune_fan_outs,
    tune_ranges,
)
from tests.generated import example_count
from tests.reference.greedy_weights import path_sums, range_rows, squared_error

from .test_gradients import some_weights
from .test_greedy_weights import fan_outs, random_ranges, ranges

pytestmark = pytest.mark.kernel

EXAMPLES = 10 if config.DISABLE_JIT else example_count(60)


def declared_error(queries, weights, fan_out, root_exact=False):
    *ends, query_weights, leaves = queries
    rows = query_weights[:, None] * range_rows(*ends, leaves)
    return squared_error(rows, weights, fan_out, root_exact)


def many_ranges(leaves, count, seed):
    starts, ends = random_ranges(np.random.default_rng(seed), leaves, count)
    whole = np.ones(count)
    return starts, whole, ends - 1, whole, whole, leaves


def swept(monkeypatch, sweeps, *queries, **options):
    """Refine with another number of sweeps."""
    monkeypatch.setattr(weight_sweeps, "SWEEPS", sweeps)
    return refine_scaling(*queries, **options)


@settings(deadline=None, max_examples=example_count(150))
@given(
    st.floats(-6.0, 6.0),
    st.sampled_from((0.0, 1e-3, 0.3, 10.0)),
    st.floats(1.0, 1e4),
    st.floats(-6.0, 6.0),
)
def test_no_other_share_does_better_within_the_tree(pull, outside, variance, stays):
    pull, stays = 10.0**pull, 10.0**stays

    def error(share):
        known = outside + (1.0 - share) ** 2 / variance + share**2
        return pull / known + stays / (1.0 - share) ** 2

    share = optimal_share_within(pull, outside, variance, stays)
    assert 0.0 <= share < 1.0
    grid = np.r_[np.linspace(0.0, 0.999, 4000), 1.0 - np.geomspace(1e-6, 0.01, 500)]
    assert error(share) <= error(grid).min() * (1.0 + 1e-9)


def test_the_share_within_is_none_or_all_at_the_limits():
    assert optimal_share_within(0.0, 1.0, 2.0, 1.0) == 0.0
    assert optimal_share_within(1.0, 1.0, 2.0, 0.0) == 1.0
    assert optimal_share_within(1.0, 0.0, 1.0, 0.0) == 0.0


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    ranges(leaves=14),
    fan_outs,
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
)
def test_never_raises_the_error_of_any_start(
    queries, fan_out, seed, safeguard, root_exact
):
    *ends, query_weights, leaves = queries
    root_exact = root_exact and leaves > 1
    start = some_weights(seed, leaves, fan_out, root_exact)
    refined = refine_scaling(
        *ends,
        query_weights,
        leaves,
        fan_out,
        start=start,
        safeguard=safeguard,
        root_exact=root_exact,
    )
    before = declared_error(queries, start, fan_out, root_exact)
    after = declared_error(queries, refined.weights, fan_out, root_exact)
    assert refined.objective == pytest.approx(after, rel=1e-6, abs=1e-6)
    assert after <= before * (1.0 + 1e-7) + 1e-9
    np.testing.assert_allclose(
        path_sums(refined.weights, leaves, fan_out), 1.0, rtol=1e-12
    )
    assert (refined.weights[:leaves] > 0.0).all()
    assert not root_exact or refined.weights[-1] == 0.0


@pytest.mark.parametrize("fan_out", [2, 3, 16])
@pytest.mark.parametrize("safeguard", [True, False])
def test_lowers_the_error_of_greedy_weights(fan_out, safeguard):
    leaves, count, part = (40, 60, 0.97) if config.DISABLE_JIT else (256, 1000, 0.85)
    queries = many_ranges(leaves, count, 1)
    greedy = greedy_scaling_fractions(*queries, fan_out)
    refined = refine_scaling(*queries, fan_out, safeguard=safeguard)
    assert refined.objective < part * greedy.objective
    assert refined.objective == pytest.approx(
        declared_error(queries, refined.weights, fan_out), rel=1e-9
    )


def test_more_sweeps_do_not_hurt(monkeypatch):
    queries = many_ranges(32 if config.DISABLE_JIT else 128, 200, 2)
    errors = [
        swept(monkeypatch, sweeps, *queries, 2, safeguard=False).objective
        for sweeps in range(5)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == pytest.approx(
        greedy_scaling_fractions(*queries, 2).objective, rel=1e-10
    )
    assert errors[4] < errors[0]


def test_the_safeguard_keeps_unasked_leaves_measurable():
    # Only one half of the leaves is ever told apart.
    leaves = 16
    starts = np.arange(0, 8, 4)
    first, last = np.r_[starts, 0], np.r_[starts + 3, leaves - 1]
    whole = np.ones(first.size)
    variances = []
    for safeguard in (True, False):
        refined = refine_scaling(
            first, whole, last, whole, None, leaves, 2, safeguard=safeguard
        )
        variances.append(squared_error(np.eye(leaves), refined.weights, 2))
    assert variances[0] < 1e3 * leaves
    assert variances[1] > 1e6 * leaves


def test_known_totals_are_used():
    queries = many_ranges(40, 80, 3)
    exact = refine_scaling(*queries, 2, root_exact=True)
    free = refine_scaling(*queries, 2)
    assert exact.weights[-1] == 0.0
    assert exact.objective < free.objective
    assert exact.objective == pytest.approx(
        declared_error(queries, exact.weights, 2, True), rel=1e-9
    )


def test_weight_on_unary_nodes_moves_to_their_children(monkeypatch):
    sizes, offsets = tree_levels(5, 2)
    equal = np.full(offsets[-1], 1.0 / sizes.size)
    queries = (np.array([4]), np.ones(1), np.array([4]), np.ones(1), np.ones(1), 5)
    refined = swept(monkeypatch, 0, *queries, 2, start=equal)
    assert refined.weights[7] == refined.weights[9] == 0.0
    assert refined.objective < declared_error(queries, equal, 2)


@pytest.mark.parametrize("root_exact", [True, False])
def test_a_single_leaf_and_no_queries_are_left_alone(root_exact):
    one = refine_scaling([0], [0.5], [0], [0.5], [2.0], 1, 2, root_exact=root_exact)
    assert one.weights.tolist() == [0.0 if root_exact else 1.0]
    assert one.objective == (0.0 if root_exact else 1.0)
    again = refine_scaling(
        [0], [0.5], [0], [0.5], [2.0], 1, 2, start=one.weights, root_exact=root_exact
    )
    assert again.weights.tolist() == one.weights.tolist()
    assert again.objective == one.objective
    none = refine_scaling([], [], [], [], None, 3, 2, root_exact=root_exact)
    assert none.weights.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert none.objective == 0.0


@pytest.mark.parametrize(
    "start",
    [
        np.ones(3),
        np.array([0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
        np.array([0.5, 0.5, 0.5, 0.6, 0.25, 0.25, 0.25]),
        np.full(7, 0.5),
    ],
)
def test_refuses_a_start_that_is_no_scaling(start):
    with pytest.raises(InputError, match="adding up to 1"):
        refine_scaling([0], [1.0], [3], [1.0], None, 4, 2, start=start)


# Greedy weights waste some on a total that is known; equal levels below it do better.
TOTAL_AND_PART = (
    *(np.array([1, 0]), np.ones(2), np.array([2, 2]), np.ones(2)),
    *(np.array([1.0, 7.0]), 3),
)


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=14), fan_outs, st.booleans(), st.booleans())
@example(TOTAL_AND_PART, 2, True, False)
def test_a_tree_is_tuned_in_one_step_as_in_several(
    queries, fan_out, root_exact, with_sweeps
):
    *ends, weights, leaves = queries
    if leaves == 1:
        return
    options = {"root_exact": root_exact}
    start = greedy_scaling_fractions(*queries, fan_out, decay=False, **options)
    _, offsets = tree_levels(leaves, fan_out)
    levels = offsets.size - 1
    for measured in (levels - 1,) if root_exact else (levels - 1, levels):
        equal = np.full(offsets[-1], 1.0 / measured)
        equal[-1] = 0.0 if measured < levels else equal[-1]
        error = declared_error(queries, equal, fan_out, root_exact)
        if error < (1.0 - 1e-9) * start.objective:
            start = start._replace(weights=equal, objective=error)
    if with_sweeps:
        start = refine_scaling(*queries, fan_out, start=start.weights, **options)
    found = tune_ranges(
        sorted_ranges(*ends, weights, leaves),
        leaves,
        fan_out,
        decay=False,
        sweeps=with_sweeps,
        **options,
    )
    assert found.objective == pytest.approx(start.objective, rel=1e-6, abs=1e-12)
    error = declared_error(queries, found.weights, fan_out, root_exact)
    assert error == pytest.approx(found.objective, rel=1e-6, abs=1e-12)


def tuned(queries, fan_out, **options):
    *ends, weights, leaves = queries
    listed = sorted_ranges(*ends, weights, leaves)
    return tune_ranges(listed, leaves, fan_out, sweeps=True, **options)


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=14), fan_outs, st.booleans(), st.booleans())
@example(TOTAL_AND_PART, 2, True, False)
def test_plain_python_tunes_to_the_same_bits(queries, fan_out, root_exact, decay):
    if queries[-1] == 1:
        return
    options = {"root_exact": root_exact, "decay": decay}
    compiled = tuned(queries, fan_out, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight_sweeps, "is_ready", lambda kernel: False)
        plain = tuned(queries, fan_out, plainly=True, **options)
    assert plain.weights.tobytes() == compiled.weights.tobytes()
    assert plain.objective == compiled.objective


def test_what_is_compiled_already_is_used(monkeypatch):
    queries = many_ranges(9, 4, 1)
    plain_runs = []

    def noted(kernel):
        plain_runs.append(kernel)
        return in_plain_python(kernel)

    monkeypatch.setattr(weight_sweeps, "in_plain_python", noted)
    options = {"root_exact": False, "decay": False}
    tuned(queries, 2, **options)
    tuned(queries, 2, plainly=True, **options)
    assert plain_runs == []
    monkeypatch.setattr(weight_sweeps, "is_ready", lambda kernel: False)
    tuned(queries, 2, plainly=True, **options)
    assert plain_runs == [weight_sweeps._tuned]
    tuned(queries, 2, **options)
    assert len(plain_runs) == 1


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=14), st.booleans(), st.booleans(), st.booleans())
@example(TOTAL_AND_PART, True, True, True)
def test_one_call_tunes_all_fan_outs_as_one_by_one(
    queries, root_exact, decay, with_sweeps
):
    *ends, weights, leaves = queries
    if leaves == 1:
        return
    listed = sorted_ranges(*ends, weights, leaves)
    options = {"root_exact": root_exact, "sweeps": with_sweeps}
    choices = [(2, decay), (9, False), (3, False), (16, False), (14, decay)]
    each = [
        tune_ranges(listed, leaves, fan_out, decay=with_decay, **options)
        for fan_out, with_decay in choices
    ]
    best = min(range(len(each)), key=lambda place: each[place].objective)
    fan_out, tuned_at_once = tune_fan_outs(listed, leaves, choices, **options)
    assert fan_out == choices[best][0]
    assert tuned_at_once.weights.tobytes() == each[best].weights.tobytes()
    assert tuned_at_once.objective == each[best].objective


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=30), fan_outs, st.integers(0, 2**32 - 1), st.booleans())
def test_a_sweep_knows_the_error_of_its_shares(queries, fan_out, seed, root_exact):
    *ends, weights, leaves = queries
    if leaves == 1:
        return
    floor, tree = 0.3, regular_levels(leaves, fan_out)
    listed = sorted_ranges(*ends, weights, leaves)
    given = some_weights(seed, leaves, fan_out, root_exact)
    layout = tree.sizes, tree.offsets, tree.fan_out
    shares = shares_from_weights(given, *layout)
    for level in range(1, tree.sizes.size):
        # As in a sweep, a node with one child takes nothing.
        if tree.sizes[level - 1] == (tree.sizes[level] - 1) * fan_out + 1:
            shares[tree.offsets[level + 1] - 1] = 0.0
    given = weights_from_shares(shares, *layout)
    seen = error_gradients(listed, floor, given, tree, root_exact)
    apart, covered = copy_ranges(listed), np.full(leaves, floor)
    active = separate_inside(apart, covered)
    before = [array.copy() for array in (*apart, covered)]
    moved, climbed = weight_sweeps._sweep(
        apart, active, covered, shares, seen, 0.7, tree, root_exact
    )
    for array, unchanged in zip((*apart, covered), before, strict=True):
        np.testing.assert_array_equal(array, unchanged)
    after = error_gradients(
        listed, floor, weights_from_shares(moved, *layout), tree, root_exact
    )
    agreed = weight_sweeps.CLEARLY / 100
    assert climbed == pytest.approx(after.error + after.floor_error, rel=agreed)


@settings(deadline=None, max_examples=example_count(20))
@given(ranges(leaves=14), fan_outs, st.booleans())
@example(TOTAL_AND_PART, 2, True)
def test_what_the_climb_refuses_the_gradients_refuse_too(queries, fan_out, root_exact):
    if queries[-1] == 1:
        return
    options = {"root_exact": root_exact, "decay": False}

    def tuned_plainly(clearly):
        in_plain_python.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(weight_sweeps, "CLEARLY", clearly)
            patch.setattr(weight_sweeps, "is_ready", lambda kernel: False)
            return tuned(queries, fan_out, plainly=True, **options)

    shortcut, thorough = tuned_plainly(weight_sweeps.CLEARLY), tuned_plainly(np.inf)
    in_plain_python.cache_clear()
    assert shortcut.weights.tobytes() == thorough.weights.tobytes()
    assert shortcut.objective == thorough.objective


def test_gradients_are_spared_where_the_climb_tells(monkeypatch):
    walks = []

    def noted(*asked):
        walks.append(asked)
        return gradients_within(*asked)

    queries = many_ranges(40, 80, 1)
    options = {"root_exact": False, "decay": False, "plainly": True}
    monkeypatch.setattr(weight_sweeps, "is_ready", lambda kernel: False)
    monkeypatch.setattr(weight_sweeps, "gradients_within", noted)
    in_plain_python.cache_clear()
    walked = []
    for clearly in (weight_sweeps.CLEARLY, np.inf):
        monkeypatch.setattr(weight_sweeps, "CLEARLY", clearly)
        in_plain_python.cache_clear()
        walks.clear()
        tuned(queries, 8, **options)
        walked.append(len(walks))
    in_plain_python.cache_clear()
    # All three steps of the first sweep would raise the error of the ranges.
    assert walked == [0, 3]


@given(st.integers(1, 10**6), st.integers(2, 70))
def test_kernels_lay_out_the_same_levels(leaves, fan_out):
    expected, levels = regular_levels(leaves, fan_out), levels_within(leaves, fan_out)
    np.testing.assert_array_equal(levels.sizes, expected.sizes)
    np.testing.assert_array_equal(levels.offsets, expected.offsets)
    assert (levels.fan_out, levels.shift) == (expected.fan_out, expected.shift)
