"""Strategies: what is measured on the buckets."""

from __future__ import annotations

from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.residuals import TableNoise
from blowfish_fast.measure.strategies.tables.table_strategy import TableStrategy
from blowfish_fast.measure.strategies.trees.tree import TreeStrategy

from .answers import Answers
from .cells import Cells
from .edge_lines import EdgeLines
from .edge_noise import EdgeNoise, SpanningTree
from .explicit import Explicit
from .fourier import Fourier
from .haar import Haar
from .hierarchy_plan import HTheta
from .ordered_hierarchy import OrderedHierarchy
from .prefix_sums import PrefixSums
from .stacked_buckets import StackedBuckets

STRATEGIES: dict[str, type[LinearStrategy]] = {
    value.kind: value
    for value in tuple(globals().values())
    if isinstance(value, type) and hasattr(value, "kind")
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
    "MergedTables",
    "OrderedHierarchy",
    "PrefixSums",
    "SpanningTree",
    "StackedBuckets",
    "TableNoise",
    "TableStrategy",
    "TreeStrategy",
]
__dir__ = sorted(__all__).copy
