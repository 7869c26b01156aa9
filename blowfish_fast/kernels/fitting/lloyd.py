"""One step of Lloyd's algorithm: nearest centres, cluster sizes, cluster sums.

Records are held as their cell along each axis, so a distance is a sum of entries of a
small table, and a sum is exact in integers. The rows of all axes lie below each other;
``offsets[a]`` is the first row of axis a:

    axis 0: cells at 0, 1, 2       distances    centre (0, 4)   centre (2, 8)
    axis 1: cells at 4, 8          row 0        0               4
    offsets  0 3 5                 row 1        1               1
                                   row 2        4               0
    record in cells (1, 1)         row 3        0               16
    1 + 16 = 17 from the first     row 4        16              0
    1 + 0 = 1 from the second

Threads take contiguous parts of the records; integer sums do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from blowfish_fast._support.machine import usable_cores
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel
from blowfish_fast.kernels.space.record_cells import (
    Targets,
    cells_between_edges,
    edge_guide,
)

RECORDS_PER_THREAD = 2**17
"""Fewer records than this are not worth a thread of their own."""

MOST_THREADS = 8

Part = TypeVar("Part")


@kernel
def _on_grid(cells: AnyArray, sizes: IntArray) -> bool:
    for record in range(cells.shape[0]):
        for axis in range(cells.shape[1]):
            if not 0 <= cells[record, axis] < sizes[axis]:
                return False
    return True


@helper
def _nearest(
    cells: AnyArray, record: int, distances: FloatArray, offsets: IntArray
) -> int:
    """Return the nearest centre; the first of several."""
    best, least = 0, np.inf
    for centre in range(distances.shape[1]):
        distance = 0.0
        for axis in range(cells.shape[1]):
            distance += distances[offsets[axis] + cells[record, axis], centre]
        if distance < least:
            best, least = centre, distance
    return best


@kernel
def _nearest_all(
    cells: AnyArray, distances: FloatArray, offsets: IntArray, labels: IntArray
) -> None:
    for record in range(cells.shape[0]):
        labels[record] = _nearest(cells, record, distances, offsets)


@kernel
def _add(
    cells: AnyArray,
    repeats: IntArray,
    clusters: IntArray,
    coordinates: IntArray,
    offsets: IntArray,
    totals: IntArray,
) -> None:
    for record in range(cells.shape[0]):
        cluster = clusters[record]
        times = repeats[record] if repeats.size else 1
        totals[cluster, 0] += times
        for axis in range(cells.shape[1]):
            place = offsets[axis] + cells[record, axis]
            totals[cluster, axis + 1] += times * coordinates[place]


@kernel
def _squares(points: FloatArray, centers: FloatArray) -> float:
    total = 0.0
    for point in range(points.shape[0]):
        least = np.inf
        for centre in range(centers.shape[0]):
            distance = 0.0
            for axis in range(points.shape[1]):
                step = points[point, axis] - centers[centre, axis]
                distance += step * step
            least = min(least, distance)
        total += least
    return total


def cell_positions(
    points: FloatArray,
    edges: FloatArray,
    offsets: IntArray,
) -> tuple[AnyArray, int]:
    """Return the cell of each point along each axis, and how many lie outside.

    Parameters
    ----------
    points : ndarray of float64, shape (n, axes)
        Coordinates.
    edges : ndarray of float64, shape (cells of all axes + axes,)
        The edges of axis 0, then those of axis 1, and so on. The last edge of an axis
        belongs to its last cell.
    offsets : ndarray of int64, shape (axes + 1,)
        The first row of each axis, rising from 0; at the end the number of rows.

    Returns
    -------
    cells : ndarray, shape (n, axes)
        The cells, int32; 0 for a coordinate outside.
    outside : int
        How many coordinates lie beyond the edges or are not a number.

    Raises
    ------
    InputError
        If shapes do not fit, or an axis has no cell.
    """
    axes = offsets.size - 1
    if points.ndim != 2 or points.shape[1] != axes or axes < 1:
        raise InputError(f"points must have shape (n, {axes}); got {points.shape}")
    if edges.size != offsets[-1] + axes or offsets[0] != 0:
        raise InputError(f"{axes} axes of {offsets[-1]} cells have one more edge each")
    if (np.diff(offsets) < 1).any():
        raise InputError("every axis needs a cell")
    cells = np.empty(points.shape, dtype=np.int32)
    outside = 0
    for axis in range(axes):
        # An axis of n cells has n + 1 edges, so edges lie one further per axis.
        own = edges[offsets[axis] + axis : offsets[axis + 1] + axis + 1]
        with np.errstate(over="ignore"):
            guide = edge_guide(own)
        strays = Targets(-1, -1, -1)
        axis_cells, _ = cells_between_edges(points[:, axis], guide, strays, closed=True)
        outside += int(np.count_nonzero(axis_cells < 0))
        cells[:, axis] = np.maximum(axis_cells, 0)
    return cells, outside


def nearest_clusters(
    cells: AnyArray, distances: FloatArray, offsets: IntArray
) -> IntArray:
    """Return the nearest centre of each record; the first of several.

    Parameters
    ----------
    cells : ndarray, shape (n, axes)
        The cell of each record along each axis.
    distances : ndarray of float64, shape (rows, centres)
        Squared distance, along one axis, from each of its cells to each centre.
    offsets : ndarray of int64, shape (axes + 1,)
        The first row of each axis.

    Returns
    -------
    ndarray of int64, shape (n,)
        The number of the nearest centre.

    Raises
    ------
    InputError
        If a record lies off the grid, or shapes do not fit.
    """
    _check_cells(cells, offsets, distances.shape[0])
    labels = np.empty(cells.shape[0], dtype=np.int64)
    _nearest_all(cells, np.ascontiguousarray(distances), offsets, labels)
    return labels


def cluster_totals(
    cells: AnyArray,
    repeats: IntArray,
    distances: FloatArray,
    coordinates: IntArray,
    offsets: IntArray,
) -> IntArray:
    """Return size and coordinate sums of the records nearest to each centre.

    Sums are exact while they stay below 2^63.

    Parameters
    ----------
    cells : ndarray, shape (n, axes)
        The cell of each record along each axis.
    repeats : ndarray of int64, shape (n,)
        How often each record occurs; empty where each occurs once.
    distances : ndarray of float64, shape (rows, centres)
        Squared distance, along one axis, from each of its cells to each centre.
    coordinates : ndarray of int64, shape (rows,)
        The whole coordinate of each cell along its axis.
    offsets : ndarray of int64, shape (axes + 1,)
        The first row of each axis.

    Returns
    -------
    ndarray of int64, shape (centres, 1 + axes)
        Number of records, then the sum of each coordinate.

    Raises
    ------
    InputError
        If a record lies off the grid, or shapes do not fit.
    """
    _check_cells(cells, offsets, distances.shape[0])
    _check_repeats(cells, repeats, coordinates, offsets)
    table = np.ascontiguousarray(distances)

    def nearest(start: int, end: int) -> IntArray:
        clusters = np.empty(end - start, dtype=np.int64)
        _nearest_all(cells[start:end], table, offsets, clusters)
        return clusters

    return _totals(cells, repeats, nearest, table.shape[1], coordinates, offsets)


def assigned_totals(
    cells: AnyArray,
    repeats: IntArray,
    cluster_of_cell: IntArray,
    clusters: int,
    coordinates: IntArray,
    offsets: IntArray,
) -> IntArray:
    """Return size and coordinate sums of whole cells that were assigned to clusters.

    Parameters
    ----------
    cells : ndarray, shape (n, axes)
        The cell of each record along each axis.
    repeats : ndarray of int64, shape (n,)
        How often each record occurs; empty where each occurs once.
    cluster_of_cell : ndarray of int64, shape (cells of the grid,)
        The cluster of each cell of the grid, in C order.
    clusters : int
        Number of clusters.
    coordinates : ndarray of int64, shape (rows,)
        The whole coordinate of each cell along its axis.
    offsets : ndarray of int64, shape (axes + 1,)
        The first row of each axis.

    Returns
    -------
    ndarray of int64, shape (clusters, 1 + axes)
        Number of records, then the sum of each coordinate.

    Raises
    ------
    InputError
        If a record lies off the grid, a cell has no cluster, or shapes do not fit.
    """
    _check_cells(cells, offsets, int(offsets[-1]))
    _check_repeats(cells, repeats, coordinates, offsets)
    if cluster_of_cell.shape != (int(np.prod(np.diff(offsets))),):
        raise InputError(
            f"every cell needs a cluster; received shape {cluster_of_cell.shape}"
        )
    if cluster_of_cell.min() < 0 or cluster_of_cell.max() >= clusters:
        raise InputError(f"clusters are numbered from 0 to {clusters - 1}")

    sides = tuple(np.diff(offsets).tolist())

    def assigned(start: int, end: int) -> IntArray:
        flat = np.ravel_multi_index(tuple(cells[start:end].T), sides)
        clusters: IntArray = cluster_of_cell[flat]
        return clusters

    return _totals(cells, repeats, assigned, clusters, coordinates, offsets)


def _totals(
    cells: AnyArray,
    repeats: IntArray,
    cluster_of: Callable[[int, int], IntArray],
    clusters: int,
    coordinates: IntArray,
    offsets: IntArray,
) -> IntArray:
    """Add up records by cluster."""

    def add(start: int, end: int) -> IntArray:
        totals = np.zeros((clusters, offsets.size), dtype=np.int64)
        part = cells[start:end], repeats[start:end], cluster_of(start, end)
        _add(*part, coordinates, offsets, totals)
        return totals

    whole: IntArray = np.sum(_in_parts(add, len(cells)), axis=0)
    return whole


def squared_distance_total(points: FloatArray, centers: FloatArray) -> float:
    """Return the squared distances from points to their nearest centres, summed.

    Parameters
    ----------
    points : ndarray of float64, shape (n, axes)
        Points.
    centers : ndarray of float64, shape (centres, axes)
        Centres.

    Returns
    -------
    float
        The sum over all points.

    Raises
    ------
    InputError
        If points and centres have different numbers of axes.
    """
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1:] != centers.shape[1:]:
        raise InputError(
            "points and centers must have one column per axis; received shapes "
            f"{points.shape} and {centers.shape}"
        )
    middle = np.ascontiguousarray(centers, dtype=np.float64)

    def add(start: int, end: int) -> float:
        part = np.ascontiguousarray(points[start:end], dtype=np.float64)
        return float(_squares(part, middle))

    return float(sum(_in_parts(add, len(points))))


def _in_parts(work: Callable[[int, int], Part], records: int) -> list[Part]:
    """Run `work(start, end)` over contiguous parts of the records, in threads."""
    parts = max(1, min(usable_cores(MOST_THREADS), records // RECORDS_PER_THREAD))
    bounds = [records * part // parts for part in range(parts + 1)]
    if parts == 1:
        return [work(0, records)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, bounds[:-1], bounds[1:]))


def _check_cells(cells: AnyArray, offsets: IntArray, rows: int) -> None:
    sizes = np.diff(offsets)
    fits = cells.ndim == 2 and cells.shape[1] == sizes.size > 0 and cells.dtype == "i4"
    fits = fits and offsets[0] == 0 and offsets[-1] == rows and bool((sizes > 0).all())
    if not fits or not cells.flags.c_contiguous or not _on_grid(cells, sizes):
        raise InputError(
            "records must be cells of their axes, (n, axes) int32, with one row of the "
            "tables per cell; cell_positions makes them"
        )


def _check_repeats(
    cells: AnyArray, repeats: IntArray, coordinates: IntArray, offsets: IntArray
) -> None:
    if repeats.shape not in ((0,), (cells.shape[0],)):
        raise InputError(
            f"give one repeat per record, or none; received shape {repeats.shape} for "
            f"{cells.shape[0]} records"
        )
    if coordinates.shape != (int(offsets[-1]),):
        raise InputError(
            f"give one coordinate per row; received shape {coordinates.shape}"
        )
