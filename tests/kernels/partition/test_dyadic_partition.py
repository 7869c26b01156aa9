from __future__ import annotations

import itertools
import random
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import stats

from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import RESOLVER_BASE
from blowfish_fast.kernels.partition import dyadic_partition
from blowfish_fast.kernels.partition.dyadic_partition import (
    choose_blocks,
    sample_dyadic_partition,
    sampling_slack,
    tree_weights,
)
from blowfish_fast.kernels.sampling.exponential_choice import total_error
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_quantile_costs
from tests.generated import example_count
from tests.reference import dyadic_partition as reference
from tests.reference.exponential_choice import binary_words, borders

pytestmark = pytest.mark.kernel

EXAMPLES = 8 if config.DISABLE_JIT else example_count(40)


def silent(position, count):
    """All words zero: for looking at weights, which no word can change."""
    return np.zeros(count, dtype=np.uint64)


def drawn_words(seed, size=2**12):
    """Words of a seeded generator, by position, whatever is asked first."""
    table = np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)

    def words(position, count):
        return table[position : position + count]

    return words


def node_rows(x, weights, quantile=(3, 4)):
    """Return the stored log-weights of every node, by heap number."""
    costs = dyadic_quantile_costs(np.asarray(x), *quantile)
    rows = {}
    for first, table, _ in choose_blocks(costs, weights, silent):
        rows.update(enumerate(table.tolist(), first))
    return rows


def stored_law(x, weights, quantile=(3, 4)):
    """Return the exact law of the sampler's output."""
    rows = node_rows(x, weights, quantile)
    return reference.stored_law(rows, len(x), weights.fraction_bits)


def greatest_loss(histograms, weights, neighbours):
    """Return the largest log-ratio over all histograms and their neighbours."""
    laws = {}

    def law_of(x):
        if x not in laws:
            laws[x] = stored_law(x, weights)
        return laws[x]

    return max(
        reference.largest_log_ratio(law_of(x), law_of(y))
        for x in histograms
        for y in neighbours(x)
    )


def one_more(x):
    for cell in range(len(x)):
        yield (*x[:cell], x[cell] + 1, *x[cell + 1 :])


def moved(x):
    for source, target in itertools.permutations(range(len(x)), 2):
        if x[source] > 0:
            y = list(x)
            y[source] -= 1
            y[target] += 1
            yield tuple(y)


def some_histograms(cells, seed, count):
    """Every tiny histogram would be too many beyond four cells: take a few."""
    rng = random.Random(seed)
    spread = [0, 0, 1, 2, 3, 8, 9, 30]
    return [tuple(rng.choice(spread) for _ in range(cells)) for _ in range(count)]


