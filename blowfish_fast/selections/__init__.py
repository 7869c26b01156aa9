"""Selections: one private choice that is not a partition."""

from __future__ import annotations

from .queries import WorstQuery

__all__ = ["WorstQuery"]
