"""Cells, and fresh totals of buckets of them, stacked into one strategy.

All cells of a bucket have noise of one scale, so least squares shifts them alike, and
the estimates of a bucket combine by inverse variance. Or its cells are taken as
uniform; then a query counts as if it were averaged over each bucket.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    integers,
)
from blowfish_fast.measure.noise import Scales, Spread, rates_at_common_unit
from blowfish_fast.measure.strategies.trees.tree import TreeStrategy
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces, row_moments

from .cells import Cells

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.noise_rows import NodeRows
    from blowfish_fast.kernels.tree.shape import Tree


class Combined(NamedTuple):
    """What both measurements say of every bucket, and of the nodes above.

    Attributes
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each estimate.
    widths : ndarray of float64, shape (nodes,)
        Their squares sum up the squared scales of all noise in a row.
    squares : ndarray of float64, shape (nodes,)
        Sum of the squared coefficients of the draws in a row.
    share : ndarray of float64, shape (buckets,)
        Weight of a bucket's cells in its estimate.
    """

    variances: FloatArray
    widths: FloatArray
    squares: FloatArray
    share: FloatArray


class StackedBuckets(LinearStrategy):
    """Cells, buckets, then what lies above them, measured in two steps.

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The tree above, as ``kernels.tree_of_parents`` takes it, with buckets as leaves.
    edges : ndarray of int64, shape (buckets + 1,)
        The first cell of each bucket; at the end the number of cells.
    uniform : bool
        Whether records are taken as spread evenly inside each bucket.

    Examples
    --------
    >>> import numpy as np
    >>> parents, edges = np.array([2, 2, -1]), np.array([0, 1, 4])
    >>> strategy = StackedBuckets(parents, edges, uniform=True)
    >>> strategy.rows(np.array([9, 1, 2, 0]))
    array([ 9,  1,  2,  0,  9,  3, 12])
    """

    kind = "stacked_buckets"
    saved: ClassVar[dict[str, Any]] = {
        "parents": integers,
        "edges": integers,
        "uniform": bool,
    }

    def __init__(self, parents: IntArray, edges: IntArray, *, uniform: bool) -> None:
        self.tree: Tree = kernels.tree_of_parents(parents)
        self.parents = self.tree.row_parents
        self.edges = np.asarray(edges, dtype=np.int64)
        self.uniform = uniform
        rising = self.edges.size > 1 and self.edges[0] == 0
        if not (rising and (np.diff(self.edges) > 0).all()):
            raise InputError(f"bucket edges rise from 0; received {self.edges[:5]} ...")
        self.cells, self.sizes = int(self.edges[-1]), np.diff(self.edges)
        if self.tree.leaves != self.edges.size - 1:
            raise InputError(
                f"the tree has {self.tree.leaves} leaves and the edges make "
                f"{self.edges.size - 1} buckets; both must be one"
            )

    @property
    def unbiased(self) -> bool:
        """Whether cells are told apart inside their buckets."""
        return not self.uniform

    @cached_property
    def whole(self) -> TreeStrategy:
        """The tree with its cells, both steps weighing the same."""
        buckets = self.sizes.size
        above = self.tree.row_parents
        parents = np.where(above < 0, -1, above + self.cells)
        owners = self.cells + np.repeat(np.arange(buckets), self.sizes)
        weights = np.zeros(self.cells + self.tree.nodes)
        weights[: self.cells + buckets] = 0.5
        tree = kernels.tree_of_parents(np.concatenate([owners, parents]))
        return TreeStrategy(tree, weights)

    def rows(self, counts: IntArray) -> IntArray:
        """Return cells, buckets and the totals above them."""
        return self.whole.rows(counts)

    def weights(self) -> IntArray:
        """Give every cell and every bucket the same weight."""
        return self.whole.weights()

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that no edge of the policy moves."""
        return self.whole.exact_rows(policy)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum over the rows that one edge moves: Lemma KD7.

        Parameters
        ----------
        weights : ndarray of int64, shape (nodes,)
            Whole weight of each node: parts, buckets below them, cells below these.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum; exact, as for any tree.
        """
        return self.whole.worst_edge(weights, policy, power)

    def combined(self, scales: Scales) -> Combined:
        """Combine what is known of each bucket by inverse variance. O(buckets)."""
        sizes = self.sizes
        cell, rest = self._by_bucket(scales)
        below = sizes * cell.variances
        fresh = rest.variances[: sizes.size]
        # Infinite: not measured. 0: exact, and then nothing else counts.
        with np.errstate(divide="ignore"):
            first, second = 1.0 / below, 1.0 / fresh
        share = np.where(np.isinf(first), 1.0, 0.0)
        usual = np.isfinite(first) & np.isfinite(second) & (first + second > 0)
        share[usual] = first[usual] / (first[usual] + second[usual])
        variance_of_bucket = np.where(share == 1.0, below, fresh)
        variance_of_bucket[usual] = 1.0 / (first[usual] + second[usual])
        variances, widths = rest.variances, rest.widths
        variances[: sizes.size] = variance_of_bucket
        widths[: sizes.size] = np.sqrt(
            sizes * (share * cell.widths) ** 2
            + ((1.0 - share) * widths[: sizes.size]) ** 2
        )
        squares = np.ones(widths.size)
        squares[: sizes.size] = sizes * share**2 + (1.0 - share) ** 2
        return Combined(variances, widths, squares, share)

    def _by_bucket(self, scales: Scales) -> tuple[Scales, Scales]:
        """Return the scale of the cells of each bucket, and those of all other rows."""
        firsts, cells = self.edges[:-1], self.cells
        rates, unit, exact, power = scales
        return (
            Scales(rates[firsts], unit, exact[firsts], power),
            Scales(rates[cells:], unit, exact[cells:], power),
        )

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the estimate of every cell. O(cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (nodes,)
            The measured nodes.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        sizes, share = self.sizes, (combined := self.combined(scales)).share
        cells = noisy[: self.cells].astype(np.float64)
        sums = np.add.reduceat(cells, self.edges[:-1])
        above = noisy[self.cells :].astype(np.float64)
        above[: sizes.size] += share * (sums - above[: sizes.size])
        totals = kernels.tree_fit(above, combined.variances, self.tree)[: sizes.size]
        if self.uniform:
            return np.repeat(totals / sizes, sizes)
        fitted: FloatArray = cells + np.repeat((totals - sums) / sizes, sizes)
        return fitted

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law of each query's noise; `largest` is a bound above.

        A query is its average over each bucket, answered by totals, and what differs
        from it inside, answered by cells; the two are uncorrelated.
        """
        pieces = as_pieces(form)
        averaged = Pieces(*kernels.intervals_to_pieces(*pieces, self.edges))
        noise, least = law.tables
        even = Spread(*kernels.spread_pieces(noise, self.tree, *averaged), least)
        # A row of the tree is a sum of draws: which of them is largest is not followed.
        even = even._replace(width=np.full(even.width.size, np.nan))
        if self.uniform:
            return even
        starts, ends = self.edges[averaged.starts], self.edges[averaged.ends]
        own = row_moments(pieces, self.cells)
        mean = row_moments(averaged._replace(starts=starts, ends=ends), self.cells)
        inside = own.squares - mean.squares
        inside = np.where(inside > 1e-12 * own.squares, inside, 0.0)
        # Where cells are not measured, what differs inside a bucket is unknown.
        cell, _ = self._by_bucket(law.scales)
        variance, width = float(cell.variances.max()), float(cell.widths.max())
        reach = np.maximum(own.largest, 0.0) - np.minimum(own.least, 0.0)
        return Spread(
            even.variance + np.where(inside > 0, variance, 0.0) * inside,
            even.square + width**2 * inside,
            np.maximum(even.largest, width * reach * (inside > 0)),
            even.steps + inside,
            even.width,
            least,
        )

    def noise_tables(self, scales: Scales) -> tuple[NodeRows, float]:
        """Return the noise of combined totals, node by node, and the least scale."""
        combined = self.combined(scales)
        noise = kernels.tree_noise(
            combined.variances, combined.widths, self.tree, combined.squares
        )
        return noise, scales.least

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        if self.uniform:
            return super()._implicit_variance(form, law)
        return self.whole.total_variance(form, law.scales)


