"""Accounting: what was promised, what was spent, what several releases cost."""

from __future__ import annotations

from .composition import parallel_by_ids, parallel_by_regions
from .interactive_session import Parts, Session
from .ledger import Ledger
from .statements import Entry, Preview

__all__ = [
    "Entry",
    "Ledger",
    "Parts",
    "Preview",
    "Session",
    "parallel_by_ids",
    "parallel_by_regions",
]


def __dir__() -> list[str]:
    return sorted(__all__)
