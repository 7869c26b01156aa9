"""The Blowfish mechanisms and the ledger, at the sizes that are promised for them.

Whole releases of the ordered mechanisms on 2^20 cells, clustering of many points, and
one charge on a ledger that already holds many: a charge must not grow with the past;
32 small releases through a ledger on disk, one by one and charged together.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import Domain, KMeans, Laplace, Ledger, Ordered
from blowfish_fast.mechanisms import OrderedHierarchical
from blowfish_fast.policies import Full, Line, Threshold
from blowfish_fast.workloads import Identity

from .common import EPSILON, SMALL, Call, Timed, line, ranges, sizes


class OrderedRelease(Timed):
    params: ClassVar[list[Any]] = [sizes(), [None, "isotonic", "piecewise"]]

    def prepare(self, cells: int, fit: str | None) -> Call:
        domain, data = line(cells)
        ordered = Ordered(Line(domain), ranges(domain), epsilon=EPSILON, fit=fit)
        return lambda: ordered.release(data)


class OrderedHierarchicalRelease(Timed):
    params: ClassVar[list[Any]] = [sizes(), [16, 100]]

    def prepare(self, cells: int, theta: int) -> Call:
        domain, data = line(cells)
        policy = Threshold(domain, theta=theta)
        mechanism = OrderedHierarchical(policy, ranges(domain), epsilon=EPSILON)
        return lambda: mechanism.release(data)


class Clustering(Timed):
    params: ClassVar[list[int]] = [10**4] if SMALL else [10**5, 10**6]

    def prepare(self, points: int) -> Call:
        box = Domain((256, 256))
        places = np.random.default_rng(1).uniform(0, 256, (points, 2))
        means = KMeans(Full(box), clusters=4, epsilon=1, rounds=10)
        return lambda: means.release(places)


class Charge(Timed):
    """One small release through a ledger that holds `charges` others."""

    params: ClassVar[list[int]] = [10] if SMALL else [10, 1000]

    def prepare(self, charges: int) -> Call:
        domain = Domain(16)
        policy = Full(domain)
        ledger = Ledger(None, epsilon=10**6, policy=policy)
        laplace = Laplace(policy, Identity(domain), epsilon=EPSILON)
        counts = np.arange(16)
        for _ in range(charges):
            ledger.release(laplace, counts)
        return lambda: ledger.release(laplace, counts)


class Batch(Timed):
    """32 small releases through a ledger on disk: two commits for each, or for all."""

    params: ClassVar[list[str]] = ["one by one", "together"]

    def prepare(self, how: str) -> Call:
        domain = Domain(16)
        policy = Full(domain)
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "batch.ledger"
        ledger = Ledger(path, epsilon=10**6, policy=policy)
        laplace = Laplace(policy, Identity(domain), epsilon=EPSILON)
        counts, numbers = np.arange(16), itertools.count()

        def named() -> list[tuple[Any, ...]]:
            return [(laplace, counts, f"{next(numbers)}") for _ in range(32)]

        if how == "together":
            return lambda: ledger.release_together(named())
        return lambda: [ledger.release(*request) for request in named()]
