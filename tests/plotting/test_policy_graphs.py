"""Pictures of policies: small graphs edge by edge, large ones by distances."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.neighbours import policy_families
from blowfish_fast.errors import InputError
from blowfish_fast.plotting.policy_graphs import graph_facts, sampled_cells
from blowfish_fast.policies.drawing import cell_labels, draw_graph, is_small, shorten

AGES = bf.Domain.from_edges(range(0, 101, 10), name="age")
TOWNS = bf.Domain.from_levels(["Bern", "Chur", "Basel", "Lugano"], name="town")
GRID = bf.Domain((4, 5), names=("north", "east"))
SMALL = [AGES, TOWNS, GRID, bf.Domain((2, 3, 2)), bf.Domain(1), bf.Domain((1, 6))]


def edges_of(policy):
    """List the edges from the definition, absent ones apart."""
    listed = np.concatenate([*policy.edges(), np.zeros((0, 2), dtype=np.int64)])
    away = (listed == -1).any(axis=1)
    return {tuple(sorted(one)) for one in listed[~away].tolist()}, int(away.sum())


@pytest.mark.parametrize("domain", SMALL, ids=lambda one: str(one.shape))
def test_a_layout_has_the_edges_of_the_policy(domain):
    for name, policy in policy_families(domain).items():
        layout = draw_graph(policy)
        moves, away = edges_of(policy)
        assert len(layout.spokes) == away, name
        ends = {tuple(one): cell for cell, one in enumerate(layout.nodes.tolist())}
        assert len(ends) == domain.size
        drawn = {
            tuple(sorted((ends[tuple(start)], ends[tuple(end)])))
            for start, _, end in layout.curves.tolist()
        }
        assert drawn == moves, name
        assert (layout.absent is not None) == policy.has_bottom


@pytest.mark.parametrize(
    ("domain", "form"),
    [
        (AGES, "line"),
        (TOWNS, "circle"),
        (GRID, "grid"),
        (bf.Domain((2, 3, 2)), "circle"),
    ],
)
def test_cells_lie_on_a_line_a_grid_or_a_circle(domain, form):
    assert draw_graph(bf.policies.Full(domain)).form == form


def test_edges_over_other_nodes_bend():
    layout = draw_graph(bf.policies.Threshold(AGES, theta=2))
    for start, control, end in layout.curves:
        straight = control[1] == 0
        assert straight == (abs(end[0] - start[0]) == 1)


def test_a_small_policy_is_drawn_edge_by_edge(texts):
    policy = bf.policies.Threshold(AGES, theta=2)
    axes = bf.plotting.policy_graph(policy)
    (edges,) = axes.collections
    assert len(edges.get_segments()) == policy.edge_count
    assert axes.lines[0].get_xdata().tolist() == list(range(10))
    shown = texts(axes)
    assert {"0", "90", "age (where cells begin)"} <= set(shown)
    assert any("cannot be told apart" in one for one in shown)
    assert "17 edges" in axes.get_title()


def test_absent_stands_apart_with_edges_of_its_own(texts):
    axes = bf.plotting.policy_graph(bf.policies.AddRemove(TOWNS))
    (spokes,) = axes.collections
    assert len(spokes.get_segments()) == 4
    assert {"absent", "Bern", "Lugano"} <= set(texts(axes))


def test_a_grid_names_rows_and_columns(texts):
    axes = bf.plotting.policy_graph(bf.policies.Attribute(GRID))
    assert axes.get_xlabel() == "east"
    assert axes.get_ylabel() == "north"
    assert len(axes.get_xticks()) == 5
    assert len(axes.get_yticks()) == 4


@pytest.mark.long
def test_all_that_is_drawn_lies_within_the_limits():
    for domain in SMALL:
        for policy in policy_families(domain).values():
            axes = bf.plotting.policy_graph(policy)
            (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
            for lines in axes.collections:
                for segment in lines.get_segments():
                    assert left <= segment[:, 0].min()
                    assert segment[:, 0].max() <= right
                    assert low <= segment[:, 1].min()
                    assert segment[:, 1].max() <= high
            from matplotlib import pyplot

            pyplot.close("all")


def test_a_large_policy_shows_distances_between_sampled_cells(texts):
    pay = bf.Domain.from_edges(np.linspace(0, 200_000, 1001), name="pay")
    policy = bf.policies.Threshold(pay, theta=100)
    axes = bf.plotting.policy_graph(policy)
    cells = sampled_cells(1000)
    shown = axes.images[0].get_array()
    assert (shown == policy.distance(cells[:, None], cells[None])).all()
    assert axes.get_xlabel() == "pay of one person"
    assert {"50,000", "100,000", "edges between two cells"} <= set(texts(axes))


def test_cells_without_a_path_are_grey_and_named(legend):
    policy = bf.policies.Blocks(bf.Domain(100), np.arange(100) // 40)
    axes = bf.plotting.policy_graph(policy)
    assert axes.images[0].get_array().mask.any()
    assert legend(axes) == ["no path: not protected"]
    assert "3 parts without a path" in axes.get_title().replace("\n", " ")


def test_two_attributes_show_distances_from_the_middle():
    grid = bf.Domain((100, 60), names=("north", "east"))
    policy = bf.policies.Threshold(grid, theta=4)
    axes = bf.plotting.policy_graph(policy)
    shown = axes.images[0].get_array()
    assert shown.shape == (48, 48)
    rows, columns = sampled_cells(100), sampled_cells(60)
    steps = np.abs(rows[:, None] - 50) + np.abs(columns[None] - 30)
    assert (shown == np.ceil(steps / 4)).all()


def test_implicit_policies_on_a_million_cells_are_drawn():
    for policy in (
        bf.policies.Line(bf.Domain(2**20)),
        bf.policies.Attribute(bf.Domain((1024, 1024))),
        bf.policies.Full(bf.Domain((128, 128, 64))),
    ):
        axes = bf.plotting.policy_graph(policy)
        assert axes.images[0].get_array().size <= 48 * 48
        assert graph_facts(policy).replace("\n", " ").startswith(type(policy).__name__)
    line = bf.plotting.policy_graph(bf.policies.Line(bf.Domain(2**20)))
    marks = [one.get_text() for one in line.get_xticklabels()]
    assert (line.get_xticks()[0], marks[0], len(marks) > 3) == (0.0, "0", True)


def test_names_of_cells_are_short_and_may_be_picked():
    day = bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"])
    assert cell_labels(day.attributes[0]) == ["2024-01-01", "2024-02-01"]
    extended = AGES.with_extra_cells(missing=True).attributes[0]
    assert cell_labels(extended, np.array([1, 10])) == ["10", "(missing)"]
    assert len(shorten("x" * 50)) <= 14


def test_the_limit_between_small_and_large():
    assert is_small(bf.Domain(24))
    assert not is_small(bf.Domain(25))
    assert is_small(bf.Domain((8, 8)))
    assert not is_small(bf.Domain((8, 9)))


def test_other_things_are_refused():
    with pytest.raises(InputError, match="draws a policy"):
        bf.plotting.policy_graph(AGES)
