from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import stats

from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import RESOLVER_BASE
from blowfish_fast.kernels.sampling import discrete_laplace as kernels
from blowfish_fast.kernels.sampling.discrete_laplace import (
    geometric,
    laplace,
    subtract_geometric,
)
from blowfish_fast.measure.randomness import Randomness
from tests.generated import example_count
from tests.reference import discrete_laplace as reference

pytestmark = pytest.mark.kernel

COMPILED = not config.DISABLE_JIT
SCALES = [
    (1, 100),
    (1, 10),
    (1, 3),
    (7, 10),
    (1, 1),
    (5, 2),
    (79, 10),
    (8, 1),
    (1000, 7),
    (10**6 + 3, 17),
    (10**9 + 7, 1),
    (2**40, 1),
]
SPECIAL_WORDS = sorted(
    {0, 1, 2, 3, 4, 5, 2**64 - 1, 2**64 - 2, 2**63 + 1}
    | {2**power + step for power in range(2, 64) for step in (-1, 0, 1)}
)
ROUNDING = mpmath.mpf(2) ** -53


def source(first_words, seed=0):
    """Give the listed words first, and for the resolver words that depend on place."""
    listed = np.array(first_words, dtype=np.uint64)

    def words(position, count):
        if position >= RESOLVER_BASE:
            return np.array(
                [random.Random(f"{seed} {position}").getrandbits(64)], dtype=np.uint64
            )
        return listed[position : position + count]

    return words


def assert_exact(words, count, numerator, denominator):
    for signed, kernel in ((True, laplace), (False, geometric)):
        drawn = kernel(words, 0, numerator, denominator, count)
        expected = [
            reference.draw(words, i, numerator, denominator, signed=signed)
            for i in range(count)
        ]
        assert drawn.tolist() == expected


positive = st.one_of(
    st.integers(1, 40), st.integers(1, 2**53), st.integers(1, 2**62), st.just(2**40)
)


@settings(deadline=None, max_examples=example_count(60))
@given(
    first_words=st.lists(
        st.one_of(st.integers(0, 2**64 - 1), st.sampled_from(SPECIAL_WORDS)),
        min_size=1,
        max_size=6,
    ),
    numerator=positive,
    denominator=positive,
    seed=st.integers(0, 99),
)
def test_equals_the_definition(first_words, numerator, denominator, seed):
    numerator = min(numerator, denominator << 50)
    words = source(first_words, seed)
    assert_exact(words, len(first_words), numerator, denominator)


@pytest.mark.long
@pytest.mark.parametrize(("numerator", "denominator"), SCALES[::3])
def test_special_words_are_exact(numerator, denominator):
    chosen = SPECIAL_WORDS[:: 3 if COMPILED else 9]
    assert_exact(source(chosen), len(chosen), numerator, denominator)


@pytest.mark.parametrize("word", [0, 1])
def test_a_uniform_number_may_be_smaller_than_any_word(word):
    def words(position, count):
        further = position - RESOLVER_BASE
        return np.array([word if further < 0 else further], dtype=np.uint64)

    # U is 2^-191, so that -ln U / 50 is 2.6, though 63 zeros alone suggest 0.9.
    assert geometric(words, 0, 1, 50).tolist() == [2]
    assert_exact(words, 1, 1, 50)


def covers(word, size, numerator, denominator, *, signed):
    """Whether every U that begins with `word` gives this size."""
    low = reference.threshold(size + 1, numerator, denominator, signed=signed)
    high = reference.threshold(size, numerator, denominator, signed=signed)
    with mpmath.workprec(reference.PRECISION):
        return low * 2**63 <= word >> 1 and (word >> 1) + 1 <= high * 2**63


@pytest.mark.long
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("numerator", "denominator"), SCALES)
def test_words_next_to_thresholds_are_exact(numerator, denominator, signed):
    rng = random.Random(numerator * 31 + denominator)
    scale = numerator / denominator
    first_words = []
    for _ in range(60 if COMPILED else 6):
        k = rng.randrange(1, int(rng.choice([1, 5, 40]) * scale) + 2)
        border = reference.threshold(k, numerator, denominator, signed=signed)
        with mpmath.workprec(reference.PRECISION):
            cell = int(mpmath.floor(border * 2**63))
        steps = (-2, -1, 0, 1, 2, rng.randrange(3, 10**4), -rng.randrange(3, 10**7))
        first_words += [
            2 * (cell + step) + rng.getrandbits(1)
            for step in steps
            if 0 <= cell + step < 2**63
        ]
    words = source(first_words)
    kernel = laplace if signed else geometric
    drawn = kernel(words, 0, numerator, denominator, len(first_words)).tolist()
    certified = 0
    for i, (word, value) in enumerate(zip(first_words, drawn, strict=True)):
        if covers(word, abs(value), numerator, denominator, signed=signed):
            assert value == 0 or (value < 0) == (signed and word & 1 == 1)
            certified += 1
        else:
            exact = reference.draw(words, i, numerator, denominator, signed=signed)
            assert value == exact
    assert certified > 0 or scale < 1 / 40


