"""Measure the size and the coordinate sums of every cluster of records.

A record counts as the centre of its cell, in whole public steps from the middle of the
domain. On a line of four cells with the border of two clusters in the middle:

    cell              0      1   |   2      3
    steps from middle -3    -1   |   1      3

    counts 2 1 1 0:   sizes 3, 1      sums  2 * -3 + 1 * -1 = -7,   1

A record that moves from cell 1 to cell 2 crosses the border. It leaves one sum and
enters the other: sizes change by 1 and 1, sums by |-1| and |1|. So the cost of a
crossing is how far its two ends lie from the middle, however near they lie to each
other (Lemma KM4).
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_parts, as_share, read_only
from blowfish_fast.data.domain import Axis, Domain
from blowfish_fast.errors import DomainError, IntervalError, SizeError
from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales
from blowfish_fast.policies import ABSENT, Policy

STEP_BITS = 20
"""Steps of the public grid across the whole domain: 2^19 to 2^20."""

FURTHEST = 1e150
"""Edges of attributes lie at most this far from 0: squares still fit a float."""

MOST_AT_ONCE = 2**40
"""Records whose sums fit 64 bits, each at most 2^20 steps away."""

DIGIT = 2**14
"""Counts of 2^28 cells, each below this, have sums that fit 64 bits too."""

FURTHEST_SUM = 2**62
"""Sums of coordinates end here, in steps."""

LISTED_EDGES = 2**16
"""Policies with at most this many edges are walked edge by edge."""


class CellGrid:
    """Cells of a domain as points, in whole steps from the middle.

    Attributes are numeric: one with edges spans them, one without edges spans 0 to its
    number of cells.

    Parameters
    ----------
    domain : Domain
        The cells.

    Attributes
    ----------
    low, high : ndarray of float64, shape (axes,)
        The two corners of the box of all cells.
    middle : ndarray of float64, shape (axes,)
        The middle between the first and the last cell's centre.
    step : float
        The unit of coordinates, a public power of two.
    edges : ndarray of float64
        The edges of all axes, one axis after the other.
    coordinates : ndarray of int64
        The centre of every cell of every axis, in steps from the middle; one axis after
        the other.
    offsets : ndarray of int64, shape (axes + 1,)
        Where each axis begins in `coordinates`.
    axes : int
        The number of attributes.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        sides = [_side(attribute) for attribute in domain.attributes]
        centres = [side[:-1] + (side[1:] - side[:-1]) / 2 for side in sides]
        self.low = np.array([side[0] for side in sides])
        self.high = np.array([side[-1] for side in sides])
        spans = [float(along[-1] - along[0]) for along in centres]
        self.middle = np.array(
            [along[0] + span / 2 for along, span in zip(centres, spans, strict=True)]
        )
        self.edges = np.concatenate(sides)
        self.offsets, self.axes = np.cumsum([0, *domain.shape]), domain.ndim
        # Cells of width 1 have centres on halves: no rounding up to 2^19 of them.
        whole = sum(spans)
        self.step = 2.0 ** (math.frexp(whole)[1] - STEP_BITS) if whole > 0 else 1.0
        steps = [
            np.rint((along - middle) / self.step)
            for along, middle in zip(centres, self.middle, strict=True)
        ]
        self.coordinates = np.concatenate(steps).astype(np.int64)
        read_only(self.coordinates)
        self._longest: tuple[Policy, int] | None = None

    @cached_property
    def radius(self) -> int:
        """Largest L1 distance of a cell from the middle, in steps."""
        return sum(int(np.abs(places).max()) for places in self._by_axis())

    @cached_property
    def squared_radius(self) -> int:
        """Largest squared distance of a cell from the middle, in steps."""
        return sum(int(np.abs(places).max()) ** 2 for places in self._by_axis())

    def _by_axis(self) -> list[IntArray]:
        return np.split(self.coordinates, self.offsets[1:-1])

    def places(self, cells: IntArray) -> AnyArray:
        """Return the position of cells along each axis, (n, axes) int32."""
        along = np.unravel_index(cells, self.domain.shape)
        return np.stack(along, axis=-1).astype(np.int32)

    def coordinates_of(self, places: AnyArray) -> IntArray:
        """Return coordinates of positions, (n, axes), in steps from the middle."""
        coordinates: IntArray = self.coordinates[places + self.offsets[:-1]]
        return coordinates

    def values(self) -> FloatArray:
        """Return the value of each cell along its axis."""
        middles = np.repeat(self.middle, np.diff(self.offsets))
        values: FloatArray = middles + self.step * self.coordinates
        return values

    def squared_distances(self, centers: FloatArray) -> FloatArray:
        """Return the squared distance along each axis, (cells, centres)."""
        values = np.split(self.values(), self.offsets[1:-1])
        return np.concatenate(
            [
                (places[:, None] - centers[None, :, axis]) ** 2
                for axis, places in enumerate(values)
            ]
        )

    def part_centers(self, labels: IntArray) -> FloatArray:
        """Return the mean value of the cells of each part, (parts, axes). O(cells)."""
        sizes = np.bincount(labels)
        grid = labels.reshape(self.domain.shape)
        means = np.empty((sizes.size, self.axes))
        for axis, values in enumerate(np.split(self.values(), self.offsets[1:-1])):
            shape = [-1 if axis == other else 1 for other in range(self.axes)]
            spread = np.broadcast_to(values.reshape(shape), grid.shape).reshape(-1)
            means[:, axis] = np.bincount(labels, weights=spread) / sizes
        return means

    def longest_move(self, policy: Policy) -> int:
        """Return the longest edge in L1 steps, by signed sums, or a bound above it."""
        if self._longest is not None and self._longest[0] is policy:
            return self._longest[1]
        longest = 2 * self.radius if policy.has_moves else 0
        if longest:
            # Where the policy cannot say, any two cells may be joined.
            with suppress(SizeError):
                longest = min(longest, self._longest_signed(policy))
        self._longest = policy, longest
        return longest

    def _longest_signed(self, policy: Policy) -> int:
        longest = 0
        axes = self._by_axis()
        for signs in itertools.product((1, -1), repeat=self.axes - 1):
            line = np.zeros(self.domain.shape)
            for axis, sign in enumerate((1, *signs)):
                shape = [-1 if axis == other else 1 for other in range(self.axes)]
                line += sign * axes[axis].reshape(shape)
            change = policy.largest_change(line.reshape(1, -1))
            longest = max(longest, math.ceil(change.value))
        return longest


