"""Accounting: what was promised, what was spent, what several releases cost."""

from __future__ import annotations

from .composition import parallel_by_ids, parallel_by_regions
from .interactive_session import Session
from .ledger import Ledger
from .opened_ledger import OpenedAnswer, verify_opened
from .recipients import make_recipient_keys

__all__ = [
    "Ledger",
    "OpenedAnswer",
    "Session",
    "make_recipient_keys",
    "parallel_by_ids",
    "parallel_by_regions",
    "verify_opened",
]
__dir__ = sorted(__all__).copy
