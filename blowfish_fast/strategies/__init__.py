"""Strategies: what is measured on the buckets."""

from __future__ import annotations

from .base import LinearStrategy
from .cells import Cells
from .weighted_tree import WeightedTree

STRATEGIES: dict[str, type[LinearStrategy]] = {
    strategy.kind: strategy for strategy in (Cells, WeightedTree)
}

__all__ = ["STRATEGIES", "Cells", "LinearStrategy", "WeightedTree"]
