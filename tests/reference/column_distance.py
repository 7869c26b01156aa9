"""Distances of columns of a dense matrix."""

from __future__ import annotations

import numpy as np


def largest(matrix, pairs):
    """Return the largest L1 distance between the columns of any pair."""
    found = (np.abs(matrix[:, u] - matrix[:, v]).sum() for u, v in pairs)
    return max(found, default=0.0)
