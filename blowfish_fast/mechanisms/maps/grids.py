"""Grids over maps: boxes as large as the records allow, even or refined where dense."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_share, as_truth, as_whole
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.strategies.trees.box_tree import (
    BoxTree,
    BoxTreeLayout,
    Layer,
    as_records,
    count_epsilon,
    one_measurement,
    parts_per_axis,
    rough_total,
)
from blowfish_fast.measure.strategies.trees.tree import (
    TreeStrategy,
    halved_non_negative,
)
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .joined_boxes import (
    MOST_BOXES,
    CoarseGrid,
    Counted,
    JoinedRegions,
    RegionLayout,
    joined_regions,
    settle,
)

RECORDS_SHARE = Fraction(1, 100)
"""Part of epsilon that buys the number of records where it is private."""

COARSE_SHARE = Fraction(2, 5)
"""Part of the rest that the coarse grid of an adaptive one takes."""

UNIFORM_BOX = 10.0
"""Records that a box of a uniform grid should hold, times epsilon."""

COARSE_BOX = 16.0 * 20.0
"""The same for a box of a coarse grid: 16 times those of a grid of 20."""

FINE_BOX = 2.5
"""The same for a box of the finer grids."""

MOST_FINER = 2**14
"""Boxes of the finer grids beside joined ones, at most, on a map of up to
``MOST_FINER * FINER_CELLS`` cells. Where there would be more, nothing is joined."""
FINER_CELLS = 8
"""On a larger map, one such box for so many cells at most."""

# Where every cell is a box of both levels, 2^16 cells of a map took 317 bytes each, to
# fit them. Corners of boxes have a column for each attribute: of three on, to arrange
# them takes more, 337 bytes, 409 of four and 697 of eight.
BOX_BYTES, AXIS_BYTES = 200, 88


class UniformGrid(Mechanism):
    """Release a map by a uniform grid whose boxes are sized to the number of records.

    Takes any number of ordered attributes; the workload does not change the noise.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    records : int, optional
        A public rough count of the records. None reads the number where the policy
        makes it public, and buys it for a hundredth of epsilon where it does not.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the number of records, where it is bought,
        and the counts share epsilon (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: one box when a record is added or removed, two when it moves; a public
        total is exact.
    Error: the noise of the boxes, known once their number is; it is predicted if
        `records` is given. The error of taking boxes as even depends on the data.
    Complexity: O(n) time and memory.
    Source: the paper of `AdaptiveGrid`, m = sqrt(records * epsilon / constant) parts
        per axis of a map and the power 2 / (d + 2) for d attributes, with the number of
        records bought where it is private; proof in ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((200, 300))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> policy = bf.policies.AddRemove(grid)
    >>> uniform = bf.mechanisms.UniformGrid
    >>> mechanism = uniform(policy, boxes, epsilon=0.1, records=1_000_000)
    >>> mechanism.release([[17] * 300] * 200, rng=1).details["parts"]
    array([100, 100])
    """

    name = "uniform_grid"
    reads_workload = False
    cell_bytes = 320
    example_case = Example(partial(stepped, steps=2, height=30))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        records: int | None = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.records = as_records(records)

    def _run(self, private: Handle) -> Outcome:
        share = RECORDS_SHARE * self.budget
        records, bought = rough_total(private, self.records, budget=share)
        epsilon = count_epsilon(self.policy, private.remaining)
        whole = BoxTree.whole(self.domain.shape)
        parts = parts_per_axis(whole.highs, [records], epsilon, UNIFORM_BOX)
        level = cut_level(whole, whole.leaves, parts)
        counted = measure_leaves(private, level, private.remaining)
        details = {"parts": parts[0], "records": records}
        both = joined_levels(bought, [counted])
        return Outcome.of(both, details, measurements=[*bought, counted])


class AdaptiveGrid(Mechanism):
    """Release a map by an adaptive grid, refined where records are dense.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    records : int, optional
        A public rough count of the records, as for `UniformGrid`.
    share : number in (0, 1)
        Part of the rest that the coarse grid takes.
    fewest_parts : int
        Parts of each axis of the coarse grid, at least, where it has as many cells.
    fit : {"non_negative", None}
        "non_negative": the total is shared among halves of the map and halves of these.
    joins : bool, default False
        Whether coarse boxes whose noisy counts differ by little more than noise are
        joined, and measured together in the second step; then, and where the coarse
        grid is one box, "non_negative" also draws halves towards an even share, as
        much as all of a level suggest. `Dawa` joins boxes on maps.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the number of records, where it is bought,
        and the two levels share epsilon (sequential composition). The second level
        reads noisy counts of the first only.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: one box of each level when a record is added or removed, two when it
        moves; a public total is exact.
    Error: the noise of both levels, known once the boxes are; the error of taking boxes
        as even depends on the data. The finer boxes follow noise that the estimate uses
        again, so intervals hold over all releases, not given the boxes.
    Complexity: O(n) time and memory.
    Source: W. Qardaji, W. Yang, N. Li. Differentially private grids for geospatial
        data. ICDE 2013; with the number of records bought where the paper reads it,
        exact least squares over both levels, and constants (20, 5/2 and a share of 2/5
        in place of 10, 5 and 1/2) that served better on four maps; proof in
        ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((200, 300))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> mechanism = bf.AdaptiveGrid(bf.policies.Full(grid), boxes, epsilon=1)
    >>> release = mechanism.release([[17] * 300] * 200, rng=1)
    >>> release.details["parts"], float(release.estimate.sum().round(6))
    (array([40, 40]), 1020000.0)
    """

    name = "adaptive_grid"
    reads_workload = False
    cell_bytes = 448
    # Only where it is True an instance has its own: all others keep the fingerprint
    # that ledgers know.
    joins: bool = False
    """Whether coarse boxes that seem alike are joined."""
    example_case = Example(partial(stepped, steps=3, height=40), {"fewest_parts": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        records: int | None = None,
        share: Any = COARSE_SHARE,
        fewest_parts: int = 10,
        fit: Literal["non_negative"] | None = "non_negative",
        joins: bool = False,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.records = as_records(records)
        self.share = as_share(share, "share")
        self.fewest_parts = as_whole(fewest_parts, "fewest_parts", 1)
        self.fit = as_choice(fit, "fit", (None, "non_negative"))
        if as_truth(joins, "joins"):
            self.joins = True

    def _run(self, private: Handle) -> Outcome:
        share = RECORDS_SHARE * self.budget
        records, bought = rough_total(private, self.records, budget=share)
        private.refuse_dry_run(
            "the finer grids follow the noisy counts of the coarse one, so their error "
            "cannot be predicted; that of UniformGrid with records=... can be"
        )
        whole = BoxTree.whole(self.domain.shape)
        parts = parts_per_axis(
            whole.highs,
            [records],
            count_epsilon(self.policy, private.remaining),
            COARSE_BOX,
            least=self.fewest_parts,
        )
        levels, coarse, held = self._coarse(private, whole, parts, records)
        few = np.prod(parts[0]) <= MOST_BOXES
        if self.joins and few:
            outcome = self._joined(private, bought, levels, coarse, held, parts[0])
            if outcome is not None:
                details = {"parts": parts[0], "records": records, **outcome.details}
                return replace(outcome, details=details)
        fine = self._fine(private, coarse.tree, held)
        # On large maps the trees of boxes are half of all that a release would hold.
        del coarse, held
        placed = fine.arranged(self.domain.shape)
        del fine
        strategy, buckets = leaves_alone(placed), placed.buckets
        del placed
        counted = private.coarsened(buckets)
        levels.append(counted.measure(strategy, budget=private.remaining))
        del counted, strategy
        both = joined_levels(bought, levels)
        boxes = buckets.count
        details = {"parts": parts[0], "buckets": boxes, "records": records}
        clamp = partial(halved_non_negative, domain=self.domain)
        fit = None if self.fit is None else clamp
        return Outcome.of(both, details, measurements=[*bought, *levels], fit=fit)

    def _bytes_per_cell(self) -> int:
        return max(self.cell_bytes, BOX_BYTES + AXIS_BYTES * self.domain.ndim)

    def _coarse(
        self, private: Handle, whole: BoxTree, parts: IntArray, records: float
    ) -> tuple[list[Measurement], GridLevel, FloatArray]:
        """Measure the coarse grid; return its boxes, and what each seems to hold."""
        level = cut_level(whole, whole.leaves, parts)
        if parts.max() == 1:
            # The whole as one box would be counted twice: its records are known.
            return [], level, np.array([records])
        first = measure_leaves(private, level, private.remaining * self.share)
        noisy = first.strategy.infer(first.noisy, first.scales)
        held = noisy[level.placed.numbers[level.tree.leaves]]
        return [first], level, held

    def _fine(self, private: Handle, coarse: BoxTree, held: FloatArray) -> BoxTree:
        """Refine the boxes by their noisy counts, which are public by now."""
        return coarse.divided(coarse.leaves, self._finer(private, coarse, held))

    def _finer(self, private: Handle, coarse: BoxTree, held: FloatArray) -> IntArray:
        """Return into how many parts each box is cut."""
        boxes = coarse.leaves
        return parts_per_axis(
            coarse.highs[boxes] - coarse.lows[boxes],
            held,
            count_epsilon(self.policy, private.remaining),
            FINE_BOX,
        )

    def _joined(
        self,
        private: Handle,
        bought: list[Measurement],
        levels: list[Measurement],
        coarse: GridLevel,
        held: FloatArray,
        parts: IntArray,
    ) -> Outcome | None:
        """Join boxes by their noisy counts and measure again; None where none are.

        The whole as one box is not joined with anything, and drawn towards evenness.
        """
        boxes = coarse.tree.leaves
        grid = CoarseGrid(parts, coarse.tree.lows[boxes], coarse.tree.highs[boxes])
        finer = self._finer(private, coarse.tree, held)
        rows = coarse.placed.numbers[boxes]
        regions: JoinedRegions | None = JoinedRegions.none(grid)
        if levels:
            noise = 2.0 / count_epsilon(self.policy, private.remaining) ** 2
            variances = levels[0].scales.variances[rows]
            regions = joined_regions(grid, held, variances, finer, noise)
        if regions is None:
            return None
        alone = np.prod(finer[regions.owners < 0], axis=1).sum()
        if alone > max(MOST_FINER, self.domain.size // FINER_CELLS):
            return None
        layout = RegionLayout.of(grid, regions, finer)
        shape = self.domain.shape
        placed, measured = layout.tree.arranged(shape), layout.measured.arranged(shape)
        second = private.coarsened(measured.buckets).measure(
            leaves_alone(measured), budget=private.remaining
        )
        places = np.empty(layout.places.size, dtype=np.int64)
        places[measured.numbers] = placed.numbers[layout.places]
        layers = [Layer(second, places)]
        for first in levels:
            # All rows but those of the boxes are that of the whole.
            places = np.full(first.noisy.size, placed.numbers[0])
            places[rows] = placed.numbers[layout.boxes]
            layers.append(Layer(first, places))
        layers += [Layer(total, placed.numbers[:1]) for total in bought]
        tree = kernels.tree_of_parents(placed.parents)
        both = one_measurement(tree, placed.buckets, layers)
        details = {"buckets": placed.buckets.count, "joined": len(regions.joined)}
        drawn = partial(_drawn_to_evenness, both, placed, layout)
        fit = None if self.fit is None else drawn
        all_rows = [*bought, *levels, second]
        return Outcome.of(both, details, measurements=all_rows, fit=fit)


def _drawn_to_evenness(
    both: Measurement, placed: BoxTreeLayout, layout: RegionLayout, _: FloatArray
) -> FloatArray:
    """Return cells of halves that are drawn towards an even share: Lemma AG7."""
    rows = placed.numbers
    counted = Counted.of_rows(
        layout.halves.first.size,
        layout.nodes,
        both.noisy[rows].astype(np.float64),
        both.scales.variances[rows],
    )
    records = settle(layout.halves, counted, layout.sizes).records
    leaves = np.empty(placed.buckets.count)
    ends = layout.tree.leaves
    leaves[rows[ends]] = records[layout.nodes[ends]]
    return placed.buckets.expand(leaves)


class GridLevel(NamedTuple):
    """A tree of boxes, and the same in the order of its strategy.

    Attributes
    ----------
    tree : BoxTree
        The tree.
    placed : BoxTreeLayout
        The order.
    """

    tree: BoxTree
    placed: BoxTreeLayout


def cut_level(tree: BoxTree, boxes: IntArray, parts: IntArray) -> GridLevel:
    """Cut the boxes at the bottom of a tree.

    Parameters
    ----------
    tree : BoxTree
        The tree.
    boxes : ndarray of int64
        The boxes at its bottom.
    parts : ndarray of int64, shape (boxes, axes)
        Into how many parts each side is cut.

    Returns
    -------
    GridLevel
        The tree with one level more.
    """
    below = tree.divided(boxes, parts)
    return GridLevel(below, below.arranged(tuple(tree.highs[0].tolist())))


def leaves_alone(placed: BoxTreeLayout) -> TreeStrategy:
    """Return what measures the boxes at the bottom of a tree and nothing else."""
    weights = np.zeros(placed.parents.size)
    weights[: placed.buckets.count] = 1.0
    return TreeStrategy(kernels.tree_of_parents(placed.parents), weights)


def measure_leaves(private: Handle, level: GridLevel, budget: Budget) -> Measurement:
    """Measure the boxes at the bottom and nothing else.

    Parameters
    ----------
    private : Handle
        Access to the counts.
    level : GridLevel
        The tree.
    budget : Budget
        The price.

    Returns
    -------
    Measurement
        The noisy counts.
    """
    counted = private.coarsened(level.placed.buckets)
    return counted.measure(leaves_alone(level.placed), budget=budget)


def joined_levels(bought: list[Measurement], levels: list[Measurement]) -> Measurement:
    """Return one or two levels, and the number of records if bought, as one.

    Parameters
    ----------
    bought : list[Measurement]
        The measurement of the number of records, or nothing.
    levels : list[Measurement]
        The measurements of the levels, the finest last.

    Returns
    -------
    Measurement
        The joint measurement.
    """
    *coarser, finest = levels
    if not bought and not coarser:
        return finest
    assert isinstance(finest.strategy, TreeStrategy)
    tree = finest.strategy.tree
    # All levels visit the boxes of the first in one order: the children of the whole,
    # which are numbered from left to right.
    numbers = tree.by_row(np.arange(tree.nodes))
    begin, end = tree.first_child[-2:]
    below = np.flatnonzero((numbers >= begin) & (numbers < end))
    first = np.append(below[np.argsort(numbers[below])], tree.nodes - 1)
    del numbers, below
    layers = [Layer(finest, np.arange(tree.nodes))]
    layers += [Layer(measurement, first) for measurement in coarser]
    layers += [Layer(measurement, first[-1:]) for measurement in bought]
    return one_measurement(tree, finest.buckets, layers)
