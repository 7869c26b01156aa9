"""Usefulness of noisy cells: the paper's bound, the law itself, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from blowfish_fast.advice import usefulness
from blowfish_fast.advice.usefulness import (
    cells_delta,
    cells_error,
    parity_agreement,
)
from blowfish_fast.errors import BlowfishError, InputError
from blowfish_fast.measure.randomness import Randomness

GIVEN = {"epsilon": "0.05", "delta": 0.05}


def test_k1_the_printed_and_the_exact_bound():
    assert cells_error(100, **GIVEN, bound="printed") == pytest.approx(
        15201.80, abs=0.01
    )
    assert cells_error(100, **GIVEN) == pytest.approx(2339.94, abs=0.01)


def test_k3_labels_that_are_combined_agree_less():
    assert parity_agreement(0.1, 6) == pytest.approx(0.631072)
    assert parity_agreement(0.0, 9) == 1.0
    assert parity_agreement(0.5, 1) == 0.5


@pytest.mark.parametrize("bound", ["exact", "printed"])
@pytest.mark.parametrize("discrete", [False, True])
def test_delta_is_the_inverse_of_the_error(bound, discrete):
    given = {"epsilon": 1, "bound": bound, "sensitivity": 2, "discrete": discrete}
    error = cells_error(30, delta=0.1, **given)
    assert cells_delta(30, error=error, **given) == pytest.approx(0.1)


def test_the_exact_bound_is_the_law_of_the_sum():
    generator = np.random.default_rng(1)
    sums = np.abs(generator.laplace(0, 2, size=(20_000, 12))).sum(axis=1)
    error = cells_error(12, epsilon=0.5, delta=0.05)
    missed = int((sums > error).sum())
    assert stats.binomtest(missed, 20_000, 0.05).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [0.2, 1, 4])
def test_integer_noise_stays_within_the_discrete_bound(epsilon):
    unit = 1000
    draws = Randomness(3).laplace(unit, int(epsilon * unit), size=12 * 10_000)
    sums = np.abs(draws).reshape(-1, 12).sum(axis=1)
    error = cells_error(12, epsilon=epsilon, delta=0.05, discrete=True)
    missed = int((sums > error).sum())
    assert stats.binomtest(missed, 10_000, 0.05, alternative="greater").pvalue > 1e-4


def test_relative_counts_are_off_by_less_the_more_records_there_are():
    printed = {**GIVEN, "bound": "printed"}
    assert cells_error(100, **printed, records=152_019) <= 0.1
    assert cells_error(100, **printed, records=152_018) > 0.1
    relative = cells_delta(100, epsilon="0.05", error=0.1, records=23_400)
    assert relative == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize(
    ("function", "given_"),
    [
        (cells_error, {"epsilon": 1, "delta": 0}),
        (cells_error, {"epsilon": 1, "delta": 0.1, "bound": "loose"}),
        (cells_error, {"epsilon": 1, "delta": 0.1, "sensitivity": 0}),
        (cells_error, {"epsilon": 1, "delta": 0.1, "records": 0}),
        (cells_delta, {"epsilon": 1, "error": -1}),
        (cells_error, {"epsilon": 0, "delta": 0.1}),
    ],
)
def test_refuses_bad_input(function, given_):
    with pytest.raises(BlowfishError):
        function(5, **given_)


def test_refuses_no_cells_and_impossible_rates():
    with pytest.raises(InputError, match="cells must be at least 1"):
        cells_error(0, epsilon=1, delta=0.1)
    with pytest.raises(InputError, match="noise_rate"):
        parity_agreement(1.5, 2)
    with pytest.raises(InputError, match="combined"):
        parity_agreement(0.5, -2)
    assert set(usefulness.__all__) <= set(dir(usefulness))
