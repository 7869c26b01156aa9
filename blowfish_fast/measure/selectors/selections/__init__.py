"""Selections: one private choice that is not a partition."""

from __future__ import annotations

from .base import ByCost
from .coefficients import KeptFrequencies
from .medians import Medians
from .queries import WorstQuery
from .scatter import ScatterTest

__all__ = [
    "ByCost",
    "KeptFrequencies",
    "Medians",
    "ScatterTest",
    "WorstQuery",
]


def __dir__() -> list[str]:
    return sorted(__all__)
