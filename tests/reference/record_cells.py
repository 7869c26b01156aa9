"""The cell of a value, from the definition."""

from __future__ import annotations

import math


def cell_of(value, edges, below, above, missing, *, closed):
    """Look at every cell in turn."""
    if math.isnan(value):
        return missing
    for cell in range(len(edges) - 1):
        if edges[cell] <= value < edges[cell + 1]:
            return cell
    if closed and value == edges[-1]:
        return len(edges) - 2
    return below if value < edges[0] else above
