"""Gaps between lifted cells, and tails of noise, from their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def gap_law(q: Fraction, levels: int) -> dict[int, Fraction]:
    """Return P(G = g | G < 2^levels) for P(G >= g) = q^g."""
    whole = 1 - q ** (1 << levels)
    return {g: (1 - q) * q**g / whole for g in range(1 << levels)}


def lifted_law(p: float, cells: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every set of lifted cells."""
    return {
        places: p ** len(places) * (1 - p) ** (cells - len(places))
        for count in range(cells + 1)
        for places in itertools.combinations(range(cells), count)
    }


def laplace_upper(k: int, a: float) -> float:
    """Return P(Z >= k) for P(Z = z) proportional to a^|z|."""
    return a**k / (1 + a) if k >= 1 else 1 - a ** (1 - k) / (1 + a)


def gaussian_upper(k: int, variance: float) -> float:
    """Return P(Z >= k) for P(Z = z) proportional to exp(-z^2 / 2v), by adding up."""
    reach = range(-400, 401)
    law = {z: math.exp(-z * z / (2 * variance)) for z in reach}
    return sum(law[z] for z in reach if z >= k) / sum(law.values())
