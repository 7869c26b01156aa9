"""Private histograms, range counts and maps under Blowfish policies.

Names load on first use: ``import blowfish_fast`` brings in numpy and nothing heavier.

>>> import blowfish_fast as bf
>>> line = bf.Domain(8)
>>> policy = bf.policies.Full(line)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        accounting,
        audit,
        errors,
        interop,
        kernels,
        mechanisms,
        partitions,
        plotting,
        policies,
        selections,
        strategies,
        usefulness,
        workloads,
    )
    from .accounting.interactive_session import Session
    from .accounting.ledger import Ledger
    from .client import connect
    from .comparison import compare
    from .domain import Domain, WideDomain
    from .errors import BlowfishError
    from .histogram import Histogram
    from .mechanisms.adaptive_grid import AdaptiveGrid
    from .mechanisms.ahp import Ahp
    from .mechanisms.dawa import Dawa
    from .mechanisms.efpa import Efpa
    from .mechanisms.hierarchical_kd_tree import HierarchicalKdTree
    from .mechanisms.hierarchy import Hierarchy
    from .mechanisms.hybrid_tree import HybridTree
    from .mechanisms.kd_tree import KdTree
    from .mechanisms.kmeans import KMeans
    from .mechanisms.laplace import Laplace
    from .mechanisms.matching import Matching
    from .mechanisms.mwem import Mwem
    from .mechanisms.noise_first import NoiseFirst
    from .mechanisms.ordered import Ordered
    from .mechanisms.ordered_hierarchical import OrderedHierarchical
    from .mechanisms.php import Php
    from .mechanisms.privelet import Privelet
    from .mechanisms.quad_tree import QuadTree
    from .mechanisms.structure_first import StructureFirst
    from .mechanisms.transformed import Transformed
    from .mechanisms.uniform_grid import UniformGrid
    from .policies.constraints import (
        CountConstraints,
        MarginalConstraints,
        RectangleConstraints,
    )
    from .policy_sensitivity import sensitivity
    from .posterior_belief import largest_epsilon, risk
    from .recommendation import recommend
    from .release import Release
    from .sparse_histogram import SparseHistogram
    from .translation import translate

_MODULES = (
    "accounting",
    "audit",
    "errors",
    "interop",
    "kernels",
    "mechanisms",
    "partitions",
    "plotting",
    "policies",
    "selections",
    "strategies",
    "usefulness",
    "workloads",
)
_HOMES = {
    "AdaptiveGrid": "mechanisms.adaptive_grid",
    "Ahp": "mechanisms.ahp",
    "BlowfishError": "errors",
    "CountConstraints": "policies.constraints",
    "Dawa": "mechanisms.dawa",
    "Domain": "domain",
    "Efpa": "mechanisms.efpa",
    "HierarchicalKdTree": "mechanisms.hierarchical_kd_tree",
    "Hierarchy": "mechanisms.hierarchy",
    "Histogram": "histogram",
    "HybridTree": "mechanisms.hybrid_tree",
    "KMeans": "mechanisms.kmeans",
    "KdTree": "mechanisms.kd_tree",
    "Laplace": "mechanisms.laplace",
    "Ledger": "accounting.ledger",
    "MarginalConstraints": "policies.constraints",
    "Matching": "mechanisms.matching",
    "Mwem": "mechanisms.mwem",
    "NoiseFirst": "mechanisms.noise_first",
    "Ordered": "mechanisms.ordered",
    "OrderedHierarchical": "mechanisms.ordered_hierarchical",
    "Php": "mechanisms.php",
    "Privelet": "mechanisms.privelet",
    "QuadTree": "mechanisms.quad_tree",
    "RectangleConstraints": "policies.constraints",
    "Release": "release",
    "Session": "accounting.interactive_session",
    "SparseHistogram": "sparse_histogram",
    "StructureFirst": "mechanisms.structure_first",
    "Transformed": "mechanisms.transformed",
    "UniformGrid": "mechanisms.uniform_grid",
    "WideDomain": "domain",
    "compare": "comparison",
    "connect": "client",
    "largest_epsilon": "posterior_belief",
    "recommend": "recommendation",
    "risk": "posterior_belief",
    "sensitivity": "policy_sensitivity",
    "translate": "translation",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _HOMES:
            value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if name == "__version__":
            from importlib.metadata import version

            return version("blowfish_fast")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AdaptiveGrid",
    "Ahp",
    "BlowfishError",
    "CountConstraints",
    "Dawa",
    "Domain",
    "Efpa",
    "HierarchicalKdTree",
    "Hierarchy",
    "Histogram",
    "HybridTree",
    "KMeans",
    "KdTree",
    "Laplace",
    "Ledger",
    "MarginalConstraints",
    "Matching",
    "Mwem",
    "NoiseFirst",
    "Ordered",
    "OrderedHierarchical",
    "Php",
    "Privelet",
    "QuadTree",
    "RectangleConstraints",
    "Release",
    "Session",
    "SparseHistogram",
    "StructureFirst",
    "Transformed",
    "UniformGrid",
    "WideDomain",
    "accounting",
    "audit",
    "compare",
    "connect",
    "errors",
    "interop",
    "kernels",
    "largest_epsilon",
    "mechanisms",
    "partitions",
    "plotting",
    "policies",
    "recommend",
    "risk",
    "selections",
    "sensitivity",
    "strategies",
    "translate",
    "usefulness",
    "workloads",
]
