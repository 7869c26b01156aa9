"""Strategies: what is measured on the buckets."""

from __future__ import annotations

from .answers import Answers
from .base import LinearStrategy
from .cells import Cells
from .edge_noise import EdgeNoise
from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums
from .weighted_tree import WeightedTree

STRATEGIES: dict[str, type[LinearStrategy]] = {
    strategy.kind: strategy
    for strategy in (
        Answers,
        Cells,
        EdgeNoise,
        OrderedHierarchy,
        PrefixSums,
        WeightedTree,
    )
}

__all__ = [
    "STRATEGIES",
    "Answers",
    "Cells",
    "EdgeNoise",
    "LinearStrategy",
    "OrderedHierarchy",
    "PrefixSums",
    "WeightedTree",
]
