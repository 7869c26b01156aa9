from __future__ import annotations

import numpy as np
import pytest
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.multiscale_fit import multiscale_cells
from tests.reference import multiscale_fit as reference

pytestmark = pytest.mark.kernel

SIZES = [2, 3, 5, 8] if config.DISABLE_JIT else [2, 3, 5, 8, 13, 32, 70]


def noisy_totals(cells, seed, scale):
    generator = np.random.default_rng(seed)
    counts = generator.poisson(np.repeat(generator.uniform(0, 60, 8), 9)[:cells])
    totals = np.cumsum(counts).astype(np.float64)
    noisy = totals + generator.laplace(scale=scale, size=cells)
    known = np.arange(cells) == cells - 1
    return counts, np.where(known, totals, noisy), known


@pytest.mark.long
@pytest.mark.parametrize("cells", SIZES)
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_equals_the_definition(cells, scale):
    for seed in range(2 if config.DISABLE_JIT else 4):
        _, totals, known = noisy_totals(cells, seed, scale)
        found = multiscale_cells(totals, known, 2 * scale**2)
        expected = reference.multiscale_cells(totals, known, 2 * scale**2)
        # Kept parts are interpolated between the ends of bins.
        np.testing.assert_allclose(found, expected, atol=0.05 * scale)


def test_exact_totals_inside_the_line_are_used():
    _, totals, known = noisy_totals(12, 5, 3.0)
    known[5] = True
    found = multiscale_cells(totals, known, 18.0)
    expected = reference.multiscale_cells(totals, known, 18.0)
    np.testing.assert_allclose(found, expected, atol=0.15)


def test_smooth_counts_lose_most_of_their_noise():
    generator = np.random.default_rng(3)
    length, share = (24, 0.4) if config.DISABLE_JIT else (256, 0.15)
    counts = np.repeat([5, 40, 0, 12], length)
    totals = np.cumsum(counts).astype(np.float64)
    known = np.arange(counts.size) == counts.size - 1
    totals[~known] += generator.laplace(scale=10, size=counts.size - 1)
    raw = np.diff(totals, prepend=0.0)
    found = multiscale_cells(totals, known, 200.0)
    assert ((found - counts) ** 2).mean() < share * ((raw - counts) ** 2).mean()


def test_without_noise_nothing_changes():
    totals = np.array([3.0, 4.0, 9.0])
    assert multiscale_cells(totals, np.full(3, True), 2.0).tolist() == [3, 1, 5]
    last = np.array([False, False, True])
    assert multiscale_cells(totals, last, 0.0).tolist() == [3, 1, 5]
    huge = np.array([1e9, 1e9 + 7, 3e9])
    np.testing.assert_allclose(
        multiscale_cells(huge, last, 2.0), [1e9, 7, 2e9 - 7], atol=20
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="a mark for each"):
        multiscale_cells(np.ones(3), np.full(2, True), 1.0)
    with pytest.raises(InputError, match="last running total"):
        multiscale_cells(np.ones(3), np.full(3, False), 1.0)
    with pytest.raises(InputError, match="variance"):
        multiscale_cells(np.ones(1), np.full(1, True), -1.0)
