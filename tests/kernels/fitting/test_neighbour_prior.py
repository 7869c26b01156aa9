"""Cells under a prior that their neighbours choose."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.fitting import neighbour_prior
from blowfish_fast.kernels.fitting.neighbour_prior import (
    _around,
    _learn,
    mean_cells,
    median_cells,
)
from blowfish_fast.kernels.fitting.posterior_mean import shrink_towards_zero

pytestmark = pytest.mark.kernel

CELLS, WIDTH = 1024, 10.0


def crowded_half(seed):
    """Return counts whose second half alone has records, and noisy ones."""
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(CELLS) < CELLS // 2, 0, rng.integers(5, 90, CELLS))
    return truth, truth + rng.laplace(0, WIDTH, CELLS).round()


def scattered(seed):
    """Return counts whose places say nothing, and noisy ones."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(CELLS) < 0.1, 80, 0)
    return truth, truth + rng.laplace(0, WIDTH, CELLS).round()


@pytest.mark.parametrize("half", [1, 2, 30])
def test_neighbours_are_averaged_without_the_cell_itself(half):
    cells = np.random.default_rng(half).normal(0, 3, 40)
    found = _around(np.append(0.0, np.cumsum(cells)), half, np.arange(40))
    for place in range(40):
        near = [
            cells[other]
            for other in range(max(place - half, 0), min(place + half + 1, 40))
            if other != place
        ]
        assert found[place] == pytest.approx(np.mean(near))


def test_classes_that_read_the_cell_itself_are_caught(monkeypatch):
    """Planted: noise of the cell in its own class is taken for news of its records."""
    noisy = scattered(1)[1]
    assert _learn(noisy, WIDTH).weights.shape[0] == 1

    def with_itself(sums, half, places):
        own = sums[places + 1] - sums[places]
        return (4 * _around(sums, half, places) + own) / 5

    monkeypatch.setattr(neighbour_prior, "_around", with_itself)
    assert _learn(noisy, WIDTH).weights.shape[0] == neighbour_prior.CLASSES


def test_empty_stretches_gain_and_scattered_cells_stay_as_they_were(monkeypatch):
    truth, noisy = crowded_half(2)
    medians, means = median_cells(noisy, WIDTH), mean_cells(noisy, WIDTH)
    lone, alone = scattered(3)
    scattered_medians = median_cells(alone, WIDTH)
    monkeypatch.setattr(neighbour_prior, "LEAST_GAIN", np.inf)
    assert np.array_equal(scattered_medians, median_cells(alone, WIDTH))
    assert np.abs(scattered_medians - lone).mean() < np.abs(alone.clip(0) - lone).mean()
    plain = np.abs(median_cells(noisy, WIDTH) - truth).mean()
    assert np.abs(medians - truth).mean() < 0.9 * plain
    shrunk = mean_cells(noisy, WIDTH)
    widths, sizes = np.full(CELLS, WIDTH), np.ones(CELLS, dtype=np.int64)
    np.testing.assert_allclose(shrunk, shrink_towards_zero(noisy, widths, sizes))
    assert np.abs(means - truth).mean() < 0.9 * np.abs(shrunk - truth).mean()
    assert min(medians.min(), means.min()) >= 0.0


@pytest.mark.parametrize("bound", ["FEWEST_CELLS", "MOST_CELLS"])
def test_short_and_long_lines_have_one_prior(monkeypatch, bound):
    _, noisy = crowded_half(4)
    assert _learn(noisy, WIDTH).weights.shape[0] == neighbour_prior.CLASSES
    step = 1 if bound == "FEWEST_CELLS" else -1
    monkeypatch.setattr(neighbour_prior, bound, CELLS + step)
    learnt = _learn(noisy, WIDTH)
    assert learnt.weights.shape[0] == 1
    assert not learnt.classes.any()


def test_classes_of_a_long_line_are_learnt_by_some_of_its_cells(monkeypatch):
    truth, noisy = crowded_half(5)
    monkeypatch.setattr(neighbour_prior, "SAMPLE", 300)
    learnt = _learn(noisy, WIDTH)
    assert learnt.classes.shape == (CELLS,)
    assert learnt.weights.shape[0] == neighbour_prior.CLASSES
    plain = shrink_towards_zero(noisy, np.full(CELLS, WIDTH), np.ones(CELLS, np.int64))
    assert (
        np.abs(mean_cells(noisy, WIDTH) - truth).mean() < np.abs(plain - truth).mean()
    )


def test_far_cells_stay_as_they_are():
    _, noisy = crowded_half(6)
    noisy[[3, 800]] = 1e6
    assert median_cells(noisy, WIDTH)[[3, 800]].tolist() == [1e6, 1e6]
    assert mean_cells(noisy, WIDTH)[[3, 800]].tolist() == [1e6, 1e6]
