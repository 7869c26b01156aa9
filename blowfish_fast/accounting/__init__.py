"""Accounting: what was promised, what was spent, what several releases cost."""

from __future__ import annotations

from .composition import parallel_by_ids, parallel_by_regions
from .interactive_session import Session
from .ledger import Ledger

__all__ = [
    "Ledger",
    "Session",
    "parallel_by_ids",
    "parallel_by_regions",
]
__dir__ = sorted(__all__).copy
