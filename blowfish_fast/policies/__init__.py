"""Policies: which values must stay indistinguishable.

Names in `__all__` are public as ``bf.policies.NAME``. Those imported ``as`` themselves
serve the other rooms of the package alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blowfish_fast._support.near_misses import hints_of

from .base import POLICIES, AddRemove, Policy, from_dict
from .blocks import Blocks, Full
from .constrained import Constrained
from .constraints import (
    Constraints,
    CountConstraints,
    MarginalConstraints,
    RectangleConstraints,
)
from .graph import Graph
from .presence import PerPerson, WithAbsent
from .presence import refuse_units as refuse_units
from .product import Attribute, Product
from .projection import Band, Projection
from .protocol import ABSENT
from .protocol import Change as Change
from .shared_borders import neighbours
from .table import TablePolicy
from .table import beside_extra_cells as beside_extra_cells
from .threshold import Line, Threshold

__all__ = [
    "ABSENT",
    "POLICIES",
    "AddRemove",
    "Attribute",
    "Band",
    "Blocks",
    "Constrained",
    "Constraints",
    "CountConstraints",
    "Full",
    "Graph",
    "Line",
    "MarginalConstraints",
    "PerPerson",
    "Policy",
    "Product",
    "Projection",
    "RectangleConstraints",
    "TablePolicy",
    "Threshold",
    "WithAbsent",
    "from_dict",
    "neighbours",
]
__dir__ = sorted(__all__).copy

if not TYPE_CHECKING:
    # Checkers of types would take it for a package that has every name.
    __getattr__ = hints_of(__name__, __all__)
