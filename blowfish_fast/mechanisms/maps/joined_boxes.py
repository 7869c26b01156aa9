"""Boxes of a coarse grid that seem alike, joined before they are measured again.

Over an even map a grid pays for many boxes that all tell the same. Its first noisy
counts, which are public, say how much halves of the map differ, halves of these, and so
on, beyond their noise; where they hardly do, the second measurement is better spent on
the whole of them:

    first level    3 2|4 1     halves differ by noise     second level    +---+---+
                   2 4|3 2     alone, but for the last                    |   |   |
                   ---+---     quarter                                    +---+-+-+
                   3 1|9 0                                                |   | | |
                   2 3|1 8                                                +---+-+-+

Everything here follows from noisy counts and from public numbers: Lemmas AG6 and AG7.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree

# How uneven two halves are: the variance of their difference over the square of their
# total. The constants below were chosen on the four given maps and on generated ones
# (even, a slope, hills, clusters, points, lines) of 5,000 to 400,000 records.
UNEVENNESS = np.array([0.0, *(4.0**-step for step in range(6, -1, -1))])
"""Grades of unevenness; how likely each is, is learnt level by level."""
BEFORE = 2.0
"""Pairs of halves that the level above counts for, when a level is learnt."""
ROUNDS = 20
"""Steps by which a level is learnt."""
DOUBTED = 3.0
"""What is lost by joining counts so many times: records may lie less evenly."""
LEAST_GAIN = 0.45
"""Boxes are joined where this part of the expected squared error is left, or less."""
MOST_BOXES = 1024
"""A coarse grid of more boxes has records enough in each of them."""


class Halves(NamedTuple):
    """Boxes that are halved, down to those at the bottom; each after its parent.

    Attributes
    ----------
    first : ndarray of int64, shape (nodes,)
        The first half of each node, the second behind it; -1 at the bottom.
    lows : ndarray of int64, shape (nodes, axes)
        The first box at the bottom that a node holds, along each axis.
    highs : ndarray of int64, shape (nodes, axes)
        The one after its last.
    depths : ndarray of int64, shape (nodes,)
        How often a root was halved.
    """

    first: IntArray
    lows: IntArray
    highs: IntArray
    depths: IntArray

    @classmethod
    def of(cls, parts: IntArray) -> Halves:
        """Halve grids along their longer sides, the grids themselves first.

        Parameters
        ----------
        parts : ndarray of int64, shape (grids, axes)
            Boxes of each grid along each axis.

        Returns
        -------
        Halves
            The nodes.
        """
        lows, highs = np.zeros_like(parts), parts
        levels: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
        nodes = len(parts)
        while len(lows):
            sides = highs - lows
            axes = sides.argmax(axis=1)
            cut = np.flatnonzero(sides.max(axis=1) > 1)
            first = np.full(len(lows), -1)
            first[cut] = nodes + 2 * np.arange(cut.size)
            levels.append((first, lows, highs, np.full(len(lows), len(levels))))
            middles = (lows[cut, axes[cut]] + highs[cut, axes[cut]]) // 2
            below = np.repeat(cut, 2)
            lows, highs = lows[below], highs[below]
            pairs = np.arange(cut.size)
            highs[2 * pairs, axes[cut]] = middles
            lows[2 * pairs + 1, axes[cut]] = middles
            nodes += 2 * cut.size
        return cls(*(np.concatenate(column) for column in zip(*levels, strict=True)))

    @property
    def bottom(self) -> IntArray:
        """The nodes that are not halved, in C order of their boxes, grid by grid."""
        ends = np.flatnonzero(self.first < 0)
        roots = np.arange(self.first.size)
        for depth in range(int(self.depths.max()) + 1):
            nodes = self.halved_at(depth)
            roots[self.first[nodes]] = roots[self.first[nodes] + 1] = roots[nodes]
        keys = (*self.lows[ends].T[::-1], roots[ends])
        order: IntArray = ends[np.lexsort(keys)]
        return order

    def added_up(self, values: FloatArray) -> FloatArray:
        """Return values of the nodes at the bottom, and their sums above."""
        sums = values.copy()
        for depth in range(int(self.depths.max()), -1, -1):
            nodes = self.halved_at(depth)
            sums[nodes] = sums[self.first[nodes]] + sums[self.first[nodes] + 1]
        return sums

    def halved_at(self, depth: int) -> IntArray:
        """Return the nodes of a depth that are halved."""
        return np.flatnonzero((self.depths == depth) & (self.first >= 0))

    def refined(self, ends: IntArray, parts: IntArray) -> tuple[Halves, IntArray]:
        """Return the same with grids inside nodes at the bottom.

        Parameters
        ----------
        ends : ndarray of int64
            Nodes at the bottom, one grid for each.
        parts : ndarray of int64, shape (grids, axes)
            Boxes of these grids along each axis.

        Returns
        -------
        halves : Halves
            The nodes, those inside the grids last.
        finest : ndarray of int64
            The nodes of the boxes of all grids, in C order, grid by grid.
        """
        inner = Halves.of(parts)
        grids, nodes = len(parts), self.first.size
        numbers = np.append(ends, np.arange(nodes, nodes + inner.first.size - grids))
        first = np.where(inner.first < 0, -1, inner.first + nodes - grids)
        depths = np.append(self.depths[ends], inner.depths[grids:])
        for depth in range(int(inner.depths.max()) + 1):
            above = inner.halved_at(depth)
            left = inner.first[above]
            depths[left] = depths[left + 1] = depths[above] + 1
        outer = self.first.copy()
        outer[ends] = first[:grids]
        both = Halves(
            np.append(outer, first[grids:]),
            np.concatenate([self.lows, inner.lows[grids:]]),
            np.concatenate([self.highs, inner.highs[grids:]]),
            np.append(self.depths, depths[grids:]),
        )
        return both, numbers[inner.bottom]


class Counted(NamedTuple):
    """What nodes were measured to hold.

    Attributes
    ----------
    totals : ndarray of float64, shape (nodes,)
        Noisy numbers of records.
    variances : ndarray of float64, shape (nodes,)
        Their variances: 0 where exact, infinite where nothing is known.
    """

    totals: FloatArray
    variances: FloatArray

    @classmethod
    def of_rows(
        cls, nodes: int, places: IntArray, noisy: FloatArray, variances: FloatArray
    ) -> Counted:
        """Lay noisy rows over nodes, several of them over some.

        Parameters
        ----------
        nodes : int
            How many nodes there are.
        places : ndarray of int64, shape (rows,)
            The node of each row.
        noisy : ndarray of float64, shape (rows,)
            The rows.
        variances : ndarray of float64, shape (rows,)
            Their variances.

        Returns
        -------
        Counted
            The nodes.
        """
        rows = (variances > 0) & np.isfinite(variances)
        weights, sums = np.zeros(nodes), np.zeros(nodes)
        np.add.at(weights, places[rows], 1.0 / variances[rows])
        np.add.at(sums, places[rows], noisy[rows] / variances[rows])
        weighed = weights > 0
        weights[~weighed] = 1.0
        variance = np.where(weighed, 1.0 / weights, np.inf)
        totals = sums / weights
        exact = variances == 0
        totals[places[exact]] = noisy[exact]
        variance[places[exact]] = 0.0
        return cls(totals, variance)

    def upwards(self, halves: Halves) -> Counted:
        """Return what each node holds by its own rows and by all below it."""
        totals, variances = self.totals.copy(), self.variances.copy()
        for depth in range(int(halves.depths.max()), -1, -1):
            nodes = halves.halved_at(depth)
            left = halves.first[nodes]
            below = variances[left] + variances[left + 1]
            own = variances[nodes]
            share = _part(own, below)
            summed = np.isfinite(below)
            sums = totals[left] + totals[left + 1]
            both = totals[nodes] + share * (sums - totals[nodes])
            only = np.isinf(own)
            totals[nodes] = np.where(summed, np.where(only, sums, both), totals[nodes])
            met = np.where(only, below, share * np.where(summed, below, 0.0))
            variances[nodes] = np.where(summed, met, own)
        return Counted(totals, variances)


class Settled(NamedTuple):
    """How many records nodes seem to hold, given all of them.

    Attributes
    ----------
    records : ndarray of float64, shape (nodes,)
        The number, from 0 on; halves add up.
    doubts : ndarray of float64, shape (nodes,)
        Its variance.
    unclear : ndarray of float64, shape (nodes,)
        Variance of the difference of the two halves of a node, given its number.
    unevenness : ndarray of float64, shape (nodes,)
        Mean grade of unevenness of a node's halves.
    """

    records: FloatArray
    doubts: FloatArray
    unclear: FloatArray
    unevenness: FloatArray


def settle(halves: Halves, counted: Counted, sizes: FloatArray) -> Settled:
    """Share records among halves, the less by noise the more even a level seems.

    The difference e of two halves from an even share has a prior variance of
    q (f + t f^2), f the records of both, q the product of their parts of the cells and
    t a grade of unevenness; weights of the grades are learnt from all e of a level,
    and its posterior mean is kept. Docs: Lemma AG7 of ``docs/proofs/for_maps.md``.

    Parameters
    ----------
    halves : Halves
        The nodes; one root.
    counted : Counted
        What was measured of each.
    sizes : ndarray of float64, shape (nodes,)
        Cells of each node.

    Returns
    -------
    Settled
        The records of each node.
    """
    upward = counted.upwards(halves)
    nodes = halves.first.size
    settled = Settled(*(np.zeros(nodes) for _ in range(4)))
    settled.records[0] = max(upward.totals[0], 0.0)
    settled.doubts[0] = upward.variances[0]
    weights = np.full(UNEVENNESS.size, 1.0 / UNEVENNESS.size)
    for depth in range(int(halves.depths.max()) + 1):
        here = halves.halved_at(depth)
        if here.size == 0:
            continue
        weights = _settle_level(halves, upward, sizes, here, weights, settled)
    return settled


def _settle_level(
    halves: Halves,
    upward: Counted,
    sizes: FloatArray,
    here: IntArray,
    weights: FloatArray,
    settled: Settled,
) -> FloatArray:
    """Settle the halves of the nodes `here`; return the weights of their grades."""
    left, right = halves.first[here], halves.first[here] + 1
    part = sizes[left] / sizes[here]
    spread = part * (1.0 - part)
    records, doubts = settled.records[here], settled.doubts[here]
    both_told = np.isfinite(upward.variances[left]) & np.isfinite(
        upward.variances[right]
    )
    ahead = np.where(both_told, upward.variances[left], 1.0)
    behind = np.where(both_told, upward.variances[right], 1.0)
    share = _part(ahead, behind)
    off = records - upward.totals[left] - upward.totals[right]
    noisy = upward.totals[left] + share * off - records * part
    noisy = np.where(both_told, noisy, 0.0)
    noise = share * behind + (share - part) ** 2 * doubts
    squares = records**2 + doubts
    prior = spread[:, None] * (records[:, None] + UNEVENNESS * squares[:, None])
    # Next to nothing, so that nothing is divided by 0 where there is neither.
    both = prior + noise[:, None] + 1e-9
    logs = -0.5 * (np.log(both) + noisy[:, None] ** 2 / both)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    likely[~both_told] = 1.0
    weights = _learnt(likely[both_told], weights)
    chances = likely * weights
    chances /= chances.sum(axis=1, keepdims=True)
    left_over = prior / both
    mean = (chances * left_over).sum(axis=1) * noisy
    second = left_over * noise[:, None] + (left_over * noisy[:, None]) ** 2
    variance = (chances * second).sum(axis=1) - mean**2
    variance = np.where(both_told, variance, (chances * prior).sum(axis=1))
    variance = np.minimum(variance, spread * records**2 + doubts)
    settled.unclear[here] = variance
    settled.unevenness[here] = chances @ UNEVENNESS
    settled.records[left] = np.clip(records * part + mean, 0.0, records)
    settled.records[right] = records - settled.records[left]
    settled.doubts[left] = part**2 * doubts + variance
    settled.doubts[right] = (1.0 - part) ** 2 * doubts + variance
    return weights


def _learnt(likely: FloatArray, before: FloatArray) -> FloatArray:
    """Return how likely each grade is, given all pairs, and the level above."""
    weights = before
    for _ in range(ROUNDS):
        chances = likely * weights
        chances /= chances.sum(axis=1, keepdims=True)
        weights = chances.sum(axis=0) + BEFORE * before
        weights = weights / weights.sum()
    return weights


def _part(mine: FloatArray, other: FloatArray) -> FloatArray:
    """Return mine / (mine + other), 1 where mine is infinite, 1/2 where both are 0."""
    whole = mine + other
    plain = np.isfinite(whole) & (whole > 0)
    part = np.divide(mine, whole, out=np.full_like(whole, 0.5), where=plain)
    part[np.isinf(other)] = 0.0
    part[np.isinf(mine)] = 1.0
    return part


class CoarseGrid(NamedTuple):
    """A grid of boxes, in C order.

    Attributes
    ----------
    parts : ndarray of int64, shape (axes,)
        Boxes along each axis.
    lows : ndarray of int64, shape (boxes, axes)
        The first cell of each box.
    highs : ndarray of int64, shape (boxes, axes)
        The cell after its last.
    """

    parts: IntArray
    lows: IntArray
    highs: IntArray

    def halved(self) -> tuple[Halves, FloatArray, IntArray]:
        """Return the grid in halves, the cells of each node, and its boxes' nodes."""
        halves = Halves.of(self.parts[None, :])
        boxes, sizes = halves.bottom, np.zeros(halves.first.size)
        sizes[boxes] = np.prod(self.highs - self.lows, axis=1)
        return halves, halves.added_up(sizes), boxes


