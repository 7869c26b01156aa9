"""Answers and their intervals as tables and frames."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

AGES = bf.Domain.from_edges([0, 20, 65, 120], name="age")
CELLS = bf.workloads.Identity(AGES)
LAPLACE = bf.Laplace(bf.policies.AddRemove(AGES), CELLS, epsilon=1)


def made(name):
    one, other = LAPLACE.release([9, 40, 7], 1), LAPLACE.release([5, 22, 8], 2)
    return {"release": one, "combined": one - other, "groups": one.group_by("age")}[
        name
    ]


@pytest.mark.parametrize("name", ["release", "combined", "groups"])
def test_frames_of_all_libraries_have_the_columns_of_the_table(name):
    source = made(name)
    source = source.count() if name == "groups" else source
    table = source.to_table(0.9)
    assert {"age_from", "age_to", "low", "high"} < set(table)
    assert set(table) <= set(source.to_pandas(0.9).columns)
    assert source.to_polars(0.9)["low"].to_list() == table["low"].tolist()
    assert source.to_arrow(0.9)["high"].to_pylist() == table["high"].tolist()
    assert "low" not in source.to_table(None)


def test_a_table_of_cells_holds_estimates_inside_their_intervals():
    table = made("combined").to_table()
    assert (table["low"] <= table["estimate"]).all()
    assert (table["estimate"] <= table["high"]).all()
    assert np.array_equal(table["estimate"], made("combined").estimate)
