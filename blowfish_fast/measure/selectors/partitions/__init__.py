"""Partitions: which cells share a bucket, chosen privately."""

from __future__ import annotations

from .base import Partition, cost_bound, partition_cost
from .bisection import Bisection, KBuckets
from .descent import Descent
from .dyadic import DyadicRectangles, DyadicTree
from .kd_cells import GainRule, UniformityRule
from .least_cost import LeastCost
from .matching_pairs import MatchingPairs
from .noisy_sort import NoisySort, ThresholdedSort

__all__ = [
    "Bisection",
    "Descent",
    "DyadicRectangles",
    "DyadicTree",
    "GainRule",
    "KBuckets",
    "LeastCost",
    "MatchingPairs",
    "NoisySort",
    "Partition",
    "ThresholdedSort",
    "UniformityRule",
    "cost_bound",
    "partition_cost",
]
__dir__ = sorted(__all__).copy
