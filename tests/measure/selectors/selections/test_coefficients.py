"""How many frequencies are kept: exact costs, calibrated to the policy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.selections import (
    COST_BITS,
    IN_A_ROW,
    LARGEST_NORM_BITS,
    ROOT_OF_TWO,
    TRANSFORM_BITS,
    KeptFrequencies,
    running_sums,
)
from tests.reference.fourier_rows import spectrum_norms


@pytest.mark.parametrize("cells", [1, 2, 3, 8, 13, 30])
def test_costs_are_norms_of_what_is_dropped_and_of_the_noise(cells):
    generator = np.random.default_rng(cells)
    counts = generator.integers(0, 1000, size=cells)
    noise = generator.uniform(0, 300, size=cells // 2 + 1)
    costs = KeptFrequencies(noise).costs(counts)
    expected = np.hypot(spectrum_norms(counts), noise) * 2**COST_BITS
    np.testing.assert_allclose(costs, expected, atol=1.001)


@pytest.mark.long
@pytest.mark.parametrize("cells", [64, 100, 97])
def test_the_transform_is_far_more_exact_than_assumed(cells):
    # The proof grants an error of 2^-36 of the norm; it is a few thousand times less.
    generator = np.random.default_rng(cells)
    for counts in (
        generator.integers(0, 2**20, size=cells),
        np.full(cells, 2**20),
        2**20 * (np.arange(cells) % 2),
    ):
        energy = np.abs(np.fft.rfft(counts, norm="ortho")) ** 2 * 2
        energy[0] /= 2
        if cells % 2 == 0:
            energy[-1] /= 2
        found = np.sqrt(np.append(running_sums(energy[:0:-1])[::-1], 0.0))
        error = np.abs(found - spectrum_norms(counts)).max()
        assert error <= 2.0 ** -(TRANSFORM_BITS + 6) * np.linalg.norm(counts)


@pytest.mark.parametrize("size", [0, 1, IN_A_ROW - 1, IN_A_ROW, IN_A_ROW + 1, 40_000])
def test_running_sums_are_those_of_the_definition(size):
    terms = np.random.default_rng(size).integers(0, 2**20, size=size)
    found = running_sums(terms.astype(np.float64))
    np.testing.assert_array_equal(found, np.cumsum(terms))


@pytest.mark.parametrize("part", [0.49, 0.51])
def test_many_small_squares_behind_a_large_one_are_not_lost(part):
    # One after the other, each is rounded away, or up to twice its size.
    large, small = 2.0**53, 2.0 * part
    terms = np.full(2**21, small)
    terms[0] = large
    behind = np.arange(terms.size)
    error = np.abs((running_sums(terms) - large) - small * behind)
    # Half of the error that the proof grants to norms, since squares err twice.
    assert error.max() <= 2.0 ** -(TRANSFORM_BITS + 2) * large
    assert np.cumsum(terms)[-1] in (large, large + 2.0 * behind[-1])


@pytest.mark.parametrize("cells", [2, 5, 8, 12])
def test_no_record_moves_a_cost_further_than_stated(cells):
    generator = np.random.default_rng(cells)
    domain = bf.Domain(cells)
    for _ in range(30):
        counts = generator.integers(0, 9, size=cells) ** 3
        selector = KeptFrequencies(generator.uniform(0, 9, size=cells // 2 + 1))
        costs = selector.costs(counts)
        start, end = generator.choice(cells, size=2, replace=False)
        added = counts.copy()
        added[start] += 1
        moved = added.copy()
        moved[end] += 1
        moved[start] -= 1
        reach = selector.sensitivity(bf.policies.AddRemove(domain))
        assert np.abs(selector.costs(added) - costs).max() <= reach
        reach = selector.sensitivity(bf.policies.Full(domain))
        assert np.abs(selector.costs(added) - selector.costs(moved)).max() <= reach


def test_sensitivities_are_the_norms_and_a_little_more():
    line = bf.Domain(6)
    selector = KeptFrequencies(np.zeros(4))
    unit = 2**COST_BITS
    added = selector.sensitivity(bf.policies.AddRemove(line))
    moved = selector.sensitivity(bf.policies.Full(line))
    assert unit < added <= 1.02 * unit
    assert math.sqrt(2) * unit < moved <= 1.02 * math.sqrt(2) * unit
    assert math.sqrt(2) < ROOT_OF_TWO
    assert 2 * added * selector.rate(bf.policies.AddRemove(line), Fraction(1)) == 1


def test_a_wave_is_kept_and_no_more():
    cells = 64
    wave = np.rint(1000 + 900 * np.cos(2 * np.pi * 5 * np.arange(cells) / cells))
    noise = 3.0 * np.arange(33)
    selector = KeptFrequencies(noise)
    for policy in (bf.policies.AddRemove, bf.policies.Full):
        kept = selector.select(
            wave.astype(np.int64),
            policy=policy(bf.Domain(cells)),
            epsilon=Fraction(50),
            rng=Randomness(1),
        )
        assert kept == 5


def test_giant_counts_are_cut():
    selector = KeptFrequencies(np.zeros(3))
    counts = np.array([2**61, 0, 0, 0])
    assert selector.costs(counts).max() <= 2 ** (LARGEST_NORM_BITS + COST_BITS)
    huge = KeptFrequencies(np.full(3, 1e300)).costs(counts)
    assert (huge == 2 ** (LARGEST_NORM_BITS + COST_BITS + 2)).all()


def test_without_edges_the_least_cost_is_no_secret():
    selector = KeptFrequencies(np.array([9.0, 0.0, 9.0]))
    kept = selector.select(
        np.array([5, 1, 5, 1]),
        policy=bf.policies.Blocks(bf.Domain(4), np.arange(4)),
        epsilon=Fraction(1, 10**6),
        rng=Randomness(1),
    )
    assert kept == selector.costs(np.array([5, 1, 5, 1])).argmin()


def test_bad_input_is_refused():
    for noise in (np.zeros(0), np.zeros((2, 2)), np.array([np.inf])):
        with pytest.raises(InputError, match="finite noise"):
            KeptFrequencies(noise)
    with pytest.raises(InputError, match="5 candidates"):
        KeptFrequencies(np.zeros(5)).costs(np.zeros(6, dtype=np.int64))
