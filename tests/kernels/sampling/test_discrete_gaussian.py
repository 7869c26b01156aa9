"""Exact discrete Gaussian noise: its law, its words, and what it refuses."""

from __future__ import annotations

import decimal
import inspect
import math
import textwrap
from fractions import Fraction
from functools import lru_cache

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


def _mutated(name, old, new):
    """Return a kernel as plain Python with one expression replaced."""
    function = getattr(ours, name)
    source = textwrap.dedent(inspect.getsource(getattr(function, "py_func", function)))
    assert old in source
    names = {**vars(ours), "kernel": lambda function: function}
    exec(source.replace(old, new), names)
    return names[name]


@pytest.mark.long
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


@pytest.mark.parametrize("variance", [64.0, 1e3, 1e8])
def test_the_lowest_strip_is_never_settled_at_first_sight(generator, variance):
    # Its abscissas beyond the border are drawn anew from the tail, also those that are
    # rounded to a value before it.
    words = generator.integers(0, 2**64, 400, dtype=np.uint64)
    laws = ours._laws(np.array([variance]), np.empty((3, 1)))
    out, left = np.zeros((2, words.size), dtype=np.int64)
    words[::2] &= np.uint64(2**64 - 256)
    found = ours._first_look(words, laws, out, left)
    assert set(range(0, words.size, 2)) <= set(left[:found].tolist())
    words[::2] += np.uint64(1)
    assert ours._first_look(words, laws, out, left) < words.size / 4


def _points(generator, count):
    words = generator.integers(0, 2**64, (count, 3), dtype=np.uint64)
    # A third in the lowest strip, most of them in its tail, where looks are rare.
    words[::3, 0] &= np.uint64(2**64 - 256)
    words[::6, 0] |= np.uint64(0xF800000000000000)
    words[1::5, 2] >>= np.uint64(20)
    return words


@pytest.mark.long
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


@pytest.mark.parametrize("rows", ["in turn", "in stretches"])
def test_own_variances_are_those_of_each_draw(rows):
    kinds = [1, 10**6, 10**8]
    below = np.repeat(kinds, 2000) if rows == "in stretches" else np.tile(kinds, 2000)
    draws = ours.gaussian(Randomness(5).stream(), 0, 10**8, below)
    assert 7_000 < draws[below == 1].std() < 13_000
    assert 8 < draws[below == 10**6].std() < 12
    assert 0.8 < draws[below == 10**8].std() < 1.2


@pytest.mark.parametrize("variance", [Fraction(1, 400), Fraction(7, 2), Fraction(63)])
def test_small_variances_draw_the_same_shared_and_own(variance):
    words = Randomness(8).stream()
    above, below = variance.numerator, variance.denominator
    # One more than a chunk holds: a last chunk of one draw has no shared variance.
    size = ours.CHUNK + 1
    shared = ours.gaussian(words, 0, above, below, size)
    own = ours.gaussian(words, 0, np.full(size, above), np.full(size, below))
    assert np.array_equal(shared, own)


def test_results_do_not_depend_on_the_callers_decimals():
    def resolved():
        return [
            ours._resolve_inversion(known << 55, Fraction(7, 2), iter([known]))
            for known in range(1, 256, 17)
        ]

    plain = resolved()
    with decimal.localcontext(prec=3):
        assert resolved() == plain
        bounds = strips.exponential_bounds(Fraction(1), 40)
    assert float(bounds[1] - bounds[0]) < 1e-37


SMALL = [Fraction(1, 50), Fraction(1, 3), Fraction(2), Fraction(31, 2), Fraction(63)]


@lru_cache
def _threshold(variance, k):
    """Return floor(2^63 P(|Z| >= k))."""
    return int(reference._tails(variance)[k - 1] * 2**63)


def _beside_thresholds(variance):
    """Return uniforms of 63 bits at all distances from the first thresholds."""
    return [
        min(max(_threshold(variance, k) + sign * (1 << bits), 0), 2**63 - 1)
        for k in range(1, 4)
        for bits in (3, 12, 18, 26, 30, 45, 58)
        for sign in (-1, 1)
    ]


