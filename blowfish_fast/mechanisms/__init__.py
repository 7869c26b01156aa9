"""Mechanisms: short recipes over partitions and strategies."""

from __future__ import annotations

from .base import Mechanism, Outcome
from .dawa import Dawa
from .kmeans import KMeans, KMeansRelease
from .laplace import Laplace
from .ordered import Ordered
from .ordered_hierarchical import OrderedHierarchical

__all__ = [
    "Dawa",
    "KMeans",
    "KMeansRelease",
    "Laplace",
    "Mechanism",
    "Ordered",
    "OrderedHierarchical",
    "Outcome",
]
