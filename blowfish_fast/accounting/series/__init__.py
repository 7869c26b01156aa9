"""Releases of one epoch after the other: how totals are kept accurate.

``bf.Series`` is the class that releases; here are the public plans behind its
``totals``: `Weights`, by which a record counts by its age, and `EpochBlocks` of epochs.
`SavedSeries` reads the file of a series without its ledger.
"""

from __future__ import annotations

from .blocks import EpochBlocks
from .saved import SavedSeries
from .weights import Weights

__all__ = ["EpochBlocks", "SavedSeries", "Weights"]
__dir__ = sorted(__all__).copy
