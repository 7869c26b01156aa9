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


def test_other_things_are_refused():
    with pytest.raises(InputError, match="errors of tables"):
        bf.plotting.table_errors([1, 2])