SMALL = [
    *itertools.product(range(2 if config.DISABLE_JIT else 3), repeat=3),
    *itertools.product((0, 9) if config.DISABLE_JIT else (0, 1, 9), repeat=4),
]


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=8),
    st.sampled_from([0.01, 0.3, 1.0, 5.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([(3, 4), (1, 2), (7, 10)]),
    st.sampled_from([(0.49, 0.49, 0.02), (0.25, 0.5, 0.25)]),
    st.booleans(),
)
def test_stored_weights_give_the_intended_law(
    x, rate, penalty, quantile, base, weighted
):
    levels = (len(x) - 1).bit_length()
    factors = None
    if weighted:
        factors = [Fraction(k + 1, levels + 1) for k in range(levels + 1)]
    weights = tree_weights(
        len(x),
        rate=rate,
        penalty=penalty,
        quantile=quantile,
        base=base,
        length_weights=factors,
    )
    exact = [mpmath.mpf(f.numerator) / f.denominator for f in factors or []]
    intended = reference.intended_law(
        x, rate, penalty, quantile, base, exact if weighted else None
    )
    stored = stored_law(x, weights, quantile)
    assert stored.keys() == intended.keys()
    for partition, probability in intended.items():
        assert abs(stored[partition] - probability) < 1e-10


@pytest.mark.long
@pytest.mark.parametrize(
    "x",
    [(3,), (2, 0), (4, 4, 1), (0, 7, 7, 6), (5, 5, 0, 1, 1), (0, 0, 0, 1, 9, 2)],
)
def test_frequencies_follow_the_law(x):
    draws = 300 if config.DISABLE_JIT else 2500
    law = stored_law(x, tree_weights(len(x), rate=0.4, penalty=1))
    seen = Counter(
        tuple(
            sample_dyadic_partition(
                np.array(x), drawn_words((seed, len(x)), 16), rate=0.4, penalty=1
            )[:-1].tolist()
        )
        for seed in range(draws)
    )
    assert seen.keys() <= law.keys()
    common = [key for key in law if law[key] * draws >= 5]
    observed = [seen[key] for key in common]
    expected = [float(law[key]) * draws for key in common]
    if len(common) < len(law):
        observed.append(draws - sum(observed))
        expected.append(draws - sum(expected))
    if len(expected) > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_one_record_more_costs_at_most_epsilon(epsilon):
    for cells, histograms in itertools.groupby(SMALL, len):
        rate = epsilon - sampling_slack(cells)
        weights = tree_weights(cells, rate=rate, penalty=2 / epsilon)
        group = list(histograms)
        assert greatest_loss(group, weights, one_more) <= epsilon
        if cells == 4:
            doubled = tree_weights(cells, rate=2 * rate, penalty=1 / epsilon)
            assert greatest_loss(group, doubled, one_more) > epsilon


@pytest.mark.long
@pytest.mark.parametrize("cells", [5, 6, 7, 8])
def test_one_record_more_costs_at_most_epsilon_on_larger_trees(cells):
    histograms = some_histograms(cells, cells, 1 if config.DISABLE_JIT else 6)
    rate = 1 - sampling_slack(cells)
    weights = tree_weights(cells, rate=rate, penalty=1)
    assert greatest_loss(histograms, weights, one_more) <= 1


def test_the_range_of_an_added_record_is_reached():
    # The likely partition has the record below its quantile, a rare one above.
    x = (5, 9, 0, 0, 0, 0, 0, 0)
    y = (6, *x[1:])
    for share, within in ((1, True), (Fraction(21, 20), False)):
        rate = (4 - sampling_slack(8)) * share
        weights = tree_weights(8, rate=rate, penalty=3)
        loss = reference.largest_log_ratio(
            stored_law(x, weights), stored_law(y, weights)
        )
        assert (loss <= 4) == within
        assert loss > 3.96


def test_a_moved_record_needs_half_the_rate():
    # Cell 0 lies below the quantile of all cells and above that of [0, 4), cell 4
    # above the former and below that of [4, 6).
    x = (1, 0, 0, 0, 7, 9, 4, 4)
    y = (0, 0, 0, 0, 8, 9, 4, 4)
    weights = tree_weights(8, rate=(16 - sampling_slack(8)) / 2, penalty=1.5)
    loss = reference.largest_log_ratio(stored_law(x, weights), stored_law(y, weights))
    assert 15.9 < loss <= 16
    assert greatest_loss([x], weights, moved) <= 16
    small = list(itertools.product((0, 1, 9), repeat=3))
    half = tree_weights(3, rate=(1 - sampling_slack(3)) / 2, penalty=1)
    assert greatest_loss(small, half, moved) <= 1


def test_a_floor_that_bites_keeps_the_guarantee():
    weights = tree_weights(4, rate=1 - sampling_slack(4), penalty=1)
    raised = weights._replace(floor=-(2 << weights.fraction_bits))
    x = [(0, 0, 9, 9), (0, 9, 0, 2), (9, 9, 9, 30), (0, 3, 1, 5)]
    assert any(stored_law(h, raised) != stored_law(h, weights) for h in x)
    assert greatest_loss(x, raised, one_more) <= 1


def test_length_weights_keep_the_guarantee_and_are_cut_to_one():
    x = [(0, 0, 9, 9), (0, 9, 0, 2), (5, 5, 6, 30)]
    rate = 1 - sampling_slack(4)
    for factors in ([0.1, 0.5, 1], [1, 0.3, 0.7], [0.0, 0.0, 0.5]):
        weights = tree_weights(4, rate=rate, penalty=1, length_weights=factors)
        assert greatest_loss(x, weights, one_more) <= 1
    plain = tree_weights(4, rate=rate, penalty=1)
    above = tree_weights(4, rate=rate, penalty=1, length_weights=[1, 7, 2.5])
    assert above.coefficients == plain.coefficients
    below = tree_weights(4, rate=rate, penalty=1, length_weights=[-1, -0.5, 0])
    assert below.coefficients == (0, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "penalty"), [(0, 0), (1e-9, 1e9), (1e6, 1e6), (1e12, 0), (3, 1e-12)]
)
@pytest.mark.parametrize("cells", [2, 5, 8])
def test_extreme_parameters_do_not_overflow(cells, rate, penalty):
    weights = tree_weights(cells, rate=rate, penalty=penalty)
    giant = np.array([2**62, 0, 0, 1, 2**62, 7, 0, 2][:cells])
    for x in (giant, np.zeros(cells, dtype=np.int64)):
        for node, row in node_rows(x, weights).items():
            assert max(abs(weight) for weight in row) < 2**62
            base = weights.bases[len(weights.bases) - node.bit_length()]
            assert np.all(row - base >= weights.floor)
        partition = sample_dyadic_partition(
            x, drawn_words(1), rate=rate, penalty=penalty
        )
        assert partition[0] == 0
        assert partition[-1] == cells
        assert np.all(np.diff(partition) > 0)


