"""Sensitivity of any sparse queries: the two columns of a workload furthest apart.

A record that moves from u to v changes the answers by the difference of columns u and
v. Cells with equal columns are merged first, and the policy with them. Rectangles are
columns on the grid cut along their sides, where the policy keeps its form there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import SizeError
from blowfish_fast.policies import ABSENT, Change, Full, Policy
from blowfish_fast.workloads import Linear, Rectangles, Workload
from blowfish_fast.workloads.base import form_matrix

MOST_ENTRIES = 2**26

MOST_WORK = 2**29
"""Coefficients compared, or cells visited, before an upper bound is given instead."""

MOST_EDGES = 2**27

ROUNDS = 16
"""Steps of the search for two cells that no rectangle holds together."""


class Columns(NamedTuple):
    """A workload by columns: one for each class of cells that it treats alike.

    Attributes
    ----------
    labels : ndarray of int64 or None, shape (cells,)
        The class of each cell; None when every cell is its own.
    pointers : ndarray of int64, shape (classes + 1,)
        Where the entries of each column begin.
    rows : ndarray of int64, shape (entries,)
        The query of each entry.
    values : ndarray of float64, shape (entries,)
        The coefficients.
    roundings : int
        Values are off by at most so many times 2^-53 of their size.
    """

    labels: IntArray | None
    pointers: IntArray
    rows: IntArray
    values: FloatArray
    roundings: int

    @property
    def entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The columns as kernels take them."""
        return self.pointers, self.rows, self.values

    @property
    def classes(self) -> int:
        """Number of columns."""
        return self.pointers.size - 1

    def lengths(self) -> FloatArray:
        """Return the sum of absolute values of each column."""
        return kernels.column_lengths(self.pointers, self.values)

    def round_up(self, value: float) -> float:
        """Return a number that is not below the exact sum behind `value`."""
        # Sums of multiples of 2^-20 are exact as long as they are not too large.
        small = not self.roundings and value * 2.0**20 < 2.0**53
        if small and _are_multiples(self.values, 2.0**-20):
            return value
        longest = int(np.diff(self.pointers).max(initial=0))
        raised = value * (1.0 + (2 * longest + 8) * 2.0**-52)
        # Values that nearly cancel leave only what they are off by.
        raised += self.roundings * 2.0**-52 * float(self.lengths().max(initial=0.0))
        return math.nextafter(raised, math.inf)


def _are_multiples(values: FloatArray, unit: float) -> bool:
    steps = values / unit
    return bool((np.floor(steps) == steps).all())


def _most_roundings(domain: Domain, parts: FloatArray, unit: float) -> int:
    """Return the roundings behind a value: a difference and a product for each axis."""
    return 0 if _are_multiples(parts, unit) else 2 * domain.ndim + 1


def workload_columns(workload: Workload) -> Columns:
    """Return the columns of a workload; refused above 2^26 coefficients."""
    if isinstance(workload, Linear):
        rows = workload.matrix
    else:
        cells = workload.domain.size
        form = workload.explicit_form(Buckets.single_cells(cells))
        rows = form_matrix(form, cells, most=MOST_ENTRIES)
        if rows is None:
            raise SizeError(
                f"{workload.queries:,} queries have too many coefficients to compare: "
                f"at most 2^26 = {MOST_ENTRIES:,}. Ask for fewer or smaller queries"
            )
    matrix = rows.tocsc()
    matrix.sum_duplicates()
    matrix.sort_indices()
    values = matrix.data.astype(np.float64)
    is_listed = isinstance(workload, Linear)
    return Columns(
        None,
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        values,
        0 if is_listed else _most_roundings(workload.domain, values, 1.0),
    )


def longest_column(columns: Columns, cells: IntArray) -> Change:
    """Return the largest change when a record of some of the cells vanishes.

    Parameters
    ----------
    columns : Columns
        The workload.
    cells : ndarray of int64
        The cells.

    Returns
    -------
    Change
        The change.
    """
    classes = cells if columns.labels is None else columns.labels[cells]
    longest = float(columns.lengths()[classes].max())
    return Change(columns.round_up(longest), True, "the longest column")


def column_moves(policy: Policy, columns: Columns) -> Change:
    """Return the largest difference of two columns along an edge: Lemma SE10.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    columns : Columns
        The workload.

    Returns
    -------
    Change
        The change; a bound where an exact search would take too long.
    """
    quotient, merged = _on_classes(policy, columns)
    try:
        part = _furthest(quotient, merged)
    except SizeError:
        lengths = merged.lengths()
        ceiling = float(np.partition(lengths, -2)[-2:].sum())
        part = Change(ceiling, False, "the two longest columns together")
    return part._replace(value=merged.round_up(part.value))


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
    return policy.project(labels), _pick_columns(columns, order[fresh])


