"""Workloads: which questions are asked."""

from __future__ import annotations

from .base import Form, Fractions, Implicit, Pieces, Workload
from .identity import Identity, Total
from .linear import Linear
from .ranges import AllRanges, Prefixes, Ranges
from .rectangles import Rectangles

__all__ = [
    "AllRanges",
    "Form",
    "Fractions",
    "Identity",
    "Implicit",
    "Linear",
    "Pieces",
    "Prefixes",
    "Ranges",
    "Rectangles",
    "Total",
    "Workload",
]
