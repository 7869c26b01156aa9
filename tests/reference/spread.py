"""The spread of a strategy's noise, by pushing unit noises through inference."""

from __future__ import annotations

import numpy as np

from blowfish_fast.measure.noise import Spread

from .forms import dense_form


def dense_spread(strategy, scales, form, cells):
    """Return variance, square and largest of every query, row by row."""
    rows = scales.rates.size
    queries = dense_form(form, cells)
    unit = np.eye(rows) * 2**20
    columns = [strategy.infer(row.astype(np.int64), scales) for row in unit]
    coefficients = queries @ np.stack(columns, axis=1) / 2**20
    coefficients[:, ~scales.measured] = 0.0
    variances = np.where(scales.measured, scales.variances, 0.0)
    weighted = coefficients * scales.widths
    return Spread(
        (coefficients**2 * variances).sum(axis=1),
        (weighted**2).sum(axis=1),
        np.abs(weighted).max(axis=1),
    )
