"""Points in districts beside Python's integers: corners, borders, far numbers."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.space.point_location import (
    NOWHERE,
    OVERLAPPING,
    edge_index,
    first_clash,
    locate_points,
)
from tests.reference.point_location import holders

pytestmark = pytest.mark.kernel


def ring_edges(ring):
    points = np.array([*ring, ring[0]], dtype=np.int64)
    return np.concatenate([points[:-1], points[1:]], axis=1)


def quarters(rng, scale=1, shift=0):
    """Return a square cut into four districts by bent borders with common corners."""
    middle = (50 + rng.integers(-9, 10), 50 + rng.integers(-9, 10))
    sides = [(50, 0), (100, 50), (50, 100), (0, 50)]
    bends = [
        tuple(int(v) for v in (np.array(side) + middle) // 2 + rng.integers(-4, 5, 2))
        for side in sides
    ]
    corners = [(0, 0), (100, 0), (100, 100), (0, 100)]
    edges, owners = [], []
    for at in range(4):
        before, after = (at - 1) % 4, at
        ring = [
            corners[at],
            sides[after],
            bends[after],
            middle,
            bends[before],
            sides[before],
        ]
        found = ring_edges(ring if rng.random() < 0.5 else ring[::-1]) * scale + shift
        edges.append(found)
        owners += [at] * len(found)
    return np.concatenate(edges), np.array(owners)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1, -50), (2 * 10**7, -(10**9))])
def test_every_point_of_a_tiling_lies_in_one_district(seed, scale, shift):
    rng = np.random.default_rng(seed)
    edges, owners = quarters(rng, scale, shift)
    index = edge_index(edges, owners)
    corners = edges[:, :2]
    middles = (edges[:, :2] + edges[:, 2:]) // 2
    anywhere = rng.integers(-20, 120, (150, 2)) * scale + shift
    points = np.concatenate([corners, middles, anywhere])
    found = locate_points(points[:, 0], points[:, 1], index)
    for (x, y), district in zip(points.tolist(), found.tolist(), strict=True):
        expected = holders(x, y, edges.tolist(), owners.tolist())
        assert expected == ({district} if district >= 0 else set())
        within = shift <= x < 100 * scale + shift and shift <= y < 100 * scale + shift
        assert (district != NOWHERE) == within
    assert first_clash(index)[0] == 0


def test_numbers_at_the_ends_of_64_bits_do_not_overflow():
    half = 2**30
    square = [(-half, -half), (half, -half), (half, half), (-half, half)]
    index = edge_index(ring_edges(square), np.zeros(4, dtype=np.int64))
    xs = np.array([-half, half - 1, half, -half - 1, 0])
    ys = np.array([-half, half - 1, 0, 0, half])
    assert locate_points(xs, ys, index).tolist() == [0, 0, -1, -1, -1]


def test_overlaps_crossings_and_corners_inside_edges_are_seen():
    first = ring_edges([(0, 0), (10, 0), (10, 10), (0, 10)])
    owners = np.repeat([0, 1], 4)

    def clash(ring):
        index = edge_index(np.concatenate([first, ring_edges(ring)]), owners)
        return first_clash(index)[0], index

    assert clash([(10, 0), (20, 0), (20, 10), (10, 10)])[0] == 0
    assert clash([(5, 5), (20, 5), (20, 8), (5, 8)])[0] == 2
    assert clash([(10, 2), (20, 2), (20, 8), (10, 8)])[0] == 1
    kind, index = clash([(2, 2), (8, 2), (8, 8), (2, 8)])
    assert kind == 0
    assert locate_points(np.array([4]), np.array([4]), index).tolist() == [OVERLAPPING]
