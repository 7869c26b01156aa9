"""Strategies: what is measured on the buckets."""

from __future__ import annotations

from .answers import Answers
from .base import LinearStrategy
from .cells import Cells
from .edge_lines import EdgeLines
from .edge_noise import EdgeNoise
from .explicit import Explicit
from .fourier import Fourier
from .h_theta import HTheta
from .haar import Haar
from .node_tree import NodeTree
from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums
from .spanning_tree import SpanningTree
from .stacked_buckets import StackedBuckets
from .weighted_tree import WeightedTree

STRATEGIES: dict[str, type[LinearStrategy]] = {
    strategy.kind: strategy
    for strategy in (
        Answers,
        Cells,
        EdgeLines,
        EdgeNoise,
        Explicit,
        Fourier,
        HTheta,
        Haar,
        NodeTree,
        OrderedHierarchy,
        PrefixSums,
        SpanningTree,
        StackedBuckets,
        WeightedTree,
    )
}
"""Every kind of strategy and its class, for reading release files."""

__all__ = [
    "STRATEGIES",
    "Answers",
    "Cells",
    "EdgeLines",
    "EdgeNoise",
    "Explicit",
    "Fourier",
    "HTheta",
    "Haar",
    "LinearStrategy",
    "NodeTree",
    "OrderedHierarchy",
    "PrefixSums",
    "SpanningTree",
    "StackedBuckets",
    "WeightedTree",
]


def __dir__() -> list[str]:
    return sorted(__all__)
