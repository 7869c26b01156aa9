"""Intervals are shown rounded outwards, so that what is read holds what was proved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast._support.interval_texts import (
    end_text,
    interval_text,
    short_number,
)
from blowfish_fast.apps.cli.printing import as_texts
from blowfish_fast.data.frames import Table


def read(text):
    return float(text.replace(",", ""))


@given(
    st.floats(-1e12, 1e12, allow_subnormal=False),
    st.floats(0, 1e6),
    st.integers(0, 6),
)
def test_a_shown_interval_holds_the_interval(low, width, decimals):
    high = low + width
    slack = 1e-8 * max(abs(low), abs(high))
    assert read(end_text(low, decimals, upwards=False)) <= low + slack
    assert read(end_text(high, decimals, upwards=True)) >= high - slack
    shown = [read(part) for part in interval_text(low, high).split(" to ")]
    assert shown[0] <= low + slack
    assert shown[1] >= high - slack
    # And is not much longer than it.
    assert shown[1] - shown[0] <= width + max(2.0, 1e-4 * max(abs(low), abs(high)))


def test_no_digit_before_the_point_is_left_out():
    assert interval_text(1234566.0, 1234572.0) == "1,234,566 to 1,234,572"
    assert short_number(1234569.0) == "1,234,569"
    assert short_number(0.1234567) == "0.123457"
    assert end_text(-0.0, 1, upwards=True) == "0.0"
    assert end_text(math.inf, 1, upwards=True) == "inf"


def test_a_count_of_a_million_is_explained_to_the_last_person():
    sexes = bf.Domain.from_levels(["f", "m"], name="sex")
    laplace = bf.Laplace(bf.policies.AddRemove(sexes), epsilon=1)
    counted = laplace.release([1234567, 98765432], rng=3).where(sex="f").count()
    low, high = counted.interval()
    assert f"between {low:,.0f} and {high:,.0f} with" in counted.explain()
    assert counted.explain().startswith(f"{counted:,.0f};")


@pytest.mark.parametrize("prefix", ["", "population_", "noise_", "certified_"])
def test_columns_of_ends_are_rounded_outwards(prefix):
    columns = {
        "estimate": np.array([50000.04]),
        f"{prefix}low": np.array([44999.98]),
        f"{prefix}high": np.array([55000.04]),
    }
    _, rows = as_texts(columns, 1)
    assert rows == [["50,000.0", "44,999.9", "55,000.1"]]


def test_a_printed_table_rounds_ends_outwards():
    columns = {
        "estimate": np.array([2020.12345, 1.5, 0.0]),
        "low": np.array([2020.12999, -0.123456789, 0.0]),
        "noise_high": np.array([2020.1201, 0.000123456789, 123456.789]),
    }
    rows = str(Table(columns)).splitlines()[1:]
    assert [row.split() for row in rows] == [
        ["2020.12", "2020.12", "2020.13"],
        ["1.5", "-0.123457", "0.000123457"],
        ["0", "0", "123456.8"],
    ]
