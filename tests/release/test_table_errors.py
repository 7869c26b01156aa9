"""The predicted errors of a plan, beside mean counts."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.table_errors import TableErrors

SURVEY = bf.Domain((4, 2), names=["age", "sex"])
ERRORS = TableErrors(
    kind="maximal",
    domain=SURVEY,
    tables=((0,), (1,), (0, 1)),
    measured=((0, 1),),
    variances=np.array([4.0, 8.0, 2.0]),
    budget="epsilon = 1",
    records=80,
)


def test_means_by_table_and_by_cell_are_told_apart():
    rows = ERRORS.by_ways()
    assert rows["mean_count_by_table"].tolist() == [30.0, 10.0]
    assert rows["mean_count_by_cell"].tolist() == pytest.approx([160 / 6, 10.0])
    assert rows["rms_error"].tolist() == pytest.approx([6**0.5, 2**0.5])
    assert ERRORS.rms == pytest.approx((14 / 3) ** 0.5)


def test_every_table_has_a_row_and_the_text_says_all():
    rows = ERRORS.to_table()
    assert rows["table"].tolist() == ["age", "sex", "age x sex"]
    assert rows["mean_count"].tolist() == [20.0, 40.0, 10.0]
    text = str(ERRORS)
    assert "3 tables asked, 1 measured (maximal); epsilon = 1" in text
    assert "by cell" in text