class JoinedRegions(NamedTuple):
    """What is measured in the second step: joined boxes, and boxes that stay alone.

    Attributes
    ----------
    joined : ndarray of int64, shape (regions,)
        Nodes of the halved grid whose boxes are joined.
    owners : ndarray of int64, shape (boxes,)
        The joined region of each box of the coarse grid; -1 where it stays alone.
    lows : ndarray of int64, shape (regions, axes)
        The first cell of each region.
    highs : ndarray of int64, shape (regions, axes)
        The cell after its last.
    """

    joined: IntArray
    owners: IntArray
    lows: IntArray
    highs: IntArray

    @classmethod
    def none(cls, grid: CoarseGrid) -> JoinedRegions:
        """Return no regions: every box stays alone."""
        boxes, axes = grid.lows.shape
        corners = np.empty((0, axes), dtype=np.int64)
        return cls(np.empty(0, dtype=np.int64), np.full(boxes, -1), corners, corners)


class RegionLayout(NamedTuple):
    """Where the boxes of both steps lie: in one tree, in the second, and in halves.

    Attributes
    ----------
    tree : BoxTree
        The whole; joined regions; coarse boxes, inside these or beside them; finer
        boxes inside the coarse ones that stay alone.
    measured : BoxTree
        The whole and what the second step measures.
    places : ndarray of int64
        The box of `tree` that is each box of `measured`.
    boxes : ndarray of int64, shape (boxes,)
        The box of `tree` that is each box of the coarse grid.
    halves : Halves
        The coarse grid in halves, and the finer ones inside it.
    sizes : ndarray of float64
        Cells of each node of `halves`.
    nodes : ndarray of int64
        The node of `halves` that is each box of `tree`.
    """

    tree: BoxTree
    measured: BoxTree
    places: IntArray
    boxes: IntArray
    halves: Halves
    sizes: FloatArray
    nodes: IntArray

    @classmethod
    def of(
        cls, grid: CoarseGrid, regions: JoinedRegions, finer: IntArray
    ) -> RegionLayout:
        """Lay out regions, and the finer boxes of what stays alone.

        Parameters
        ----------
        grid : CoarseGrid
            The coarse boxes.
        regions : JoinedRegions
            Which of them are joined.
        finer : ndarray of int64, shape (boxes, axes)
            Into how many parts a box that stays alone is cut.

        Returns
        -------
        RegionLayout
            The layout.
        """
        whole = BoxTree.whole(tuple(grid.highs.max(axis=0).tolist()))
        joined, boxes = len(regions.joined), len(grid.lows)
        # Numbers of joined regions follow that of the whole, 0, as does "none".
        tree = BoxTree(
            np.concatenate([whole.parents, np.zeros(joined, int), regions.owners + 1]),
            np.concatenate([whole.lows, regions.lows, grid.lows]),
            np.concatenate([whole.highs, regions.highs, grid.highs]),
        )
        numbers = np.arange(1 + joined, 1 + joined + boxes)
        alone = np.flatnonzero(regions.owners < 0)
        tree = tree.divided(numbers[alone], finer[alone])
        fine = np.arange(1 + joined + boxes, tree.parents.size)
        places = np.concatenate([np.arange(1 + joined), fine])
        parents = np.append(-1, np.zeros(places.size - 1, int))
        measured = BoxTree(parents, tree.lows[places], tree.highs[places])
        halves, _, ends = grid.halved()
        finest = np.empty(0, dtype=np.int64)
        if alone.size:
            halves, finest = halves.refined(ends[alone], finer[alone])
        nodes = np.concatenate([[0], regions.joined, ends, finest])
        sizes, leaves = np.zeros(halves.first.size), tree.leaves
        cells = np.prod(tree.highs[leaves] - tree.lows[leaves], axis=1)
        sizes[nodes[leaves]] = cells
        return cls(
            tree, measured, places, numbers, halves, halves.added_up(sizes), nodes
        )


