"""Whole weights by age, and what is read off weighed epochs."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.weights import BANDS, EXPONENTS
from blowfish_fast.errors import InputError

HALF = Fraction(1, 2)


def _counts(epochs):
    return np.random.default_rng(1).integers(0, 50, (epochs, 3))


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("band", [1, 2, 52, 256])
def test_every_epoch_window_and_total_is_exact_without_noise(exponent, band):
    weights = bf.series.Weights.falling(exponent, band)
    counts = _counts(60)
    rows = np.array([weights.weigh(counts[: t + 1]) for t in range(60)])
    for epochs in (1, 2, 53, 60):
        newest = rows[:epochs][::-1]
        for last in (1, 4, epochs):
            shares = weights.window_shares(epochs, last)
            truth = counts[max(epochs - last, 0) : epochs].sum(axis=0)
            np.testing.assert_allclose(shares @ newest, truth, atol=1e-6)
        np.testing.assert_allclose(
            weights.total_shares(epochs) @ newest, counts[:epochs].sum(axis=0)
        )


def test_falling_weights_count_late_records_never_negatively():
    for band in set(BANDS.values()) - {4096}:
        for exponent in EXPONENTS:
            weights = bf.series.Weights.falling(exponent, band)
            assert weights.total_shares(2 * band).min() > 0
    for values in itertools.combinations_with_replacement(range(5, 0, -1), 4):
        assert bf.series.Weights(values).total_shares(12).min() >= -1e-12


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((1, 2), "never rise"),
        ((4, 3, 3, 4), "3 at age 2 and 4 at age 3"),
        ((0, 0), "from 1 on"),
        ((), "from 1 on"),
        ("321", "from 1 on"),
    ],
)
def test_weights_that_would_not_be_private_or_sound_are_refused(values, reason):
    with pytest.raises(InputError, match=reason):
        bf.series.Weights(values)


def test_exponents_and_bands_have_limits():
    for exponent in (-1, "0.6", 2):
        with pytest.raises(InputError, match="between 0"):
            bf.series.Weights.falling(exponent, 10)
    with pytest.raises(InputError, match="at most"):
        bf.series.Weights.falling(HALF, 10**6)


def test_weights_that_end_in_nothing_are_shorter():
    assert bf.series.Weights((4, 2, 0, 0)).values == (4, 2)
