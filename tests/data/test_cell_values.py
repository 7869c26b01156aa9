"""What cells stand for."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.cell_values import (
    as_array,
    cell_columns,
    column_name,
    cut_values,
    representatives,
)
from blowfish_fast.errors import DomainError

DOMAIN = Domain.product(
    Domain.from_edges([0, 10, 30], name="age"),
    Domain.from_levels(["F", "M"], name="sex"),
    Domain.from_dates(["2024-01-01", "2024-02-01"], name="day"),
    Domain(2),
).with_extra_cells(missing=[0, 2])


def test_cells_are_described_by_columns():
    places = [np.array([1, 2]), np.array([0, 1]), np.array([0, 1]), np.array([1, 0])]
    columns = cell_columns(DOMAIN, places)
    assert list(columns) == [
        "age_from",
        "age_to",
        "age_cell",
        "sex",
        "day_from",
        "day_to",
        "day_cell",
        "axis3",
    ]
    np.testing.assert_array_equal(columns["age_from"], [10.0, np.nan])
    assert columns["age_cell"].tolist() == ["", "(missing)"]
    assert columns["sex"].tolist() == ["F", "M"]
    assert columns["day_to"].astype(str).tolist() == ["2024-02-01", "NaT"]
    assert columns["axis3"].tolist() == [1, 0]
    assert column_name(DOMAIN, 3) == "axis3"


def test_numbers_stand_for_cells_where_they_can():
    age, sex, day, plain = DOMAIN.attributes
    assert representatives(age).tolist() == [5.0, 20.0]
    assert representatives(plain).tolist() == [0.0, 1.0]
    stars = Domain.from_levels([1, 5]).attributes[0]
    assert representatives(stars).tolist() == [1.0, 5.0]
    for other, words in ((sex, "values="), (day, "dates")):
        with pytest.raises(DomainError, match=words):
            representatives(other)
    assert cut_values(day).astype(str).tolist() == ["2024-01-01", "2024-02-01"]


def test_levels_keep_their_type():
    assert as_array((1, 2)).dtype.kind == "i"
    assert as_array((0.5, 2.0)).dtype.kind == "f"
    assert as_array(("a", 1)).tolist() == ["a", 1]