@pytest.mark.parametrize("power", [*range(2, 64, 3), 63])
def test_the_logarithm_keeps_its_bound(power):
    rng = random.Random(power)
    odd = [(1 << power) + rng.getrandbits(power) | 1 for _ in range(40)]
    odd += [(1 << power) + 1, (2 << power) - 1]
    odd += [
        ((256 + cell) << power >> 8) + step | 1
        for cell in rng.sample(range(256), 20)
        for step in (-1, 0)
    ]
    for number in odd:
        value = np.float64(np.uint64(number))
        cell = kernels._cell(value)
        computed = kernels._minus_log(
            value, kernels._RECIPROCALS[cell], kernels._LOGARITHMS[cell]
        )
        with mpmath.workprec(300):
            exact = 64 * mpmath.log(2) - mpmath.log(number)
            bound = ROUNDING * (mpmath.mpf("3.73") * exact + mpmath.mpf("2.8"))
            assert abs(mpmath.mpf(float(computed)) - exact) <= bound


def test_the_offset_keeps_its_bound():
    rng = random.Random(5)
    scales = [2.0 ** rng.uniform(-40, 56) for _ in range(300)]
    scales += [2.0 ** rng.uniform(-6, 3) for _ in range(300)]
    scales += [8.0, math.nextafter(8.0, 0), 1 / 64, 1 / 63.9, 0.1, 1.0, 0.0, 2.0**-1074]
    widths = np.array(scales)
    offsets = np.empty(widths.size)
    kernels._fill_offsets(widths, offsets)
    # A shared one is worked out in plain Python, whose roundings are its own.
    shared = [kernels._shared_offset(scale) for scale in scales]
    for scale, offset in [
        *zip(scales, offsets.tolist(), strict=True),
        *zip(scales, shared, strict=True),
    ]:
        with mpmath.workprec(300):
            width = mpmath.mpf(scale)
            exact = -mpmath.mpf(1) / 2
            if scale > 0:
                exact += width * mpmath.log(2 / (1 + mpmath.exp(-1 / width)))
            assert abs(mpmath.mpf(offset) - exact) <= 49 * ROUNDING


def test_few_draws_are_left_undecided():
    count = 1 << 16 if COMPILED else 1 << 8
    words = Randomness(3).stream()(0, count)
    undecided = np.empty(count, dtype=np.int64)
    out = np.empty(count, dtype=np.int64)
    for scale, most in ((1.0, 0), (2.0**20, 0), (2.0**40, 1 + count * 1.3 * 2**-8.2)):
        found = kernels._draw(
            words, np.array([scale]), np.array([-0.5]), 1, out, undecided
        )
        assert found <= most


@pytest.mark.parametrize(("numerator", "denominator"), SCALES[:-1])
def test_draws_follow_the_law(numerator, denominator):
    count = 1 << 18 if COMPILED else 1 << 10
    scale = numerator / denominator
    for signed, kernel in ((True, laplace), (False, geometric)):
        drawn = kernel(Randomness(8).stream(), 0, numerator, denominator, count)
        weight = 2 / (1 + math.exp(-1 / scale)) if signed else 1.0

        def tail(k, weight=weight):
            return np.where(k <= 0, 1.0, weight * np.exp(-np.maximum(k, 0) / scale))

        # Cuts of about equal mass; the last class takes the whole tail.
        levels = np.linspace(1, 40 / count, 60)
        cuts = np.unique(np.ceil(np.maximum(-scale * np.log(levels / weight), 0)))
        borders = np.append(cuts[cuts > 0], np.inf)
        expected = -np.diff(np.append(1.0, np.append(tail(borders[:-1]), 0.0))) * count
        classes = np.searchsorted(borders, np.abs(drawn), side="right")
        observed = np.bincount(classes, minlength=expected.size)
        enough = expected >= 5
        if enough.sum() > 1:
            statistic = ((observed - expected) ** 2 / expected)[enough].sum()
            assert stats.chi2.sf(statistic, enough.sum() - 1) > 1e-3
        if signed and (drawn != 0).sum() > 100:
            positive_share = stats.binomtest(
                int((drawn > 0).sum()), int((drawn != 0).sum())
            )
            assert positive_share.pvalue > 1e-3
        if scale >= 1e4:
            digits = np.bincount(drawn & 63, minlength=64)
            assert stats.chisquare(digits).pvalue > 1e-3


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(1, 3), (1, 1), (5, 2), (30, 1)]
)
def test_moments_agree_with_the_law(numerator, denominator):
    count = 1 << 18 if COMPILED else 1 << 11
    ratio = math.exp(-denominator / numerator)
    drawn = laplace(Randomness(21).stream(), 0, numerator, denominator, count)
    variance = 2 * ratio / (1 - ratio) ** 2
    assert abs(drawn.mean()) < 4 * math.sqrt(variance / count)
    fourth = float((drawn.astype(float) ** 4).mean())
    spread = math.sqrt((fourth - variance**2) / count)
    assert abs((drawn.astype(float) ** 2).mean() - variance) < 4 * spread
    one_sided = geometric(Randomness(22).stream(), 0, numerator, denominator, count)
    mean, deviation = ratio / (1 - ratio), math.sqrt(ratio) / (1 - ratio)
    assert abs(one_sided.mean() - mean) < 4 * deviation / math.sqrt(count)


