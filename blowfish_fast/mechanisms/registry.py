"""Every mechanism by name: the command line, audits and benchmarks walk this table."""

from __future__ import annotations

from .base import Mechanism
from .dawa import Dawa
from .efpa import Efpa
from .hierarchy import Hierarchy
from .kmeans import KMeans
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

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (
        Dawa,
        Efpa,
        Hierarchy,
        KMeans,
        Laplace,
        Matching,
        Mwem,
        NoiseFirst,
        Ordered,
        OrderedHierarchical,
        Php,
        Privelet,
        StructureFirst,
        Transformed,
    )
}