def test_the_rate_is_never_rounded_up():
    for rate in (Fraction(1, 3), 1e-4, 0.7, 12345.678):
        weights = tree_weights(1000, rate=rate, penalty=1)
        used = Fraction(max(weights.coefficients) * 4, 1 << weights.fraction_bits)
        assert used <= Fraction(rate)
        if rate < 1000:
            assert used > Fraction(rate) * Fraction(999_999, 1_000_000)


def test_slack_is_the_stated_formula_and_small():
    assert sampling_slack(1) == 0
    for cells in (2, 1000, 2**20):
        levels = (cells - 1).bit_length()
        bits = tree_weights(cells, rate=2, penalty=3).fraction_bits
        stated = 8 * levels * total_error(levels + 2, bits)
        assert sampling_slack(cells, rate=2, penalty=3) == stated
        assert stated <= sampling_slack(cells) == sampling_slack(cells, rate=9)
    assert sampling_slack(2**20) < 1e-7
    assert sampling_slack(2**24) < 1e-6
    assert sampling_slack(2**20, rate=1e-4, penalty=1250) < 1e-11


def test_slack_covers_every_rate_and_penalty():
    for rate, penalty in itertools.product([0, 1e-6, 1, 1e3, 1e9], [0, 0.1, 1, 1e9]):
        assert sampling_slack(5000, rate=rate, penalty=penalty) <= sampling_slack(5000)


def test_one_cell_reads_no_word():
    def words(position, count):
        raise AssertionError("no word is needed")

    partition = sample_dyadic_partition(np.array([7]), words, rate=1, penalty=1)
    assert partition.tolist() == [0, 1]
    assert partition.dtype == np.int64


def test_equal_counts_join_and_a_giant_stands_alone():
    cells = 16
    words = drawn_words(3)
    flat = sample_dyadic_partition(
        np.zeros(cells, dtype=np.int64), words, rate=1, penalty=20
    )
    assert flat.tolist() == [0, cells]
    giant = np.zeros(cells, dtype=np.int64)
    giant[5] = 2**62
    partition = sample_dyadic_partition(giant, words, rate=1, penalty=20)
    assert partition.tolist() == [0, 4, 5, 6, 8, 16]


@pytest.mark.parametrize("cells", [9, 13, 37, 64])
def test_buckets_are_aligned_dyadic_windows(cells):
    for seed in range(3 if config.DISABLE_JIT else 20):
        x = np.random.default_rng(seed).poisson(3, cells)
        edges = sample_dyadic_partition(x, drawn_words(seed), rate=0.3, penalty=1)
        assert edges[0] == 0
        assert edges[-1] == cells
        for start, end in itertools.pairwise(edges.tolist()):
            # Rounded up to a power of two only where the domain cuts the window.
            length = 1 << (end - start - 1).bit_length()
            assert start % length == 0
            assert end == min(start + length, cells)