def joined_regions(
    grid: CoarseGrid,
    noisy: FloatArray,
    variances: FloatArray,
    finer: IntArray,
    noise: float,
) -> JoinedRegions | None:
    """Return which boxes are measured together; None where joining gains too little.

    Parameters
    ----------
    grid : CoarseGrid
        The boxes.
    noisy : ndarray of float64, shape (boxes,)
        What each was measured to hold.
    variances : ndarray of float64, shape (boxes,)
        Variances of that.
    finer : ndarray of int64, shape (boxes, axes)
        Into how many parts a box that stays alone is cut.
    noise : float
        Variance of a count of the second step.

    Returns
    -------
    JoinedRegions or None
        The regions.
    """
    halves, sizes, boxes = grid.halved()
    nodes = halves.first.size
    counted = Counted.of_rows(nodes, boxes, noisy, variances)
    settled = settle(halves, counted, sizes)
    asked, passed = _shares_of_queries(grid, halves, boxes)
    # What a joined node loses: differences inside it that are not measured again.
    lost, alone = np.zeros(nodes), np.zeros(nodes)
    above = np.zeros(nodes, dtype=np.int64)
    parents = np.flatnonzero(halves.first >= 0)
    above[halves.first[parents]] = above[halves.first[parents] + 1] = parents
    uneven = settled.unevenness[above[boxes]]
    held = settled.records[boxes] ** 2 + settled.doubts[boxes]
    lost[boxes] = uneven * held / 4.0 * _shares_inside(grid, finer)
    alone[boxes] = noise * passed[boxes] * np.prod(finer, axis=1)
    cost, joins = alone.copy(), np.zeros(nodes, dtype=np.bool_)
    for depth in range(int(halves.depths.max()), -1, -1):
        here = halves.halved_at(depth)
        left, right = halves.first[here], halves.first[here] + 1
        lost[here] = lost[left] + lost[right] + asked[here] * settled.unclear[here]
        alone[here] = alone[left] + alone[right]
        apart = cost[left] + cost[right]
        together = noise * passed[here] + DOUBTED * lost[here]
        joins[here] = together < apart
        cost[here] = np.minimum(together, apart)
    if not joins.any() or cost[0] > LEAST_GAIN * alone[0]:
        return None
    return _regions(grid, halves, boxes, joins)