def test_subtracting_equals_drawing():
    count = 70_001 if COMPILED else 301
    words = Randomness(4).stream()
    costs = np.arange(count) - 500
    for scale in (0.75, 20.125, 1e9 / 3, 2.0**43):
        numerator, denominator = scale.as_integer_ratio()
        expected = costs - geometric(words, 7, numerator, denominator, count)
        row = costs.copy()
        subtract_geometric(row, words, 7, scale)
        assert np.array_equal(row, expected)


def test_own_scales_equal_shared_scales():
    count = 40_000 if COMPILED else 300
    words = Randomness(5).stream()
    scales = [
        (1, 1),
        (3, 7),
        (40, 2**21 + 1),
        (10**6, 3),
        (2**61 + 1, 2**40 + 1),
        (2**62 - 1, 2**60 + 1),
        (1, 2**62),
    ]
    own = np.random.default_rng(5).integers(0, len(scales), count)
    ratios = np.array(scales)[own]
    for kernel in (laplace, geometric):
        drawn = kernel(words, 3, ratios[:, 0].copy(), ratios[:, 1].copy())
        for index, (numerator, denominator) in enumerate(scales):
            alike = kernel(words, 3, numerator, denominator, count)
            assert np.array_equal(drawn[own == index], alike[own == index])


def test_one_ratio_part_may_be_shared():
    words = Randomness(6).stream()
    denominators = np.arange(1, 101)
    expected = laplace(words, 0, np.full(100, 50), denominators)
    assert np.array_equal(laplace(words, 0, 50, denominators), expected)


def test_a_draw_depends_on_its_place_alone():
    count = kernels.CHUNK + 1000 if COMPILED else 400
    words = Randomness(7).stream()
    whole = laplace(words, 0, 10**9, 1, count)
    for start in (1, 255, count - 300):
        part = laplace(words, start, 10**9, 1, 300)
        assert np.array_equal(part[: count - start], whole[start : start + 300])


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(2**56, 1), (2**50 + 1, 1), (1, 2**80), (1, 10**400), (3**200, 3**200 + 1)],
)
def test_extreme_scales_are_exact(numerator, denominator):
    words = source([random.Random(1).getrandbits(64) for _ in range(12)] + [0, 1])
    assert_exact(words, 14, numerator, denominator)


def test_draws_go_to_the_given_array():
    words = Randomness(9).stream()
    out = np.zeros(50, dtype=np.int64)
    assert laplace(words, 0, 100, 1, out=out) is out
    assert np.array_equal(out, laplace(words, 0, 100, 1, 50))
    assert laplace(words, 0, 100, 1).shape == (1,)
    assert laplace(words, 0, 100, 1, 0).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 1, 5), "positive"),
        ((0, 1, -1, 5), "positive"),
        ((0, np.array([1, 0]), 1), "positive"),
        ((0, 2**56 + 1, 1, 5), "2\\^56"),
        ((0, np.array([2**62, 1]), np.array([3, 1])), "2\\^56"),
        ((0, np.array([1.5, 1.0]), 1), "integers"),
        ((0, np.array([1, 2, 3]), 1, 2), "2 noise scales"),
        ((-1, 1, 1, 5), "positions"),
        ((2**74, 1, 1, 5), "positions"),
        ((0, 1, 1, 5, np.zeros(4, dtype=np.int64)), "5 draws"),
        ((0, 1, 1, 2, np.zeros(4, dtype=np.int64)[::2]), "contiguous"),
        ((0, 1, 1, 2, np.zeros(2)), "int64"),
    ],
)
def test_refuses_what_it_cannot_draw(arguments, message):
    with pytest.raises(InputError, match=message):
        laplace(Randomness(1).stream(), *arguments)


def test_refuses_a_source_that_gives_too_little():
    with pytest.raises(InputError, match="as many words of uint64"):
        laplace(lambda position, count: np.zeros(3, dtype=np.uint64), 0, 1, 1, 5)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_refuses_to_subtract_at_an_impossible_scale(scale):
    with pytest.raises(InputError, match="scale"):
        subtract_geometric(
            np.zeros(3, dtype=np.int64), Randomness(1).stream(), 0, scale
        )
