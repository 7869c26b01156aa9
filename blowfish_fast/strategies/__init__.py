"""Strategies: what is measured on the buckets."""

from __future__ import annotations

from .base import LinearStrategy
from .cells import Cells
from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums
from .weighted_tree import WeightedTree

STRATEGIES: dict[str, type[LinearStrategy]] = {
    strategy.kind: strategy for strategy in (Cells, OrderedHierarchy, PrefixSums, WeightedTree)
}

__all__ = [
    "STRATEGIES",
    "Cells",
    "LinearStrategy",
    "OrderedHierarchy",
    "PrefixSums",
    "WeightedTree",
]