def _regions(
    grid: CoarseGrid, halves: Halves, boxes: IntArray, joins: BoolArray
) -> JoinedRegions:
    """Return the topmost nodes that are joined."""
    owners = np.full(halves.first.size, -1)
    joined = list[int]()
    for node in range(halves.first.size):
        if owners[node] < 0 and joins[node]:
            owners[node] = len(joined)
            joined.append(node)
        if halves.first[node] >= 0:
            owners[halves.first[node] : halves.first[node] + 2] = owners[node]
    tops = np.array(joined, dtype=np.int64)
    corners = np.ravel_multi_index(tuple(halves.lows[tops].T), tuple(grid.parts))
    ends = np.ravel_multi_index(tuple(halves.highs[tops].T - 1), tuple(grid.parts))
    return JoinedRegions(tops, owners[boxes], grid.lows[corners], grid.highs[ends])


def _shares_of_queries(
    grid: CoarseGrid, halves: Halves, boxes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean squares by which random boxes ask for differences, and for nodes.

    A node's noise passes into the answer by the differences above it.
    """
    sides = grid.highs.max(axis=0)
    lows, highs = (np.zeros((halves.first.size, grid.parts.size)) for _ in range(2))
    lows[boxes], highs[boxes] = grid.lows / sides, grid.highs / sides
    for depth in range(int(halves.depths.max()), -1, -1):
        here = halves.halved_at(depth)
        left = halves.first[here]
        lows[here] = np.minimum(lows[left], lows[left + 1])
        highs[here] = np.maximum(highs[left], highs[left + 1])
    squares = _square_covered(lows, highs)
    asked, passed = np.zeros(halves.first.size), np.zeros(halves.first.size)
    passed[0] = np.prod(squares[0])
    for depth in range(int(halves.depths.max()) + 1):
        here = halves.halved_at(depth)
        left, right = halves.first[here], halves.first[here] + 1
        cut = highs[left] < highs[here]
        middles = np.where(cut, highs[left], highs[here])
        differ = _square_difference(lows[here], middles, highs[here])
        asked[here] = np.prod(np.where(cut, differ, squares[here]), axis=1)
        passed[left] = passed[right] = passed[here] + asked[here] / 4.0
    return asked, passed


def _shares_inside(grid: CoarseGrid, finer: IntArray) -> FloatArray:
    """Return the same for differences inside boxes that finer grids would show."""
    sides = grid.highs.max(axis=0)
    lows, highs = grid.lows / sides, grid.highs / sides
    levels = np.rint(np.log2(finer).sum(axis=1)).astype(np.int64)
    shares, rows = np.zeros(len(finer)), np.arange(len(finer))
    for level in range(int(levels.max(initial=0))):
        axes = (highs - lows).argmax(axis=1)
        middles = (lows + highs) / 2.0
        squares = _square_covered(lows, highs)
        squares[rows, axes] = _square_difference(lows, middles, highs)[rows, axes]
        shares += np.where(level < levels, np.prod(squares, axis=1), 0.0)
        highs[rows, axes] = middles[rows, axes]
    return shares


def _square_covered(lows: FloatArray, highs: FloatArray) -> FloatArray:
    """Return the mean square of the part of [low, high) between two random places."""
    middles = (lows + highs) / 2.0
    covered: FloatArray = 2.0 * (lows + (highs - lows) / 3.0 - middles**2)
    return covered


def _square_difference(
    lows: FloatArray, middles: FloatArray, highs: FloatArray
) -> FloatArray:
    """Return the mean square of how much more of one half than of the other is."""
    both = _square_covered(lows, middles) + _square_covered(middles, highs)
    first, second = (lows + middles) / 2.0, (middles + highs) / 2.0
    difference: FloatArray = both - 4.0 * first * (1.0 - second)
    return difference
