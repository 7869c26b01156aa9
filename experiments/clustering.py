"""Ways to find clusters, and what they cost: the objective of k-means.

    not private     Lloyd's rounds on the points
    safe            `KMeans` of this library under the policy
    histogram       `Dawa` under `Full`, then Lloyd's rounds on its estimate, for free
    as printed      noise by Lemma 6.1 of the Blowfish paper, which is not private

The last is simulated here, outside every mechanism, to show what the paper measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.mechanisms.dawa import Dawa
from blowfish_fast.mechanisms.kmeans import KMeans
from blowfish_fast.policies import Full, Policy
from blowfish_fast.release.centres import Centres
from blowfish_fast.workloads import Rectangles

from .contenders import seeded_release
from .point_sets import PointSet

CLUSTERS = 4
ROUNDS = 10
FRACTIONS = 16
"""Estimated counts are clustered in sixteenths of a record."""


class Lattice(NamedTuple):
    """Records as cells of a grid, `repeats` of each; none for one of each.

    `unit` is the width of a cell along each axis, in the coordinates of the centres.
    """

    cells: AnyArray
    repeats: IntArray
    shape: tuple[int, ...]
    unit: FloatArray


def lattice_of(known: PointSet) -> Lattice:
    """Return the points as cells of their domain."""
    shape = known.domain.shape
    none = np.empty(0, dtype=np.int64)
    return Lattice(known.points.astype(np.int32), none, shape, np.ones(len(shape)))


def random_start(known: PointSet, seed: int) -> FloatArray:
    """Return public centres to start from, anywhere in the box."""
    sides = np.array(known.domain.shape, dtype=np.float64)
    start: FloatArray = np.random.default_rng(seed).random((CLUSTERS, sides.size))
    return start * sides


def objective(points: FloatArray, centers: FloatArray) -> float:
    """Return the squared distances to the nearest centres, summed."""
    from blowfish_fast.kernels.fitting.lloyd import squared_distance_total

    return squared_distance_total(np.ascontiguousarray(points), centers)


def lloyd(records: Lattice, start: FloatArray) -> FloatArray:
    """Return the centres after the paper's number of rounds, without any noise."""
    centers = start
    for _ in range(ROUNDS):
        sizes, sums = _totals(records, centers)
        moved = sums / np.maximum(sizes, 1.0)[:, None]
        centers = np.where(sizes[:, None] > 0, moved, centers)
    return centers


def safe_centers(
    known: PointSet, policy: Policy, epsilon: str, start: FloatArray, seed: int
) -> FloatArray:
    """Return the centres of a private release."""
    mechanism = KMeans(policy, CLUSTERS, epsilon=epsilon, rounds=ROUNDS, start=start)
    release = seeded_release(mechanism, known.points, seed)
    assert isinstance(release, Centres)
    return release.centers


def histogram_centers(
    known: PointSet, epsilon: str, start: FloatArray, seed: int
) -> FloatArray:
    """Return the centres of a private histogram; the rounds cost nothing."""
    grid = Domain(known.coarse)
    sides = np.array(known.domain.shape) / np.array(known.coarse)
    cells = tuple((known.points / sides).astype(np.int64).T)
    counts = np.bincount(
        np.ravel_multi_index(cells, known.coarse), minlength=grid.size
    ).reshape(known.coarse)
    asked = Rectangles.random(grid, 200, rng=1)
    release = seeded_release(Dawa(Full(grid), asked, epsilon=epsilon), counts, seed)
    weights = np.maximum(release.estimate.reshape(-1), 0.0) * FRACTIONS
    repeats = np.rint(weights).astype(np.int64)
    full = np.flatnonzero(repeats)
    places = np.stack(np.unravel_index(full, known.coarse), axis=1).astype(np.int32)
    return lloyd(Lattice(places, repeats[full], known.coarse, sides), start)


def printed_centers(
    known: PointSet,
    sum_sensitivity: float,
    size_sensitivity: float,
    epsilon: str,
    start: FloatArray,
    seed: int,
) -> FloatArray:
    """Return centres with the noise that the paper prints. Not private."""
    generator = np.random.default_rng(seed)
    sides = np.array(known.domain.shape, dtype=np.float64)
    part = float(epsilon) / ROUNDS / 2
    records = lattice_of(known)
    centers = start
    for _ in range(ROUNDS):
        sizes, sums = _totals(records, centers)
        noisy_sizes = sizes + generator.laplace(scale=1.0, size=sizes.shape) * (
            size_sensitivity / part
        )
        noisy_sums = sums + generator.laplace(scale=1.0, size=sums.shape) * (
            sum_sensitivity / part
        )
        moved = noisy_sums / np.maximum(noisy_sizes, 1.0)[:, None]
        centers = np.clip(moved, 0.0, sides)
    return centers


def _totals(records: Lattice, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sizes and sums of the records nearest to each centre."""
    from blowfish_fast.kernels.fitting.lloyd import cluster_totals

    middles = [
        (np.arange(side) + 0.5) * unit
        for side, unit in zip(records.shape, records.unit, strict=True)
    ]
    distances = np.concatenate(
        [
            (places[:, None] - centers[:, axis]) ** 2
            for axis, places in enumerate(middles)
        ]
    )
    # Middles of cells are odd numbers of half cells.
    halves = np.concatenate([2 * np.arange(side) + 1 for side in records.shape])
    totals = cluster_totals(
        records.cells,
        records.repeats,
        distances,
        halves,
        np.cumsum([0, *records.shape]),
    )
    return totals[:, 0].astype(np.float64), totals[:, 1:] * (records.unit / 2)
