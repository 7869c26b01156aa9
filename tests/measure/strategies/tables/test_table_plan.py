"""Plans of tables: the predicted errors that were worked out beforehand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blowfish_fast.measure.strategies.tables.table_plan import (
    LEAST_SHARE,
    AskedTables,
    _Incidence,
    _Problem,
    plan_tables,
)
from blowfish_fast.measure.strategies.tables.table_strategy import EdgeKind

ADULT = (74, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 20, 42, 2)
ABSENT = (EdgeKind(None),)
FULL = (EdgeKind(frozenset(range(14))),)
BY_ATTRIBUTE = tuple(EdgeKind(frozenset([axis])) for axis in range(14))


def planned(sizes, ways, kinds, kind="best", power=1):
    d = len(sizes)
    asked = [one for k in range(1, ways + 1) for one in combinations(range(d), k)]
    tables = AskedTables(sizes, tuple(asked), (1.0,) * len(asked), kinds, power)
    return plan_tables(tables, kind)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ways", "kinds", "kind", "rms", "within"),
    [
        (2, BY_ATTRIBUTE, "best", 31.4, 0.1),
        (2, ABSENT, "best", 109.8, 0.2),
        (2, ABSENT, "maximal", 110.1, 0.2),
        (2, FULL, "best", 218.8, 0.4),
        (3, ABSENT, "weights", 410.0, 1.0),
        (3, ABSENT, "best", 386.5, 1.0),
        (3, BY_ATTRIBUTE, "best", 175.7, 0.3),
    ],
)
def test_errors_of_fourteen_attributes(ways, kinds, kind, rms, within):
    plan = planned(ADULT, ways, kinds, kind)
    assert np.sqrt(plan.objective) == pytest.approx(rms, abs=within)


def test_blocks_serve_small_attributes():
    plan = planned((2,) * 14, 3, ABSENT)
    assert plan.kind == "blocks"
    assert len(plan.tables) == 6
    assert np.sqrt(plan.objective) == pytest.approx(51.9, abs=0.1)


def test_public_attributes_make_the_rest_more_accurate():
    moving = [axis for axis in range(14) if axis not in (8, 12, 1, 13)]
    kinds = tuple(EdgeKind(frozenset([axis])) for axis in moving)
    plan = planned(ADULT, 2, kinds, "weights")
    assert np.sqrt(plan.objective) == pytest.approx(29.8, abs=0.1)
    known = [
        one for one, share in zip(plan.tables, plan.shares, strict=True) if share == 0
    ]
    assert set(known) == set(combinations((1, 8, 12, 13), 2))


@pytest.mark.parametrize(("length", "rms"), [(1, 109.8), (4, 31.5)])
def test_absence_at_a_distance_is_free_from_some_edges_on(length, rms):
    plan = planned(ADULT, 2, (*BY_ATTRIBUTE, EdgeKind(None, length)), "weights")
    assert np.sqrt(plan.objective) == pytest.approx(rms, abs=0.3)


def test_every_asked_table_is_held_by_a_measured_one():
    for sizes in ((2,) * 8, (9, 3, 70, 2, 5, 31, 4, 4)):
        plan = planned(sizes, 3, ABSENT)
        for one in combinations(range(8), 3):
            assert any(set(one) <= set(table) for table in plan.tables)


def test_paid_in_rho_more_tables_cost_less():
    # Equal noise on each of 91 pairs: variance 91 / (2 rho).
    plan = planned(ADULT, 2, ABSENT, "maximal", power=2)
    assert plan.objective < 91 / 2
    assert planned(ADULT, 2, ABSENT, "best", power=2).objective <= plan.objective


def test_nothing_is_measured_where_nothing_moves():
    plan = planned((3, 2), 2, ())
    assert (plan.kind, plan.tables, plan.objective) == ("exact", ((0, 1),), 0.0)


def some_incidence(tables=((0,), (1,))):
    asked = AskedTables((3, 2), ((0,), (1,)), (1.0, 1.0), ABSENT, 1)
    return _Incidence(_Problem(asked, []), tables)


def test_a_table_tells_nothing_about_residuals_that_nobody_asked_for():
    asked = AskedTables((3, 2, 2), ((0, 1), (2,)), (1.0, 1.0), ABSENT, 1)
    problem = _Problem(asked, [])
    block = _Incidence(problem, ((0, 1, 2),))
    # Of its subsets of up to two attributes, (0, 2) and (1, 2) are not asked for.
    assert [problem.parts[at] for at in block.part_of] == [(), (0,), (1,), (2,), (0, 1)]
    assert block.information(np.ones(1)).shape == (5,)


def test_rates_that_leave_a_table_unknown_lose_infinitely_and_end_the_descent():
    incidence = some_incidence()
    assert incidence.objective(np.array([1.0, 0.0]))[0] == np.inf
    kept, best = incidence.descend(np.array([1.0, 0.0]))
    assert best == np.inf
    np.testing.assert_array_equal(kept, [1.0, 0.0])


def test_a_small_share_is_dropped_unless_it_is_needed():
    needed = some_incidence().rounded(np.array([1.0, LEAST_SHARE / 10]))
    np.testing.assert_array_equal(needed, [1.0, LEAST_SHARE])
    spare = some_incidence(((0, 1), (0,))).rounded(np.array([1.0, LEAST_SHARE / 10]))
    np.testing.assert_array_equal(spare, [1.0, 0.0])
