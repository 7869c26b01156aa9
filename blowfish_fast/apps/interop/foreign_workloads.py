"""Queries as DPBench and ektelo pass them, read as a workload.

Serves `Engine`. Their workload objects hold a ``query_list``; each query has
``ranges``, a list of (lowest cell, highest cell, weight) with both ends included, one
number per axis. Matrices have a row per query and a column per cell in C order.

    ndRange(lb=(2,), ub=(5,), wgt=1)      [2, 6) of a line
    union of two ranges, or weights       a row of a sparse matrix
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError
from blowfish_fast.workloads import Identity, Linear, Ranges, Rectangles, Workload


def domain_of(queries: Any, counts: Any) -> Domain:
    """Return the domain of the queries, or else of the counts' shape."""
    if isinstance(queries, Workload):
        return queries.domain
    shape = getattr(queries, "domain_shape", None)
    if shape is None:
        return Domain(np.shape(counts))
    return Domain(tuple(int(size) for size in np.atleast_1d(shape)))


@malformed_as(WorkloadError, "queries must be a workload, a matrix or a query list")
def workload_of(queries: Any, domain: Domain) -> Workload:
    """Read foreign queries over `domain`; None asks for every cell.

    Examples
    --------
    >>> workload_of(np.array([[1, 1, 0], [0, 0, 1]]), Domain(3)).queries
    2
    """
    if queries is None:
        return Identity(domain)
    if isinstance(queries, Workload):
        return queries
    listed = getattr(queries, "query_list", None)
    if listed is None and _holds_queries(queries):
        listed = queries
    if listed is not None:
        return _from_ranges([list(query.ranges) for query in listed], domain)
    matrix = getattr(queries, "matrix", queries)
    for name in ("get_matrix", "sparse_matrix"):
        if hasattr(queries, name):
            matrix = getattr(queries, name)()
    kind = getattr(matrix, "dtype", np.asarray(matrix).dtype).kind
    if kind not in "biuf":
        raise WorkloadError(
            "a matrix of queries holds real numbers", received=f"dtype {kind!r}"
        )
    return Linear(domain, matrix)


def _holds_queries(queries: Any) -> bool:
    return (
        isinstance(queries, list | tuple)
        and len(queries) > 0
        and all(hasattr(query, "ranges") for query in queries)
    )


def _from_ranges(listed: list[list[Any]], domain: Domain) -> Workload:
    if not listed:
        raise WorkloadError("the list of queries is empty; ask at least one")
    boxes = [one for ranges in listed for one in ranges]
    lows = np.array([np.atleast_1d(low) for low, _, _ in boxes], dtype=np.int64)
    highs = np.array([np.atleast_1d(high) for _, high, _ in boxes], dtype=np.int64) + 1
    weights = np.array([weight for _, _, weight in boxes], dtype=np.float64)
    rectangles = Rectangles(domain, lows, highs)
    if all(len(ranges) == 1 for ranges in listed) and (weights == 1).all():
        if domain.ndim == 1:
            return Ranges(domain, lows[:, 0], highs[:, 0])
        return rectangles
    return Linear(domain, _matrix(listed, lows, highs, weights, domain))


def _matrix(
    listed: list[list[Any]], lows: Any, highs: Any, weights: Any, domain: Domain
) -> Any:
    from scipy import sparse

    numbers = np.arange(domain.size).reshape(domain.shape)
    owners = np.repeat(np.arange(len(listed)), [len(ranges) for ranges in listed])
    rows, columns, values = [], [], []
    for owner, low, high, weight in zip(owners, lows, highs, weights, strict=True):
        box = tuple(slice(*ends) for ends in zip(low, high, strict=True))
        cells = numbers[box].reshape(-1)
        columns.append(cells)
        rows.append(np.full(cells.size, owner))
        values.append(np.full(cells.size, weight))
    entries = (np.concatenate(rows), np.concatenate(columns))
    shape = (len(listed), domain.size)
    return sparse.csr_array((np.concatenate(values), entries), shape=shape)
