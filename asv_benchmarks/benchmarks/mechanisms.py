"""Whole releases, in wall time: what a user waits for, threads included.

DAWA and Laplace are timed at the sizes they are made for; every mechanism of the
registry is timed on its own example, so that none can be forgotten.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import (
    Dawa,
    Domain,
    Laplace,
    Ledger,
    SparseHistogram,
    SparseLaplace,
    WideDomain,
    policies,
    workloads,
)
from blowfish_fast.measure.selectors.partitions import Descent, DyadicTree, LeastCost
from blowfish_fast.mechanisms.registry import MECHANISMS

from .common import (
    EPSILON,
    SMALL,
    Call,
    Timed,
    grid,
    line,
    ranges,
    rectangles,
    registered_example,
    sizes,
)

LINE_SIZES = sizes(20, smallest=12) if SMALL else [2**16, 2**20]
GRID_SIZES = sizes(20, smallest=12) if SMALL else [2**16, 2**20]
PARTITIONS: dict[str, Any] = {
    "best": "best",
    "dyadic_tree": DyadicTree(),
    "least_cost": LeastCost(),
    "none": None,
}


class Waited(Timed):
    """Wall time of one call."""

    timer = staticmethod(perf_counter)


class LaplaceRelease(Waited):
    params: ClassVar[list[Any]] = [sizes(), ["add_remove", "full"]]

    def prepare(self, cells: int, policy: str) -> Call:
        domain, data = line(cells)
        stated = policies.POLICIES[policy](domain)
        mechanism = Laplace(stated, workloads.Identity(domain), epsilon=EPSILON)
        return lambda: mechanism.release(data)


class SparseCells(Timed):
    """CPU time of a list of heavy cells, of 2^56 cells of which so many are filled."""

    params: ClassVar[list[Any]] = [
        [10**4] if SMALL else [10**5, 10**6, 10**7],
        [1, 1000],
    ]

    def prepare(self, filled: int, false_cells: int) -> Call:
        half = Domain(2**28, names=["half"])
        domain = WideDomain.product(half, Domain(2**28, names=["rest"]))
        keys = np.random.default_rng(1).integers(0, 2**28, (2, filled))
        table = {"half": keys[0], "rest": keys[1]}
        data = SparseHistogram.from_records(domain, table)
        mechanism = SparseLaplace(
            policies.AddRemove(domain), epsilon=EPSILON, false_cells=false_cells
        )
        return lambda: mechanism.release(data)


class WideRanges(Timed):
    """CPU time of 10^4 ranges of 2^60 cells, of which so many are filled."""

    params: ClassVar[list[Any]] = [[10**4] if SMALL else [10**5, 10**6, 10**7]]

    def prepare(self, filled: int) -> Call:
        domain: Any = WideDomain(2**60, names="time")
        generator = np.random.default_rng(1)
        moments = generator.integers(0, 2**60, filled)
        data = SparseHistogram.from_records(domain, {"time": moments})
        starts = generator.integers(0, 2**59, 10**4)
        ends = starts + generator.integers(1, 2**58, starts.size)
        asked = workloads.Ranges(domain, starts, ends)
        mechanism = Dawa(policies.AddRemove(domain), asked, epsilon=EPSILON)
        return lambda: mechanism.release(data)


class WideMap(Timed):
    """CPU time of 1000 rectangles of 2^30 x 2^30 cells, by either score."""

    params: ClassVar[list[Any]] = [
        [10**4] if SMALL else [10**5, 10**6],
        ["records", "unevenness"],
    ]

    def prepare(self, filled: int, score: Any) -> Call:
        domain: Any = WideDomain((2**30, 2**30), names=("east", "north"))
        generator = np.random.default_rng(1)
        places = generator.integers(0, 2**30, (2, filled))
        table = {"east": places[0], "north": places[1]}
        data = SparseHistogram.from_records(domain, table)
        lows = generator.integers(0, 2**29, (1000, 2))
        highs = lows + generator.integers(1, 2**28, lows.shape)
        mechanism = Dawa(
            policies.AddRemove(domain),
            workloads.Rectangles(domain, lows, highs),
            epsilon=EPSILON,
            partition=Descent(score=score),
        )
        return lambda: mechanism.release(data)


class FixedCost(Timed):
    """CPU time around the noise, on domains so small that it is nearly all of it."""

    params: ClassVar[list[Any]] = [
        [2**8] if SMALL else [2**8, 1000, 2**12],
        ["release", "charged", "intervals", "dawa"],
    ]

    def prepare(self, cells: int, step: str) -> Call:
        domain, data = line(cells)
        policy, asked = policies.AddRemove(domain), ranges(domain, 200)
        if step == "dawa":
            tuned = Dawa(policy, asked, epsilon=EPSILON)
            return lambda: tuned.release(data)
        mechanism = Laplace(policy, asked, epsilon=EPSILON)
        if step == "charged":
            ledger = Ledger(None, epsilon=10**6, policy=policy)
            return lambda: ledger.release(mechanism, data)
        if step == "intervals":
            release = mechanism.release(data)
            return lambda: release.intervals(asked, of="noise")
        return lambda: mechanism.release(data)


class DawaRelease(Waited):
    """2000 ranges of a line, secure noise."""

    params: ClassVar[list[Any]] = [
        LINE_SIZES,
        ["dense", "sparse", "distinct"],
        list(PARTITIONS),
    ]

    def prepare(self, cells: int, data: str, partition: str) -> Call:
        domain, histogram = line(cells, data)
        mechanism = Dawa(
            policies.AddRemove(domain),
            ranges(domain),
            epsilon=EPSILON,
            partition=PARTITIONS[partition],
        )
        return lambda: mechanism.release(histogram)


class DawaGridRelease(Waited):
    """2000 rectangles of a square map, secure noise."""

    params: ClassVar[list[Any]] = [GRID_SIZES, ["best", "least_cost"]]

    def prepare(self, cells: int, partition: str) -> Call:
        domain, histogram = grid(cells)
        mechanism = Dawa(
            policies.AddRemove(domain),
            rectangles(domain),
            epsilon=EPSILON,
            partition=PARTITIONS[partition],
        )
        return lambda: mechanism.release(histogram)


class DawaAllRanges(Waited):
    """A workload that is never listed, and weights without a workload."""

    params: ClassVar[list[Any]] = [LINE_SIZES, ["greedy", "geometric", "cells"]]

    def prepare(self, cells: int, strategy: Any) -> Call:
        domain, histogram = line(cells)
        mechanism = Dawa(
            policies.Full(domain),
            workloads.AllRanges(domain),
            epsilon=EPSILON,
            strategy=strategy,
        )
        return lambda: mechanism.release(histogram)


class ReleaseReading(Waited):
    """What can be asked of a release afterwards, free of epsilon."""

    params: ClassVar[list[Any]] = [
        LINE_SIZES,
        ["answer", "intervals", "standard_errors"],
    ]

    def prepare(self, cells: int, question: str) -> Call:
        domain, histogram = line(cells)
        asked = ranges(domain)
        mechanism = Dawa(policies.AddRemove(domain), asked, epsilon=EPSILON)
        ask = getattr(mechanism.release(histogram, rng=1), question)
        # Dawa knows the noise in its intervals, not what is uneven inside buckets.
        said = {"of": "noise"} if question == "intervals" else {}
        return lambda: ask(asked, **said)


class Registered(Waited):
    """Every mechanism of the registry, on its own example."""

    params: ClassVar[list[Any]] = [sorted(MECHANISMS), sizes(16)]

    def prepare(self, mechanism: str, cells: int) -> Call:
        recipe, data = registered_example(mechanism, cells)
        return lambda: recipe.release(data)
