"""Workloads: which questions are asked."""

from __future__ import annotations

from .base import Form, Fractions, Implicit, Pieces, Workload
from .identity import Identity, Total
from .linear import Linear
from .marginals import Marginals
from .ranges import AllRanges, Prefixes, Ranges
from .rectangles import Rectangles, random_boxes
from .sums import Sum
from .tables import Tables
from .union import Union

__all__ = [
    "AllRanges",
    "Form",
    "Fractions",
    "Identity",
    "Implicit",
    "Linear",
    "Marginals",
    "Pieces",
    "Prefixes",
    "Ranges",
    "Rectangles",
    "Sum",
    "Tables",
    "Total",
    "Union",
    "Workload",
    "random_boxes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
