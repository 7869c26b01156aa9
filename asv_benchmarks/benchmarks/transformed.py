"""Data-dependent release for any policy graph, at the sizes that are promised for it.

Quotients of 2^20 cells by contiguous and by scattered buckets, the choice of a strategy
by predicted error, each strategy's own release, and a grid of joined neighbours up to
1024 x 1024: quotient, choice and release together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from blowfish_fast import Domain, Transformed, compare, recommend, translate
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.measure.selectors.partitions import (
    DyadicTree,
    LeastCost,
    MatchingPairs,
    NoisySort,
)
from blowfish_fast.measure.strategies.strategy_choice import all_choices
from blowfish_fast.measure.strategies.trees import tree_weights
from blowfish_fast.policies import Full, Graph, Line, Policy, Threshold
from blowfish_fast.workloads import AllRanges, Identity, Workload

from .common import (
    EPSILON,
    SMALL,
    Call,
    Timed,
    grid,
    line,
    ranges,
    rectangles,
    side,
    sizes,
)

WIDTH = 16
THETA = 16


def _ring(domain: Domain) -> Policy:
    cells = np.arange(domain.size)
    return Graph(domain, np.column_stack([cells, np.roll(cells, -1)]))


def _grid(cells: int) -> Policy:
    edge = side(cells)
    return Threshold(Domain((edge, edge)), theta=1)


POLICIES: dict[str, Callable[[int], Policy]] = {
    "line": lambda cells: Line(Domain(cells)),
    "threshold": lambda cells: Threshold(Domain(cells), theta=THETA),
    "ring": lambda cells: _ring(Domain(cells)),
    "grid": _grid,
}
DENSE: dict[str, Callable[[int], Policy]] = {"full": lambda cells: Full(Domain(cells))}
"""Policies of too many edges for the benchmarks that list them."""


class QuotientOfBuckets(Timed):
    """The policy collapsed onto buckets of 16 cells, and all of its edges listed.

    Contiguous along the line or the curve; or scattered, cell i in bucket i mod n/16.
    """

    params: ClassVar[list[Any]] = [
        sizes(),
        list(POLICIES),
        ["contiguous", "scattered"],
    ]

    def prepare(self, cells: int, policy: str, buckets: str) -> Call:
        stated = POLICIES[policy](cells)
        count = stated.domain.size // WIDTH
        if buckets == "scattered":
            chosen = Buckets.from_labels(np.arange(stated.domain.size) % count)
        else:
            runs = Buckets(np.arange(0, stated.domain.size + 1, WIDTH))
            chosen = cell_order(stated.domain).then(runs)
        return lambda: sum(len(part) for part in stated.project(chosen).edges())


class Choice(Timed):
    """Predicted error of every admissible strategy, best first."""

    params: ClassVar[list[Any]] = [sizes(16), ["line", "threshold", "ring"]]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = POLICIES[policy](cells)
        form = ranges(stated.domain).form(Buckets.single_cells(stated.domain.size))
        return lambda: all_choices(stated, form, Fraction(EPSILON))


class Compare(Timed):
    """What a person waits for: `bf.compare` of every family of policies."""

    params: ClassVar[list[Any]] = [sizes(), list(POLICIES), ["listed", "all"]]

    def prepare(self, cells: int, policy: str, asked: str) -> Call:
        stated = POLICIES[policy](cells)
        workload: Workload = Identity(stated.domain)
        if asked == "listed" and stated.domain.ndim == 1:
            workload = ranges(stated.domain)
        elif asked == "listed":
            workload = rectangles(stated.domain)
        elif stated.domain.ndim == 1:
            workload = AllRanges(stated.domain)
        return lambda: compare(stated, workload, epsilon=EPSILON)


class CompareAnew(Timed):
    """`bf.compare` of a small line to whose ranges no tree was tuned before."""

    params: ClassVar[list[Any]] = [[2**12], ["line", "threshold", "full"]]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = {**POLICIES, **DENSE}[policy](cells)
        workload = ranges(stated.domain)

        def anew() -> object:
            tree_weights._tuned_to.cache_clear()
            return compare(stated, workload, epsilon=EPSILON)

        return anew


class CompareKept(Timed):
    """The same where another process has tuned these trees, and kept them on disk."""

    params: ClassVar[list[Any]] = [[2**12], ["line", "threshold", "full"]]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = {**POLICIES, **DENSE}[policy](cells)
        workload = ranges(stated.domain)
        self.folder = tempfile.TemporaryDirectory()
        kept = {"BLOWFISH_CACHE_DIR": self.folder.name}

        def in_a_new_process() -> object:
            tree_weights._tuned_to.cache_clear()
            with patch.dict(os.environ, kept):
                return compare(stated, workload, epsilon=EPSILON)

        return in_a_new_process


class Translate(Timed):
    """From a wanted accuracy of some ranges to the least epsilon."""

    params: ClassVar[list[Any]] = [[2**12], list(POLICIES)]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = {**POLICIES, **DENSE}[policy](cells)
        one_axis = stated.domain.ndim == 1
        asked = ranges(stated.domain) if one_axis else rectangles(stated.domain)
        return lambda: translate(stated, asked, alpha=1000.0, beta=0.05)


class TranslateAnew(Translate):
    """The same for a question that nothing is kept of."""

    params: ClassVar[list[Any]] = [
        [2**12] if SMALL else [2**18, 2**20],
        ["line", "threshold", "full"],
    ]

    def prepare(self, cells: int, policy: str) -> Call:
        return lambda: super(TranslateAnew, self).prepare(cells, policy)()


class Recommend(Timed):
    """The table and its reasons."""

    params: ClassVar[list[Any]] = [sizes(), list(POLICIES)]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = POLICIES[policy](cells)
        return lambda: recommend(stated, Identity(stated.domain), epsilon=EPSILON)


class StrategyRelease(Timed):
    """A release over all cells by one strategy."""

    params: ClassVar[list[Any]] = [
        sizes(),
        ["ordered", "ordered_hierarchical", "h_theta", "cells", "edges", "tree"],
    ]

    def prepare(self, cells: int, strategy: Any) -> Call:
        domain, data = line(cells)
        policy = (
            Threshold(domain, theta=THETA) if strategy == "h_theta" else Line(domain)
        )
        mechanism = Transformed(
            policy, ranges(domain), epsilon=EPSILON, partition=None, strategy=strategy
        )
        return lambda: mechanism.release(data)


class PartitionRelease(Timed):
    """A release of single cells under a line policy, by each partition."""

    PARTITIONS: ClassVar[dict[str, Any]] = {
        "best": "best",
        "none": None,
        "dyadic_tree": DyadicTree(),
        "least_cost": LeastCost(),
        "matching_pairs": MatchingPairs(window=4),
        "noisy_sort": NoisySort(),
    }
    params: ClassVar[list[Any]] = [sizes(), list(PARTITIONS)]

    def prepare(self, cells: int, partition: str) -> Call:
        domain, data = line(cells)
        mechanism = Transformed(
            Line(domain),
            Identity(domain),
            epsilon=EPSILON,
            partition=self.PARTITIONS[partition],
        )
        return lambda: mechanism.release(data)


class GridRelease(Timed):
    """A grid of joined neighbours: buckets, quotient, choice and release together."""

    params: ClassVar[list[Any]] = [
        [2**12] if SMALL else [2**16, 2**20],
        ["cells", "rectangles"],
        ["best", "dyadic_tree"],
    ]

    def prepare(self, cells: int, asked: str, partition: str) -> Call:
        domain, data = grid(cells)
        workload: Workload = (
            Identity(domain) if asked == "cells" else rectangles(domain)
        )
        policy = Threshold(domain, theta=1)
        chosen: Any = "best" if partition == "best" else DyadicTree()
        return lambda: Transformed(
            policy, workload, epsilon=EPSILON, partition=chosen
        ).release(data)
