"""Policies: which values must stay indistinguishable."""

from __future__ import annotations

from .add_remove import AddRemove
from .attribute import Attribute
from .base import ABSENT, POLICIES, Bandwidth, Components, Policy, from_dict
from .blocks import Blocks
from .constrained import Constrained, histogram_sensitivity
from .constraints import (
    Constraints,
    CountConstraints,
    MarginalConstraints,
    RectangleConstraints,
)
from .full import Full
from .graph import Graph
from .line import Line
from .product import Product
from .projection import Band, Projection
from .table import TablePolicy
from .threshold import Threshold

__all__ = [
    "ABSENT",
    "POLICIES",
    "AddRemove",
    "Attribute",
    "Band",
    "Bandwidth",
    "Blocks",
    "Components",
    "Constrained",
    "Constraints",
    "CountConstraints",
    "Full",
    "Graph",
    "Line",
    "MarginalConstraints",
    "Policy",
    "Product",
    "Projection",
    "RectangleConstraints",
    "TablePolicy",
    "Threshold",
    "from_dict",
    "histogram_sensitivity",
]


def __dir__() -> list[str]:
    return sorted(__all__)
