from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import config
from scipy import stats

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition.rectangle_partition import sample_rectangles
from blowfish_fast.kernels.partition.rectangle_prior import (
    fixed_point_weights,
    rectangle_slack,
)
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.kernels.space.hilbert import hilbert_order
from tests.generated import example_count
from tests.reference.rectangle_partition import largest_log_ratio

from .test_rectangle_lattice import stored_law

pytestmark = pytest.mark.kernel

EXAMPLES = 6 if config.DISABLE_JIT else example_count(40)


def drawn_words(seed, size=2**10):
    """Words of a seeded generator, by position, whatever is asked first."""
    table = np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)

    def words(position, count):
        return table[position : position + count]

    return words


def boxes(shape, edges, order):
    """Return the sorted boxes of buckets, each of which must be one."""
    found = []
    for start, end in itertools.pairwise(edges.tolist()):
        rows, columns = np.unravel_index(order[start:end], shape)
        box = (rows.min(), columns.min(), rows.max() + 1, columns.max() + 1)
        assert (box[2] - box[0]) * (box[3] - box[1]) == end - start
        found.append(tuple(int(corner) for corner in box))
    return found


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.data(),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from([0.05, 1.0, 20.0]),
    st.integers(0, 10**6),
)
def test_buckets_are_dyadic_rectangles_that_cover_the_grid(data, shape, rate, seed):
    counts = data.draw(arrays(np.int64, shape, elements=st.integers(0, 9)))
    edges, order = sample_rectangles(counts, drawn_words(seed), rate=rate, penalty=1)
    assert sorted(order.tolist()) == list(range(counts.size))
    for top, left, bottom, right in boxes(shape, edges, order):
        for start, end, side in ((top, bottom, shape[0]), (left, right, shape[1])):
            length = 1 << (end - start - 1).bit_length()
            assert start % length == 0
            assert end == min(start + length, side)


@pytest.mark.parametrize("seed", range(3, 6))
def test_windows_of_one_node_are_not_those_of_the_next(seed):
    # At so small a rate the prior decides; by seed 4 one node of several has windows.
    counts = np.random.default_rng(seed).integers(0, 9, (8, 8))
    edges, order = sample_rectangles(counts, drawn_words(seed), rate=0.001, penalty=1)
    assert len(boxes((8, 8), edges, order)) == edges.size - 1


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.tuples(st.integers(2, 9), st.integers(2, 9)), st.integers(0, 10**6))
def test_buckets_are_numbered_as_the_walk_meets_them(shape, seed):
    counts = np.random.default_rng(seed).integers(0, 20, size=shape)
    walk = hilbert_order(shape)
    edges, order = sample_rectangles(
        counts, drawn_words(seed), rate=0.4, penalty=1, walk=walk
    )
    position = np.argsort(walk)
    firsts = position[order[edges[:-1]]]
    assert (np.diff(firsts) > 0).all()
    for start, end in itertools.pairwise(edges.tolist()):
        assert (np.diff(position[order[start:end]]) > 0).all()


@pytest.mark.long
@pytest.mark.parametrize(
    "counts",
    [
        [[3]],
        [[2, 0]],
        [[4, 4], [4, 1]],
        [[5, 5, 0], [1, 1, 0]],
        [[0, 7], [7, 6], [1, 1]],
    ],
    ids=str,
)
def test_frequencies_follow_the_law(counts):
    counts = np.array(counts)
    draws = 300 if config.DISABLE_JIT else 2000
    weights = fixed_point_weights(counts.shape, rate=0.4, penalty=1)
    law = stored_law(counts, weights)
    seen = Counter(
        tuple(
            sorted(
                boxes(
                    counts.shape,
                    *sample_rectangles(
                        counts, drawn_words(seed, 16), rate=0.4, penalty=1
                    ),
                )
            )
        )
        for seed in range(draws)
    )
    assert seen.keys() <= law.keys()
    common = [key for key in law if law[key] * draws >= 5]
    observed = [seen[key] for key in common]
    expected = [law[key] * draws for key in common]
    if len(common) < len(law):
        observed.append(draws - sum(observed))
        expected.append(draws - sum(expected))
    if len(expected) > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-4


def one_more(counts):
    for cell in np.ndindex(counts.shape):
        other = counts.copy()
        other[cell] += 1
        yield other


def moved(counts):
    for source, target in itertools.permutations(np.ndindex(counts.shape), 2):
        if counts[source] > 0:
            other = counts.copy()
            other[source] -= 1
            other[target] += 1
            yield other


def greatest_loss(histograms, weights, neighbours):
    """Return the largest log-ratio over all histograms and their neighbours."""
    laws = {}

    def law_of(counts):
        key = counts.tobytes()
        if key not in laws:
            laws[key] = stored_law(counts, weights)
        return laws[key]

    return max(
        largest_log_ratio(law_of(counts), law_of(other))
        for counts in histograms
        for other in neighbours(counts)
    )


def some_histograms(shape, number):
    generator = np.random.default_rng((number, *shape))
    spread = np.array([0, 0, 1, 2, 3, 8, 9, 30])
    return [generator.choice(spread, size=shape) for _ in range(number)]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(4)])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 4)])
