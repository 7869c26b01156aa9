"""Chains of moves against brute force: the oracles C1 to C13 of the design."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import PolicyError, SizeError
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Blocks,
    Full,
    Graph,
    Line,
    Threshold,
    constrained,
)
from blowfish_fast.policies.constrained import Chains, QueryGraph, chains
from tests.reference import constraints as reference


def edges_of(policy):
    return np.concatenate([*policy.edges(), np.zeros((0, 2), dtype=int)]).tolist()


def masks_of(sets, cells):
    return [[cell in one for cell in range(cells)] for one in sets]


def arcs_of(graph):
    """Return the directed graph as printed: v+ is query -1, v- is query -2."""
    both = [(a, b) for one in graph.pairs.tolist() for a, b in (one, one[::-1])]
    alone = np.flatnonzero(graph.open).tolist()
    ends = [*((-1, q) for q in alone), *((q, -2) for q in alone)]
    return sorted([(-1, -2), *both, *ends])


def checked(policy, known, sets, records):
    """Compare graph and chains with the definition; return chains and brute force."""
    arcs, sparse = reference.query_arcs(edges_of(policy), sets)
    assert sparse
    found = chains(known, policy)
    assert found.exact
    assert (found.cycle, found.path) == reference.longest_chains(arcs)
    assert arcs_of(constrained.build_query_graph(known, policy)) == sorted(arcs)
    brute = reference.sensitivity(policy.domain.size, records, edges_of(policy), sets)
    one_record = 2 if policy.has_moves else 1
    bound = one_record * policy.with_constraints(known).group_size
    assert brute <= bound
    return found, brute, bound


def marginal_sets(shape, axes):
    cells = list(itertools.product(*map(range, shape)))
    values = itertools.product(*(range(shape[axis]) for axis in axes))
    return [
        {n for n, cell in enumerate(cells) if tuple(cell[a] for a in axes) == value}
        for value in values
    ]


def test_c1_the_example_of_section_8_has_cycles_of_four():
    grid = bf.Domain((2, 2, 3))
    sets = marginal_sets((2, 2, 3), (0, 1))
    by_masks = bf.policies.CountConstraints(grid, masks_of(sets, 12))
    for known in (by_masks, bf.policies.MarginalConstraints(grid, (0, 1))):
        assert chains(known, Full(grid)) == Chains(4, 1, True)
    arcs, sparse = reference.query_arcs(edges_of(Full(grid)), sets)
    assert sparse
    assert reference.longest_chains(arcs) == (4, 1)
    assert arcs_of(constrained.build_query_graph(by_masks, Full(grid))) == sorted(arcs)


def test_c2_the_databases_of_example_8_3_reach_the_bound():
    first = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
    second = [(0, 1, 1), (1, 0, 1), (1, 1, 1), (0, 0, 1)]
    sets = marginal_sets((2, 2, 3), (0, 1))
    cells = list(itertools.product(range(2), range(2), range(3)))
    one, two = ([cells.index(value) for value in data] for data in (first, second))
    assert reference.known_counts(one, sets) == reference.known_counts(two, sets)
    grid = bf.Domain((2, 2, 3))
    policy = Full(grid).with_constraints(bf.policies.MarginalConstraints(grid, (0, 1)))
    assert reference.histogram_distance(one, two) == 8 == 2 * policy.group_size


@pytest.mark.parametrize(
    ("shape", "records", "expected"), [((2, 2), 2, 4), ((3, 2), 3, 6)]
)
def test_c3_and_c13_one_marginal_under_full_is_twice_its_size(shape, records, expected):
    grid = bf.Domain(shape)
    known = bf.policies.MarginalConstraints(grid, 0)
    found, brute, bound = checked(
        Full(grid), known, marginal_sets(shape, (0,)), records
    )
    assert brute == bound == expected
    assert found.cycle == shape[0]


def test_c4_one_query_costs_four_and_the_printed_corollary_says_two():
    line = bf.Domain(4)
    known = bf.policies.CountConstraints(line, [[1, 1, 0, 0]])
    found, brute, bound = checked(Full(line), known, [{0, 1}], 2)
    assert found == Chains(0, 2, True)
    assert brute == bound == 4
    printed = 2 * max(known.queries, 1)
    assert brute > printed
    assert brute <= 2 * (known.queries + 1)


@pytest.mark.parametrize(("theta", "expected"), [(1, 2), (2, 4)])
def test_c5_rectangles_that_tile_the_line_stay_below_the_printed_equality(
    theta, expected
):
    line = bf.Domain(4)
    known = bf.policies.RectangleConstraints(line, [0, 2], [2, 4])
    policy = Threshold(line, theta=theta)
    _, brute, bound = checked(policy, known, [{0, 1}, {2, 3}], 3)
    assert brute == expected
    assert bound < 2 * (2 + 1)


def test_c6_two_touching_intervals_with_gaps_reach_the_bound():
    line = bf.Domain(6)
    known = bf.policies.RectangleConstraints(line, [1, 3], [3, 5])
    found, brute, bound = checked(Line(line), known, [{1, 2}, {3, 4}], 3)
    assert found.path == 3
    assert brute == bound == 6


def test_c7_a_star_of_queries_has_no_path_through_all():
    star = QueryGraph(np.array([[0, 1], [0, 2], [0, 3]]), np.ones(4, dtype=bool), True)
    assert constrained.longest_chains(star) == Chains(2, 4, True)
    assert reference.longest_chains(arcs_of(star)) == (2, 4)


@pytest.mark.parametrize(("shape", "records"), [((3, 2), 3), ((2, 3), 2)])
def test_c8_attribute_marginals_may_stay_below_the_printed_equality(shape, records):
    grid = bf.Domain(shape)
    known = bf.policies.MarginalConstraints(grid, 0)
    found, brute, bound = checked(
        Attribute(grid), known, marginal_sets(shape, (0,)), records
    )
    assert brute == 4
    assert bound == 2 * shape[0]
    assert found.cycle == shape[0]


def test_c9_the_printed_definition_of_neighbours_breaks_the_bound():
    line = bf.Domain(6)
    policy = Graph(line, [[0, 1]])
    sets = [{1, 2}, {3, 4}]
    known = bf.policies.CountConstraints(line, masks_of(sets, 6))
    literal = reference.sensitivity(6, 3, [(0, 1)], sets, literal=True)
    _, brute, bound = checked(policy, known, sets, 3)
    assert literal == 6 > bound == 4
    assert brute <= bound
    assert "Definition 4.1" in policy.with_constraints(known).neighbours


@pytest.mark.parametrize(("shape", "cycle"), [((2, 3), 6), ((2, 2), 4)])
def test_c10_several_attributes_give_hamming_graphs_with_one_full_cycle(shape, cycle):
    grid = bf.Domain((*shape, 2))
    axes = tuple(range(len(shape)))
    known = bf.policies.MarginalConstraints(grid, axes)
    sets = marginal_sets(grid.shape, axes)
    assert chains(known, Attribute(grid)) == Chains(cycle, 1, True)
    same = bf.policies.CountConstraints(grid, masks_of(sets, grid.size))
    assert chains(same, Attribute(grid)) == Chains(cycle, 1, True)
    arcs, _ = reference.query_arcs(edges_of(Attribute(grid)), sets)
    assert reference.longest_chains(arcs) == (cycle, 1)


def test_disjoint_marginals_under_attribute_cost_the_largest():
    grid = bf.Domain((2, 3, 2))
    known = bf.policies.MarginalConstraints(grid, [(0,), (1,)])
    assert chains(known, Attribute(grid)) == Chains(3, 1, True)
    sets = marginal_sets((2, 3, 2), (0,)) + marginal_sets((2, 3, 2), (1,))
    same = bf.policies.CountConstraints(grid, masks_of(sets, 12))
    assert chains(same, Attribute(grid)) == Chains(3, 1, True)


@pytest.mark.long
def test_c12_random_sparse_policies_obey_the_theorem_and_the_bounds():
    rng = np.random.default_rng(82)
    sparse, printed_fails = 0, 0
    for _ in range(150):
        cells = 5
        every = list(itertools.combinations(range(cells), 2))
        absent = [(cell, -1) for cell in range(cells)] if rng.random() < 0.3 else []
        edges = [one for one in every if rng.random() < 0.5]
        edges += [one for one in absent if rng.random() < 0.4]
        number = rng.integers(1, 3)
        sets = [{c for c in range(cells) if rng.random() < 0.4} for _ in range(number)]
        if not edges:
            continue
        policy = Graph(bf.Domain(cells), edges)
        known = bf.policies.CountConstraints(policy.domain, masks_of(sets, cells))
        if not reference.query_arcs(edges, sets)[1]:
            with pytest.raises(PolicyError, match="not sparse"):
                policy.with_constraints(known)
            continue
        found, brute, bound = checked(policy, known, sets, 2 if absent else 3)
        sparse += 1
        per_record = bound // found.group_size
        printed_fails += brute > per_record * max(known.queries, 1)
        assert brute <= per_record * (known.queries + 1)
        linear = bounded(constrained.build_query_graph(known, policy))
        assert found.cycle <= linear.cycle
        assert found.path <= linear.path <= known.queries + 1
    assert sparse > 40
    assert printed_fails > 5


def bounded(graph):
    """Return the linear-time bounds, as if no set of queries were searched."""
    patch = pytest.MonkeyPatch()
    with patch.context() as here:
        here.setattr(constrained, "EXACT_QUERIES", 0)
        found = constrained.longest_chains(graph)
    assert not found.exact or found.group_size == 1
    return found


def test_long_rows_of_queries_are_bounded_by_their_size():
    cells = 2**10
    line = bf.Domain(cells)
    starts = np.arange(0, cells - 4, 4)
    known = bf.policies.RectangleConstraints(line, starts, starts + 3)
    # Gaps of one cell: under theta = 1 each interval stands alone between two gaps.
    assert chains(known, Line(line)).group_size == 2
    together = chains(known, Threshold(line, theta=2))
    assert together.group_size == known.queries + 1
    assert not together.exact


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_the_sweep_over_rectangles_finds_the_pairs_of_the_definition(metric):
    rng = np.random.default_rng(7)
    grid = bf.Domain((12, 15))
    for theta in (1, 2, 2.5, 3):
        taken = np.zeros(grid.shape, dtype=bool)
        lows, highs = [], []
        for _ in range(60):
            low = rng.integers(0, grid.shape)
            high = np.minimum(low + rng.integers(1, 4, 2), grid.shape)
            box = tuple(slice(*side) for side in zip(low, high, strict=True))
            if not taken[box].any():
                taken[box] = True
                lows.append(low)
                highs.append(high)
        known = bf.policies.RectangleConstraints(grid, lows, highs)
        policy = Threshold(grid, theta=theta, metric=metric)
        swept = constrained._near_rectangles(known, policy)
        quotient = policy.project(known.cell_kinds.labels)
        walked = constrained._walk_edges(known, policy, quotient)
        assert {tuple(sorted(one)) for one in swept.tolist()} == {
            tuple(one) for one in walked.pairs.tolist()
        }
        assert len(swept) == len(walked.pairs)


@pytest.mark.parametrize(
    ("edges", "theta"),
    [
        ([0, 1, 2, 10, 11, 30, 31, 33, 34], 9),
        # Cells narrower than a unit: a move crosses more of them than theta.
        (np.arange(0, 4.5, 0.5).tolist(), 2),
    ],
)
def test_value_thresholds_and_bands_are_swept_too(edges, theta):
    line = bf.Domain.from_edges(edges)
    known = bf.policies.RectangleConstraints(line, [0, 2, 4, 6], [1, 3, 5, 8])
    policy = Threshold(line, theta=theta, unit="value")
    swept = {tuple(one) for one in constrained._near_rectangles(known, policy).tolist()}
    walked = constrained._walk_edges(
        known, policy, policy.project(known.cell_kinds.labels)
    )
    assert swept == {tuple(one) for one in walked.pairs.tolist()}


def test_what_is_too_large_to_walk_is_bounded_or_refused():
    grid = bf.Domain((2**9, 2**9))
    far = Threshold(grid, theta=300, metric="l2")
    corner = np.arange(0, 2**9, 2**6)
    masks = [np.zeros(grid.shape, dtype=bool) for _ in range(3)]
    for mask, start in zip(masks, corner, strict=False):
        mask[start : start + 2**6] = True
        mask[start, 0] = False
    known = bf.policies.CountConstraints(grid, masks)
    with pytest.raises(SizeError):
        constrained.build_query_graph(known, far)
    assert chains(known, far) == Chains(3, 4, False)
    masks.append(np.ones(grid.shape, dtype=bool))
    masks[-1][0] = False
    with pytest.raises(PolicyError, match="cannot be checked"):
        chains(bf.policies.CountConstraints(grid, masks), far)


def test_many_disjoint_counts_under_full_are_bounded_by_their_number():
    line = bf.Domain(2**14)
    starts = np.arange(2**13) * 2
    tiling = bf.policies.RectangleConstraints(line, starts, starts + 2)
    assert chains(tiling, Full(line)) == Chains(2**13, 1, False)
    gap = bf.policies.RectangleConstraints(line, starts, starts + 1)
    assert chains(gap, Full(line)) == Chains(2**13, 2**13 + 1, False)


def test_adding_and_removing_under_a_marginal_exchanges_two_records():
    grid = bf.Domain((2, 2))
    known = bf.policies.MarginalConstraints(grid, 0)
    found, brute, bound = checked(
        AddRemove(grid), known, marginal_sets((2, 2), (0,)), 3
    )
    assert found == Chains(0, 2, True)
    assert brute == bound == 2


def test_counts_that_no_edge_changes_cost_nothing():
    line = bf.Domain(6)
    policy = Blocks(line, [0, 0, 0, 1, 1, 1])
    known = bf.policies.CountConstraints(line, [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    assert chains(known, policy) == Chains(0, 1, True)
    assert policy.with_constraints(known).group_size == 1


@pytest.mark.parametrize(
    ("policy", "known"),
    [
        (Full, lambda grid: bf.policies.MarginalConstraints(grid, [(0,), (1,)])),
        (Attribute, lambda grid: bf.policies.MarginalConstraints(grid, [(0, 1), (1,)])),
        (AddRemove, lambda grid: bf.policies.MarginalConstraints(grid, [(0,), (1,)])),
        (
            Full,
            lambda grid: bf.policies.CountConstraints(grid, [[1, 0, 0, 0, 0, 0]] * 2),
        ),
    ],
)
def test_constraints_that_are_not_sparse_are_refused_with_a_reason(policy, known):
    grid = bf.Domain((2, 3))
    with pytest.raises(PolicyError, match=r"not sparse.*lower queries.*lift"):
        policy(grid).with_constraints(known(grid))
