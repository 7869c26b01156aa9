"""Half-widths against closed forms, exact convolutions and random vectors."""

import math

import numpy as np
import pytest

from blowfish_fast.measure import tails
from blowfish_fast.measure.noise import Spread, laplace_variance
from blowfish_fast.measure.tails import (
    _cells,
    _Family,
    _worst_quantiles,
    noise_half_widths,
)


def family(each, count, rest=0.0):
    return _Family(*(np.array([float(one)]) for one in (each, count, rest)))


def continuous_half_width(square, largest, miss):
    edges, worst = _worst_quantiles(miss)
    theta = np.maximum(square / largest**2, 1.0) * (1.0 - 1e-12)
    cells = np.maximum(np.searchsorted(edges, theta, side="right") - 1, 0)
    return np.sqrt(square) * worst[cells]


def exact_tail(weights, distance):
    """P(|sum sqrt(w_i) L_i| > distance) by partial fractions, for unequal weights."""
    scales = np.sqrt(np.asarray(weights, dtype=np.float64))
    total = 0.0
    for i, own in enumerate(scales):
        others = np.delete(scales, i) ** 2
        factor = np.prod(own**2 / (own**2 - others))
        total += factor * math.exp(-distance / own)
    return total


@pytest.mark.parametrize("distance", [0.3, 1.0, 4.0, 15.0])
def test_tails_of_equal_terms_are_their_closed_forms(distance):
    h = np.array([distance])
    assert family(1.0, 1).tail(h)[0][0] == pytest.approx(math.exp(-distance), rel=1e-9)
    two = math.exp(-distance) * (1 + distance / 2)
    assert family(1.0, 2).tail(h)[0][0] == pytest.approx(two, rel=1e-9)
    four = (48 + 33 * distance + 9 * distance**2 + distance**3) / 48
    found = family(1.0, 4).tail(h)[0][0]
    assert found == pytest.approx(math.exp(-distance) * four, rel=1e-9)


