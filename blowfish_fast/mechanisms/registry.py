"""Every mechanism by name: the command line, audits and benchmarks walk this table."""

from __future__ import annotations

from .base import Mechanism
from .dawa import Dawa
from .kmeans import KMeans
from .laplace import Laplace
from .ordered import Ordered
from .ordered_hierarchical import OrderedHierarchical

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (Dawa, KMeans, Laplace, Ordered, OrderedHierarchical)
}