def _pick_columns(columns: Columns, chosen: IntArray) -> Columns:
    """Return some of the columns, in the given order."""
    sizes = np.diff(columns.pointers)[chosen]
    pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(pointers[-1]) - np.repeat(pointers[:-1], sizes)
    entries = np.repeat(columns.pointers[chosen], sizes) + within
    rows, values = columns.rows[entries], columns.values[entries]
    return Columns(None, pointers, rows, values, columns.roundings)


def _furthest(policy: Policy, columns: Columns) -> Change:
    """Return the largest distance of two columns that the policy joins."""
    lengths = columns.lengths()
    if isinstance(policy, Full):
        order = np.argsort(-lengths, kind="stable")
        longest_first = _pick_columns(columns, order)
        far = np.full(lengths.size, lengths.size - 1, dtype=np.int64)
        seen = kernels.furthest_in_windows(
            *longest_first.entries,
            lengths[order],
            far,
            descending=True,
            budget=MOST_WORK,
        )
        return _as_change(seen.largest, seen.ceiling, "all pairs of columns")
    band = policy.bandwidth()
    if band is not None and band.all_between:
        seen = kernels.furthest_in_windows(
            *columns.entries, lengths, band.far, budget=MOST_WORK
        )
        return _as_change(
            seen.largest, seen.ceiling, "columns within reach of each other"
        )
    if policy.edge_count > MOST_EDGES:
        raise SizeError(f"{policy.edge_count:,} edges are too many to compare")
    largest, left = 0.0, MOST_WORK
    for chunk in policy.edges():
        cells = chunk[(chunk != ABSENT).all(axis=1)]
        seen = kernels.furthest_in_pairs(
            *columns.entries,
            lengths,
            np.ascontiguousarray(cells[:, 0]),
            np.ascontiguousarray(cells[:, 1]),
            at_least=largest,
            budget=left,
        )
        largest, left = seen.largest, left - seen.work
        if seen.ceiling > largest:
            return _as_change(largest, seen.ceiling, "edge by edge")
    return Change(largest, True, "edge by edge")


def _as_change(largest: float, ceiling: float, how: str) -> Change:
    if ceiling > largest:
        return Change(ceiling, False, f"{how}, as far as they were compared")
    return Change(largest, True, how)


