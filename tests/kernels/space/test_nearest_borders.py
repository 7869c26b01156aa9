"""Nearest edges beside fractions over all edges: around, on corners and far away."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.space.nearest_borders import edge_boxes, nearest_edges
from blowfish_fast.kernels.space.point_location import NOWHERE, edge_index
from tests.kernels.space.test_point_location import quarters, ring_edges
from tests.reference.point_location import squared_distance

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stretch", [1.0, 0.375])
def test_the_nearest_edge_is_the_first_of_the_nearest_of_all(seed, stretch):
    """Against fractions over all edges: inside, around, on corners and far away."""
    rng = np.random.default_rng(seed)
    edges, owners = quarters(rng)
    boxes = edge_boxes(edge_index(edges, owners))
    places = np.concatenate(
        [
            rng.integers(-30, 131, (60, 2)),
            rng.integers(-(10**6), 10**6, (20, 2)),
            edges[:, :2],
        ]
    )
    points = np.column_stack([places, np.full(len(places), stretch)]).astype(float)
    groups = owners.copy()
    for own in (np.full(len(places), -1), rng.integers(0, 4, len(places))):
        found, apart = nearest_edges(points, boxes, groups, own)
        for (x, y), mine, edge, gap in zip(
            places.tolist(), own.tolist(), found.tolist(), apart.tolist(), strict=True
        ):
            others = np.flatnonzero(owners != mine).tolist()
            gaps = {
                at: squared_distance(x, y, stretch, edges[at].tolist()) for at in others
            }
            assert edge in gaps
            assert gap == pytest.approx(float(min(gaps.values())), rel=1e-9, abs=1e-9)
            assert float(gaps[edge]) == pytest.approx(gap, rel=1e-9, abs=1e-9)
            if owners[edge] == mine:
                raise AssertionError("an edge of the own group counted")


def test_of_corners_at_one_distance_the_first_edge_is_taken():
    left = ring_edges([(0, 0), (10, 0), (10, 10), (0, 10)])
    right = ring_edges([(10, 0), (20, 0), (20, 10), (10, 10)])
    for sides in ([left, right], [right, left]):
        index = edge_index(np.concatenate(sides), np.repeat([0, 1], 4))
        # Straight below the corner that both have: four edges end there.
        edges, apart = nearest_edges(np.array([[10.0, -3.0, 1.0]]), edge_boxes(index))
        assert index.owners[edges[0]] == 0
        assert apart.tolist() == [9.0]
    nobody = nearest_edges(
        np.array([[10.0, -3.0, 1.0]]), edge_boxes(index), np.zeros(8), np.zeros(1)
    )
    assert nobody[0].tolist() == [NOWHERE]
