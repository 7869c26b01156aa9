"""Arithmetic on rows, and the contenders that make them."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.advice.experiments.experiment import (
    distinct,
    means,
    skipped_notes,
    values_by,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import AddRemove
from blowfish_fast.workloads import Identity
from experiments.contenders import Contender, contender_errors
from experiments.row_statistics import geometric_mean, quartiles

ROWS = [
    {"set": "a", "method": "x", "error": 1.0, "skipped": None},
    {"set": "a", "method": "x", "error": 3, "skipped": None},
    {"set": "b", "method": "x", "error": 4.0, "skipped": None},
    {"set": "b", "method": "y", "error": None, "skipped": "too large"},
    {"set": "b", "method": "y", "error": None, "skipped": "too large"},
]


def test_means_pass_over_rows_without_a_number():
    assert means(ROWS, "set", "method") == {("a", "x"): 2.0, ("b", "x"): 4.0}
    assert values_by(ROWS, "method") == {("x",): [1.0, 3.0, 4.0]}
    assert distinct(ROWS, "method") == ["x", "y"]


def test_reasons_are_given_once():
    assert skipped_notes(ROWS) == ["y was skipped: too large"]


def test_quartiles_are_those_of_numpy(generator):
    values = generator.normal(size=23)
    rows = [{"error": float(value)} for value in values]
    low, high = quartiles(rows)[()]
    np.testing.assert_allclose([low, high], np.quantile(values, [0.25, 0.75]))


def test_the_geometric_mean_of_nothing_is_not_a_number():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert np.isnan(geometric_mean([]))


def test_errors_are_absolute_or_squared():
    one = Domain(1)
    asked = (Contender("noise", "laplace"), AddRemove(one), Identity(one), "0.1", [7])
    plain = contender_errors(*asked, range(5))
    squared = contender_errors(*asked, range(5), measure="squared")
    errors = np.array([row["error"] for row in plain])
    assert errors.any()
    assert [row["error"] for row in squared] == pytest.approx(errors**2)


def test_a_contender_is_measured_once_per_seed():
    domain = Domain(64)
    rows = contender_errors(
        Contender("noise", "laplace", divisor=2),
        AddRemove(domain),
        Identity(domain),
        "0.1",
        np.zeros(64, dtype=np.int64),
        range(40),
        measure="squared",
    )
    assert [row["trial"] for row in rows] == list(range(40))
    # Noise at half of epsilon: 8 / epsilon^2, 64 cells and 40 trials.
    mean = np.mean([row["error"] for row in rows])
    assert mean == pytest.approx(800, rel=0.2)


def test_a_refusal_is_a_row_with_its_reason():
    grid = Domain((8, 8))
    rows = contender_errors(
        Contender("P-HP", "php"),
        AddRemove(grid),
        Identity(grid),
        "0.1",
        np.zeros((8, 8), dtype=np.int64),
        [1, 2],
    )
    assert len(rows) == 1
    assert rows[0]["error"] is None
    assert "one ordered attribute" in str(rows[0]["skipped"])
