"""Every mechanism by name: the command line, audits and benchmarks walk this table."""

from __future__ import annotations

from blowfish_fast.mechanisms.baselines.ahp import Ahp
from blowfish_fast.mechanisms.baselines.efpa import Efpa
from blowfish_fast.mechanisms.baselines.mwem import Mwem
from blowfish_fast.mechanisms.baselines.noise_first import NoiseFirst
from blowfish_fast.mechanisms.baselines.php import Php
from blowfish_fast.mechanisms.baselines.structure_first import StructureFirst
from blowfish_fast.mechanisms.maps.adaptive_grid import AdaptiveGrid
from blowfish_fast.mechanisms.maps.hierarchical_kd_tree import HierarchicalKdTree
from blowfish_fast.mechanisms.maps.hybrid_tree import HybridTree
from blowfish_fast.mechanisms.maps.kd_tree import KdTree
from blowfish_fast.mechanisms.maps.quad_tree import QuadTree
from blowfish_fast.mechanisms.maps.uniform_grid import UniformGrid

from .base import Mechanism
from .contingency import Contingency
from .dawa import Dawa
from .gaussian import Gaussian
from .hierarchy import Hierarchy
from .kmeans import KMeans
from .laplace import Laplace
from .matching import Matching
from .ordered import Ordered
from .ordered_hierarchical import OrderedHierarchical
from .privelet import Privelet
from .transformed import Transformed

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (
        AdaptiveGrid,
        Ahp,
        Dawa,
        Efpa,
        HierarchicalKdTree,
        Hierarchy,
        HybridTree,
        KMeans,
        KdTree,
        Laplace,
        Matching,
        Mwem,
        NoiseFirst,
        Ordered,
        OrderedHierarchical,
        Php,
        Privelet,
        QuadTree,
        StructureFirst,
        Transformed,
        UniformGrid,
    )
}

TABLE_MECHANISMS: dict[str, type[Mechanism]] = {Contingency.name: Contingency}
"""Mechanisms of many tables: who wants one histogram does not walk them."""

RHO_MECHANISMS: dict[str, type[Mechanism]] = {Gaussian.name: Gaussian}
"""Mechanisms that take no epsilon alone; all others take either currency."""
