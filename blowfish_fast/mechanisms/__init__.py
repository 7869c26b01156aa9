"""Mechanisms: short recipes over partitions and strategies."""

from __future__ import annotations

from blowfish_fast.mechanisms.baselines.bucketed import (
    Ahp,
    NoiseFirst,
    Php,
    StructureFirst,
)
from blowfish_fast.mechanisms.baselines.by_cost import Efpa, Mwem
from blowfish_fast.mechanisms.maps.grids import AdaptiveGrid, UniformGrid
from blowfish_fast.mechanisms.maps.nested import Nested
from blowfish_fast.mechanisms.maps.trees import (
    HierarchicalKdTree,
    HybridTree,
    KdTree,
    QuadTree,
)

from .base import Mechanism, Outcome
from .chosen_tables import ChosenTables
from .contingency import Contingency
from .dawa import Dawa
from .hierarchy import Hierarchy, Privelet
from .kmeans import KMeans
from .laplace import Gaussian, Laplace
from .ordered import Ordered, OrderedHierarchical
from .sparse import SparseGaussian, SparseLaplace
from .transformed import Matching, Transformed

__all__ = [
    "AdaptiveGrid",
    "Ahp",
    "ChosenTables",
    "Contingency",
    "Dawa",
    "Efpa",
    "Gaussian",
    "HierarchicalKdTree",
    "Hierarchy",
    "HybridTree",
    "KMeans",
    "KdTree",
    "Laplace",
    "Matching",
    "Mechanism",
    "Mwem",
    "Nested",
    "NoiseFirst",
    "Ordered",
    "OrderedHierarchical",
    "Outcome",
    "Php",
    "Privelet",
    "QuadTree",
    "SparseGaussian",
    "SparseLaplace",
    "StructureFirst",
    "Transformed",
    "UniformGrid",
]
__dir__ = sorted(__all__).copy
