from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting import lloyd
from blowfish_fast.kernels.fitting.lloyd import (
    assigned_totals,
    cell_positions,
    cluster_totals,
    nearest_clusters,
    squared_distance_total,
)
from tests.generated import example_count
from tests.reference import lloyd as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(60)
NONE = np.zeros(0, dtype=np.int64)


@st.composite
def scenes(draw):
    """Draw sides of cells, records as cells, and centres."""
    axes = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 5), min_size=axes, max_size=axes))
    seed = draw(st.integers(0, 2**31))
    clusters = draw(st.integers(1, 4))
    records = draw(st.integers(0, 12))
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.integers(0, n, records) for n in sizes], axis=1)
    # Halves make ties between centres common.
    centers = rng.integers(0, 10, (clusters, axes)) / 2
    return sizes, np.ascontiguousarray(cells, dtype=np.int32), centers, rng


def tables(sizes, centers):
    values = [np.arange(n) + 0.5 for n in sizes]
    distances = np.concatenate(
        [(one[:, None] - centers[None, :, a]) ** 2 for a, one in enumerate(values)]
    )
    coordinates = np.concatenate([2 * np.arange(n) + 1 - n for n in sizes])
    return distances, coordinates, np.cumsum([0, *sizes])


@settings(deadline=None, max_examples=EXAMPLES)
@given(scenes())
def test_totals_equal_the_definition(scene):
    sizes, cells, centers, rng = scene
    distances, coordinates, offsets = tables(sizes, centers)
    steps = coordinates[cells + offsets[:-1]]
    expected = reference.totals(cells + 0.5, centers, steps)
    found = cluster_totals(cells, NONE, distances, coordinates, offsets)
    np.testing.assert_array_equal(found, expected)
    labels = nearest_clusters(cells, distances, offsets)
    assert labels.tolist() == [reference.nearest(one + 0.5, centers) for one in cells]

    repeats = rng.integers(0, 4, len(cells))
    many = np.repeat(cells, repeats, axis=0)
    expected = reference.totals(many + 0.5, centers, np.repeat(steps, repeats, axis=0))
    found = cluster_totals(cells, repeats, distances, coordinates, offsets)
    np.testing.assert_array_equal(found, expected)


@settings(deadline=None, max_examples=EXAMPLES)
@given(scenes())
def test_assigned_totals_follow_the_given_clusters(scene):
    sizes, cells, centers, rng = scene
    _, coordinates, offsets = tables(sizes, centers)
    clusters = len(centers)
    cluster_of_cell = rng.integers(0, clusters, int(np.prod(sizes)))
    found = assigned_totals(
        cells, NONE, cluster_of_cell, clusters, coordinates, offsets
    )
    expected = np.zeros_like(found)
    for record in cells:
        cluster = cluster_of_cell[np.ravel_multi_index(tuple(record), sizes)]
        expected[cluster, 0] += 1
        expected[cluster, 1:] += coordinates[record + offsets[:-1]]
    np.testing.assert_array_equal(found, expected)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.lists(st.floats(-2, 8), min_size=1, max_size=20),
    st.lists(st.floats(0, 6), min_size=2, max_size=7, unique=True),
)
def test_positions_equal_the_comparison_with_every_edge(values, edges):
    edges = np.sort(edges)
    points = np.array([*values, *edges])[:, None]
    cells, outside = cell_positions(points, edges, np.array([0, edges.size - 1]))
    expected = [reference.cell_of(value, edges) for value in points[:, 0]]
    assert outside == expected.count(None)
    assert cells[:, 0].tolist() == [0 if one is None else one for one in expected]


def test_equal_cells_and_odd_values_are_located():
    edges = np.linspace(0.1, 0.7, 31)
    inside = np.concatenate([edges, np.nextafter(edges[1:], 0), edges[:-1] + 1e-9])
    cells, outside = cell_positions(inside[:, None], edges, np.array([0, 30]))
    assert outside == 0
    assert cells[:, 0].tolist() == [reference.cell_of(v, edges) for v in inside]
    tiny = np.array([0.0, 5e-324, 1e-323])
    cells, outside = cell_positions(tiny[:, None], tiny, np.array([0, 2]))
    assert cells[:, 0].tolist() == [0, 1, 1]
    odd = np.array([np.nan, np.inf, -np.inf, 0.0999999])[:, None]
    assert cell_positions(odd, edges, np.array([0, 30]))[1] == 4


@settings(deadline=None, max_examples=EXAMPLES)
@given(scenes())
def test_squared_distances_equal_the_definition(scene):
    _, cells, centers, _ = scene
    points = cells.astype(np.float64)
    assert squared_distance_total(points, centers) == pytest.approx(
        reference.objective(points, centers)
    )


def test_threads_do_not_change_the_totals(monkeypatch):
    monkeypatch.setattr(lloyd, "RECORDS_PER_THREAD", 16)
    rng = np.random.default_rng(3)
    sizes = [9, 7]
    distances, coordinates, offsets = tables(sizes, rng.random((3, 2)) * 8)
    cells = np.stack([rng.integers(0, n, 333) for n in sizes], 1).astype(np.int32)
    repeats = rng.integers(0, 5, 333)
    points = rng.random((333, 2))
    edges = np.concatenate([np.linspace(0, 1, 10), np.linspace(0, 1, 8)])
    totals, places = [], []
    for threads in (1, 2, 5):
        monkeypatch.setattr(lloyd, "usable_cores", lambda _, cores=threads: cores)
        given = (cells, repeats, distances, coordinates, offsets)
        totals.append(cluster_totals(*given))
        places.append(cell_positions(points, edges, offsets)[0])
    for found in (totals, places):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


def test_bad_shapes_and_cells_off_the_grid_are_refused():
    distances, coordinates, offsets = tables([3, 2], np.zeros((2, 2)))
    cells = np.zeros((4, 2), dtype=np.int32)
    for wrong in (
        cells[:, :1],
        cells.astype(np.int64),
        cells + np.int32(2),
        cells - np.int32(1),
        np.zeros((4, 4), dtype=np.int32)[:, ::2],
    ):
        with pytest.raises(InputError, match="cells of their axes"):
            cluster_totals(wrong, NONE, distances, coordinates, offsets)
    with pytest.raises(InputError, match="one repeat per record"):
        cluster_totals(cells, np.ones(3, int), distances, coordinates, offsets)
    with pytest.raises(InputError, match="one coordinate per row"):
        cluster_totals(cells, NONE, distances, coordinates[1:], offsets)
    with pytest.raises(InputError, match="every cell needs a cluster"):
        assigned_totals(cells, NONE, np.zeros(5, int), 2, coordinates, offsets)
    with pytest.raises(InputError, match="numbered from 0 to 1"):
        assigned_totals(cells, NONE, np.full(6, 2), 2, coordinates, offsets)
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        cell_positions(np.zeros(3), np.zeros(7), offsets)
    with pytest.raises(InputError, match="one more edge"):
        cell_positions(np.zeros((3, 2)), np.zeros(5), offsets)
    with pytest.raises(InputError, match="needs a cell"):
        cell_positions(np.zeros((3, 2)), np.zeros(7), np.array([0, 0, 5]))
    with pytest.raises(InputError, match="one column per axis"):
        squared_distance_total(np.zeros((3, 2)), np.zeros((2, 1)))
