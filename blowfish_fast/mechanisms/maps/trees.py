"""Trees over maps: boxes that follow noisy cells or medians, or halve all axes."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_choice, as_share, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.selectors.partitions.kd_cells import (
    RULES,
    Boxes,
    Medians,
    NoisyCells,
    SplitRule,
    box_buckets,
    default_levels,
)
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.measure.strategies.cells import bucket_counts
from blowfish_fast.measure.strategies.stacked_buckets import stacked
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree, pruned_cells
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, stepped, striped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

RuleName = Literal["gain", "or", "and", "uniformity"]
Fit = Literal["shrink", "uniform"]

LEAST_SHARE = Fraction(1, 1000)
DEEPEST = 13
"""Height that the paper found best on its 79 x 100 grid."""

MEDIAN_SHARE = Fraction(1, 20)
"""Part of epsilon for the medians; the paper's 3/10 served worse on four maps."""


class KdTree(Mechanism):
    """Release a map by a two-step kd-tree: noisy cells, then boxes of like cells.

    The workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    rule : {"gain", "or", "and", "uniformity", None}, GainRule or UniformityRule
        When a box is cut. "gain": at the best place of any axis, where rectangles gain
        more than a further count costs them. The others are the paper's: across the
        longest side, at the median, where a box is uneven or crowded ("or", as
        printed), both ("and"), or uneven ("uniformity", as its text says). None stops
        after the noisy cells, which get all of epsilon.
    share : number between 0.001 and 0.999
        Part of epsilon spent on the cells.
    levels : int, optional
        Most cuts above a box; None for four times those of a balanced tree.
    fit : {"shrink", "uniform", None}
        How the records of a box are spread over its cells. None: as the noisy cells
        say, by least squares. "uniform": evenly. "shrink": between the two, by the part
        of the deviations that noise does not explain; intervals are those of None.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; cells and fresh counts share epsilon
        (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: 1 per step when a record is added or removed, 2 when it moves; public
        totals are exact, and no box reaches from one connected part to another.
    Error: a box of n cells is known with variance v1 n v2 / (v1 n + v2), v1 and v2
        being those of a noisy cell and a fresh count; to this comes the deviation of
        its cells from their mean, which depends on the data.
    Complexity: O(n) for cells and tables, and per level of the tree O(n) at worst.
    Source: Y. Xiao, L. Xiong, C. Yuan. Differentially private data release through
        multidimensional partitioning. Secure Data Management, 2010; section 4.3, with
        the termination it lacks, thresholds that read noisy values only, and estimates
        combined; "gain" is our own. Proof in ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((16, 16))
    >>> asked = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> tree = bf.KdTree(bf.policies.AddRemove(grid), asked, epsilon=1)
    >>> release = tree.release([[50] * 8 + [0] * 8] * 16, rng=1)
    >>> release.details["buckets"] < 20, release.intervals(asked, of="noise").shape
    (True, (100, 2))
    """

    name = "kd_tree"
    example_case = Example(partial(striped, stripes=4, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        rule: RuleName | SplitRule | None = "gain",
        share: Any = Fraction(1, 2),
        levels: int | None = None,
        fit: Fit | None = "shrink",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.rule = _as_rule(rule)
        self.fit = as_choice(fit, "fit", ("shrink", "uniform", None))
        self.share = as_share(share, "share")
        if not LEAST_SHARE <= self.share <= 1 - LEAST_SHARE:
            raise InputError(
                "share must lie between 0.001 and 0.999, so that both counts tell "
                f"something; received {share!r}"
            )
        if levels is None:
            levels = default_levels(self.domain.size)
        self.levels = as_whole(levels, "levels", 0, 2**16)

    def _run(self, private: Handle) -> Outcome:
        strategy = Cells.under(private.policy)
        if self.rule is None:
            cells = private.measure(strategy, budget=private.remaining)
            return Outcome.of(cells)
        private.refuse_dry_run(
            "the boxes of a kd-tree follow the noisy cells, so its error cannot be "
            "predicted before it is released; rule=None can be"
        )
        cells = private.measure(strategy, budget=self.share * self.budget)
        noisy = self._noisy_cells(cells, private)
        boxes = self.rule.boxes(noisy, self.levels)
        buckets = box_buckets(boxes, self.domain.shape, strategy.parts)
        fresh = bucket_counts(private, buckets)
        both = stacked(cells, fresh, uniform=self.fit == "uniform")
        fit = partial(_shrink_boxes, fresh.buckets, noisy.mean_noise)
        details = {"buckets": buckets.count, "lows": boxes.lows, "highs": boxes.highs}
        return Outcome.of(
            both,
            details,
            fit=fit if self.fit == "shrink" else None,
            measurements=[cells, fresh],
        )

    def _noisy_cells(self, cells: Measurement, private: Handle) -> NoisyCells:
        """Return the published values that the tree is built on, and their noise."""
        budget = private.remaining.over(self.policy.group_size)
        fresh = Cells(2).scales(private.policy, budget)
        variance = float(fresh.variances[0]) if fresh.measured[0] else 0.0
        noisy = cells.estimate().reshape(self.domain.shape)
        width = float(cells.scales.widths[: self.domain.size].max(initial=0.0))
        return NoisyCells(noisy, width, variance, cells.scales.power)


def _as_rule(rule: Any) -> SplitRule | None:
    known_rule = RULES.get(rule) if isinstance(rule, str) else rule
    if rule is None or (known_rule is not None and hasattr(known_rule, "boxes")):
        return known_rule
    raise InputError(
        'rule must be "gain", "or", "and", "uniformity", None, or a rule such as '
        f"partitions.GainRule(price=0.5); received {rule!r}"
    )


def _shrink_boxes(boxes: Buckets, mean_noise: float, linear: FloatArray) -> FloatArray:
    """Draw the cells of each box to their mean, by the share of noise in deviations."""
    order, edges = boxes.order, boxes.edges
    along = linear if order is None else linear[order]
    sizes = np.diff(edges)
    means = np.repeat(np.add.reduceat(along, edges[:-1]) / sizes, sizes)
    deviations = np.add.reduceat(np.abs(along - means), edges[:-1])
    noise = sizes * mean_noise
    signal = 1.0 - np.minimum(noise / np.maximum(deviations, 1e-300), 1.0)
    shrunk = means + np.repeat(signal, sizes) * (along - means)
    return Buckets.single_cells(along.size, order).expand(shrunk)


class HierarchicalKdTree(Mechanism):
    """Release a histogram by the leaves of a kd-tree that asks the data for medians.

    `KdTree` is measured against it. Each of the `levels` and the counts of the leaves
    get epsilon / (levels + 1). The workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    levels : int, optional
        Levels of medians. None: as many as single cells would need, at most 13.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the levels and the leaves share epsilon in
        equal parts (sequential composition, each step on a quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: at each step 1 when a record is added or removed, 2 when it moves: the
        slabs of all boxes of a level do not overlap. Public totals are exact.
    Error: the noise of the leaves at epsilon / (levels + 1), known once they are, plus
        the deviation of their cells from the mean, which depends on the data.
    Complexity: O(n) per level, n cells.
    Source: the paper of `KdTree`, section 4.3, after A. Inan, M. Kantarcioglu, G.
        Ghinita, E. Bertino. Private record matching using differential privacy. EDBT
        2010; proof in ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((16, 16))
    >>> asked = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> policy = bf.policies.AddRemove(grid)
    >>> tree = bf.mechanisms.HierarchicalKdTree(policy, asked, epsilon=1, levels=3)
    >>> tree.release([[50] * 8 + [0] * 8] * 16, rng=1).details["buckets"]
    8
    """

    cells_by_default = True
    name = "hierarchical_kd_tree"
    example_case = Example(partial(striped, stripes=4, height=9), {"levels": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        levels: int | None = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        if levels is None:
            levels = min((self.domain.size - 1).bit_length(), DEEPEST)
        self.levels = as_whole(levels, "levels", 0, 64)

    def _run(self, private: Handle) -> Outcome:
        if self.levels:
            private.refuse_dry_run(
                "the medians of a hierarchical kd-tree are asked of the data, so its "
                "error cannot be predicted before it is released"
            )
        share = self.budget / (self.levels + 1)
        whole = np.array([self.domain.shape])
        boxes = Boxes(np.zeros_like(whole), whole)
        measurements: list[Measurement] = []
        for _ in range(self.levels):
            boxes, measured = self._split(private, boxes, share)
            measurements.append(measured)
        leaves = self._counts_of(private, boxes, private.remaining)
        details = {"buckets": len(boxes.lows), "lows": boxes.lows, "highs": boxes.highs}
        return Outcome.of(leaves, details, measurements=[*measurements, leaves])

    def _split(
        self, private: Handle, boxes: Boxes, budget: Budget
    ) -> tuple[Boxes, Measurement]:
        """Cut every box across its longest side, near its noisy median."""
        axis = np.argmax(boxes.highs - boxes.lows, axis=1)
        slabs, edges = _slabs(boxes, axis)
        measured = self._counts_of(private, slabs, budget)
        noisy = measured.strategy.infer(measured.noisy, measured.scales)
        return _halves(boxes, axis, noisy, edges), measured

    def _counts_of(self, private: Handle, boxes: Boxes, budget: Budget) -> Measurement:
        cells = kernels.cells_of_boxes(*boxes, self.domain.shape)
        return bucket_counts(private, Buckets(*cells), budget=budget)


def _slabs(boxes: Boxes, axis: IntArray) -> tuple[Boxes, IntArray]:
    """Cut each box into slabs one cell thick; also where those of each box begin."""
    each = np.arange(len(axis))
    lengths = (boxes.highs - boxes.lows)[each, axis]
    edges = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(each, lengths)
    lows, highs = boxes.lows[owner], boxes.highs[owner]
    place = np.arange(owner.size)
    begins = lows[place, axis[owner]] + place - edges[owner]
    lows[place, axis[owner]] = begins
    highs[place, axis[owner]] = begins + 1
    return Boxes(lows, highs), edges


def _halves(boxes: Boxes, axis: IntArray, noisy: FloatArray, edges: IntArray) -> Boxes:
    """Cut each box at the median of its noisy slabs; single cells stay as they are."""
    cuts = kernels.median_cuts(noisy, edges)
    divided = cuts > 0
    owner = np.repeat(np.arange(len(axis)), 1 + divided)
    lows, highs = boxes.lows[owner], boxes.highs[owner]
    first = np.cumsum(1 + divided) - (1 + divided)
    left = first[divided]
    cut_axis = axis[divided]
    borders = boxes.lows[divided, cut_axis] + cuts[divided]
    highs[left, cut_axis] = borders
    lows[left + 1, cut_axis] = borders
    return Boxes(lows, highs)


class QuadTree(Mechanism):
    """Release a map by a quadtree: noisy counts of boxes halved along all axes.

    Takes any number of ordered attributes; sides of odd length are halved at the
    ceiling. The workload does not change the noise.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fit : {"shrink", None}
        "shrink": boxes of fewer records than five noise scales of a cell are taken as
        even, which divided the error on six maps with empty regions by 1.3 to 7. None:
        answers without bias.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded, the total is public and exact).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the boxes from a cell up to the whole when a record is added or
        removed; twice that, without the whole, when it moves. The worst edge is found
        in integers, edge by edge where the policy's edges can be listed.
    Error: with h levels the part of epsilon at depth i goes with 2^(i (d - 1) / 3) for
        d attributes; the prediction is exact for every query, before the fit.
    Complexity: O(n) time and memory.
    Source: G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu. Differentially
        private spatial decompositions. ICDE 2012; with exact least squares in place of
        its averages, any shape in place of a square of a power of two, noise on the
        integers, and pruning by noise scales; proof in ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((20, 30))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> tree = bf.mechanisms.QuadTree(bf.policies.AddRemove(grid), boxes, epsilon=0.5)
    >>> release = tree.release([[3] * 30] * 20, rng=1)
    >>> release.details["levels"], release.answer(boxes).shape
    (5, (100,))
    """

    name = "quad_tree"
    reads_workload = False
    example_case = Example(partial(stepped, steps=2, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fit: Literal["shrink"] | None = "shrink",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.fit = as_choice(fit, "fit", ("shrink", None))

    def _run(self, private: Handle) -> Outcome:
        top, details = self._top(private)
        # Nothing holds on to the corners of the quarters while counts are measured.
        strategy, buckets = top.quartered().counted(
            self.domain.shape, private.remaining.power
        )
        along = private.coarsened(buckets)
        measurement = along.measure(strategy, budget=private.remaining)
        details["boxes"] = strategy.tree.nodes
        fits = self.fit is not None and not private.dry_run
        fit = (lambda _: pruned_cells(measurement)) if fits else None
        return Outcome.of(measurement, details, fit=fit)

    def _top(self, private: Handle) -> tuple[BoxTree, dict[str, Any]]:
        """Return the boxes above the quarters, and what is told of them."""
        levels = (max(self.domain.shape) - 1).bit_length()
        return BoxTree.whole(self.domain.shape), {"levels": levels}


class HybridTree(QuadTree):
    """Release a map by a hybrid tree: private medians above, a quadtree below.

    Each level of medians cuts boxes across the longest side; below them boxes are
    halved along all axes down to cells.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    levels : int, optional
        Levels of medians; None for one per attribute.
    share : number in (0, 1)
        Part of the budget spent on the medians.
    fit : {"shrink", None}
        As for `QuadTree`.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the medians and the counts share epsilon
        (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: a record changes the difference between the sides of a cut by 1 in one
        box of each level, twice that under a policy with moves; counts as for
        `QuadTree`, the worst edge of the tree that was chosen.
    Error: the noise of the tree, known once the medians are; it depends on the data
        through them.
    Complexity: O(n) time and memory, and O(2^levels * side) for the medians.
    Source: the paper of `QuadTree`, with medians by the exponential mechanism on whole
        numbers, exact least squares, any shape, and budgets that follow the depth of
        each branch; proof in ``docs/proofs/for_maps.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> grid = bf.Domain((20, 30))
    >>> boxes = bf.workloads.Rectangles.random(grid, 100, rng=1)
    >>> tree = bf.mechanisms.HybridTree(bf.policies.AddRemove(grid), boxes, epsilon=0.5)
    >>> release = tree.release([[3] * 30] * 20, rng=1)
    >>> release.details["lows"].shape, release.answer(boxes).shape
    ((7, 2), (100,))
    """

    name = "hybrid_tree"
    example_case = Example(partial(stepped, steps=3, height=5), {"levels": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        levels: int | None = None,
        share: Any = MEDIAN_SHARE,
        fit: Literal["shrink"] | None = "shrink",
    ) -> None:
        super().__init__(
            policy, workload, fit=fit, epsilon=epsilon, rho=rho, delta=delta
        )
        if levels is None:
            levels = self.domain.ndim
        without = "A tree without medians is a QuadTree"
        self.levels = as_whole(levels, "levels", 1, 40, way_out=without)
        self.share = as_share(share, "share")

    def _top(self, private: Handle) -> tuple[BoxTree, dict[str, Any]]:
        medians = Medians(self.domain.shape, self.levels)
        boxes = private.select(medians, budget=self.share * self.budget)
        return BoxTree(*boxes), {"lows": boxes.lows, "highs": boxes.highs}
