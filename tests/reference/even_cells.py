"""Totals of buckets spread over their cells, one cell at a time."""

from __future__ import annotations

import numpy as np


def spread_evenly(totals, edges):
    """Return, for each cell, the total of its bucket over the bucket's cells."""
    cells = []
    for total, start, end in zip(totals, edges[:-1], edges[1:], strict=True):
        for _ in range(start, end):
            cells.append(total / (end - start))
    return np.array(cells, dtype=np.float64)
