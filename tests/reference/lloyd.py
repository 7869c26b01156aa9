"""Lloyd's algorithm from the definition, record by record."""

from __future__ import annotations

import numpy as np


def cell_of(value, edges):
    """Return the cell of a value by comparing it with every edge; None if outside."""
    for cell in range(len(edges) - 1):
        if edges[cell] <= value < edges[cell + 1]:
            return cell
    return len(edges) - 2 if value == edges[-1] else None


def nearest(point, centers):
    """Return the first of the nearest centres."""
    distances = [sum((np.asarray(point) - centre) ** 2) for centre in centers]
    return distances.index(min(distances))


def totals(points, centers, coordinates):
    """Return sizes and coordinate sums of the clusters of nearest points."""
    found = np.zeros((len(centers), 1 + np.shape(coordinates)[1]), dtype=np.int64)
    for point, steps in zip(points, coordinates, strict=True):
        found[nearest(point, centers)] += np.concatenate([[1], steps])
    return found


def objective(points, centers):
    """Return the squared distances to the nearest centres, summed."""
    return sum(
        min(sum((np.asarray(point) - centre) ** 2) for centre in centers)
        for point in points
    )


def lloyd(points, centers, rounds):
    """Return the centres after fixed rounds, without noise; empty clusters stay."""
    centers = np.array(centers, dtype=float)
    for _ in range(rounds):
        square = ((points[:, None] - centers[None]) ** 2).sum(axis=-1)
        labels = square.argmin(axis=1)
        for cluster in range(len(centers)):
            if (labels == cluster).any():
                centers[cluster] = points[labels == cluster].mean(axis=0)
    return centers
