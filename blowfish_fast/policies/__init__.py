"""Policies: which values must stay indistinguishable."""

from __future__ import annotations

from .add_remove import AddRemove
from .base import POLICIES, Policy, from_dict
from .blocks import Blocks
from .constrained import Constrained, histogram_sensitivity
from .constraints import (
    Constraints,
    CountConstraints,
    MarginalConstraints,
    RectangleConstraints,
)
from .full import Full
from .graph import Graph, join_extra_cells
from .line import Line
from .people.per_person import PerPerson, check_bound, refuse_units
from .people.with_absent import WithAbsent
from .product import Attribute, Product
from .projection import Band, Projection
from .protocol import ABSENT, Bandwidth, Change, Components, PersonRule
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
    "Change",
    "Components",
    "Constrained",
    "Constraints",
    "CountConstraints",
    "Full",
    "Graph",
    "Line",
    "MarginalConstraints",
    "PerPerson",
    "PersonRule",
    "Policy",
    "Product",
    "Projection",
    "RectangleConstraints",
    "TablePolicy",
    "Threshold",
    "WithAbsent",
    "check_bound",
    "from_dict",
    "histogram_sensitivity",
    "join_extra_cells",
    "refuse_units",
]


def __dir__() -> list[str]:
    return sorted(__all__)
