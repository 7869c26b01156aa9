"""The spread of a strategy's noise, by pushing unit noises through inference."""

from __future__ import annotations

import numpy as np

from blowfish_fast.measure.noise import Spread

from .forms import dense_form


class DenseSpread(Spread):
    """Moments, with the scaled coefficient and the scale of every draw."""


def spread_of(coefficients, widths, variances):
    """Return the moments of queries from the coefficient of every draw."""
    weighted = np.abs(coefficients) * widths
    rows = np.arange(len(coefficients))
    loudest = weighted.argmax(axis=1) if widths.size else np.zeros(rows.size, int)
    drawn = np.append(widths, 0.0)
    found = DenseSpread(
        (coefficients**2 * variances).sum(axis=1),
        (weighted**2).sum(axis=1),
        weighted.max(axis=1, initial=0.0),
        (coefficients**2 * (widths > 0)).sum(axis=1),
        drawn[loudest],
        float(widths[widths > 0].min(initial=np.inf)),
    )
    found.weighted, found.widths = weighted, widths
    return found


def dense_spread(strategy, scales, form, cells):
    """Return the moments of every query, row by row."""
    rows = scales.rates.size
    queries = dense_form(form, cells)
    unit = np.eye(rows) * 2**20
    columns = [strategy.infer(row.astype(np.int64), scales) for row in unit]
    coefficients = queries @ np.stack(columns, axis=1) / 2**20
    coefficients[:, ~scales.measured] = 0.0
    variances = np.where(scales.measured, scales.variances, 0.0)
    return spread_of(coefficients, scales.widths, variances)


def assert_same_spread(found, expected, rtol=1e-7, atol=1e-9):
    """Compare moments; those that may be bounds above lie above.

    Where the largest row is known, all moments are exact.
    """
    close = {"rtol": rtol, "atol": atol}
    np.testing.assert_allclose(found.variance, expected.variance, **close)
    known = np.isfinite(found.width)
    for name in ("square", "largest", "steps"):
        got, want = getattr(found, name), getattr(expected, name)
        assert (got >= want * (1 - rtol) - atol).all()
        np.testing.assert_allclose(got[known], want[known], **close)
    noisy = known & (expected.largest > atol)
    if not isinstance(expected, DenseSpread):
        assert np.allclose(found.width[noisy], expected.width[noisy], equal_nan=True)
        noisy[:] = False
    for query in np.flatnonzero(noisy):
        # Rows of several scales may have the largest part; any of them may be named.
        row = expected.weighted[query]
        loudest = expected.widths[row >= row.max() * (1 - 1e-3)]
        assert np.isclose(loudest, found.width[query], rtol=1e-9).any()
    assert 0.0 <= found.least <= expected.least * (1 + 1e-12)
