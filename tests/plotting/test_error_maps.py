"""A map of which tables are accurate."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

SURVEY = bf.Domain((4, 2, 5), names=["age", "sex", "region"])


def plan(records=None):
    asked = bf.workloads.Tables(SURVEY, ways=2)
    return bf.Contingency(bf.policies.Full(SURVEY), asked, epsilon=1).plan(records)


def test_every_table_has_its_field():
    axes = bf.plotting.table_errors(plan(1000))
    assert [one.get_text() for one in axes.get_xticklabels()] == list(SURVEY.names)
    assert len(axes.texts) == 6
    assert "mean count" in axes.get_title()
    assert "records" in bf.plotting.table_errors(plan()).get_title()


@pytest.mark.long
@pytest.mark.parametrize("attributes", [3, 14, 16])
def test_numbers_stay_inside_their_fields(attributes):
    sizes = [2 + at for at in range(attributes)]
    survey = bf.WideDomain.product(
        *(bf.Domain(size, names=[f"attribute {size}"]) for size in sizes)
    )
    asked = bf.workloads.Tables(survey, ways=2)
    mechanism = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=1)
    axes = bf.plotting.table_errors(mechanism.plan(records=10**6))
    axes.figure.canvas.draw()
    field = axes.get_window_extent().width / attributes
    assert len(axes.texts) == len(asked.tables)
    assert max(one.get_window_extent().width for one in axes.texts) < 0.95 * field


def test_tables_of_three_stand_below_the_diagonal_at_their_median():
    survey = bf.Domain((4, 2, 5, 3), names=["age", "sex", "region", "job"])
    asked = bf.workloads.Tables(survey, [(0, 1, 2), (0, 1, 3), 0])
    errors = bf.Contingency(bf.policies.Full(survey), asked, epsilon=1).plan(100)
    axes = bf.plotting.table_errors(errors)
    field = 10 ** axes.images[0].get_array().filled(np.nan)
    both, third, age = np.sqrt(errors.variances) * errors.cells / 100
    assert field[0, 0] == pytest.approx(age)
    assert field[1, 0] == pytest.approx((both + third) / 2)
    assert field[2, 0] == pytest.approx(both)
    assert field[3, 0] == pytest.approx(third)
    assert np.isnan(field[3, 2])
    assert "below the diagonal" in axes.get_title()


@pytest.mark.parametrize("public", [["sex"], list(SURVEY.names)])
def test_exact_tables_leave_the_colours_to_the_others(public):
    graphs = {
        name: bf.policies.Blocks(SURVEY.marginal([name]), np.arange(size))
        for name, size in zip(SURVEY.names, SURVEY.shape, strict=True)
        if name in public
    }
    policy = bf.policies.TablePolicy(SURVEY, graphs)
    asked = bf.workloads.Tables(SURVEY, ways=2)
    errors = bf.Contingency(policy, asked, epsilon=1).plan(1000)
    axes = bf.plotting.table_errors(errors)
    exact = [one for one in axes.texts if one.get_text() == "exact"]
    assert len(exact) == (errors.variances == 0).sum() > 0
    noisy = np.sqrt(errors.variances) * errors.cells / 1000
    noisy = noisy[noisy > 0]
    if noisy.size:
        low, high = axes.images[0].get_clim()
        assert (10**low, 10**high) == pytest.approx((noisy.min(), noisy.max()))
    assert len(axes.figure.axes) == 1 + bool(noisy.size)


def test_other_things_are_refused():
    with pytest.raises(InputError, match="errors of tables"):
        bf.plotting.table_errors([1, 2])
