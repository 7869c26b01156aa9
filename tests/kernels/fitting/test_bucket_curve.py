"""Cells that follow neighbouring buckets, against scipy's monotone cubic curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.bucket_curve import (
    _part_that_came_true,
    smooth_buckets,
)
from tests.reference import bucket_curve as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 100


@st.composite
def bucket_totals(draw):
    """Return totals and edges: halves of halves, of which some are cut further."""
    lengths = draw(
        st.lists(st.sampled_from([1, 2, 3, 4, 4, 8, 8, 16]), min_size=1, max_size=25)
    )
    number = st.one_of(st.just(0.0), st.floats(1e-3, 1e6))
    totals = [draw(number) for _ in lengths]
    return np.array(totals), np.concatenate([[0], np.cumsum(lengths)])


WIDTHS = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))
# Noise as a part of all counts. What buckets foretell is a difference of numbers as
# large as their totals; it is 0 up to rounding where slopes are equal. Noise of a
# ten-thousandth of all counts weighs more than the rounding of these differences, so
# that two ways of working them out agree.
PARTS_OF_ALL = st.floats(1e-4, 10)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    bucket_totals(),
    PARTS_OF_ALL,
    st.one_of(st.just(np.inf), st.floats(0, 1e5)),
)
def test_cells_are_those_of_the_definition(line, part, most):
    totals, edges = line
    width = part * totals.sum()
    expected = reference.smooth_buckets(totals, edges, width, most)
    cells = smooth_buckets(totals, edges, width, most)
    np.testing.assert_allclose(cells, expected, rtol=1e-9, atol=1e-9 * totals.sum())


@settings(deadline=None, max_examples=EXAMPLES)
@given(bucket_totals(), WIDTHS, WIDTHS)
def test_no_cell_is_negative_and_buckets_keep_their_totals(line, width, most):
    totals, edges = line
    cells = smooth_buckets(totals, edges, width, most)
    assert cells.min() >= 0
    sizes = np.diff(edges)
    uneven = np.add.reduceat(
        np.abs(cells - np.repeat(totals / sizes, sizes)), edges[:-1]
    )
    assert (uneven <= most + 1e-9 * (1 + totals)).all()
    np.testing.assert_allclose(
        np.add.reduceat(cells, edges[:-1]), totals, rtol=1e-9, atol=1e-9
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(bucket_totals(), PARTS_OF_ALL, st.integers(1, 2**20))
def test_other_units_change_nothing(line, part, times):
    totals, edges = line
    width = part * totals.sum()
    np.testing.assert_allclose(
        smooth_buckets(times * totals, edges, times * width),
        times * smooth_buckets(totals, edges, width),
        rtol=1e-9,
        atol=1e-9 * times * totals.sum(),
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(bucket_totals(), WIDTHS, st.integers(-8, 20))
def test_units_of_powers_of_two_change_no_digit(line, width, power):
    """Any width, none included: such units are exact, and so is every step."""
    totals, edges = line
    times = 2.0**power
    np.testing.assert_array_equal(
        smooth_buckets(times * totals, edges, times * width),
        times * smooth_buckets(totals, edges, width),
    )


def hill(cells):
    """Return the counts of a smooth line."""
    return 100 * np.exp(-(((np.arange(cells) - cells / 2.2) / (cells / 6)) ** 2))


def halved(counts, length):
    """Return totals and edges of buckets of one length."""
    edges = np.arange(0, counts.size + 1, length)
    return np.add.reduceat(counts, edges[:-1]), edges


def test_cells_of_a_smooth_line_are_much_closer_than_even_ones():
    counts = hill(512)
    totals, edges = halved(counts, 16)
    even = np.repeat(totals / 16, 16)
    off = np.abs(smooth_buckets(totals, edges, 1.0) - counts).sum()
    assert off < 0.2 * np.abs(even - counts).sum()


def test_level_steps_of_other_heights_stay_even():
    """The planted error: without what halves say, cells follow heights by chance."""
    heights = np.random.default_rng(3).gamma(0.7, 100, 64)
    counts = np.repeat(heights, 16)
    totals, edges = halved(counts, 8)
    cells = smooth_buckets(totals, edges, 1.0)
    assert _part_that_came_true(totals, edges, 1.0) < 0.05
    followed = np.diff(reference.curve(totals, edges))
    assert np.abs(cells - counts).sum() < 0.1 * np.abs(followed - counts).sum()


# The first joined half lies below the second one, but falls itself.
TOTALS, EDGES = np.array([30.0, 10, 50, 70]), np.array([0, 8, 16, 24, 32])


def test_a_line_without_halves_follows_its_neighbours():
    assert _part_that_came_true(TOTALS, EDGES, 1.0) < 0.9
    apart = np.array([0, 8, 24, 32, 48])
    assert _part_that_came_true(TOTALS, apart, 1.0) == 1


@pytest.mark.parametrize("seed", range(8))
def test_the_part_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([2, 4, 8, 8], 7)
    edges = np.concatenate([[0], np.cumsum(np.sort(lengths)[::-1])])
    rising = np.arange(7) if seed % 2 else np.arange(7)[::-1]
    totals = np.diff(edges) * (rising + rng.uniform(0, 3, 7))
    expected = reference.part_that_came_true(totals, edges, 0.3)
    assert _part_that_came_true(totals, edges, 0.3) == pytest.approx(expected)
    assert expected > 0.2


def test_the_prior_is_weighed_by_the_noise():
    widths = (10.0, 100.0, 1e6)
    parts = [_part_that_came_true(TOTALS, EDGES, width) for width in widths]
    assert (np.diff(parts) > 0).all()
    assert parts[-1] == pytest.approx(1, abs=1e-3)


def test_short_buckets_stay_even():
    totals, edges = np.array([2.0, 6, 40, 80]), np.array([0, 2, 4, 8, 12])
    cells = smooth_buckets(totals, edges, 1.0)
    assert cells[:4].tolist() == [1, 1, 3, 3]
    assert np.diff(cells[4:8]).min() > 0


def test_one_bucket_and_empty_ones_are_even():
    assert smooth_buckets([6], [0, 3], 1.0).tolist() == [2, 2, 2]
    assert smooth_buckets([0, 0], [0, 8, 16], 0.0).tolist() == [0] * 16


@pytest.mark.parametrize(
    ("totals", "edges", "width", "word"),
    [
        ([1.0], [0, 2, 4], 1.0, "shapes"),
        ([], [0], 1.0, "shapes"),
        ([1.0, 2.0], [0, 4, 4], 1.0, "rise"),
        ([1.0, 2.0], [1, 2, 4], 1.0, "rise"),
        ([1.0, -2.0], [0, 2, 4], 1.0, "not negative"),
        ([1.0, 2.0], [0, 2, 4], -1.0, "not negative"),
        ([1.0, np.nan], [0, 2, 4], 1.0, "totals"),
        ([1.0, 2.0], [0, 2, 4], np.nan, "not negative"),
    ],
)
def test_what_are_no_buckets_is_refused(totals, edges, width, word):
    with pytest.raises(InputError, match=word):
        smooth_buckets(totals, edges, width)
