"""The spread of a strategy's noise, by pushing each draw through publication."""

from __future__ import annotations

import numpy as np

from .forms import dense_form
from .spread import spread_of


def spread_by_draws(strategy, scales, form, cells):
    """Return the moments of every query, draw by draw."""
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
    return spread_of(amounts, scales.widths[noisy], scales.variances[noisy])
