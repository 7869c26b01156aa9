"""The spread of queries on Haar rows, through the inverse matrix."""

from __future__ import annotations

import numpy as np

from .haar_transform import haar_matrix


def haar_spread(variances, scales, queries):
    """Return the five moments of queries of shape (m, *shape)."""
    shape = queries.shape[1:]
    parts = queries.reshape(len(queries), -1) @ np.linalg.inv(haar_matrix(shape))
    parts[np.abs(parts) < 1e-12] = 0.0
    reaches = np.abs(parts * scales)
    largest = reaches.max(axis=1)
    loudest = reaches >= largest[:, None] * (1 - 1e-12)
    return (
        parts**2 @ variances,
        parts**2 @ scales**2,
        largest,
        parts**2 @ (scales > 0),
        np.where(largest > 0, np.where(loudest, scales, np.inf).min(axis=1), 0.0),
    )
