"""Releases of one epoch after the other: how totals are kept accurate.

``bf.Series`` is the class that releases; here are the public plans behind its
``totals``: `Weights`, by which a record counts by its age, and `EpochBlocks` of epochs.
"""

from __future__ import annotations

from .blocks import EpochBlocks
from .weights import Weights

__all__ = ["EpochBlocks", "Weights"]
__dir__ = sorted(__all__).copy
