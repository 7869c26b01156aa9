"""Checks at the door."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast._validation import (
    as_confidence,
    as_epsilon,
    as_integers,
    as_parts,
    as_share,
    malformed_as,
)
from blowfish_fast.errors import EpsilonError, InputError


@pytest.mark.parametrize(
    "value", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)]
)
def test_epsilon_is_the_decimal_that_was_typed(value):
    assert as_epsilon(value) == Fraction(1, 10)


def test_single_precision_stands_for_what_it_prints():
    assert as_epsilon(np.float32(0.1)) == Fraction(1, 10)


@pytest.mark.parametrize(
    "value",
    [0, -1, float("nan"), float("inf"), -float("inf"), "much", None, True, 1e-12, 1e12],
)
def test_bad_epsilons_are_refused(value):
    with pytest.raises(EpsilonError, match="epsilon must"):
        as_epsilon(value)


@pytest.mark.parametrize("value", [0, 1, -0.5, 1.5, float("nan")])
def test_shares_lie_strictly_between_0_and_1(value):
    with pytest.raises(EpsilonError, match="share must"):
        as_share(value, "share")


@pytest.mark.parametrize("value", [0, 1, 2, -1])
def test_confidences_lie_strictly_between_0_and_1(value):
    with pytest.raises(InputError, match="confidence must"):
        as_confidence(value)


@pytest.mark.parametrize(
    "values", [[0.5], ["a"], [True], [float("inf")], np.array([2**63], np.uint64)]
)
def test_what_is_not_a_whole_number_is_refused(values):
    with pytest.raises(InputError, match="numbers must"):
        as_integers(values, "numbers")


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9e9e9", "-"])
def test_numbers_of_a_billion_digits_are_refused_at_once(text):
    with pytest.raises(EpsilonError, match="finite number"):
        as_epsilon(text)
    with pytest.raises(EpsilonError, match="finite number"):
        as_epsilon("9" * 5000 + text)


def test_malformed_values_become_one_error_with_its_cause():
    @malformed_as(EpsilonError, "give a number")
    def read(value):
        return 1 / value["number"]

    assert read({"number": 2}) == 0.5
    for value in ({}, {"number": 0}, None, {"number": "x"}):
        with pytest.raises(EpsilonError, match="give a number; received") as caught:
            read(value)
        assert caught.value.__cause__ is not None
    with pytest.raises(InputError, match="own words"), malformed_as(EpsilonError, ""):
        raise InputError("own words")
    with pytest.raises(KeyboardInterrupt), malformed_as(EpsilonError, ""):
        raise KeyboardInterrupt


def test_parts_number_the_cells():
    assert as_parts(None, 3) is None
    assert as_parts([0, 1, 0], 3).tolist() == [0, 1, 0]
    for wrong in ([0, 1], [0, 1, -1], [0, 1, 3], [0, 1, 2**63 - 1], [[0, 1, 2]]):
        with pytest.raises(InputError, match="number each of the 3 cells"):
            as_parts(wrong, 3)
