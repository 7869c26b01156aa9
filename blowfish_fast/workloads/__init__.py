"""Workloads: which questions are asked."""

from __future__ import annotations

from .base import Form, Fractions, Implicit, Pieces, Union, Workload
from .identity import Identity, Total
from .linear import Linear, Marginals, Sum
from .ranges import AllRanges, Prefixes, Ranges, Rectangles, random_boxes
from .tables import Tables

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
