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
        kernels,
        mechanisms,
        partitions,
        plotting,
        policies,
        selections,
        strategies,
        workloads,
    )
    from .accounting.ledger import Ledger
    from .comparison import compare
    from .domain import Domain
    from .errors import BlowfishError
    from .histogram import Histogram
    from .mechanisms.dawa import Dawa
    from .mechanisms.efpa import Efpa
    from .mechanisms.hierarchy import Hierarchy
    from .mechanisms.kmeans import KMeans
    from .mechanisms.laplace import Laplace
    from .mechanisms.matching import Matching
    from .mechanisms.mwem import Mwem
    from .mechanisms.noise_first import NoiseFirst
    from .mechanisms.ordered import Ordered
    from .mechanisms.ordered_hierarchical import OrderedHierarchical
    from .mechanisms.php import Php
    from .mechanisms.privelet import Privelet
    from .mechanisms.structure_first import StructureFirst
    from .mechanisms.transformed import Transformed
    from .policies.constraints import (
        CountConstraints,
        MarginalConstraints,
        RectangleConstraints,
    )
    from .policy_sensitivity import sensitivity
    from .release import Release

_MODULES = (
    "accounting",
    "audit",
    "errors",
    "kernels",
    "mechanisms",
    "partitions",
    "plotting",
    "policies",
    "selections",
    "strategies",
    "workloads",
)
_HOMES = {
    "BlowfishError": "errors",
    "CountConstraints": "policies.constraints",
    "Dawa": "mechanisms.dawa",
    "Domain": "domain",
    "Efpa": "mechanisms.efpa",
    "Hierarchy": "mechanisms.hierarchy",
    "Histogram": "histogram",
    "KMeans": "mechanisms.kmeans",
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
    "RectangleConstraints": "policies.constraints",
    "Release": "release",
    "StructureFirst": "mechanisms.structure_first",
    "Transformed": "mechanisms.transformed",
    "compare": "comparison",
    "sensitivity": "policy_sensitivity",
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
    "BlowfishError",
    "CountConstraints",
    "Dawa",
    "Domain",
    "Efpa",
    "Hierarchy",
    "Histogram",
    "KMeans",
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
    "RectangleConstraints",
    "Release",
    "StructureFirst",
    "Transformed",
    "accounting",
    "audit",
    "compare",
    "errors",
    "kernels",
    "mechanisms",
    "partitions",
    "plotting",
    "policies",
    "selections",
    "sensitivity",
    "strategies",
    "workloads",
]