def stacked(first: Measurement, fresh: Measurement, *, uniform: bool) -> Measurement:
    """Return two measurements of `Cells` as one: of every cell, and of buckets of them.

    Each bucket lies within one connected part of the policy, and those of one part
    stand next to each other.

    Parameters
    ----------
    first : Measurement
        The cells, in C order.
    fresh : Measurement
        The buckets.
    uniform : bool
        Whether records are taken as spread evenly inside each bucket.

    Returns
    -------
    Measurement
        The joint measurement.
    """
    assert isinstance(fresh.strategy, Cells)
    buckets = fresh.buckets
    cells, count = buckets.cells, buckets.count
    order = slice(None) if buckets.order is None else buckets.order
    parts = fresh.strategy.parts
    above = np.zeros(count, dtype=np.int64) if parts is None else _in_order(parts)
    # The parts in the order in which they are met.
    seen = slice(None) if parts is None else parts[np.diff(above, prepend=-1) != 0]
    tops = int(above[-1]) + 1
    # One part is the root itself; several need a root above them.
    root = [0] * (tops > 1)
    upward = np.full(tops if root else 0, count + tops)
    parents = np.concatenate([count + above, upward, np.array([-1])])
    unit, (lower, upper) = rates_at_common_unit([first.scales, fresh.scales])

    def joined(cell_rows: Any, bucket_rows: Any, kind: type) -> Any:
        totals = bucket_rows[count:][seen]
        rows = [cell_rows[:cells][order], bucket_rows[:count], totals, root]
        return np.concatenate(rows).astype(kind)

    scales = Scales(
        joined(lower, upper, np.int64),
        unit,
        joined(first.scales.exact, fresh.scales.exact, np.bool_),
        first.scales.power,
    )
    strategy = StackedBuckets(parents.astype(np.int64), buckets.edges, uniform=uniform)
    noisy = joined(first.noisy, fresh.noisy, np.int64)
    over = Buckets.single_cells(cells, buckets.order)
    return Measurement(strategy.with_noise(scales), noisy, over)


def _in_order(parts: IntArray) -> IntArray:
    """Return the part of each bucket, numbered as met; parts must stand together."""
    changes = np.concatenate([[0], np.cumsum(np.diff(parts) != 0)])
    if changes[-1] + 1 != np.unique(parts).size:
        raise InputError(
            "buckets of one connected part of the policy must stand next to each other"
        )
    return np.asarray(changes, dtype=np.int64)
