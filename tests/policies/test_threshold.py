from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from blowfish_fast import Domain, policies
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import PolicyError, SizeError
from tests.reference import policy_graphs as reference


@pytest.mark.parametrize(("theta", "count"), [(1, 49), (3, 144), (7, 322)])
def test_p1_edges_of_the_theta_line(theta, count):
    policy = policies.Threshold(Domain(50), theta)
    assert policy.edge_count == count
    assert len(reference.listed(policy)) == count
    assert count == theta * 50 - theta * (theta + 1) // 2


def test_a_theta_of_the_whole_line_joins_everything():
    for theta in (5, 6, 100, 10**30):
        policy = policies.Threshold(Domain(6), theta)
        assert policy.edge_count == 15
        assert policy.implies(policies.Full(Domain(6)))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("theta", [1, 2, 4, 5, 9, 10, 11])
def test_p3_equal_bins_shorten_theta(theta, width):
    policy = policies.Threshold(Domain(60), theta)
    quotient = policy.project(np.arange(60) // width)
    assert quotient == policies.Threshold(Domain(60 // width), math.ceil(theta / width))
    edges = reference.quotient(reference.edges_of(policy), np.arange(60) // width)
    assert reference.listed(quotient) == edges


def test_a_shorter_last_bin_keeps_the_closed_form():
    quotient = policies.Threshold(Domain(11), 5).project(np.arange(11) // 3)
    assert quotient == policies.Threshold(Domain(4), 2)


def test_uneven_bins_reach_as_far_as_their_cells():
    labels = np.repeat([0, 1, 2, 3], [2, 2, 3, 2])
    quotient = policies.Threshold(Domain(9), 3).project(labels)
    assert quotient == policies.Band(Domain(4), [2, 2, 3, 3])


def test_wide_bins_of_any_size_are_a_threshold_of_one():
    quotient = policies.Threshold(Domain(20), 3).project(
        Buckets(np.array([0, 4, 15, 20]))
    )
    assert quotient == policies.Threshold(Domain(3), 1)


@pytest.mark.parametrize("shape", [(7, 5), (4, 3, 5), (3, 2, 2, 3)])
@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
@pytest.mark.parametrize("theta", [1, 2, 2.5, 3])
def test_larger_grids_equal_the_definition(shape, metric, theta):
    policy = policies.Threshold(Domain(shape), theta, metric=metric)
    edges, cells = reference.edges_of(policy), policy.domain.size
    assert policy.edge_count == len(edges)
    everything = np.arange(cells)
    steps = policy.distance(everything[:, None], everything)
    np.testing.assert_array_equal(steps, reference.distances(edges, cells))


@pytest.mark.long
@pytest.mark.parametrize("square", [1, 2, 4, 5, 8, 9, 10, 13, 18, 25])
def test_straight_line_distances_in_the_plane_are_exact(square):
    policy = policies.Threshold(Domain((24, 17)), math.sqrt(square), metric="l2")
    edges = reference.edges_of(policy)
    found = reference.nx.single_source_shortest_path_length(
        reference.network(edges, 408), 0
    )
    steps = policy.distance(0, np.arange(408))
    assert steps.tolist() == [found[cell] for cell in range(408)]


@pytest.mark.parametrize("square", [2, 3, 5, 6, 7, 11])
def test_a_root_that_was_rounded_down_still_joins(square):
    shape = (4, 4, 4)
    policy = policies.Threshold(Domain(shape), math.sqrt(square), metric="l2")
    step = {2: (1, 1, 0), 3: (1, 1, 1), 5: (2, 1, 0), 6: (2, 1, 1), 7: (2, 1, 1)}
    end = np.ravel_multi_index(step.get(square, (3, 1, 1)), shape)
    assert policy.joins(0, end)


def test_fractions_of_a_cell_count_only_in_a_straight_line():
    assert policies.Threshold(Domain(9), 2.9) == policies.Threshold(Domain(9), 2)
    grid = Domain((3, 3))
    assert policies.Threshold(grid, 1.5, metric="linf") == policies.Threshold(
        grid, 1, metric="linf"
    )
    assert policies.Threshold(grid, 1.5, metric="l2").edge_count == 20


def test_metrics_agree_on_one_attribute():
    one = policies.Threshold(Domain(9), 2, metric="l2")
    assert one == policies.Threshold(Domain(9), 2, metric="linf")


def test_values_are_joined_when_some_two_of_them_are_close():
    ages = Domain.from_edges([0, 18, 25, 40, 65, 100], name="age")
    policy = policies.Threshold(ages, 20, unit="value")
    # 0-18 reaches 25-40 (17.9 and 25 differ by 7) but not 40-65 (22 apart).
    assert policy.bandwidth().far.tolist() == [2, 3, 3, 4, 4]
    assert "age values differ by at most 20 " in policy.describe()


def test_unit_cells_measure_the_same_in_values_and_in_cells():
    ages = Domain.from_edges(range(102), name="age")
    by_value = policies.Threshold(ages, 10, unit="value")
    by_cells = policies.Threshold(ages, 10)
    assert by_value.bandwidth().far.tolist() == by_cells.bandwidth().far.tolist()
    assert by_value.implies(by_cells)
    assert by_cells.implies(by_value)


def test_values_are_compared_exactly():
    # 0.3 - 0.2 lies below 0.1 in exact arithmetic on these floats, 0.5 - 0.4 above.
    edges = [0.0, 0.2, 0.3, 0.4, 0.5, 0.6]
    policy = policies.Threshold(Domain.from_edges(edges), 0.1, unit="value")
    assert reference.listed(policy) == reference.edges_of(policy)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300, 1.7e308])
def test_extreme_edges_are_no_trouble(scale):
    edges = np.array([-1.0, -0.5, 0.0, 0.25, 0.75, 1.0]) * scale
    policy = policies.Threshold(Domain.from_edges(edges), scale / 2, unit="value")
    assert reference.listed(policy) == reference.edges_of(policy)


def test_plain_words_use_the_edges():
    incomes = Domain.from_edges(range(0, 100_001, 1000), name="income")
    text = policies.Threshold(incomes, 5).describe()
    assert text.startswith(
        "two people whose income values differ by at most 5,000 cannot be told apart "
        "beyond e^eps; farther apart, e^(eps*d)"
    )
    values = policies.Threshold(Domain.from_edges([0, 1, 5]), 100, unit="value")
    assert values.describe().startswith(
        "two people whose values differ by at most 100 "
    )
    assert "3 cells apart" in policies.Threshold(Domain(9), 3).describe()
    grid = policies.Threshold(Domain((9, 9)), 3, metric="linf")
    assert "3 cells apart (in each attribute)" in grid.describe()
    assert (
        grid.neighbours
        == "one record moves to a cell at most 3 away (in each attribute)"
    )


@pytest.mark.parametrize("theta", [0, 0.99, -3, math.nan, math.inf, True, "near", None])
def test_theta_below_one_cell_is_refused(theta):
    with pytest.raises(PolicyError, match="theta"):
        policies.Threshold(Domain(9), theta)


@pytest.mark.parametrize("theta", [0, -1.5, math.inf])
def test_theta_must_be_positive_in_value_units(theta):
    with pytest.raises(PolicyError, match="theta"):
        policies.Threshold(Domain.from_edges(range(9)), theta, unit="value")


def test_value_units_need_the_edges_of_one_attribute():
    with pytest.raises(PolicyError, match="none"):
        policies.Threshold(Domain(9), 2, unit="value")
    with pytest.raises(PolicyError, match="received a domain of 2 attributes"):
        policies.Threshold(Domain((3, 3)), 2, unit="value")
    with pytest.raises(PolicyError, match='"cells" or "value"'):
        policies.Threshold(Domain(9), 2, unit="years")
    with pytest.raises(PolicyError, match='"l1", "l2" or "linf"'):
        policies.Threshold(Domain(9), 2, metric="l3")


def test_a_million_cells_allocate_no_edges():
    line, grid = Domain(2**20), Domain((1024, 1024))
    tracemalloc.start()
    policy = policies.Threshold(line, 1000)
    assert policy.edge_count == 1000 * 2**20 - 500_500
    assert policy.longest_edge() == 1000
    assert policy.distance(0, 2**20 - 1) == math.ceil((2**20 - 1) / 1000)
    policy = policies.Threshold(grid, 100, metric="l2")
    assert policy.edge_count > 10**10
    assert policy.distance(0, 2**20 - 1) == math.ceil(1023 * math.sqrt(2) / 100)
    assert policy.describe()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


def test_lists_too_long_are_refused_with_their_length():
    policy = policies.Threshold(Domain((4096, 4096)), 4000, metric="linf")
    with pytest.raises(SizeError, match=r"has [\d,]+ edges"):
        policy.edges()
    with pytest.raises(SizeError, match=r"more than 2\^28"):
        policies.Threshold(Domain((200, 200, 200)), 90, metric="l2").distance(
            0, 200**3 - 1
        )


def test_bins_along_one_axis_keep_the_threshold_of_that_axis():
    grid = policies.Threshold(Domain((6, 8)), 2.5, metric="l2")
    labels = np.tile(np.arange(8) // 2, 6)
    assert grid.project(labels) == policies.Threshold(Domain(4), 1)