class ClusterSums(LinearStrategy):
    """Sizes, then sums along each axis in turn, of the clusters around public centres.

    Parameters
    ----------
    grid : CellGrid
        Cells of the domain as points.
    centers : ndarray of float64, shape (clusters, axes)
        A record belongs to the nearest of them.
    parts : ndarray of int64, shape (cells,), optional
        With it, a whole connected part of the policy belongs to the centre nearest to
        the mean of its cells, so no record can leave its cluster.
    share : Fraction, default Fraction(1, 2)
        The part of epsilon for sizes, where both are measured.
    """

    kind = "cluster_sums"
    no_answers = (
        "sizes and sums of clusters say nothing about single cells; k-means publishes "
        "release.centers, without intervals"
    )

    def __init__(
        self,
        grid: CellGrid,
        centers: FloatArray,
        parts: IntArray | None = None,
        *,
        share: Fraction = Fraction(1, 2),
    ) -> None:
        self.grid = grid
        self.centers, self.clusters = centers, len(centers)
        self.parts = parts
        self.share = share

    @cached_property
    def _distances(self) -> FloatArray:
        return self.grid.squared_distances(self.centers)

    @cached_property
    def _cluster_of_cell(self) -> IntArray:
        assert self.parts is not None
        means = self.grid.part_centers(self.parts)
        square = ((means[:, None] - self.centers[None]) ** 2).sum(axis=-1)
        cluster_of_cell: IntArray = np.argmin(square, axis=1)[self.parts]
        return cluster_of_cell

    def rows(self, counts: AnyArray) -> IntArray:
        """Return sizes, then sums; from counts, or (n, axes) places of records."""
        places, repeats = counts, np.zeros(0, dtype=np.int64)
        if counts.ndim == 1:
            occupied = np.flatnonzero(counts)
            places, repeats = self.grid.places(occupied), counts[occupied]
        if int(repeats.sum()) <= MOST_AT_ONCE:
            totals: Any = self._totals(places, repeats)
        else:
            totals = self._wide_totals(places, repeats)
        return np.concatenate([totals[:, 0], totals[:, 1:].reshape(-1)])

    def _wide_totals(self, places: AnyArray, repeats: IntArray) -> IntArray:
        """Return what `_totals` does, digit by digit of the counts, and cut (KM9)."""
        exact: Any = 0
        worth = 1
        while repeats.any():
            repeats, digits = np.divmod(repeats, DIGIT)
            exact = exact + self._totals(places, digits).astype(object) * worth
            worth *= DIGIT
        cut = np.clip(exact, -FURTHEST_SUM, FURTHEST_SUM)
        return np.asarray(cut, dtype=np.int64)

    def _totals(self, places: AnyArray, repeats: IntArray) -> IntArray:
        """Return size and sums of each cluster, (clusters, 1 + axes)."""
        tables = self.grid.coordinates, self.grid.offsets
        if self.parts is None:
            return kernels.cluster_totals(places, repeats, self._distances, *tables)
        return kernels.assigned_totals(
            places, repeats, self._cluster_of_cell, self.clusters, *tables
        )

    def weights(self) -> IntArray:
        """Share the price between sizes and sums, by what a move can change of each."""
        sums = (1 - float(self.share)) / max(2 * self.grid.radius, 1)
        return self._shared(float(self.share) / 2, sums, 2**WEIGHT_BITS)

    def squared_weights(self) -> IntArray:
        """Share the price of squared moves between sizes and sums."""
        sums = (1 - self.share) / max(2 * self.grid.squared_radius, 1)
        return self._shared(self.share / 2, sums, 2 ** (2 * WEIGHT_BITS))

    def _shared(self, sizes: Any, sums: Any, largest: int) -> IntArray:
        """Return whole weights of all rows, from that of a size and that of a sum."""
        scale = largest / max(sizes, sums)
        weights = np.empty(self.clusters * (1 + self.grid.axes), dtype=np.int64)
        weights[: self.clusters] = max(1, math.floor(sizes * scale))
        weights[self.clusters :] = max(1, math.floor(sums * scale))
        return weights

    def _may_cross(self, policy: Policy) -> bool:
        """Return whether an edge may join cells of two clusters."""
        if not policy.has_moves or self.clusters == 1:
            return False
        if self.parts is None:
            return True
        labels = policy.components().labels
        if labels is None:
            return bool((self.parts != self.parts[0]).any())
        return labels is not self.parts and not np.array_equal(labels, self.parts)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark sizes that no edge moves, and sums that none does."""
        exact = np.zeros(self.clusters * (1 + self.grid.axes), dtype=np.bool_)
        if not policy.has_bottom and not self._may_cross(policy):
            exact[: self.clusters] = True
            exact[self.clusters :] = self.grid.longest_move(policy) == 0
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest weighted change along an edge: Lemma KM4.

        Exact for few edges; else a bound by any two cells, or by the longest edge.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row: the size of every cluster, and its sum along each
            axis.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        size, total = self._heaviest(weights)
        if policy.edges_up_to(LISTED_EDGES) is not None:
            return self._worst_listed(size, total, policy, power)
        radius = self.grid.radius if power == 1 else self.grid.squared_radius
        worst = 0
        if policy.has_bottom:
            worst = size + total * radius
        if self._may_cross(policy):
            worst = max(worst, 2 * size + total * 2 * radius)
        elif policy.has_moves:
            # The square of an L1 length is not below the sum of squares.
            longest = self.grid.longest_move(policy) ** power
            worst = max(worst, total * min(longest, 2**power * radius))
        return worst

    def _heaviest(self, weights: IntArray) -> tuple[int, int]:
        sizes, sums = weights[: self.clusters], weights[self.clusters :]
        return int(sizes.max()), int(sums.max())

    def _worst_listed(self, size: int, total: int, policy: Policy, power: int) -> int:
        worst = 0
        for edges in policy.edges():
            first, second = np.ascontiguousarray(edges.T)
            absent = (first == ABSENT) | (second == ABSENT)
            cells = np.where(first == ABSENT, second, first)[absent]
            if cells.size:
                norms = (np.abs(self._coordinates(cells)) ** power).sum(axis=1)
                worst = max(worst, size + total * int(norms.max()))
            if not absent.all():
                moves = first[~absent], second[~absent]
                worst = max(worst, self._worst_move(size, total, moves, power))
        return worst

    def _coordinates(self, cells: IntArray) -> IntArray:
        return self.grid.coordinates_of(self.grid.places(cells))

    def _worst_move(
        self, size: int, total: int, moves: tuple[IntArray, IntArray], power: int
    ) -> int:
        first, second = moves
        first_point, second_point = self._coordinates(first), self._coordinates(second)
        length = (np.abs(first_point - second_point) ** power).sum(axis=1)
        across = (np.abs(first_point) ** power + np.abs(second_point) ** power).sum(
            axis=1
        )
        cross = self._cluster_of(first) != self._cluster_of(second)
        worst = total * int(length[~cross].max(initial=0))
        if cross.any():
            worst = max(worst, 2 * size + total * int(across[cross].max()))
        return worst

    def _cluster_of(self, cells: IntArray) -> IntArray:
        if self.parts is not None:
            return self._cluster_of_cell[cells]
        places = self.grid.places(cells)
        return kernels.nearest_clusters(places, self._distances, self.grid.offsets)

    def moved_centers(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return new centres inside the box; clusters of few records keep theirs.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            Noisy sizes and sums.
        scales : Scales
            Their noise.

        Returns
        -------
        ndarray of float64, shape (clusters, axes)
            The centres.
        """
        clusters = self.clusters
        sizes = noisy[:clusters].astype(np.float64)
        sums = noisy[clusters:].reshape(clusters, -1).astype(np.float64)
        enough = np.maximum(1.0, 2.0 * scales.widths[:clusters])
        measured = (scales.measured | scales.exact)[:clusters]
        stays = ~measured | (sizes < enough)
        means = sums / np.where(stays, 1.0, sizes)[:, None]
        centers = self.grid.middle + self.grid.step * means
        centers[stays] = self.centers[stays]
        return np.clip(centers, self.grid.low, self.grid.high)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Refuse: clusters do not determine the cells.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            Not read.
        scales : Scales
            Not read.

        Returns
        -------
        ndarray of float64
            Nothing is ever returned.

        Raises
        ------
        IntervalError
            Always.
        """
        raise IntervalError(self.no_answers)

    def pack(self) -> dict[str, Any]:
        """Return domain, centres and parts."""
        return {
            "domain": self.grid.domain.to_dict(),
            "centers": self.centers,
            "parts": self.parts,
            "share": str(self.share),
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        domain = Domain.from_dict(data["domain"])
        return cls(
            CellGrid(domain),
            np.asarray(data["centers"], dtype=np.float64),
            as_parts(data["parts"], domain.size),
            share=as_share(data["share"], "share"),
        )


def _side(attribute: Axis) -> FloatArray:
    edges, size = attribute.edges, attribute.size
    if attribute.extras:
        raise DomainError(
            "k-means measures distances, and the cell of missing values or values "
            f"outside has no place on {attribute.name or 'the axis'}; clamp or refuse "
            "such values instead"
        )
    if attribute.levels is not None:
        raise DomainError(
            "k-means measures distances, and levels have none; give the attribute "
            "edges (Domain.from_edges) or leave it out"
        )
    if edges is None:
        return np.arange(size + 1, dtype=np.float64)
    side = np.asarray(edges, dtype=np.float64)
    if np.abs(side).max() > FURTHEST or np.diff(side).min() < 1 / FURTHEST:
        raise DomainError(
            "squares of distances must fit a float: edges may lie at most 1e150 from 0 "
            f"and 1e-150 apart; received {side[:3]} ... Use other units"
        )
    return side
