"""Runs with outliers: their law by enumeration, and what one record changes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import stats

from blowfish_fast.kernels.partition import dyadic_partition, tree_prior
from blowfish_fast.kernels.partition.dyadic_partition import (
    choose_blocks,
    run_totals,
    sample_dyadic_partition,
    sampling_slack,
    tree_weights,
)
from blowfish_fast.kernels.partition.tree_prior import OUTLIERS, Outliers
from blowfish_fast.kernels.sampling.exponential_choice import total_error
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_quantile_costs
from tests.reference import dyadic_partition as reference

from .test_dyadic_partition import drawn_words, moved, one_more, silent

pytestmark = pytest.mark.kernel

SHARES = (Fraction(1, 4), Fraction(1, 16))
SMALL = Outliers(shares=SHARES, weight=0.3, height=2)
"""Runs from four cells on, and likely, so that they can be written out."""


@pytest.fixture
def small_runs(monkeypatch):
    monkeypatch.setattr(dyadic_partition, "OUTLIERS", SMALL)


with_small_runs = pytest.mark.usefixtures("small_runs")


def stored_law(x, weights):
    """Return the exact law of the sampler's output."""
    counts = np.asarray(x)
    costs = dyadic_quantile_costs(counts, 3, 4)
    totals = run_totals(counts, weights.outliers, weights.fraction_bits)
    rows = {}
    for first, table, _ in choose_blocks(costs, weights, silent, 1, totals):
        rows.update(enumerate(table.tolist(), first))
    runs = [
        dyadic_partition._cell_rows(counts, weights.outliers, share).tolist()
        for share in range(len(weights.outliers.in_run))
    ]
    return reference.stored_law(rows, len(x), weights.fraction_bits, runs)


def greatest_loss(histograms, weights, neighbours):
    """Return the largest log-ratio over all histograms and their neighbours."""
    return max(
        reference.largest_log_ratio(stored_law(x, weights), stored_law(y, weights))
        for x in histograms
        for y in neighbours(x)
    )


