"""Workloads: which questions are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blowfish_fast._support.near_misses import hints_of

from .base import Form, Fractions, Implicit, Pieces, Union, Workload
from .districts import Regions
from .linear import Identity, Linear, Marginals, Sum, Total
from .nesting import LevelTotals, Nesting
from .ranges import AllRanges, Prefixes, Ranges, Rectangles, random_boxes
from .ranges import asks_ranges as asks_ranges
from .tables import Tables

__all__ = [
    "AllRanges",
    "Form",
    "Fractions",
    "Identity",
    "Implicit",
    "LevelTotals",
    "Linear",
    "Marginals",
    "Nesting",
    "Pieces",
    "Prefixes",
    "Ranges",
    "Rectangles",
    "Regions",
    "Sum",
    "Tables",
    "Total",
    "Union",
    "Workload",
    "random_boxes",
]
__dir__ = sorted(__all__).copy

if not TYPE_CHECKING:
    # Checkers of types would take it for a package that has every name.
    __getattr__ = hints_of(__name__, __all__)
