"""A map of which tables are accurate."""

from __future__ import annotations

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


def test_other_things_are_refused():
    with pytest.raises(InputError, match="errors of tables"):
        bf.plotting.table_errors([1, 2])