class Slabs(NamedTuple):
    """A grid cut along the sides of all rectangles.

    Attributes
    ----------
    cuts : list[ndarray of int64]
        Where each axis is cut.
    first : ndarray of int64, shape (rectangles, axes)
        The first slab of each rectangle along each axis.
    last : ndarray of int64, shape (rectangles, axes)
        The last one, inclusive; slabs between are held whole.
    first_part : ndarray of float64, shape (rectangles, axes)
        Which part of the first slab is held.
    last_part : ndarray of float64, shape (rectangles, axes)
        Which part of the last slab is held.
    roundings : int
        Parts are off by at most so many times 2^-53.
    """

    cuts: list[IntArray]
    first: IntArray
    last: IntArray
    first_part: FloatArray
    last_part: FloatArray
    roundings: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Slabs of each axis."""
        return tuple(cut.size - 1 for cut in self.cuts)

    @property
    def entries(self) -> int:
        """Number of coefficients over the cells of the cut grid."""
        return int((self.last - self.first + 1).prod(axis=1).sum())

    def labels(self) -> IntArray:
        """Return the cell of the cut grid that holds each cell of the domain."""
        labels = np.zeros(1, dtype=np.int64)
        for cut in self.cuts:
            along = np.repeat(np.arange(cut.size - 1), np.diff(cut))
            labels = (labels[:, None] * (cut.size - 1) + along).reshape(-1)
        return labels

    def columns(self) -> Columns:
        """Return the rectangles by columns of the cut grid."""
        parts = (self.first_part, self.last_part)
        columns = kernels.box_columns(self.shape, self.first, self.last, *parts)
        whole = self.shape == tuple(int(cut[-1]) for cut in self.cuts)
        labels = None if whole else self.labels()
        return Columns(labels, *columns, self.roundings)


def cut_grid(workload: Rectangles) -> Slabs:
    """Cut the grid at the sides of the rectangles, and around cells held in part."""
    lows, highs = workload.starts, workload.ends
    outer = (np.floor(lows).astype(np.int64), np.ceil(highs).astype(np.int64))
    inner = (np.ceil(lows).astype(np.int64), np.floor(highs).astype(np.int64))
    cuts, first, last = [], np.empty_like(outer[0]), np.empty_like(outer[0])
    first_part, last_part = np.ones(lows.shape), np.ones(lows.shape)
    for axis, side in enumerate(workload.domain.shape):
        places = [sides[:, axis] for sides in (*outer, *inner)]
        cut = np.unique(np.concatenate([[0, side], *places]))
        cuts.append(cut)
        first[:, axis] = np.searchsorted(cut, outer[0][:, axis])
        last[:, axis] = np.searchsorted(cut, outer[1][:, axis]) - 1
        for part, slab in ((first_part, first), (last_part, last)):
            low, high = cut[slab[:, axis]], cut[slab[:, axis] + 1]
            held = np.minimum(highs[:, axis], high) - np.maximum(lows[:, axis], low)
            part[:, axis] = held / (high - low)
    # Products of parts that have 50 binary digits together are exact.
    sides = np.stack([lows, highs])
    roundings = _most_roundings(workload.domain, sides, 2.0 ** -(50 // lows.shape[1]))
    return Slabs(cuts, first, last, first_part, last_part, roundings)


def rectangles_over(workload: Rectangles, cells: BoolArray) -> Change:
    """Return the largest change when a record of some of the cells vanishes.

    Parameters
    ----------
    workload : Rectangles
        The rectangles.
    cells : ndarray of bool, shape (cells,)
        Which cells.

    Returns
    -------
    Change
        The change.
    """
    how = "the most rectangles over one cell"
    slabs = cut_grid(workload)
    if workload.whole_cells and cells.all():
        coverage = kernels.box_coverage(slabs.shape, slabs.first, slabs.last + 1)
        return Change(int(coverage.max()), True, how)
    if not workload.whole_cells and slabs.entries <= MOST_ENTRIES:
        return longest_column(slabs.columns(), np.flatnonzero(cells))
    coverage = kernels.box_coverage(workload.domain.shape, *_round_out(workload))
    most = int(coverage.reshape(-1)[cells].max())
    if not workload.whole_cells:
        how += ", parts of a cell counted whole"
    return Change(most, workload.whole_cells, how)


def rectangle_moves(policy: Policy, workload: Rectangles) -> Change:
    """Return the largest change when a record moves from cell to cell: Lemma SE9.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    workload : Rectangles
        The rectangles.

    Returns
    -------
    Change
        The change; a bound where an exact search would take too long.
    """
    if workload.whole_cells:
        by_steps = _by_steps(policy, workload)
        if by_steps is not None:
            return by_steps
    slabs = cut_grid(workload)
    if slabs.entries <= MOST_ENTRIES:
        part = column_moves(policy, slabs.columns())
        if part.exact:
            return part
    else:
        part = Change(math.inf, False, "")
    bound = _two_most_covered(policy, workload, slabs)
    return bound if bound.value <= part.value else part


def _by_steps(policy: Policy, workload: Rectangles) -> Change | None:
    """Try every move from all cells at once, if all cells have the same moves."""
    slabs, domain = cut_grid(workload), workload.domain
    grids = (
        (slabs.shape, slabs.first, slabs.last + 1),
        (domain.shape, *_round_out(workload)),
    )
    for shape, lows, highs in grids:
        visited = math.prod(shape) * domain.ndim + workload.queries * 2**domain.ndim
        steps = policy.grid_moves(shape, MOST_WORK // visited)
        if steps is not None:
            most = kernels.largest_box_separation(shape, lows, highs, steps)
            return Change(most, True, "step by step over the grid")
    return None


def _two_most_covered(policy: Policy, workload: Rectangles, slabs: Slabs) -> Change:
    """Bound by the two most covered cells; exact if a search finds them apart."""
    shape, lows, highs = slabs.shape, slabs.first, slabs.last + 1
    coverage = kernels.box_coverage(shape, lows, highs).reshape(-1)
    two = np.partition(coverage, -2)[-2:] if coverage.size > 1 else coverage
    bound = min(int(two.sum()), workload.queries)
    how = "the two most covered cells together"
    if not (isinstance(policy, Full) and workload.whole_cells):
        return Change(bound, False, how)
    best, here = 0, int(coverage.argmax())
    for _ in range(ROUNDS):
        place = np.array(np.unravel_index(here, shape))
        holds = ((lows <= place) & (place < highs)).all(axis=1)
        shared = kernels.box_coverage(shape, lows[holds], highs[holds]).reshape(-1)
        apart = coverage + coverage[here] - 2 * shared
        here = int(apart.argmax())
        if apart[here] <= best:
            break
        best = int(apart[here])
    return Change(bound, best == bound, how)


def _round_out(workload: Rectangles) -> tuple[IntArray, IntArray]:
    """Return corners in whole cells, outside those given."""
    return (
        np.floor(workload.starts).astype(np.int64),
        np.ceil(workload.ends).astype(np.int64),
    )
