"""Selections: one private choice that is not a partition."""

from __future__ import annotations

from .by_cost import ByCost, KeptFrequencies, WorstQuery
from .comparisons import ScatterTest
from .medians import Medians

__all__ = [
    "ByCost",
    "KeptFrequencies",
    "Medians",
    "ScatterTest",
    "WorstQuery",
]


def __dir__() -> list[str]:
    return sorted(__all__)
