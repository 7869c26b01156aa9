"""Selections: one private choice that is not a partition."""

from __future__ import annotations

from .coefficients import KeptFrequencies
from .queries import WorstQuery

__all__ = ["KeptFrequencies", "WorstQuery"]
