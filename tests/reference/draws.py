"""The spread of a strategy's noise, by pushing each draw through publication."""

from __future__ import annotations

import numpy as np

from blowfish_fast.measure.noise import Spread

from .forms import dense_form


def spread_by_draws(strategy, scales, form, cells):
    """Return variance, square and largest of every query, draw by draw."""
    rows = strategy.rows(np.zeros(cells, dtype=np.int64))
    draws = scales.rates.size
    blank = np.zeros(draws, dtype=np.int64)
    still = strategy.infer(strategy.published(rows, blank, scales), scales)
    columns = [np.zeros((cells, 0))]
    for draw in np.flatnonzero(scales.measured):
        noise = blank.copy()
        noise[draw] = 2**20
        moved = strategy.infer(strategy.published(rows, noise, scales), scales)
        columns.append(((moved - still) / 2**20)[:, None])
    amounts = dense_form(form, cells) @ np.concatenate(columns, axis=1)
    noisy = scales.measured
    weighted = np.abs(amounts) * scales.widths[noisy]
    return Spread(
        amounts**2 @ scales.variances[noisy],
        (weighted**2).sum(axis=1),
        weighted.max(axis=1, initial=0.0),
    )


def assert_same_spread(found, expected):
    np.testing.assert_allclose(found.variance, expected.variance, atol=1e-9)
    np.testing.assert_allclose(found.square, expected.square, atol=1e-9)
    np.testing.assert_allclose(found.largest, expected.largest, atol=1e-9)
