"""Mechanisms: short recipes over partitions and strategies."""

from __future__ import annotations

from .base import Mechanism, Outcome
from .dawa import Dawa
from .efpa import Efpa
from .hierarchy import Hierarchy
from .kmeans import KMeans, KMeansRelease
from .laplace import Laplace
from .matching import Matching
from .mwem import Mwem
from .noise_first import NoiseFirst
from .ordered import Ordered
from .ordered_hierarchical import OrderedHierarchical
from .php import Php
from .privelet import Privelet
from .structure_first import StructureFirst
from .transformed import Transformed

__all__ = [
    "Dawa",
    "Efpa",
    "Hierarchy",
    "KMeans",
    "KMeansRelease",
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
    "StructureFirst",
    "Transformed",
]
