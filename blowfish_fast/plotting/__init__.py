"""Pictures of releases; needs the extra ``plot``."""

from __future__ import annotations

from .histograms import histogram
from .maps import density, grid_map

__all__ = ["density", "grid_map", "histogram"]
