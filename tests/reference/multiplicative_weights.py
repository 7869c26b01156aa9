"""Multiplicative weights on dense queries, normalised after every update."""

from __future__ import annotations

import numpy as np


def multiplicative_weights(masses, queries, targets, total, step, passes):
    """Return the masses; `queries` has a row of coefficients for each target."""
    masses = np.array(masses, dtype=np.float64)
    masses *= total / masses.sum()
    for _ in range(passes):
        for query, target in zip(queries, targets, strict=True):
            pull = step * (target - query @ masses) / total
            masses = masses * np.exp(query * np.clip(pull, -30.0, 30.0))
            masses *= total / masses.sum()
    return masses
