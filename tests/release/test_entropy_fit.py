"""Mirror descent on a junction tree, and the model that a release keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.merged_tables import Grouping, sum_down
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.release.chosen_release import ModelTables
from blowfish_fast.release.entropy.entropy_fit import LEAST_LOG, EntropyFit, TableGoal
from blowfish_fast.release.entropy.entropy_model import EntropyModel


def goal(axes, target, weight=1e4, groupings=None):
    own = groupings or tuple(map(Grouping.single_cells, target.shape))
    return TableGoal(axes, own, target, np.full(target.shape, weight))


def test_tables_that_agree_are_followed_exactly(generator):
    law = generator.dirichlet(np.ones(24)).reshape(2, 3, 4)
    fit = EntropyFit((2, 3, 4))
    fit.add(goal((0, 1), law.sum(axis=2)), goal((1, 2), law.sum(axis=0)))
    fit.improve(800, 1e-14)
    for axes, dropped in (((0, 1), 2), ((1, 2), 0)):
        found = fit.tree.table(fit.beliefs, axes)
        np.testing.assert_allclose(found, law.sum(axis=dropped), atol=1e-4)
    # Greatest entropy: the first and the last are independent given the middle one.
    middle = law.sum(axis=(0, 2))
    chain = np.einsum("ab,bc,b->ac", law.sum(axis=2), law.sum(axis=0), 1 / middle)
    np.testing.assert_allclose(fit.tree.table(fit.beliefs, (0, 2)), chain, atol=1e-3)


def test_momentum_leads_further_in_as_many_steps(generator):
    sizes = (4, 4, 4, 4)
    law = generator.dirichlet(np.full(256, 0.3)).reshape(sizes)
    # Tables of different noise: a plain step is as short as the heaviest wants it.
    goals = [
        goal(axes, sum_down(law, range(4), axes), weight)
        for axes, weight in (((0, 1), 1e6), ((1, 2), 1e4), ((2, 3), 1e4))
    ]

    def loss(*, carried):
        fit = EntropyFit(sizes)
        fit.add(*goals)
        fit.improve(30, 0.0, carried=carried)
        fit.improve(40, 0.0, carried=carried)
        return fit._position(fit.factors, fit.beliefs).loss

    assert 2 * loss(carried=True) < loss(carried=False)


def test_a_goal_is_followed_after_a_law_that_was_at_its_best():
    fit = EntropyFit((3, 3))
    shares = np.array([0.2, 0.3, 0.5])
    fit.begin([shares, shares])
    fit.add(*(goal((axis,), shares) for axis in range(2)))
    fit.improve(60)
    fit.add(goal((0, 1), np.diag(shares)))
    fit.improve(60)
    found = fit.tree.table(fit.beliefs, (0, 1))
    assert np.trace(found) > 0.9


def test_merged_goals_leave_cells_inside_alone():
    fit = EntropyFit((4,))
    halves = (Grouping([0, 0, 1, 1]),)
    fit.add(goal((0,), np.array([0.8, 0.2]), groupings=halves))
    fit.improve(300, 1e-12)
    found = fit.tree.table(fit.beliefs, (0,))
    np.testing.assert_allclose(found, [0.4, 0.4, 0.1, 0.1], atol=1e-4)


def test_a_goal_that_no_law_meets_ends_without_a_number_that_is_none():
    fit = EntropyFit((2, 2))
    fit.improve(5)
    fit.add(goal((0, 1), np.array([[3.0, -2.0], [1e6, -1e6]]), weight=1e12))
    fit.improve(50)
    assert all(np.isfinite(one).all() for one in fit.factors.values())
    assert min(one.min() for one in fit.factors.values()) >= LEAST_LOG
    assert fit.tree.table(fit.beliefs, (0, 1)).sum() == pytest.approx(1)


def test_a_beginning_is_independent_and_keeps_empty_cells_possible():
    fit = EntropyFit((2, 3))
    fit.begin([np.array([0.25, 0.75]), np.array([0.5, 0.5, 0.0])])
    found = fit.tree.table(fit.beliefs, (0, 1))
    np.testing.assert_allclose(found[:, :2], [[0.125] * 2, [0.375] * 2])
    assert 0 < found[0, 2] < 1e-15


def some_model():
    groupings = [Grouping([0, 0, 1]), Grouping([0, 1])]
    inside = [np.array([0.25, 0.75, 1.0]), np.ones(2)]
    factors = {(0,): np.zeros(2), (0, 1): np.log([[0.4, 0.1], [0.2, 0.3]])}
    return EntropyModel(groupings, inside, factors, 200.0)


def test_a_model_spreads_merged_cells_by_the_shares_inside():
    model = some_model()
    expected = [[20, 5], [60, 15], [40, 60]]
    np.testing.assert_allclose(model.table((0, 1)), expected, atol=1e-9)
    domain = bf.Domain((3, 2), names=["a", "b"])
    tables = ModelTables(domain, model)
    cells = tables.cells(None, np.random.default_rng(1))
    assert cells.shape == (2, 200)
    counted = tables.count(cells, (0, 1))
    assert np.abs(counted - expected).max() <= 6
    assert tables.misplaced(((0, 1),), cells)[0] < 0.05


def test_a_model_is_read_again_and_damage_refused():
    packed = some_model().pack()
    again = EntropyModel.unpack(packed, (3, 2))
    assert (again.table((0, 1)) == some_model().table((0, 1))).all()
    for change in (
        {"labels": [[0, 0, 1], [0, 1, 1]]},
        {"inside": [np.full(3, 2.0), np.ones(2)]},
        {"scopes": [[0], [0, 5]]},
        {"scopes": [[0], [1, 0]]},
        {"total": math.inf},
        {"factors": [np.zeros(2), np.full((2, 2), np.nan)]},
    ):
        with pytest.raises(ReleaseFileError):
            EntropyModel.unpack({**packed, **change}, (3, 2))
