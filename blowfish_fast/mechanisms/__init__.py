"""Mechanisms: short recipes over partitions and strategies."""

from __future__ import annotations

from .adaptive_grid import AdaptiveGrid
from .ahp import Ahp
from .base import Mechanism, Outcome
from .dawa import Dawa
from .efpa import Efpa
from .hierarchical_kd_tree import HierarchicalKdTree
from .hierarchy import Hierarchy
from .hybrid_tree import HybridTree
from .kd_tree import KdTree
from .kmeans import KMeans, KMeansRelease
from .laplace import Laplace
from .matching import Matching
from .mwem import Mwem
from .noise_first import NoiseFirst
from .ordered import Ordered
from .ordered_hierarchical import OrderedHierarchical
from .php import Php
from .privelet import Privelet
from .quad_tree import QuadTree
from .structure_first import StructureFirst
from .transformed import Transformed
from .uniform_grid import UniformGrid

__all__ = [
    "AdaptiveGrid",
    "Ahp",
    "Dawa",
    "Efpa",
    "HierarchicalKdTree",
    "Hierarchy",
    "HybridTree",
    "KMeans",
    "KMeansRelease",
    "KdTree",
    "Laplace",
    "Matching",
    "Mechanism",
    "Mwem",
    "NoiseFirst",
    "Ordered",
    "OrderedHierarchical",
    "Outcome",
    "Php",
    "Privelet",
    "QuadTree",
    "StructureFirst",
    "Transformed",
    "UniformGrid",
]


def __dir__() -> list[str]:
    return sorted(__all__)
