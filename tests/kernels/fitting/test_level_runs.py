"""Runs of one height: averages against all cuts into runs, borders, and refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from blowfish_fast.kernels.fitting import level_runs as fitted
from blowfish_fast.kernels.fitting.level_runs import fit_level_runs

pytestmark = pytest.mark.kernel


def chain(totals, sizes, noise, least_height=0.7, largest=60.0):
    spans = math.log1p(largest / least_height)
    prior = [math.log(fitted.EMPTY), math.log((1 - fitted.EMPTY) / spans), least_height]
    return fitted._Chain(
        np.array(totals, dtype=float), np.array(sizes, float), noise, np.array(prior)
    )


def weight_of_run(part, at, variances):
    """Return weight, fullness and mean height of one run, by integrals."""
    totals, sizes, spread = part.totals[at], part.sizes[at], variances[at]
    log_empty, log_filled, least_height = part.prior

    def density(values, means, widths):
        each = np.exp(-0.5 * (values - means) ** 2 / widths)
        return float(np.prod(each / np.sqrt(2 * math.pi * widths)))

    empty = math.exp(log_empty) * density(totals, 0 * sizes, 0 * sizes + part.noise)
    # The height's law is taken at its estimate, as the kernel does: it is nearly even
    # over the reach of the noise.
    middle = max((sizes * totals / spread).sum() / (sizes**2 / spread).sum(), 0.0)
    law = math.exp(log_filled) / (middle + least_height)
    ends = {"epsabs": 0, "epsrel": 1e-9, "limit": 200}
    top = middle + 12 / math.sqrt((sizes**2 / spread).sum())

    def likely(height):
        return density(totals, height * sizes, spread)

    mass = law * integrate.quad(likely, 0, top, **ends)[0]
    first = (
        law * integrate.quad(lambda height: height * likely(height), 0, top, **ends)[0]
    )
    return empty + mass, mass, first


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_averages_are_those_over_all_cuts_into_runs(spread):
    sizes = np.array([2.0, 1.0, 1.0, 3.0, 2.0])
    totals = np.array([21.0, 9.0, 12.0, 1.0, -2.0])
    part, chance = chain(totals, sizes, 4.0), 0.35
    added = spread * np.array([20.0, 10.0, 10.0, 1.0, 0.5])
    evidence, runs, fullness, records = part.weigh(added, chance)
    mass, count = 0.0, 0.0
    full, means = np.zeros(5), np.zeros(5)
    for ends in itertools.product([False, True], repeat=4):
        edges = [0, *(at + 1 for at in range(4) if ends[at]), 5]
        weight = chance ** sum(ends) * (1 - chance) ** (4 - sum(ends))
        parts = [
            (slice(a, b), weight_of_run(part, slice(a, b), part.noise + added))
            for a, b in itertools.pairwise(edges)
        ]
        weight *= math.prod(each[0] for _, each in parts)
        mass += weight
        count += weight * len(parts)
        for at, (whole, filled, first) in parts:
            full[at] += weight * filled / whole
            means[at] += weight * first / whole
    assert evidence == pytest.approx(math.log(mass), abs=1e-6)
    assert runs == pytest.approx(count / mass, rel=1e-6)
    np.testing.assert_allclose(fullness, full / mass, rtol=1e-6)
    np.testing.assert_allclose(records, means / mass * sizes, rtol=1e-6)


def dyadic_chains(heights, rng, noise=10.0):
    """Return totals of level steps that halves cut into chains, sizes and cells."""
    sizes = np.array([1, 2, 4, 8, 16, 8, 4, 2, 1] * len(heights))
    cells = np.repeat(np.repeat(heights, 9), sizes)
    totals = np.repeat(heights, 9) * sizes + rng.laplace(0, noise, sizes.size)
    return totals, sizes, cells


def test_chains_of_one_height_are_joined():
    rng = np.random.default_rng(1)
    totals, sizes, cells = dyadic_chains([40, 90, 10, 300, 0, 70], rng)
    estimate = fit_level_runs(totals, sizes, 10.0, 200.0)
    before = np.abs(np.repeat(totals / sizes, sizes) - cells).mean()
    assert np.abs(estimate - cells).mean() < 0.4 * before
    assert estimate.min() >= 0


def test_a_border_inside_a_bucket_is_placed():
    sizes = np.array([16, 8, 4, 8, 4, 8, 16, 16])
    cells = np.where(np.arange(sizes.sum()) < 31, 90.0, 20.0)
    records = np.add.reduceat(cells, np.cumsum(sizes) - sizes)
    placed = fitted._placed(records, sizes, 200.0)
    np.testing.assert_allclose(placed, cells)
    # Many records astray: such a bucket would have been divided, so it is a step.
    np.testing.assert_allclose(
        fitted._placed(records, sizes, 0.01), np.repeat(records / sizes, sizes)
    )
    # Too few records: nothing says where the border is.
    np.testing.assert_allclose(
        fitted._placed(records, sizes, 1e6), np.repeat(records / sizes, sizes)
    )
    short = fitted._placed(records[:4], sizes[:4], 200.0)
    np.testing.assert_allclose(short, np.repeat(records[:4] / sizes[:4], sizes[:4]))


def test_records_that_scatter_keep_their_own_totals_in_part():
    rng = np.random.default_rng(2)
    cells = rng.poisson(np.repeat([400, 900, 100, 600], 64))
    totals = cells + rng.laplace(0, 10, cells.size)
    estimate = fit_level_runs(totals, np.ones(cells.size, dtype=np.int64), 10.0, 200.0)
    heights = np.repeat([400, 900, 100, 600], 64)
    off = np.abs(estimate - cells).mean()
    assert off < 0.9 * np.abs(totals - cells).mean()
    assert off < 0.7 * np.abs(heights - cells).mean()


def test_nothing_is_joined_where_heights_are_their_own():
    rng = np.random.default_rng(3)
    sizes = np.ones(200, dtype=np.int64)
    rough = 10.0 ** rng.uniform(0, 6, 200)
    assert fit_level_runs(rough + rng.laplace(0, 10, 200), sizes, 10.0, 200.0) is None
    assert fit_level_runs(np.zeros(7), sizes[:7], 10.0, 200.0) is None
    many = fitted.MOST_BUCKETS + 1
    assert (
        fit_level_runs(np.zeros(many), np.ones(many, dtype=np.int64), 1.0, 2.0) is None
    )


def test_sparse_cells_are_not_joined():
    rng = np.random.default_rng(4)
    cells = np.zeros(2048)
    cells[rng.choice(2048, 12, replace=False)] = 400.0
    totals = cells + rng.laplace(0, 10, 2048)
    sizes = np.ones(2048, dtype=np.int64)
    assert fit_level_runs(totals, sizes, 10.0, 200.0) is None


def test_long_lines_are_weighed_by_blocks():
    limit = fitted.BLOCK * fitted.SAMPLE_BLOCKS
    assert fitted._sample(limit) == [slice(0, limit)]
    blocks = fitted._sample(3 * limit)
    assert len(blocks) == fitted.SAMPLE_BLOCKS
    assert (blocks[0].start, blocks[-1].stop) == (0, 3 * limit)
    assert {part.stop - part.start for part in blocks} == {fitted.BLOCK}


def test_empty_stretches_and_far_totals_stay_finite():
    sizes = np.ones(64, dtype=np.int64)
    for totals in (np.zeros(64), np.full(64, -1e6), np.full(64, 1e15)):
        estimate = fit_level_runs(totals, sizes, 10.0, 200.0)
        assert estimate is None or np.isfinite(estimate).all()
    mixed = np.concatenate([np.full(32, -30.0), np.full(32, 900.0)])
    np.testing.assert_allclose(
        fit_level_runs(mixed, sizes, 10.0, 200.0), np.repeat([0.0, 900.0], 32), atol=1.5
    )
