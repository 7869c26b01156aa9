"""The nearest district of a point outside, and of a part of the map that is cut off.

A point in a gap, or outside, is taken to the district whose border is nearest. Parts of
the map that share no border are joined at their nearest districts, the shortest way
first, until one part is left:

    +---+---+      +---+
    | A | B |......| C |     B and C are joined: the shortest way between the two parts
    +---+---+      +---+

Both read public borders, and the point by itself.
"""

from __future__ import annotations

import heapq

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray

FARTHEST = 1024.0
"""Points are taken as at most so many widths of the map away from it."""


class NearestDistricts:
    """Finds the nearest district, by the borders of all.

    Parameters
    ----------
    edges : ndarray of int64, shape (edges, 4)
        Both ends of each edge, in doubled steps.
    owners : ndarray of int64, shape (edges,)
        The district of each edge, rising.
    step : float
        What coordinates are rounded to.
    degrees : bool
        Whether x is a longitude and y a latitude: a degree of longitude is then as long
        as the cosine of the latitude says, and 360 degrees are a full turn.
    """

    def __init__(
        self, edges: IntArray, owners: IntArray, step: float, *, degrees: bool
    ) -> None:
        self._edges, self._owners = edges, owners
        self._unit = step / 2.0
        self._degrees = degrees
        ends = edges.reshape(-1, 2)
        self._low, self._high = ends.min(axis=0), ends.max(axis=0)
        self._boxes = kernels.edge_boxes(kernels.edge_index(edges, owners))

    def next_to_the_map(self, x: FloatArray) -> FloatArray:
        """Return longitudes by full turns nearest to the middle of the map.

        Parameters
        ----------
        x : ndarray of float64
            Longitudes, or x, which stays as it is.

        Returns
        -------
        ndarray of float64
            The same places.
        """
        if not self._degrees:
            return x
        middle = float(self._low[0] + self._high[0]) / 2.0 * self._unit
        return x - 360.0 * np.rint((x - middle) / 360.0)

    def of_points(self, x: FloatArray, y: FloatArray) -> IntArray:
        """Return the district with the nearest border, the first of several.

        Parameters
        ----------
        x : ndarray of float64
            Longitudes next to the map, or x; all finite.
        y : ndarray of float64
            Latitudes, or y.

        Returns
        -------
        ndarray of int64
            The numbers of the districts.
        """
        far = FARTHEST * (self._high - self._low + 2.0)
        places = np.stack([x, y], axis=1) / (2.0 * self._unit)
        whole = np.clip(2.0 * np.rint(places), self._low - far, self._high + far)
        edges, _ = kernels.nearest_edges(self._with_stretch(whole), self._boxes)
        nearest: IntArray = self._owners[edges]
        return nearest

    def _with_stretch(self, places: FloatArray) -> FloatArray:
        """Return places and how long a step along x is there."""
        stretch = np.ones(len(places))
        if self._degrees:
            latitudes = np.clip(places[:, 1] * self._unit, -90.0, 90.0)
            # At the poles all longitudes are one place; a little keeps them apart.
            stretch = np.maximum(np.cos(np.radians(latitudes)), 1e-6)
        return np.column_stack([places, stretch])

    def joining_pairs(self, joined: IntArray, counted: BoolArray) -> IntArray:
        """Return pairs of districts that connect all parts of the map.

        The shortest way between two parts comes first, as in Kruskal's algorithm.
        Ways to a border that merged parts share are looked up again when their turn
        comes, since they can only have become longer.

        Parameters
        ----------
        joined : ndarray of int64, shape (pairs, 2)
            Districts that are joined already.
        counted : ndarray of bool, shape (districts,)
            The districts with a border to the outside; each part has one.

        Returns
        -------
        ndarray of int64, shape (parts - 1, 2)
            The pairs.
        """
        # Whoever asks for no policy of neighbours does not wait for scipy.
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size = counted.size
        ones = np.ones(len(joined), dtype=np.int8)
        graph = coo_array((ones, (joined[:, 0], joined[:, 1])), shape=(size, size))
        left, parts = connected_components(graph, directed=False)
        if left == 1:
            return np.empty((0, 2), dtype=np.int64)
        near = NearestDistricts(
            self._edges[counted[self._owners]],
            self._owners[counted[self._owners]],
            2.0 * self._unit,
            degrees=self._degrees,
        )
        return near._shortest_ways(parts.astype(np.int64), int(left))

    def _shortest_ways(self, parts: IntArray, left: int) -> IntArray:
        """Join the two nearest parts until one is left."""
        corners = self._with_stretch(self._edges[:, :2].astype(np.float64))
        edges, apart = kernels.nearest_edges(
            corners, self._boxes, parts[self._owners], parts[self._owners]
        )
        ways = list(
            zip(apart.tolist(), range(len(corners)), edges.tolist(), strict=True)
        )
        heapq.heapify(ways)
        pairs = []
        while left > 1:
            _, corner, edge = heapq.heappop(ways)
            here, there = self._owners[corner], self._owners[edge]
            if parts[here] != parts[there]:
                pairs.append(sorted((int(here), int(there))))
                parts[parts == parts[there]] = parts[here]
                left -= 1
                continue
            groups = parts[self._owners]
            again, distance = kernels.nearest_edges(
                corners[corner : corner + 1], self._boxes, groups, groups[[corner]]
            )
            heapq.heappush(ways, (float(distance[0]), corner, int(again[0])))
        return np.array(pairs, dtype=np.int64)
