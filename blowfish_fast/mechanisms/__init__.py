"""Mechanisms: short recipes over partitions and strategies."""

from __future__ import annotations

from .base import Mechanism, Outcome
from .dawa import Dawa
from .laplace import Laplace

__all__ = ["Dawa", "Laplace", "Mechanism", "Outcome"]