def test_one_record_more_costs_at_most_epsilon(shape, epsilon):
    histograms = some_histograms(shape, 1 if config.DISABLE_JIT else 4)
    rate = epsilon - rectangle_slack(shape)
    weights = fixed_point_weights(shape, rate=rate, penalty=2 / epsilon)
    assert greatest_loss(histograms, weights, one_more) <= epsilon


@pytest.mark.long
@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_a_moved_record_costs_at_most_twice_the_rate(shape):
    histograms = some_histograms(shape, 1 if config.DISABLE_JIT else 4)
    rate = (4 - rectangle_slack(shape)) / 2
    weights = fixed_point_weights(shape, rate=rate, penalty=1)
    assert greatest_loss(histograms, weights, moved) <= 4


def test_the_range_of_an_added_record_is_reached():
    # The likely partition has the record below its quantile, a rare one above.
    counts = np.array([[5, 0, 0, 0], [9, 0, 0, 0]])
    more = counts.copy()
    more[0, 0] += 1
    for share, within in ((1, True), (Fraction(21, 20), False)):
        rate = (4 - rectangle_slack((2, 4))) * share
        weights = fixed_point_weights((2, 4), rate=rate, penalty=3)
        loss = largest_log_ratio(stored_law(counts, weights), stored_law(more, weights))
        assert (loss <= 4) == within
        assert loss > 3.9


def test_a_moved_record_needs_half_the_rate():
    counts = np.array([[5, 0, 0, 9], [9, 0, 0, 0]])
    other = counts + np.array([[1, 0, 0, -1], [0, 0, 0, 0]])
    rate = 8 - rectangle_slack((2, 4))
    weights = fixed_point_weights((2, 4), rate=rate, penalty=3)
    loss = largest_log_ratio(stored_law(counts, weights), stored_law(other, weights))
    assert 8 < loss <= 16


def test_every_decision_reads_a_word_of_its_own(monkeypatch):
    from blowfish_fast.kernels.partition import rectangle_partition

    monkeypatch.setattr(rectangle_partition, "_BLOCK", 5)
    read = []
    table = np.random.default_rng(4).integers(0, 2**64, 2**12, dtype=np.uint64)

    def words(position, count):
        read.extend(range(position, position + count))
        return table[position : position + count]

    words.by_place = True  # Its places are not read a second time to make sure.
    counts = 50 * (np.random.default_rng(4).random((16, 16)) < 0.1).astype(np.int64)
    in_blocks = sample_rectangles(counts, words, rate=1, penalty=1)
    assert read == list(range(len(read)))
    assert len(read) > 20
    monkeypatch.undo()
    together = sample_rectangles(counts, words, rate=1, penalty=1)
    assert all((a == b).all() for a, b in zip(in_blocks, together, strict=True))


def test_doubtful_words_reach_the_resolver(monkeypatch):
    asked = []
    genuine = exponential_choice.resolve_choice

    def watched(*given):
        asked.append(given[1])
        return genuine(*given)

    monkeypatch.setattr(exponential_choice, "weigh_rows", _all_doubtful)
    monkeypatch.setattr(exponential_choice, "resolve_choice", watched)
    counts = np.array([[9, 9, 0, 0], [9, 9, 0, 0]])
    resolved = sample_rectangles(counts, drawn_words(7), rate=1, penalty=1)
    monkeypatch.undo()
    filtered = sample_rectangles(counts, drawn_words(7), rate=1, penalty=1)
    assert asked
    assert all((a == b).all() for a, b in zip(resolved, filtered, strict=True))


def _all_doubtful(log_weights, words, fraction_bits, choices, totals, doubtful):
    doubtful[:] = np.arange(len(log_weights))
    return len(log_weights)


@pytest.mark.parametrize("rate", [0, 1e-9, 1e9])
@pytest.mark.parametrize("penalty", [0, 1e-9, 1e9])
def test_extreme_settings_and_counts_work(rate, penalty):
    spike = np.zeros((5, 6), dtype=np.int64)
    spike[2, 3] = 2**62
    for counts in (spike, spike * 0, spike + 1):
        edges, order = sample_rectangles(
            counts, drawn_words(1), rate=rate, penalty=penalty
        )
        assert edges[-1] == order.size == 30


def test_large_rates_find_the_blocks():
    counts = np.kron([[0, 500], [20, 900]], np.ones((4, 4), dtype=np.int64))
    edges, order = sample_rectangles(counts, drawn_words(3), rate=50, penalty=3)
    assert boxes((8, 8), edges, order) == [
        (0, 0, 4, 4),
        (0, 4, 4, 8),
        (4, 0, 8, 4),
        (4, 4, 8, 8),
    ]


@pytest.mark.parametrize("walk", [[0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4]])
def test_walks_that_miss_a_cell_are_refused(walk):
    with pytest.raises(InputError, match="each of the 4 cells once"):
        sample_rectangles(
            np.ones((2, 2), dtype=np.int64),
            drawn_words(1),
            rate=1,
            penalty=1,
            walk=np.array(walk),
        )
