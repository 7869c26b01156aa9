"""Sensitivity of any sparse queries: the two columns of a workload furthest apart.

A record that moves from u to v changes the answers by the difference of columns u and
v. Cells with equal columns are merged first, and the policy with them:

    workload   1 1 0 0 0        classes  {0, 1} {2, 3} {4}
               0 0 0 0 2        policy   its quotient on the three classes

Pieces: ``kernels.column_distance`` compares columns, ``Policy.project`` the rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.policies import ABSENT, Full, Policy
from blowfish_fast.workloads import Fractions, Linear, Pieces, Workload

MOST_ENTRIES = 2**26
"""Most coefficients of a workload that are listed."""

MOST_WORK = 2**29
"""Coefficients compared, or cells visited, before an upper bound is given instead."""

MOST_EDGES = 2**27
"""Most edges that are compared one by one."""


class Part(NamedTuple):
    """The largest change along some of the edges; an upper bound if not `exact`."""

    value: float
    exact: bool
    how: str


class Columns(NamedTuple):
    """A workload by columns: one for each class of cells that it treats alike.

    `labels` names the class of each cell; None when every cell is its own. Rows are
    sorted within each column.
    """

    labels: IntArray | None
    pointers: IntArray
    rows: IntArray
    values: FloatArray

    @property
    def classes(self) -> int:
        """Number of columns."""
        return self.pointers.size - 1

    def lengths(self) -> FloatArray:
        """Return the sum of absolute values of each column."""
        return kernels.column_lengths(self.pointers, self.values)

    def rounded_up(self, value: float) -> float:
        """Return a number that is not below the exact sum behind `value`."""
        # Sums of multiples of 2^-20 are exact as long as they are not too large.
        steps = self.values * 2.0**20
        if value * 2.0**20 < 2.0**53 and (np.floor(steps) == steps).all():
            return value
        longest = int(np.diff(self.pointers).max(initial=0))
        return math.nextafter(value * (1.0 + (2 * longest + 8) * 2.0**-52), math.inf)


def workload_columns(workload: Workload) -> Columns:
    """Return the columns of a workload; refused above 2^26 coefficients."""
    from scipy import sparse

    cells = workload.domain.size
    if isinstance(workload, Linear):
        matrix = sparse.csc_array(workload.matrix)
    else:
        form = workload.explicit_form(Buckets.single_cells(cells))
        matrix = sparse.csc_array(_entries(form), shape=(workload.queries, cells))
    matrix.sum_duplicates()
    matrix.sort_indices()
    return Columns(
        None,
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data.astype(np.float64),
    )


def _entries(form: Fractions | Pieces) -> tuple[FloatArray, tuple[IntArray, IntArray]]:
    """List the coefficients of a form over single cells: values, rows and columns."""
    if isinstance(form, Fractions):
        queries = np.arange(form.first.size)
        several = form.first < form.last
        rows = np.concatenate([queries, queries, queries[several]])
        starts = np.concatenate([form.first, form.first + 1, form.last[several]])
        ends = np.concatenate(
            [
                form.first + 1,
                np.maximum(form.last, form.first + 1),
                form.last[several] + 1,
            ]
        )
        values = np.concatenate(
            [form.first_fraction, np.ones(queries.size), form.last_fraction[several]]
        )
    else:
        rows = np.repeat(np.arange(form.pointers.size - 1), np.diff(form.pointers))
        starts, ends, values = form.starts, form.ends, form.values
    sizes = ends - starts
    total = int(sizes.sum())
    if total > MOST_ENTRIES:
        raise SizeError(
            f"these queries have {total:,} coefficients; at most 2^26 = "
            f"{MOST_ENTRIES:,} are compared. Ask for fewer or smaller queries"
        )
    within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns = np.repeat(starts, sizes) + within
    return np.repeat(values, sizes), (np.repeat(rows, sizes), columns)


def longest_column(columns: Columns, cells: IntArray) -> Part:
    """Return the largest change when a record of some of the cells vanishes."""
    classes = cells if columns.labels is None else columns.labels[cells]
    longest = float(columns.lengths()[classes].max())
    return Part(columns.rounded_up(longest), True, "the longest column")


def column_moves(policy: Policy, columns: Columns) -> Part:
    """Return the largest difference of two columns along an edge between cells."""
    quotient, merged = _on_classes(policy, columns)
    try:
        part = _furthest(quotient, merged)
    except SizeError:
        lengths = merged.lengths()
        ceiling = float(np.partition(lengths, -2)[-2:].sum())
        part = Part(ceiling, False, "the two longest columns together")
    return part._replace(value=merged.rounded_up(part.value))


def _on_classes(policy: Policy, columns: Columns) -> tuple[Policy, Columns]:
    """Merge cells with equal columns, and lay the policy over the classes."""
    band = policy.bandwidth()
    along_line = band is not None and band.all_between and not isinstance(policy, Full)
    order = np.arange(columns.classes)
    if not along_line:
        # Equal columns have equal sums of products, added up in the same order.
        mixed = np.random.default_rng(0).random(int(columns.rows.max(initial=0)) + 1)
        places = np.repeat(order, np.diff(columns.pointers))
        products = columns.values * mixed[columns.rows]
        keys = np.bincount(places, products, minlength=order.size)
        order = np.argsort(keys, kind="stable")
    fresh = ~kernels.repeated_columns(
        order, columns.pointers, columns.rows, columns.values
    )
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(fresh) - 1
    if columns.labels is None and fresh.all():
        return policy, columns
    labels = number if columns.labels is None else number[columns.labels]
    return policy.project(labels), _chosen(columns, order[fresh])


def _chosen(columns: Columns, chosen: IntArray) -> Columns:
    """Return some of the columns, in the given order."""
    sizes = np.diff(columns.pointers)[chosen]
    pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], sizes)
    entries = np.repeat(columns.pointers[chosen], sizes) + within
    return Columns(None, pointers, columns.rows[entries], columns.values[entries])


def _furthest(policy: Policy, columns: Columns) -> Part:
    """Return the largest distance of two columns that the policy joins."""
    lengths = columns.lengths()
    if isinstance(policy, Full):
        order = np.argsort(-lengths, kind="stable")
        longest_first = _chosen(columns, order)
        far = np.full(lengths.size, lengths.size - 1, dtype=np.int64)
        seen = kernels.furthest_in_windows(
            *longest_first[1:], lengths[order], far, descending=True, budget=MOST_WORK
        )
        return _part(seen.found, seen.ceiling, "all pairs of columns")
    band = policy.bandwidth()
    if band is not None and band.all_between:
        seen = kernels.furthest_in_windows(
            *columns[1:], lengths, band.far, budget=MOST_WORK
        )
        return _part(seen.found, seen.ceiling, "columns within reach of each other")
    if policy.edge_count > MOST_EDGES:
        raise SizeError(f"{policy.edge_count:,} edges are too many to compare")
    found, left = 0.0, MOST_WORK
    for chunk in policy.edges():
        cells = chunk[(chunk != ABSENT).all(axis=1)]
        seen = kernels.furthest_in_pairs(
            *columns[1:],
            lengths,
            np.ascontiguousarray(cells[:, 0]),
            np.ascontiguousarray(cells[:, 1]),
            known=found,
            budget=left,
        )
        found, left = seen.found, left - seen.work
        if seen.ceiling > found:
            return _part(found, seen.ceiling, "edge by edge")
    return Part(found, True, "edge by edge")


def _part(found: float, ceiling: float, how: str) -> Part:
    if ceiling > found:
        return Part(ceiling, False, f"{how}, as far as they were compared")
    return Part(found, True, how)
