"""Checks at the door."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support.validation import (
    as_confidence,
    as_epsilon,
    as_integers,
    as_number,
    as_parts,
    as_positive,
    as_share,
    as_whole,
    float_above,
    malformed_as,
)
from blowfish_fast.errors import BlowfishError, EpsilonError, InputError
from blowfish_fast.measure.selectors.partitions import GainRule


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


def test_a_block_inside_a_guarded_function_keeps_its_own_words():
    @malformed_as(InputError, "outer words")
    def read(value):
        with malformed_as(InputError, "inner words"):
            return sorted(value)

    with pytest.raises(InputError, match="inner words; received"):
        read(1.5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        read(values=[1.5])


def test_parts_number_the_cells():
    assert as_parts(None, 3) is None
    assert as_parts([0, 1, 0], 3).tolist() == [0, 1, 0]
    for wrong in ([0, 1], [0, 1, -1], [0, 1, 3], [0, 1, 2**63 - 1], [[0, 1, 2]]):
        with pytest.raises(InputError, match="number each of the 3 cells"):
            as_parts(wrong, 3)


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.array(3)])
def test_one_whole_number_is_read_in_any_dress(value):
    found = as_whole(value, "rounds", 3, 3)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([3, 4], "rounds must be one whole number; received a list. Say None"),
        ([3], "be one whole number"),
        ([[1], [2, 3]], "be one whole number"),
        (2.5, "be one whole number; received 2.5"),
        (Fraction(3), "be one whole number"),
        (None, "be one whole number; received None"),
        (True, "be one whole number; received True"),
        (0, "rounds must lie between 1 and 9; received 0. Say None"),
        (10, "lie between 1 and 9"),
    ],
)
def test_what_is_not_one_whole_number_is_refused(value, message):
    with pytest.raises(InputError, match=message):
        as_whole(value, "rounds", 1, 9, way_out="Say None")


def test_a_lower_limit_may_stand_alone():
    assert as_whole(10**12, "rounds", 1) == 10**12
    assert as_whole(-4, "rounds") == -4
    with pytest.raises(InputError, match=r"rounds must be at least 1; received 0$"):
        as_whole(0, "rounds", 1)


@pytest.mark.parametrize("value", [2, 2.0, "2", Fraction(2), np.float32(2), Decimal(2)])
def test_positive_numbers_are_read(value):
    assert as_positive(value, "price") == 2.0


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), "much", None, [1, 2], 10**400]
)
def test_what_is_not_positive_is_refused(value):
    with pytest.raises(InputError, match="price must be a positive number"):
        as_positive(value, "price")


LINE, MAP = bf.Domain(16), bf.Domain((4, 4))
RANGES = bf.workloads.Ranges.random(LINE, 3, rng=1)
DOORS = {
    "Mwem rounds": lambda one: bf.mechanisms.Mwem(
        bf.policies.Full(LINE), RANGES, epsilon=1, rounds=one
    ),
    "Hierarchy fan_out": lambda one: bf.Hierarchy(
        bf.policies.Full(LINE), RANGES, epsilon=1, fan_out=one
    ),
    "KMeans clusters": lambda one: bf.KMeans(bf.policies.Full(MAP), one, epsilon=1),
    "KdTree levels": lambda one: bf.KdTree(
        bf.policies.Full(MAP), bf.workloads.Identity(MAP), epsilon=1, levels=one
    ),
    "GainRule price": lambda one: GainRule(price=one),
    "GainRule caution": lambda one: GainRule(caution=one),
    "Ranges.random": lambda one: bf.workloads.Ranges.random(LINE, one, rng=1),
    "sample": lambda one: (
        bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1)
        .release(np.arange(16), rng=1)
        .sample(one, rng=1)
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("value", [[3, 4], [3], "three"], ids=str)
def test_several_numbers_where_one_is_wanted_are_refused_with_a_reason(door, value):
    with pytest.raises(InputError, match="must be"):
        DOORS[door](value)


def test_messages_quote_no_records():
    line, records = bf.Domain(4), [52_000, 61_000, 48_500, 39_999]
    policy, cells = bf.policies.Full(line), bf.workloads.Identity(line)
    release = bf.Laplace(policy, cells, epsilon=1).release([1] * 4, rng=1)
    doors = [
        lambda data: bf.policies.Full(data),
        lambda data: bf.workloads.Identity(data),
        lambda data: bf.Histogram(data, line),
        lambda data: bf.Histogram.from_records(data, line),
        lambda data: bf.SparseHistogram.from_records(data, line),
        lambda data: bf.Laplace(data, cells, epsilon=1),
        lambda data: bf.Laplace(policy, data, epsilon=1),
        lambda data: bf.Ledger(None, epsilon=1, policy=data),
        lambda data: bf.Ledger(None, epsilon=1, policy=policy).release(data, line),
        lambda data: release.answer(data),
        lambda data: release.where(data),
    ]
    for door in doors:
        for data in (records, np.array(records), {"pay": records}):
            if isinstance(data, dict) and door is doors[-1]:
                continue
            with pytest.raises(BlowfishError) as problem:
                door(data)
            assert "000" not in str(problem.value)
            assert type(data).__name__ in str(problem.value)
    with pytest.raises(BlowfishError, match="received 10"):
        bf.policies.Full(10)


def test_numbers_within_limits_are_read_and_others_refused():
    assert as_number("0.5", "price", 0, 1) == 0.5
    for value, words in (
        (2, "lie between 0 and 1"),
        (-1, "lie between"),
        (math.nan, "finite"),
    ):
        with pytest.raises(InputError, match=words):
            as_number(value, "price", 0, 1)
    for value in (0.5, 10**400):
        with pytest.raises(InputError, match="cells must be at least 1"):
            as_number(value, "cells", 1)
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        as_epsilon(np.timedelta64(3, "s"))


def test_a_confidence_leaves_something_to_chance():
    for value in (1e-300, 5e-324, 10**400, Fraction(1, 10**30)):
        with pytest.raises(InputError, match="strictly between 0 and 1"):
            as_confidence(value)
    assert as_confidence(2.0**-50) == 2.0**-50


def test_a_fraction_is_never_rounded_down():
    third = Fraction(1, 3)
    assert (
        Fraction(float_above(third))
        >= third
        > Fraction(float_above(third)) - Fraction(1, 10**15)
    )
    assert float_above(2**60 + 1) > 2**60
    assert float_above(0.5) == 0.5
