"""Exact discrete Gaussian noise: its law, its words, and what it refuses."""

from __future__ import annotations

import decimal
import inspect
import math
import textwrap
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling import discrete_gaussian as ours
from blowfish_fast.kernels.sampling import gaussian_strips as strips
from blowfish_fast.measure.randomness import Randomness
from tests.reference import discrete_gaussian as reference

pytestmark = pytest.mark.kernel

VARIANCES = [Fraction(1, 400), Fraction(1, 4), Fraction(1), Fraction(9, 2),
             Fraction(100), Fraction(12345, 7), Fraction(10**6)]  # fmt: skip
DRAWS = 40_000 if ours._first_look.__class__.__name__ != "function" else 3_000


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_draws_follow_the_law(variance, own):
    above, below = variance.numerator, variance.denominator
    words = Randomness(11).stream()
    if own:
        above, below = np.full(DRAWS, above), np.full(DRAWS, below)
    draws = ours.gaussian(words, 0, above, below, DRAWS)
    most = math.ceil(6 * math.sqrt(variance)) + 1
    expected = np.array(reference.probabilities(variance, most)) * DRAWS
    seen = np.bincount(np.clip(draws + most, 0, 2 * most), minlength=2 * most + 1)
    # Neighbouring values together, so that each class has enough draws.
    groups = np.cumsum(expected) // max(20.0, DRAWS / 200)
    expected = np.bincount(groups.astype(int), expected)
    seen = np.bincount(groups.astype(int), seen)
    kept = expected >= 5
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    assert chi2.sf(statistic, max(int(kept.sum()) - 1, 1)) > 1e-4


def _points(generator, count):
    words = generator.integers(0, 2**64, (count, 3), dtype=np.uint64)
    # A third in the lowest strip, most of them in its tail, where looks are rare.
    words[::3, 0] &= np.uint64(2**64 - 256)
    words[::6, 0] |= np.uint64(0xF800000000000000)
    words[1::5, 2] >>= np.uint64(20)
    return words


@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(30), Fraction(10**8)])
def test_kernel_fractions_and_definition_agree(generator, variance):
    words = _points(generator, 600)
    laws = ours._laws(np.array([float(variance)]), np.empty((3, 1)))
    out = np.zeros(len(words), dtype=np.int64)
    lists = np.empty((2, len(words)), dtype=np.int64)
    todo = np.arange(len(words))
    rejected, opened = ours._second_look(todo, words, laws, out, lists)
    gone = set(lists[0, :rejected].tolist())
    unclear = set(lists[1, :opened].tolist())
    stretch = float(laws[0, 0])
    for t, three in enumerate(words.tolist()):
        wanted = reference.point(three, stretch, variance)
        more = iter(generator.integers(0, 2**63, 9).tolist())
        assert strips.resolve_point(tuple(three), stretch, variance, more) == wanted
        if t not in unclear:
            assert (None if t in gone else out[t]) == wanted
    assert opened < 30


def test_heights_in_the_tail_are_left_open_beside_the_border():
    # Found where the rounding of the abscissa decides: float and exact differ there.
    variance = Fraction(10**6)
    law = ours._laws(np.array([1e6]), np.empty((3, 1)))
    for second, third in (
        (0x308FF39F915C00, 0x100000000800),
        (0x308FF39F8D3400, 0x100000000FFF),
    ):
        words = np.array([[0xFFFFFFFFFFFFFE00, second, third]], dtype=np.uint64)
        out, lists = np.zeros(1, dtype=np.int64), np.zeros((2, 1), dtype=np.int64)
        rejected, opened = ours._second_look(
            np.zeros(1, np.int64), words, law, out, lists
        )
        wanted = reference.point(words[0].tolist(), float(law[0, 0]), variance)
        assert opened or wanted == (None if rejected else out[0])


def test_parts_that_begin_at_chunks_give_the_same_draws():
    whole = ours.gaussian(Randomness(3).stream(), 0, 100, 1, 2 * ours.CHUNK + 77)
    parts = np.empty_like(whole)
    words = Randomness(3).stream()
    for start in (2 * ours.CHUNK, 0, ours.CHUNK):
        part = parts[start : start + ours.CHUNK]
        ours.gaussian(words, start, 100, 1, out=part)
    assert (whole == parts).all()


def test_own_variances_are_those_of_each_draw():
    below = np.repeat([1, 10**6], 2000)
    draws = ours.gaussian(Randomness(5).stream(), 0, 10**8, below)
    assert 7_000 < draws[:2000].std() < 13_000
    assert 8 < draws[2000:].std() < 12