def test_equal_cuts_are_drawn_and_walked():
    # Alternating pairs: windows of two are right everywhere, and one choice says so.
    x = np.repeat(np.arange(8) % 2 * 500, 2)
    base = (0.01, 0.01, 0.98)
    partition = sample_dyadic_partition(
        x, drawn_words(1), rate=1, penalty=40, base=base
    )
    assert partition.tolist() == list(range(0, 17, 2))


def test_a_word_on_the_border_is_resolved():
    x = np.array([4, 1, 0, 0, 7])
    weights = tree_weights(5, rate=0.5, penalty=1)
    row = node_rows(x, weights)[1]
    for candidate, border in enumerate(borders(row, weights.fraction_bits)[:2]):
        for side in (0, 1):
            first, second, third = binary_words(border, 3)
            script = {
                1: first,
                RESOLVER_BASE + (1 << 16): second,
                RESOLVER_BASE + (1 << 16) + 1: third + (1 if side else -1),
            }

            def words(position, count, script=script):
                found = [script.get(position + i, 1 << 62) for i in range(count)]
                return np.array(found, dtype=np.uint64)

            costs = dyadic_quantile_costs(x, 3, 4)
            *_, (node, _, choices) = choose_blocks(costs, weights, words)
            assert node == 1
            assert choices[0] == candidate + side


def test_same_words_give_the_same_partition_compiled_or_not():
    # Written down once; the compiled and the plain run must both find it.
    x = np.repeat([3, 11, 4, 90, 2], [16, 4, 12, 1, 8])
    x = x + np.arange(41) * 7 % 5
    words = drawn_words(20)
    partition = sample_dyadic_partition(x, words, rate=0.2, penalty=3)
    again = sample_dyadic_partition(x, words, rate=0.2, penalty=3)
    assert np.array_equal(partition, again)
    assert partition.tolist() == [0, 32, 33, 34, 36, 40, 41]
    root = node_rows(x, tree_weights(41, rate=0.2, penalty=3))[1]
    assert root[:2] == [629561038219930, 2772392985567499]


def test_blocks_do_not_change_the_result(monkeypatch):
    cells = 60 if config.DISABLE_JIT else 1500
    x = np.random.default_rng(8).poisson(2, cells)
    words = drawn_words(8)
    whole = sample_dyadic_partition(x, words, rate=0.3, penalty=1)
    monkeypatch.setattr("blowfish_fast.kernels.partition.dyadic_partition._ROWS", 7)
    parts = sample_dyadic_partition(x, words, rate=0.3, penalty=1)
    assert np.array_equal(whole, parts)


def test_base_weights_count_in_proportion():
    x = np.array([4, 1, 0, 0, 7])
    first = tree_weights(5, rate=0.5, penalty=1, base=(0.25, 0.5, 0.25))
    second = tree_weights(5, rate=0.5, penalty=1, base=(2.0, 4.0, 2.0))
    assert node_rows(x, first) == node_rows(x, second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": -1, "penalty": 1}, "negative"),
        ({"rate": 1, "penalty": -1}, "negative"),
        ({"rate": 1, "penalty": 1, "base": (0.5, 0.5, 0.0)}, "positive"),
        ({"rate": 1, "penalty": 1, "length_weights": [1]}, "one per level"),
    ],
)
def test_refuses_parameters_that_break_the_proof(arguments, message):
    with pytest.raises(InputError, match=message):
        sample_dyadic_partition(np.array([1, 2, 3]), silent, **arguments)


@pytest.mark.parametrize("cells", [1, 2, 3, 50, 129])
def test_threads_draw_the_same_partition(cells, monkeypatch):
    monkeypatch.setattr(dyadic_partition, "_ROWS", 4)
    x = np.random.default_rng(cells).poisson(9, cells)
    alone = sample_dyadic_partition(x, drawn_words(1), rate=1, penalty=1)
    together = sample_dyadic_partition(x, drawn_words(1), rate=1, penalty=1, threads=3)
    assert alone.tolist() == together.tolist()
