"""Kd-trees: kernels, whole releases, and the error beside the time.

Squares up to 1024 x 1024, and a census of four attributes (79 x 14 x 23 x 100 cells).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from blowfish_fast import (
    Domain,
    Histogram,
    KdTree,
    kernels,
    policies,
    workloads,
)
from blowfish_fast.mechanisms import HierarchicalKdTree

from .common import EPSILON, SMALL, Call, Timed, grid, rectangles, sizes

GRIDS = sizes(20, smallest=12) if SMALL else [2**16, 2**18, 2**20]
CENSUS = (16, 5, 6, 20) if SMALL else (79, 14, 23, 100)
RULES = ["gain", "or", "uniformity", "cells"]


def noisy_grid(cells: int) -> np.ndarray:
    """Return a map with Laplace noise of scale 20."""
    _, data = grid(cells)
    return data.counts + np.random.default_rng(1).laplace(0, 20, data.counts.shape)


def census() -> tuple[Domain, Histogram]:
    """Return a million records over four attributes, each skew and tied to the next."""
    generator = np.random.default_rng(79)
    records = 20_000 if SMALL else 1_000_000
    part = np.zeros(records)
    columns = []
    for cells in CENSUS:
        part = np.clip(0.5 * part + generator.gamma(2.0, 0.1, records), 0, 0.999)
        columns.append((part * cells).astype(np.int64))
    domain = Domain(CENSUS)
    flat = np.bincount(np.ravel_multi_index(columns, CENSUS), minlength=domain.size)
    return domain, Histogram(domain, flat.reshape(CENSUS))


def released(domain: Domain, policy: str, rule: str) -> KdTree:
    """Return the mechanism under one of its rules."""
    return KdTree(
        policies.POLICIES[policy](domain),
        rectangles(domain),
        epsilon=EPSILON,
        rule=None if rule == "cells" else rule,
    )


class PayingBoxes(Timed):
    """The partition alone, cuts that pay."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        noisy = noisy_grid(cells)
        return lambda: kernels.gain_boxes(
            noisy, cell_variance=800.0, price=640.0, caution=1.3, depth=80
        )


class MedianBoxes(Timed):
    """The partition alone, cuts at medians."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        noisy = noisy_grid(cells)
        return lambda: kernels.median_boxes(
            noisy, level=20.0, slack=40.0, count=0.0, mode="uniformity", depth=80
        )


class KdTreeRelease(Timed):
    """A whole release of a map, secure noise, CPU time."""

    params: ClassVar[list[Any]] = [GRIDS, ["add_remove", "full"], RULES]

    def prepare(self, cells: int, policy: str, rule: str) -> Call:
        domain, data = grid(cells)
        mechanism = released(domain, policy, rule)
        return lambda: mechanism.release(data)


class CensusRelease(Timed):
    """A whole release of a million records over four attributes."""

    params: ClassVar[list[Any]] = [["add_remove", "full"], RULES]

    def prepare(self, policy: str, rule: str) -> Call:
        domain, data = census()
        mechanism = released(domain, policy, rule)
        return lambda: mechanism.release(data)


class HierarchicalRelease(Timed):
    """Medians asked of the data, thirteen levels."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        domain, data = grid(cells)
        policy = policies.AddRemove(domain)
        mechanism = HierarchicalKdTree(policy, rectangles(domain), epsilon=EPSILON)
        return lambda: mechanism.release(data)


class KdTreeError:
    """Mean error of 1000 rectangles on a 256 x 256 map, three releases."""

    timeout = 300
    params: ClassVar[list[Any]] = [RULES]
    param_names: ClassVar[list[str]] = ["rule"]
    unit = "records"

    def track_error(self, rule: str) -> float:
        domain, data = grid(2**12 if SMALL else 2**16)
        asked = workloads.Rectangles.random(domain, 1000, rng=1)
        truth = asked.answer(data)
        mechanism = released(domain, "add_remove", rule)
        errors = [
            np.abs(mechanism.release(data, rng=seed).answer(asked) - truth).mean()
            for seed in range(3)
        ]
        return float(np.mean(errors))