def test_results_do_not_depend_on_the_callers_decimals():
    words = Randomness(9).stream()
    plain = ours.gaussian(words, 0, 7, 2, 500)
    ours._thresholds.cache_clear()
    with decimal.localcontext(prec=3):
        assert (ours.gaussian(words, 0, 7, 2, 500) == plain).all()
        bounds = strips.exponential_bounds(Fraction(1), 40)
    assert float(bounds[1] - bounds[0]) < 1e-37
    ours._thresholds.cache_clear()


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(2), Fraction(31, 2)])
def test_thresholds_are_the_tails_of_the_law(variance):
    limits, guide = ours._thresholds(variance)
    exact = reference.probabilities(variance, 60)
    for k in range(1, min(limits.size, 12)):
        tail = 2 * math.fsum(exact[60 + k :])
        assert int(limits[k - 1]) / 2**63 == pytest.approx(tail, rel=1e-9, abs=1e-15)
    assert limits[-1] == 0
    for top in range(256):
        assert guide[top] == 0 or int(limits[guide[top] - 1]) >= (top + 1) << 55


def test_a_uniform_on_a_threshold_is_decided_by_further_words():
    limits, _ = ours._thresholds(Fraction(2))
    for k, following in ((0, 0), (0, 2**64 - 1)):
        word = int(limits[k]) << 1

        def words(position, count, word=word, following=following):
            given = word if position < 2**74 else following
            return np.full(count, given, dtype=np.uint64)

        (draw,) = ours.gaussian(words, 0, 2, 1, 1)
        assert draw == (k if following else k + 1)


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        (0, 1, "ratio of positive integers; received 0 / 1"),
        (1, np.array([1, -2]), "ratio of positive integers; received 1 / -2"),
        (2**91, 1, "at most 2\\^90"),
        (np.array([1.5, 2.0]), 1, "need integers, one or 2 of them; received float64"),
    ],
)
def test_impossible_variances_are_refused(above, below, message):
    with pytest.raises(InputError, match=message):
        ours.gaussian(Randomness(1).stream(), 0, above, below, 2)


def test_draws_begin_at_chunks():
    with pytest.raises(InputError, match="start at a multiple of 32768"):
        ours.gaussian(Randomness(1).stream(), 5, 100, 1, 2)


def _mutated(old, new, **constants):
    """Return the second look with one expression, or a constant, replaced."""
    look = getattr(ours._second_look, "py_func", ours._second_look)
    source = textwrap.dedent(inspect.getsource(look))
    assert old in source
    names = {**vars(ours), **constants, "kernel": lambda function: function}
    exec(source.replace(old, new), names)
    return names["_second_look"]


def _disagreements(look, variance, words):
    """Count the points that a second look decides otherwise than the definition."""
    laws = ours._laws(np.array([float(variance)]), np.empty((3, 1)))
    out = np.zeros(len(words), dtype=np.int64)
    lists = np.empty((2, len(words)), dtype=np.int64)
    with np.errstate(over="ignore"):
        rejected, opened = look(np.arange(len(words)), words, laws, out, lists)
    gone = set(lists[0, :rejected].tolist())
    unclear = set(lists[1, :opened].tolist())
    return sum(
        (None if t in gone else int(out[t]))
        != reference.point(three, float(laws[0, 0]), variance)
        for t, three in enumerate(words.tolist())
        if t not in unclear
    )


@pytest.mark.parametrize(
    ("old", "new", "constants", "variance"),
    [
        ("laws[1, law] + laws[2, law]", "laws[1, law]", {}, Fraction(2)),
        ("place = stretch * x + 0.5", "place = stretch * x", {}, Fraction(30)),
        ("far / _RATE", "far / (_RATE + 0.01)", {}, Fraction(10**8)),
    ],
    ids=["no allowance for rounding", "rounded down", "another rate of the tail"],
)
def test_planted_bugs_decide_points_otherwise(generator, old, new, constants, variance):
    words = _points(generator, 300)
    assert _disagreements(_mutated(old, old), variance, words) == 0
    assert _disagreements(_mutated(old, new, **constants), variance, words) > 0


def test_randomness_draws_the_same_with_any_number_of_threads():
    size = 3 * 2**16 + 5
    alone = Randomness(3).gaussian(10**6, 7, size=size, threads=1)
    several = Randomness(3).gaussian(10**6, 7, size=size, threads=3)
    assert np.array_equal(alone, several)
    assert float(alone.var()) == pytest.approx(10**6 / 7, rel=0.02)
