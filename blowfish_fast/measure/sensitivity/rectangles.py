"""Sensitivity of rectangles on a grid.

    cuts   0   3 4   7          only slabs between the sides of rectangles differ, so
      0    .-----------.        the grid shrinks to them where the policy keeps its
      2    |   |=|     |        form; coverage is then counted corner by corner
      5    .-----------.

Where every cell has the same moves they are tried one after the other, all cells at
once. Otherwise columns are compared (``column_sensitivity``). Pieces:
``kernels.rectangle_cover``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.policies import Full, Policy
from blowfish_fast.workloads import Rectangles

from .columns import (
    MOST_ENTRIES,
    MOST_WORK,
    Columns,
    Part,
    column_moves,
    longest_column,
)
from .line import range_moves

ROUNDS = 16
"""Steps of the search for two cells that no rectangle holds together."""


class Slabs(NamedTuple):
    """A grid cut along the sides of all rectangles.

    Rectangles hold the slabs `first` to `last` along each axis, both inclusive, the
    two end slabs by the given parts, those between whole.
    """

    cuts: list[IntArray]
    first: IntArray
    last: IntArray
    first_part: FloatArray
    last_part: FloatArray

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
        return Columns(None if whole else self.labels(), *columns)


def cut_grid(workload: Rectangles) -> Slabs:
    """Cut the grid at the sides of the rectangles, and around cells held in part."""
    lows, highs = workload.lows, workload.highs
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
    return Slabs(cuts, first, last, first_part, last_part)


def rectangles_over(workload: Rectangles, cells: BoolArray) -> Part:
    """Return the largest change when a record of some of the cells vanishes."""
    how = "the most rectangles over one cell"
    slabs = cut_grid(workload)
    if workload.whole_cells:
        if cells.all():
            coverage = kernels.box_coverage(slabs.shape, slabs.first, slabs.last + 1)
            return Part(int(coverage.max()), True, how)
        coverage = kernels.box_coverage(workload.domain.shape, *_rounded_out(workload))
        return Part(int(coverage.reshape(-1)[cells].max()), True, how)
    if slabs.entries <= MOST_ENTRIES:
        return longest_column(slabs.columns(), np.flatnonzero(cells))
    coverage = kernels.box_coverage(workload.domain.shape, *_rounded_out(workload))
    most = int(coverage.reshape(-1)[cells].max())
    return Part(most, False, f"{how}, parts of a cell counted whole")


def rectangle_moves(policy: Policy, workload: Rectangles) -> Part:
    """Return the largest change when a record moves from cell to cell."""
    lows, highs = _rounded_out(workload)
    if workload.whole_cells:
        if workload.domain.ndim == 1:
            return range_moves(policy, lows[:, 0].copy(), highs[:, 0].copy())
        by_steps = _by_steps(policy, workload)
        if by_steps is not None:
            return by_steps
    slabs = cut_grid(workload)
    if slabs.entries <= MOST_ENTRIES:
        part = column_moves(policy, slabs.columns())
        if part.exact:
            return part
    else:
        part = Part(math.inf, False, "")
    bound = _two_most_covered(policy, workload, slabs)
    return bound if bound.value <= part.value else part


def _by_steps(policy: Policy, workload: Rectangles) -> Part | None:
    """Try every move from all cells at once, if all cells have the same moves."""
    slabs, domain = cut_grid(workload), workload.domain
    grids = (
        (slabs.shape, slabs.first, slabs.last + 1),
        (domain.shape, *_rounded_out(workload)),
    )
    for shape, lows, highs in grids:
        visited = math.prod(shape) * domain.ndim + workload.queries * 2**domain.ndim
        steps = policy.grid_moves(shape, MOST_WORK // visited)
        if steps is not None:
            most = kernels.largest_box_separation(shape, lows, highs, steps)
            return Part(most, True, "step by step over the grid")
    return None


def _two_most_covered(policy: Policy, workload: Rectangles, slabs: Slabs) -> Part:
    """Bound by the two most covered cells; exact if a search finds them apart."""
    shape, lows, highs = slabs.shape, slabs.first, slabs.last + 1
    coverage = kernels.box_coverage(shape, lows, highs).reshape(-1)
    two = np.partition(coverage, -2)[-2:] if coverage.size > 1 else coverage
    bound = min(int(two.sum()), workload.queries)
    how = "the two most covered cells together"
    if not (isinstance(policy, Full) and workload.whole_cells):
        return Part(bound, False, how)
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
    return Part(bound, best == bound, how)


def _rounded_out(workload: Rectangles) -> tuple[IntArray, IntArray]:
    """Return corners in whole cells, outside those given."""
    return (
        np.floor(workload.lows).astype(np.int64),
        np.ceil(workload.highs).astype(np.int64),
    )
