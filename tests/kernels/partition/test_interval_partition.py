"""The least-cost partition of a line, beside a plain recursion over all its buckets.

A bucket costs the deviation of its cells (the sum of their distances from the mean, or
from a quantile) and a price, less the noise that was drawn for it. Candidates are
buckets whose length is a power of two; level k has those of 2^k cells.
`reference.candidate_costs` writes all of their costs out, and `reference.cheapest`
finds the best partition by recursion.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition import interval_partition
from blowfish_fast.kernels.partition.interval_partition import (
    least_cost_partition,
    partition_cost,
)
from blowfish_fast.kernels.window_costs import dyadic_costs
from blowfish_fast.kernels.window_costs.count_grid import partition_grid
from tests.generated import example_count
from tests.reference import interval_partition as reference
from tests.reference.cell_kinds import WHOLE_KINDS, whole_cells
from tests.reference.window_deviation import deviation

pytestmark = pytest.mark.kernel

# The counts of the example in the DAWA paper.
PAPER = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
EXAMPLES = 25 if config.DISABLE_JIT else example_count(60)
QUANTILES = st.sampled_from([None, (3, 4), (2, 3)])


@pytest.fixture
def small_blocks(monkeypatch):
    """Let the kernel work in blocks of 256 cells, so that few cells fill several."""
    for module in (interval_partition, dyadic_costs):
        monkeypatch.setattr(module, "BLOCK", 256)
    tiles = ((6, 6, 64), (7, 7, 128), (8, 8, 256), (9, 9, 512))
    monkeypatch.setattr(dyadic_costs, "TILES", (*tiles, (10, 12, 4096)))


def test_the_deviations_of_the_paper():
    buckets = [PAPER[:2], PAPER[2:3], PAPER[3:7], PAPER[7:]]
    expected = [1, 0, 3, Fraction(8, 3)]
    assert [deviation(bucket.tolist()) for bucket in buckets] == expected
    # 1 + 0 + 3 + 8/3 = 20/3.
    boundaries = np.array([0, 2, 3, 7, 10])
    assert partition_cost(PAPER, boundaries) == pytest.approx(20 / 3, rel=1e-15)
    assert partition_cost(PAPER, np.array([0, 10])) == pytest.approx(17.2)


@pytest.mark.parametrize(
    ("epsilon", "optimum"), [(1.0, 10), (0.5, 16), (0.2, 27), (0.1, 37)]
)
def test_the_least_costs_of_the_example_worked_out_by_hand(epsilon, optimum):
    # A bucket costs its deviation and a price of 1 / epsilon.
    boundaries = least_cost_partition(PAPER, np.full(4, 1 / epsilon), step=2.0**-10)
    buckets = boundaries.size - 1
    assert partition_cost(PAPER, boundaries) + buckets / epsilon == optimum


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 70),
    st.integers(-8, 4),
    QUANTILES,
    st.integers(0),
)
def test_equals_the_plain_recursion_without_noise(
    kind, cells, exponent, quantile, seed
):
    rng = np.random.default_rng(seed)
    values = whole_cells(kind, cells, rng)
    prices = rng.uniform(0, 30, cells.bit_length())
    step = 2.0**exponent
    costs = reference.candidate_costs(
        values.tolist(), reference.powers_up_to(cells), prices, step, quantile=quantile
    )
    boundaries, _ = reference.cheapest(cells, costs)
    found = least_cost_partition(values, prices, step=step, quantile=quantile)
    assert found.dtype == np.int64
    assert found.tolist() == boundaries


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 40),
    st.floats(0.01, 100.0),
    QUANTILES,
    st.integers(0, 2**32),
)
def test_equals_the_plain_recursion_with_recorded_noise(
    kind, cells, scale, quantile, seed
):
    rng = np.random.default_rng(seed)
    values = whole_cells(kind, cells, rng)
    levels = cells.bit_length()
    scales = scale * rng.uniform(1, 2, levels)
    prices = 1 + 4 * scales
    step, cap = partition_grid(cells, scale)
    values = np.clip(values, 0, cap)
    words = reference.hashed_words(seed)
    costs = reference.candidate_costs(
        values.tolist(),
        reference.powers_up_to(cells),
        prices,
        step,
        scales=scales,
        words=words,
        quantile=quantile,
    )
    boundaries, _ = reference.cheapest(cells, costs)
    found = least_cost_partition(
        values, prices, scales, words, step=step, quantile=quantile
    )
    assert found.tolist() == boundaries


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("quantile", [None, (3, 4)])
@pytest.mark.parametrize("kind", ["distinct", "poisson", "jumping mean"])
def test_threads_and_blocks_do_not_matter(kind, quantile, monkeypatch):
    size = 600 if config.DISABLE_JIT else 6000
    values = whole_cells(kind, size, np.random.default_rng(3))
    values = values - values.min()
    levels = size.bit_length()
    scales = np.linspace(2, 4, levels)
    words = reference.hashed_words(9)

    def partition(threads):
        return least_cost_partition(
            values,
            3 * scales,
            scales,
            words,
            step=2.0**-9,
            threads=threads,
            quantile=quantile,
        ).tolist()

    by_one_thread = partition(1)
    assert by_one_thread[0] == 0
    assert by_one_thread[-1] == size
    assert partition(2) == by_one_thread
    assert partition(5) == by_one_thread
    # Back to blocks of the usual size.
    monkeypatch.undo()
    assert partition(1) == by_one_thread
    assert partition(3) == by_one_thread


def test_threads_do_not_matter_on_full_blocks():
    size = 500 if config.DISABLE_JIT else 100_000
    values = whole_cells("poisson", size, np.random.default_rng(4))
    scales = np.linspace(2, 4, size.bit_length())
    words = reference.hashed_words(1)
    found = [
        least_cost_partition(
            values, 3 * scales, scales, words, step=2.0**-8, threads=threads
        )
        for threads in (1, 2, 3)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_noise_of_a_bucket_takes_its_own_word_and_no_other():
    cells = 21
    asked = []
    source = reference.hashed_words(2)

    def words(position, count):
        asked.extend(range(position, position + count))
        return source(position, count)

    # Says that words follow from their place: none is read a second time to check it.
    words.by_place = True
    scales = np.full(5, 2.0)
    least_cost_partition(
        np.arange(cells), scales, scales, words, step=2.0**-8, quantile=(3, 4)
    )
    # The place of a bucket's word is its level, times 2^40, plus its end.
    places = [
        (level << 40) + end
        for level in range(5)
        for end in range(1 << level, cells + 1)
    ]
    assert sorted(asked) == places


def test_noise_is_subtracted_from_single_cells_too():
    # Two equal cells at the price 0: without noise the bucket of both wins the tie. Two
    # buckets, which have three boundaries, can only win by a draw for a single cell.
    scales = np.array([50.0, 2.0**-6])
    sizes = {
        least_cost_partition(
            np.array([5, 5]),
            np.zeros(2),
            scales,
            reference.hashed_words(seed),
            step=2.0**-4,
        ).size
        for seed in range(20)
    }
    assert 3 in sizes


@pytest.mark.parametrize("cells", [1, 2, 3, 31, 32, 33, 64, 65, 100])
def test_equal_cells_make_the_longest_buckets(cells):
    levels = cells.bit_length()
    for values in (np.zeros(cells, dtype=np.int64), np.full(cells, 7)):
        found = least_cost_partition(values, np.ones(levels), step=2.0**-8)
        # One bucket for every binary digit of the number of cells, the longest last.
        assert found.size - 1 == cells.bit_count()
        assert found[-1] - found[-2] == 1 << (levels - 1)


def test_ties_go_to_the_longest_last_bucket():
    found = least_cost_partition(np.zeros(13, dtype=int), np.zeros(4), step=1.0)
    assert found.tolist() == [0, 1, 5, 13]


@pytest.mark.long
@pytest.mark.parametrize("cells", [1, 5, 64, 200])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e4])
@pytest.mark.parametrize("quantile", [None, (3, 4), (511, 1023)])
def test_counts_at_the_cap_do_not_overflow(cells, scale, quantile):
    step, cap = partition_grid(cells, scale)
    levels = cells.bit_length()
    for values in (
        np.where(np.arange(cells) == cells // 2, cap, 0),
        np.where(np.arange(cells) % 2 == 0, cap, 0),
        np.where(np.arange(cells) % 2 == 0, cap, 1),
    ):
        prices = np.full(levels, scale)
        found = least_cost_partition(values, prices, step=step, quantile=quantile)
        costs = reference.candidate_costs(
            values.tolist(),
            reference.powers_up_to(cells),
            prices,
            step,
            quantile=quantile,
        )
        assert found.tolist() == reference.cheapest(cells, costs)[0]
        noisy = least_cost_partition(
            values,
            np.full(levels, scale * 2.0**20),
            np.full(levels, 8 * scale),
            reference.hashed_words(3),
            step=step,
            quantile=quantile,
        )
        assert (noisy[0], noisy[-1]) == (0, cells)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=40), st.integers(-8, 2))
def test_fractions_are_partitioned_without_noise(values, exponent):
    step = 2.0**exponent
    prices = np.full(len(values).bit_length(), 50.0)
    found = least_cost_partition(np.array(values), prices, step=step)
    # Costs are counted in whole steps, so that each bucket may be off by a step.
    costs = reference.candidate_costs(
        values, reference.powers_up_to(len(values)), prices, step
    )
    _, best = reference.cheapest(len(values), costs)
    total = sum(costs[a, b] for a, b in itertools.pairwise(found))
    assert best <= total <= best + 2 * len(values)


def test_whole_floats_are_counts():
    words = reference.hashed_words(4)
    scales = np.full(4, 3.0)
    whole = least_cost_partition(PAPER, scales, scales, words, step=2.0**-9)
    floats = least_cost_partition(
        PAPER.astype(float), scales, scales, words, step=2.0**-9
    )
    np.testing.assert_array_equal(whole, floats)


@given(st.sampled_from(WHOLE_KINDS), st.integers(1, 80), st.integers(0), st.data())
def test_the_cost_of_a_partition_is_the_sum_of_its_deviations(kind, cells, seed, data):
    values = whole_cells(kind, cells, np.random.default_rng(seed))
    inner = data.draw(st.sets(st.integers(1, max(cells - 1, 1)), max_size=10))
    boundaries = sorted({0, cells} | {border for border in inner if border < cells})
    exact = sum(
        deviation(values[begin:end].tolist())
        for begin, end in itertools.pairwise(boundaries)
    )
    cost = partition_cost(values, np.array(boundaries))
    assert cost == pytest.approx(float(exact), rel=1e-15)


def test_the_cost_of_fractions():
    cost = partition_cost(np.array([0.25, 0.75, 3.0]), np.array([0, 2, 3]))
    assert cost == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("boundaries", [[0], [1, 3], [0, 2], [0, 2, 2, 3], [0, 4]])
def test_refuses_boundaries_of_other_cells(boundaries):
    with pytest.raises(InputError, match="boundaries"):
        partition_cost(np.arange(3), np.array(boundaries))


def test_refuses_what_is_no_partition_problem():
    ones = np.ones(2)
    words = reference.hashed_words(0)
    refused = [
        ((np.zeros((2, 2)), ones), {"step": 1.0}),
        ((np.zeros(0), np.ones(0)), {"step": 1.0}),
        ((np.zeros(3), np.ones(3)), {"step": 1.0}),
        ((np.zeros(3), ones), {"step": 0.3}),
        ((np.zeros(3), ones), {"step": 1.0, "threads": 0}),
        ((np.zeros(3), ones, ones), {"step": 1.0}),
        ((np.zeros(3), ones, np.ones(3), words), {"step": 1.0}),
        ((np.zeros(3), ones, np.zeros(2), words), {"step": 1.0}),
        ((np.array([0.5, 0, 1]), ones, ones, words), {"step": 1.0}),
        ((np.array([0, 0, 2**52]), ones), {"step": 1.0}),
        ((np.zeros(3), ones), {"step": 1.0, "quantile": (4, 3)}),
    ]
    for arguments, options in refused:
        with pytest.raises(InputError):
            least_cost_partition(*arguments, **options)


@pytest.mark.usefixtures("small_blocks")
def test_costs_are_kept_for_one_block_at_a_time(monkeypatch):
    genuine, block_lengths = interval_partition.extend_partitions, set()

    def watched(rows, *rest):
        block_lengths.add(rows.shape[1])
        genuine(rows, *rest)

    monkeypatch.setattr(interval_partition, "extend_partitions", watched)
    for cells in (40, 700):
        penalties = np.full(cells.bit_length(), 3.0)
        least_cost_partition(np.arange(cells) // 9, penalties, step=1.0)
    # 40 cells are one short block; 700 cells are read 256 at a time.
    assert block_lengths == {40, 256}