def _wrong_sizes(function, variance, uniforms):
    """Count sizes that are decided otherwise than by the definition; and open ones."""
    wrong, left = 0, 0
    for known in uniforms:
        share = (float(2**63 - 1 - known) + 0.5) * 2.0**-63
        size = function(share, float(variance))
        left += size < 0
        wanted = reference.size(Fraction(2 * known + 1, 2**64), variance)
        wrong += size >= 0 and size != wanted
    return wrong, left


@pytest.mark.parametrize("variance", SMALL, ids=str)
def test_sizes_are_those_of_the_definition_or_left_open(generator, variance):
    drawn = generator.integers(0, 2**63, 40).tolist()
    assert _wrong_sizes(ours._size, variance, drawn) == (0, 0)
    wrong, left = _wrong_sizes(ours._size, variance, _beside_thresholds(variance))
    assert wrong == 0
    assert 0 < left < 30


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("goal, margin = share * total, _MARGIN * total",
         "goal, margin = share * total, 0.0"),
        ("size, reach = 0, 1.0", "size, reach = 0, 1.0 + 2.0**-33"),
        ("base = math.exp(-0.5 / variance)", "base = math.exp(-0.5 / variance - 1e-9)"),
    ],
    ids=["no margin", "a first value too likely", "another law"],
)  # fmt: skip
def test_planted_bugs_decide_sizes_otherwise(old, new):
    wrong = [
        sum(_wrong_sizes(one, law, _beside_thresholds(law))[0] for law in SMALL)
        for one in (_mutated("_size", old, old), _mutated("_size", old, new))
    ]
    assert wrong[0] == 0 < wrong[1]


def _corners_that_differ(guide, generator):
    """Count places of the table whose corners have another size than it says."""
    wrong = 0
    rows, columns = np.nonzero(guide >= 0)
    for place in generator.integers(0, rows.size, 150).tolist():
        row, column = int(rows[place]), int(columns[place])
        ends = [
            Fraction(2) ** (at // 32 - 4) * Fraction(32 + at % 32, 32)
            for at in (row, row + 1)
        ]
        first = Fraction(1, 10**4) if row == 0 else ends[0]
        for variance in (first, ends[1]):
            for bit in (column, column + 1 - Fraction(1, 2**40)):
                found = reference.size(Fraction(bit) / 512, variance)
                wrong += found != guide[row, column]
    return wrong


@pytest.mark.long
def test_what_the_table_settles_holds_at_every_corner(generator):
    guide = ours._guide(None)
    assert guide.nbytes == 160 * 1024
    assert np.mean(guide >= 0) > 0.9
    assert _corners_that_differ(guide, generator) == 0
    one_up = np.maximum(guide, np.roll(guide, 1, axis=0))
    assert _corners_that_differ(one_up, generator) > 0


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_a_uniform_on_a_threshold_is_decided_by_further_words(own):
    above, below = (np.full(2, 2), np.ones(2, np.int64)) if own else (2, 1)
    word = _threshold(Fraction(2), 1) << 1
    for following in (0, 2**64 - 1):

        def words(position, count, following=following):
            given = word if position < 2**74 else following
            return np.full(count, given, dtype=np.uint64)

        draws = ours.gaussian(words, 0, above, below, 2)
        assert draws.tolist() == [0 if following else 1] * 2


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
    ("old", "new", "variance"),
    [
        ("laws[1, law] + laws[2, law]", "laws[1, law]", Fraction(2)),
        ("place = stretch * x + 0.5", "place = stretch * x", Fraction(30)),
        ("far / _RATE", "far / (_RATE + 0.01)", Fraction(10**8)),
    ],
    ids=["no allowance for rounding", "rounded down", "another rate of the tail"],
)
def test_planted_bugs_decide_points_otherwise(generator, old, new, variance):
    words = _points(generator, 300)
    same, other = (_mutated("_second_look", old, one) for one in (old, new))
    assert _disagreements(same, variance, words) == 0
    assert _disagreements(other, variance, words) > 0


def test_randomness_draws_the_same_with_any_number_of_threads():
    size = 3 * 2**16 + 5
    alone = Randomness(3).gaussian(10**6, 7, size=size, threads=1)
    several = Randomness(3).gaussian(10**6, 7, size=size, threads=3)
    assert np.array_equal(alone, several)
    assert float(alone.var()) == pytest.approx(10**6 / 7, rel=0.02)
