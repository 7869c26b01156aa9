"""Fits at no cost that leave no count negative, and where they are the default.

Cutting counts off at 0 adds records to every sum over them; here a settled total is
shared among its parts instead, from the whole down (docs/proofs/top_down.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.data.domain import Domain
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.strategies import TreeStrategy
from blowfish_fast.workloads import AllRanges, Identity, Ranges, Union, Workload


def asks_ranges(workload: Workload) -> bool:
    """Return whether the queries are cells or ranges of a line, not all from its start.

    For these the non-negative fit was more accurate on every kind of data; running
    totals, the total and weighted sums gain nothing, and prefixes may lose.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(8)
    >>> asks_ranges(bf.workloads.AllRanges(line))
    True
    >>> asks_ranges(bf.workloads.Prefixes(line))
    False
    """
    if workload.domain.ndim != 1:
        return False
    if isinstance(workload, Union):
        return all(asks_ranges(one) for one in workload.parts)
    if isinstance(workload, Ranges):
        return bool((workload.starts > 0).any())
    return isinstance(workload, AllRanges | Identity)


def best_fit(fit: Any, workload: Workload) -> Any:
    """Read `fit` where "non_negative" is offered, and is best for ranges and cells."""
    known = as_choice(fit, "fit", ("best", None, "non_negative"))
    if known == "best":
        return "non_negative" if asks_ranges(workload) else None
    return known


def non_negative_cells(measured: Measurement, linear: FloatArray) -> FloatArray:
    """Return cells of 0 or more: families of a regular tree, else halves of the line.

    `measured` lies along one attribute; its buckets stay even.
    """
    strategy, scales, noisy, buckets = measured
    if isinstance(strategy, TreeStrategy):
        return buckets.expand(strategy.non_negative(noisy, scales))
    return halved_non_negative(linear, Domain(linear.size))


def halved_non_negative(linear: FloatArray, domain: Domain) -> FloatArray:
    """Return cells of 0 or more: the grid halved along every axis, all cells alike.

    The total stays, unless it is negative; each part of a settled total takes what its
    own cells say, and as much as its size of what they miss. Parts are those of a
    Hilbert curve. O(cells).

    Examples
    --------
    >>> halved_non_negative(np.array([3.0, -1.0, 4.0, 6.0]), Domain(4))
    array([2., 0., 4., 6.])
    """
    order = cell_order(domain).order
    tree = kernels.regular_tree(linear.size, 2**domain.ndim)
    variances = np.full(tree.nodes, np.inf)
    variances[: linear.size] = 1.0
    values = np.zeros(tree.nodes)
    values[: linear.size] = linear if order is None else linear[order]
    fit = kernels.top_down_fit(values, variances, tree)[: linear.size]
    if order is None:
        return fit.copy()
    cells = np.empty(linear.size)
    cells[order] = fit
    return cells
