"""Intervals of ranges of a release that was asked before: one range, and very many."""

from __future__ import annotations

from itertools import cycle
from typing import Any, ClassVar

from blowfish_fast import policies, workloads
from blowfish_fast.measure import tails
from blowfish_fast.mechanisms.registry import MECHANISMS

from .common import EPSILON, SMALL, Call, Timed, line, ranges

CELLS = 2**12 if SMALL else 2**20
POLICIES: dict[str, Any] = {
    "laplace": policies.AddRemove,
    "ordered": policies.Line,
    "ordered_hierarchical": lambda domain: policies.Threshold(domain, CELLS // 1000),
    "privelet": policies.AddRemove,
    "hierarchy": policies.AddRemove,
    "dawa": policies.AddRemove,
}


class RangeIntervals(Timed):
    """CPU time: what was kept with the release answers, without work over all cells.

    Two workloads take turns, since what was asked last is remembered whole.
    """

    params: ClassVar[list[Any]] = [list(POLICIES), [1, 2000 if SMALL else 10**6]]

    def prepare(self, mechanism: str, queries: int) -> Call:
        domain, histogram = line(CELLS)
        policy = POLICIES[mechanism](domain)
        made = MECHANISMS[mechanism](policy, ranges(domain), epsilon=EPSILON)
        release = made.release(histogram, rng=1)
        some = [workloads.Ranges.random(domain, queries, rng=seed) for seed in (2, 3)]
        turns = cycle(some)
        return lambda: release.intervals(next(turns), of="noise")


class QuantileTable(Timed):
    """CPU time of the table that the first intervals of a process make."""

    params: ClassVar[list[Any]] = [[0.05, 1e-6]]

    def prepare(self, miss: float) -> Call:
        return lambda: tails._worst_quantiles.__wrapped__(miss)
