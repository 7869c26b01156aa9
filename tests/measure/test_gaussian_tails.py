"""Half-widths of Gaussian noise: proved, not too wide, and kept by what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure import tails
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.tails import (
    equal_sum_half_widths,
    gaussian_draw_half_widths,
    gaussian_half_widths,
)


def equal_draws(sigma, terms):
    one = np.ones(1)
    square = one * terms * sigma**2
    return Spread(square, square, one * sigma, one * terms, one * sigma, sigma, terms)


def exact_half_width(sigma, terms, miss):
    reach = int(14 * sigma * math.sqrt(terms)) + 4
    place = np.arange(-reach, reach + 1)
    law = np.exp(-0.5 * (place / sigma) ** 2)
    size = 2 ** math.ceil(math.log2(2 * place.size))
    power = np.fft.rfft(law / law.sum(), size) ** terms
    summed = np.fft.irfft(power, size)
    centre = (terms * reach) % size
    distance = np.abs((np.arange(size) - centre + size // 2) % size - size // 2)
    tails = np.cumsum(np.bincount(distance, summed)[::-1])[::-1]
    return int(np.flatnonzero(np.append(tails[1:], 0.0) <= miss)[0])


@pytest.mark.parametrize("sigma", [0.4, 2.0, 5.0, 30.0, 300.0])
@pytest.mark.parametrize("terms", [1, 6, 40])
@pytest.mark.parametrize("miss", [0.05, 1e-4])
def test_the_bound_holds_and_is_close_from_sigma_30_on(sigma, terms, miss):
    bound = float(gaussian_half_widths(equal_draws(sigma, terms), miss)[0])
    exact = exact_half_width(sigma, terms, miss)
    # Sums are whole numbers: beyond the bound means at its next whole number.
    assert math.floor(bound) >= exact
    if sigma >= 30:
        assert bound <= 1.05 * exact + 1
    law = float(equal_sum_half_widths(sigma, np.array([terms]), miss, power=2)[0])
    assert exact <= law <= exact + 1


def test_single_draws_take_the_better_of_law_and_bound():
    half = gaussian_draw_half_widths(np.array([0.0, 3.0, 1e7]), 0.05)
    assert half[0] == 0.0
    assert half[1] == exact_half_width(3.0, 1, 0.05)
    assert 1.959e7 < half[2] < 1.97e7


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cells", "ordered", "hierarchy", "privelet"])
def test_intervals_hold_what_was_drawn(kind):
    line = bf.Domain(16)
    policy = bf.policies.AddRemove(line)
    asked = bf.workloads.Ranges(line, [0, 2, 5], [16, 3, 11])
    makers = {
        "cells": lambda: bf.Gaussian(policy, asked, rho="0.02"),
        "ordered": lambda: bf.Ordered(policy, asked, rho="0.02", fit=None),
        "hierarchy": lambda: bf.Hierarchy(policy, asked, rho="0.02", fan_out=4),
        "privelet": lambda: bf.mechanisms.Privelet(policy, asked, rho="0.02"),
    }
    mechanism = makers[kind]()
    counts = np.full(16, 1000)
    truth = asked.answer(counts)
    releases = 300
    missed = np.zeros(3)
    for seed in range(releases):
        low, high = mechanism.release(counts, rng=seed).intervals(asked, 0.9).T
        missed += (truth < low) | (truth > high)
    allowed = 0.1 * releases + 4 * math.sqrt(0.1 * 0.9 * releases)
    assert (missed <= allowed).all()


def test_running_totals_have_gaussian_bands():
    policy = bf.policies.Line(bf.Domain(16))
    asked = bf.workloads.Prefixes(policy.domain)
    release = bf.Ordered(policy, asked, rho="0.02", fit=None).release(
        np.full(16, 1000), rng=1
    )
    bounds = release.cdf_intervals(0.95)
    truth = np.arange(1, 17) / 16
    assert (bounds[:, 0] <= truth).all()
    assert (truth <= bounds[:, 1]).all()
    # sigma is 5, and Laplace noise of that scale would reach 15.
    assert (bounds[:, 1] - bounds[:, 0]).max() < 2 * 11.5 / 16000


def test_noise_too_coarse_to_smooth_says_nothing_and_bounds_stay_above_the_law():
    assert tails._excess_density(1e-3, 1.0) == math.inf
    assert tails._excess_density(1.0, 1.0) < 1.0
    one = np.ones(1)
    # A sum whose least scale is not known: bounded as a normal with its variance.
    unknown = Spread(one, one, one, one, one, 0.0, 1)
    widest = math.sqrt(2.0 * math.log(2.0 / 0.05))
    assert gaussian_half_widths(unknown, 0.05) == pytest.approx(widest)