@pytest.mark.parametrize(
    ("each", "count", "rest", "expected"),
    [(1.0, 1, 0.0, 2.99573), (0.6, 1, 0.4, 2.90990), (0.35, 2, 0.3, 2.86883)],
)
def test_quantiles_of_few_terms(each, count, rest, expected):
    found = family(each, count, rest).quantile(0.05, np.full(1, 2.5))
    assert found[0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("start", [0.01, 1.0, 30.0])
def test_newton_ends_at_the_quantile_or_above_wherever_it_starts(start):
    for miss in (0.9, 0.05, 1e-9):
        found = family(1.0, 1).quantile(miss, np.full(1, start))[0] * (1 + 1e-9)
        assert -math.log(miss) <= found <= -math.log(miss) * (1 + 1e-8)


@pytest.mark.long
@pytest.mark.parametrize("miss", [0.9, 0.5, 0.05, 1e-6, 1e-12])
def test_no_entry_of_the_table_is_exceeded_more_often_by_a_finer_integral(
    miss, monkeypatch
):
    quantiles = _worst_quantiles(miss)[1][:-1]
    monkeypatch.setattr(tails, "_NODES", 160)
    beyond, _ = _cells(tails._RATIO)[1].tail(quantiles)
    assert beyond.max() <= miss


@pytest.mark.parametrize(
    ("theta", "miss", "deviations"),
    [
        (1, 0.05, 2.1218),
        (2, 0.05, 2.0605),
        (5, 0.05, 2.0071),
        (30, 0.05, 1.9718),
        (1, 1e-6, 9.7726),
        (10, 1e-6, 5.8522),
    ],
)
def test_the_table_in_standard_deviations(theta, miss, deviations):
    one = np.ones(1)
    half = continuous_half_width(theta * one, one, miss)[0]
    assert half / math.sqrt(2 * theta) == pytest.approx(deviations, rel=6e-3)
    assert half / math.sqrt(2 * theta) >= deviations * (1 - 1e-4)


def test_the_table_grows_with_the_largest_part_and_falls_with_the_miss():
    largest = np.sqrt(np.geomspace(1e-6, 1.0, 400))
    before = None
    for miss in (0.2, 0.1, 0.05, 0.01, 1e-4, 1e-8):
        half = continuous_half_width(np.ones(400), largest, miss)
        assert (np.diff(half) >= 0).all()
        if miss == 0.1:
            assert half.max() <= 1.6527 * math.sqrt(2) * 1.006
        if before is not None:
            assert (half > before).all()
        before = half


def test_random_vectors_are_never_above_the_table():
    rng = np.random.default_rng(4)
    for _ in range(300):
        weights = rng.dirichlet(np.full(rng.integers(2, 7), rng.choice([0.3, 1, 5])))
        if (
            np.abs(
                np.subtract.outer(weights, weights)[~np.eye(weights.size, dtype=bool)]
            ).min()
            < 1e-3
        ):
            continue
        for miss in (0.2, 0.05, 0.001):
            largest = np.sqrt(weights.max(keepdims=True))
            half = continuous_half_width(np.ones(1), largest, miss)[0]
            assert exact_tail(weights, half) <= miss * (1 + 1e-6)


def law(width, scale, reach):
    """Probabilities of scale * Z on the lattice from -reach to reach."""
    decay = math.exp(-1.0 / width)
    mass = np.zeros(2 * reach + 1)
    steps = np.arange(-(reach // scale), reach // scale + 1)
    mass[reach + scale * steps] = (1 - decay) / (1 + decay) * decay ** np.abs(steps)
    return mass


def moments(scales, widths):
    parts = scales * widths
    loudest = int(parts.argmax())
    return Spread(
        *(
            np.array([one])
            for one in (
                float((scales**2 * laplace_variance(widths)).sum()),
                float((parts**2).sum()),
                float(parts.max()),
                float((scales**2).sum()),
                float(widths[loudest]),
            )
        ),
        least=float(widths.min()),
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_sums_of_discrete_noise_stay_within_their_half_widths(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 9))
    # All coefficients 1 make a lattice, the hard case; others are mixed.
    scales = np.ones(rows, np.int64) if seed % 3 == 0 else rng.integers(1, 9, rows)
    widths = np.exp(rng.uniform(math.log(0.3), math.log(12.0), rows))
    reach = 3000
    total = np.array([1.0])
    for scale, width in zip(scales, widths, strict=True):
        own = law(width, int(scale), min(reach, int(40 * scale * width) + scale))
        total = np.convolve(total, own)
    distance = np.abs(np.arange(total.size) - total.size // 2)
    spread = moments(scales.astype(float), widths)
    for miss in (0.2, 0.05, 0.01, 1e-4):
        for known in (spread, spread._replace(width=np.full(1, np.nan))):
            half = noise_half_widths(known, miss)[0]
            assert total[distance > half].sum() <= miss * (1 + 1e-9)


def test_a_miss_that_is_all_but_sure_has_half_widths_that_are_numbers():
    spread = moments(np.ones(4), np.full(4, 10.0))
    nearly_sure = noise_half_widths(spread, 1.0)
    assert np.isfinite(nearly_sure).all()
    assert (nearly_sure <= noise_half_widths(spread, 0.5)).all()


@pytest.mark.long
@pytest.mark.parametrize(("width", "factor"), [(3, 1.09), (10, 1.03), (30, 1.02)])
def test_half_widths_are_near_the_exact_ones(width, factor):
    own = law(width, 1, 60 * width)
    total = np.array([1.0])
    for _ in range(40):
        total = np.convolve(total, own)
        far = (total.size - 1) // 2 - 3000 * 3
        total = total[far : total.size - far] if far > 0 else total
    distance = np.abs(np.arange(total.size) - total.size // 2)
    order = np.sort(np.unique(distance))
    beyond = 1.0 - np.cumsum(np.bincount(distance, total))
    for miss in (0.1, 0.05):
        exact = order[np.flatnonzero(beyond <= miss)[0]]
        half = noise_half_widths(moments(np.ones(40), np.full(40, float(width))), miss)
        assert exact * (1 - 1e-9) <= half[0] <= exact * factor + 1


@pytest.mark.parametrize("width", [0.4, 1.0, 6.0])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_one_heavy_draw_is_bounded_above_and_closely(width, others):
    # One draw weighs 4, the others 1: the sum lives on the integers.
    total = law(width, 4, 480)
    for _ in range(others):
        total = np.convolve(total, law(width, 1, 120))
    reach = np.abs(np.arange(total.size) - total.size // 2)
    spread = moments(
        np.array([4.0] + [1.0] * others), np.full(1 + others, float(width))
    )
    for miss in (0.2, 0.05, 0.001):
        half = noise_half_widths(spread, miss)[0]
        assert total[reach > half].sum() <= miss * (1 + 1e-9)
        if width >= 6:
            assert total[reach > half / 1.5].sum() > miss


def test_without_noise_there_is_no_width_and_tiny_misses_have_one():
    none = Spread.bounded(np.zeros(1), np.zeros(1), np.zeros(1), 0.0)
    assert noise_half_widths(none, 0.05).tolist() == [0.0]
    one = moments(np.ones(1), np.full(1, 10.0))
    assert noise_half_widths(one, 1e-15)[0] > noise_half_widths(one, 1e-11)[0] > 200
