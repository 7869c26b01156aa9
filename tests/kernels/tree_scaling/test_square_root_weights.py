"""The convex design for Gaussian noise: sweeps fall, certificates hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.shape import tree_levels
from blowfish_fast.kernels.tree_scaling.budget_shares import square_root_share
from blowfish_fast.kernels.tree_scaling.square_root_weights import (
    design_family,
    design_pieces,
    design_ranges,
)
from tests.generated import example_count
from tests.reference.greedy_weights import piece_rows, range_rows, squared_error

from .test_greedy_weights import fan_outs, ranges

pytestmark = pytest.mark.kernel

EXAMPLES = 10 if config.DISABLE_JIT else example_count(60)


def error_of(rows, weights, fan_out, root_exact):
    # The reference squares weights into precisions.
    return squared_error(rows, np.sqrt(weights), fan_out, root_exact)


def path_sums(weights, leaves, fan_out):
    sums = np.zeros(leaves)
    span, begin = 1, 0
    for size in tree_levels(leaves, fan_out)[0]:
        sums += weights[begin + np.arange(leaves) // span]
        begin, span = begin + size, span * fan_out
    return sums


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=20), fan_outs, st.booleans(), st.integers(0, 2**32))
def test_no_weights_beat_the_certificate(queries, fan_out, root_exact, seed):
    *ends, _, leaves = queries
    root_exact = root_exact and leaves > 1
    rows = range_rows(*ends, leaves)
    design = design_ranges(*ends, leaves, fan_out, root_exact=root_exact)
    np.testing.assert_allclose(path_sums(design.weights, leaves, fan_out), 1.0)
    error = error_of(rows, design.weights, fan_out, root_exact)
    assert design.objective == pytest.approx(error, rel=1e-6, abs=1e-9)
    least = design.objective * (1 - design.gap)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        other = rng.random(design.weights.size) * design.weights.max() + 1e-3
        if root_exact:
            other[-1] = 0.0
        other /= path_sums(other, leaves, fan_out).max()
        found = error_of(rows, other, fan_out, root_exact)
        # The reference, too, is rounded: an error of 0 may come out below it.
        assert found >= least * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("fan_out", [2, 4, 16])
@pytest.mark.parametrize("root_exact", [False, True])
@pytest.mark.parametrize("asked", ["ranges", "all", "cells"])
def test_the_certified_gap_of_benchmark_workloads_is_below_one_percent(
    fan_out, root_exact, asked
):
    leaves = 16 if config.DISABLE_JIT else 64
    rng = np.random.default_rng(3)
    first, last = {
        "ranges": np.sort(rng.integers(0, leaves, (2, 200)), axis=0),
        "all": np.array(np.triu_indices(leaves)),
        "cells": np.array([np.arange(leaves)] * 2),
    }[asked]
    whole = np.ones(first.size)
    ends = (first, whole, last, whole)
    errors = [
        design_ranges(*ends, leaves, fan_out, root_exact=root_exact, sweeps=count)
        for count in (1, 2, 5, 10, 20)
    ]
    falls = [one.objective for one in errors]
    assert all(low <= high * (1 + 1e-9) for high, low in pairwise(falls))
    best = design_ranges(*ends, leaves, fan_out, root_exact=root_exact)
    assert best.gap < 0.01
    # Ten sweeps are within one percent of the optimum.
    assert errors[3].objective <= best.objective * 1.01


@pytest.mark.parametrize("leaves", [1, 8])
def test_without_sweeps_the_greedy_weights_are_kept_and_nothing_is_certified(leaves):
    whole = np.ones(1)
    ends = (np.array([0]), whole, np.array([leaves // 2]), whole)
    pieces = (np.array([0, 1]), np.array([0]), np.array([leaves // 2 + 1]), whole)
    one = design_ranges(*ends, leaves, 2, sweeps=0)
    two = design_pieces(*pieces, leaves, 2, sweeps=0)
    assert one.gap == two.gap == 1.0
    for found in (one, two):
        np.testing.assert_allclose(path_sums(found.weights, leaves, 2), 1.0)
        # Halfway to equal levels, where sweeps begin, no node would be left out.
        assert leaves == 1 or (found.weights == 0.0).any()


@settings(deadline=None, max_examples=EXAMPLES)
@given(ranges(leaves=16), fan_outs, st.booleans())
def test_pieces_and_ranges_are_tuned_alike(queries, fan_out, root_exact):
    first, head, last, tail, _, leaves = queries
    root_exact = root_exact and leaves > 1
    rows = range_rows(first, head, last, tail, leaves)
    pointers = np.arange(first.size + 1) * leaves
    starts = np.tile(np.arange(leaves), first.size)
    pieces = (pointers, starts, starts + 1, rows.reshape(-1))
    options = {"root_exact": root_exact, "sweeps": 5}
    one = design_ranges(first, head, last, tail, leaves, fan_out, **options)
    two = design_pieces(*pieces, leaves, fan_out, **options)
    assert two.objective == pytest.approx(one.objective, rel=1e-6, abs=1e-12)
    np.testing.assert_array_equal(piece_rows(*pieces, leaves), rows)


@settings(deadline=None, max_examples=example_count(200))
@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e4), st.floats(0, 1))
def test_the_closed_form_is_the_least_on_a_grid(error, variance, kept):
    residual = error * variance * kept
    share = square_root_share(error, variance, residual)

    def local(x):
        return (1 + x) * (error + residual * x) / (1 + variance * x)

    tried = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 400)])
    if share < 1.0:
        found = local(share / (1 - share))
        assert found <= local(tried).min() * (1 + 1e-9)
    else:
        assert kept < 1e-12


def test_families_are_tuned_without_a_list():
    for kind in ("all_ranges", "prefixes", "identity", "total"):
        design = design_family(kind, np.arange(17), 2)
        np.testing.assert_allclose(path_sums(design.weights, 16, 2), 1.0)
        assert design.objective > 0.0


def test_nothing_asked_leaves_all_weight_on_the_leaves():
    none = np.zeros(0, dtype=np.int64)
    design = design_ranges(none, np.zeros(0), none, np.zeros(0), 4, 2)
    assert design.weights[:4].min() > 0.0
    assert (design.objective, design.gap) == (0.0, 0.0)
    with pytest.raises(InputError, match="intervals lie within"):
        design_pieces([0, 1], [3], [9], [1.0], 4, 2)