@settings(deadline=None, max_examples=4 if config.DISABLE_JIT else 10)
@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=5),
    st.sampled_from([0.01, 0.3, 2.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_stored_weights_give_the_intended_law(x, rate, penalty):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dyadic_partition, "OUTLIERS", SMALL)
        weights = tree_weights(len(x), rate=rate, penalty=penalty, outliers=True)
    intended = reference.intended_law(x, rate, penalty, outliers=SMALL)
    stored = stored_law(x, weights)
    assert stored.keys() == intended.keys()
    for partition, probability in intended.items():
        assert abs(stored[partition] - probability) < 1e-9


@with_small_runs
def test_frequencies_follow_the_law():
    x, draws = (0, 5, 0, 0, 1), 200 if config.DISABLE_JIT else 1000
    law = stored_law(x, tree_weights(5, rate=0.4, penalty=1, outliers=True))
    seen = Counter(
        tuple(
            sample_dyadic_partition(
                np.array(x), drawn_words((seed, 5), 16), rate=0.4, penalty=1, outliers=1
            )[:-1].tolist()
        )
        for seed in range(draws)
    )
    assert seen.keys() <= law.keys()
    common = [key for key in law if law[key] * draws >= 5]
    observed = [seen[key] for key in common]
    expected = [float(law[key]) * draws for key in common]
    observed.append(draws - sum(observed))
    expected.append(draws - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-4


HISTOGRAMS = [(0, 0, 9, 0), (4, 0, 2, 30), (1, 1, 60)]


@with_small_runs
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_one_record_more_costs_at_most_epsilon(epsilon):
    for x in HISTOGRAMS:
        rate = epsilon - sampling_slack(len(x), outliers=True)
        weights = tree_weights(len(x), rate=rate, penalty=2 / epsilon, outliers=True)
        assert greatest_loss([x], weights, one_more) <= epsilon


@with_small_runs
def test_a_moved_record_needs_half_the_rate():
    rate = (1 - sampling_slack(4, outliers=True)) / 2
    weights = tree_weights(4, rate=rate, penalty=1, outliers=True)
    assert greatest_loss(HISTOGRAMS[:2], weights, moved) <= 1


@with_small_runs
def test_records_that_cost_more_than_their_quantile_are_caught():
    # Planted: with the whole rate for each record of a kept cell, and a record below
    # the quantile of a likely bucket, the range is 5/4.
    weights = tree_weights(4, rate=4, penalty=0.25, outliers=True)
    record = weights.outliers.record // 3 * 4
    x, y = (2, 9, 9, 9), (3, 9, 9, 9)

    def loss(planted):
        return reference.largest_log_ratio(
            stored_law(x, planted), stored_law(y, planted)
        )

    assert loss(weights) <= 4
    assert loss(weights._replace(outliers=weights.outliers._replace(record=record))) > 4


@with_small_runs
def test_totals_by_count_and_by_cell_agree():
    x = np.random.default_rng(4).poisson(3, 200)
    weights = tree_weights(200, rate=5, penalty=1, outliers=True)
    bits, alone = weights.fraction_bits, weights.outliers
    few = np.array([*x[:4], 7, 70])
    assert x.max() < x.size
    assert alone.most >= few.size
    assert np.array_equal(
        run_totals(x, alone, bits)[:2], run_totals(few, alone, bits)[:2]
    )
    # Beyond the most records that matter nothing changes.
    ends = [run_totals(np.array([0, one]), alone, bits) for one in (alone.most, 2**62)]
    assert np.array_equal(*ends)
    kept, single = (mpmath.mpf(one[0]) / 2**bits for one in (alone.in_run, alone.alone))
    exact = 2 * mpmath.log(mpmath.exp(kept) + mpmath.exp(single))
    empty = mpmath.mpf(int(run_totals(np.array([0, 0]), alone, bits)[0, 0])) / 2**bits
    assert abs(empty - exact) <= 2 * float(total_error(2, bits))


@with_small_runs
@pytest.mark.parametrize(
    ("rate", "penalty"), [(0, 0), (1e-9, 1e9), (1e6, 1e6), (1e12, 0), (3, 1e-12)]
)
@pytest.mark.parametrize("cells", [5, 16, 40])
def test_extreme_parameters_do_not_overflow(cells, rate, penalty):
    weights = tree_weights(cells, rate=rate, penalty=penalty, outliers=True)
    giant = np.zeros(cells, dtype=np.int64)
    giant[::3] = 2**62
    for x in (giant, np.zeros(cells, dtype=np.int64)):
        totals = run_totals(x, weights.outliers, weights.fraction_bits)
        costs = dyadic_quantile_costs(x, 3, 4)
        for _, table, _ in choose_blocks(costs, weights, drawn_words(2), 1, totals):
            assert np.abs(table.astype(object)).max() < 2**62
        found = sample_dyadic_partition(
            x, drawn_words(1), rate=rate, penalty=penalty, outliers=True
        )
        assert found[0] == 0
        assert found[-1] == cells
        assert np.all(np.diff(found) > 0)


@with_small_runs
def test_no_word_is_read_twice():
    # Node v reads word v, and cell i of a run word 2^levels + i.
    cells, beyond = 40, 0
    x = np.zeros(cells, dtype=np.int64)
    x[[3, 11, 22, 37]] = 80
    for seed in range(20):
        read: list[int] = []

        def words(position, count, seed=seed, read=read):
            read.extend(range(position, position + count))
            return drawn_words(seed)(position, count)

        words.by_place = True  # Its places are not read a second time to make sure.
        sample_dyadic_partition(x, words, rate=0.1, penalty=1, outliers=True)
        assert len(read) == len(set(read))
        assert set(read) <= set(range(64 + cells))
        beyond += max(read) > 64 + 20
    assert beyond > 3


def test_spikes_too_small_for_their_splits_are_found_in_a_run():
    # Each is worth six nats; isolating one of them takes eight splits.
    x = np.zeros(1024, dtype=np.int64)
    x[[3, 200, 411, 600, 777, 1000]] = 80
    words, given = drawn_words(5), {"rate": Fraction(1, 10), "penalty": 1}
    plain = sample_dyadic_partition(x, words, **given)
    runs = sample_dyadic_partition(x, words, outliers=True, **given)
    alone = [
        set(one[:-1][np.diff(one) == 1]) & set(np.flatnonzero(x))
        for one in (plain, runs)
    ]
    assert len(alone[0]) < len(alone[1])


def test_short_domains_have_no_runs_and_the_slack_counts_one_more_level():
    assert tree_weights(8, rate=1, penalty=1, outliers=True).outliers is None
    assert sampling_slack(8, outliers=True) == sampling_slack(8)
    for cells in (16, 4096, 2**20):
        levels = (cells - 1).bit_length()
        weights = tree_weights(cells, rate=2, penalty=3, outliers=True)
        columns = levels + 2 + len(OUTLIERS.shares)
        stated = 8 * (levels + 1) * total_error(columns, weights.fraction_bits)
        assert sampling_slack(cells, rate=2, penalty=3, outliers=True) == stated
    assert sampling_slack(2**20, outliers=True) < 1e-7


def test_even_counts_are_divided_as_without_runs():
    x = np.random.default_rng(2).poisson(400, 512)
    given = {"rate": Fraction(1, 5), "penalty": 5}
    for seed in range(5):
        plain, runs = (
            sample_dyadic_partition(x, drawn_words(seed), outliers=one, **given)
            for one in (False, True)
        )
        assert np.array_equal(plain, runs)


@pytest.mark.parametrize("levels", [1, 4, 20])
def test_the_floor_lies_below_every_candidate_that_isolates_a_window(levels):
    # A split is 1/8, the equal cuts share 1/8: the finest has 2^-levels of it at least.
    cut = (3 + levels) * np.log(2)
    expected = 64 + np.ceil(levels * (3 * np.log(2) + cut) + cut)
    assert tree_prior._floor(levels, (6.0, 1.0, 1.0)) == expected
