"""An axis by a rule: whole numbers throughout, at both ends of 64 bits."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.predicates import extent, whole_cover
from blowfish_fast.data.rules.steps import NANOSECONDS, Steps, place_ticks, read_steps
from blowfish_fast.errors import DomainError, InputError, WorkloadError

TIME = bf.WideDomain.from_steps(
    start="2000-01-01", step="1ns", cells=2**60, name="time"
)
MOMENT = "2024-03-01T00:00:00.000000005"


def keys(domain, column, **rules):
    name = domain.column_names[0]
    return bf.SparseHistogram.from_records(
        domain, {name: column}, **rules
    ).keys.tolist()


def test_values_of_a_rule_from_0_by_1_are_numbers_of_cells():
    plain = bf.WideDomain.from_steps(cells=2**60, name="at")
    assert plain == bf.WideDomain(2**60, names="at")
    assert keys(plain, np.array([2**60 - 1, 0])) == [0, 2**60 - 1]


@pytest.mark.parametrize(
    ("start", "step", "rule"),
    [
        (100, 10, Steps(100, 10)),
        (np.int32(-5), np.uint8(2), Steps(-5, 2)),
        ("2000-01-01", "1ns", Steps(946_684_800 * 10**9, 1, "ns")),
        ("1970-01-02", "2 days", Steps(1, 2, "D")),
        (datetime.date(1970, 1, 1), datetime.timedelta(hours=1), Steps(0, 1, "h")),
        (np.datetime64("1970-01-01T00:05"), np.timedelta64(5, "m"), Steps(5, 5, "m")),
        (datetime.datetime(1970, 1, 1, 0, 0, 1), "1500ms", Steps(2, 3, None)),
        ("1970-01", np.timedelta64(1, "W"), Steps(0, 7, "D")),
    ],
)
def test_a_rule_is_read_in_the_coarsest_unit_that_holds_it(start, step, rule):
    found = read_steps(start, step)
    if rule == Steps(2, 3):
        # One second, and one and a half: neither is whole in seconds.
        assert found == Steps(1000, 1500, "ms")
    else:
        assert found == rule


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"cells": 5, "stop": 9}, "both cells and stop"),
        ({}, "neither"),
        ({"cells": 2**62 + 1}, "2\\^62 cells"),
        ({"start": 2**62, "cells": 2**62, "step": 2}, "64 bits"),
        ({"start": 0.5, "cells": 5}, "whole numbers"),
        ({"start": 0, "step": "1s", "cells": 5}, "whole numbers for start and step"),
        ({"start": "2000-01-01", "step": 1, "cells": 5}, "a date and a length of time"),
        ({"start": "2000-01-01", "step": "1.5s", "cells": 5}, "1500ms"),
        ({"start": "2000-01-01T00:00Z", "step": "1s", "cells": 5}, "without a zone"),
        ({"start": "today", "step": "1s", "cells": 5}, "moments read like"),
        ({"start": "NaT", "step": "1s", "cells": 5}, "moments read like"),
        ({"step": 0, "cells": 5}, "goes forward"),
        ({"step": 3, "stop": 10}, "whole number of steps"),
        ({"start": 10, "stop": 10}, "at least one"),
        ({"start": np.datetime64(1, "ps"), "step": "1s", "cells": 2}, "nanosecond"),
    ],
)
def test_rules_that_do_not_fit_are_refused(terms, why):
    with pytest.raises(DomainError, match=why):
        bf.WideDomain.from_steps(**terms)


def test_moments_of_any_unit_and_texts_fall_into_the_same_cell():
    cell = keys(TIME, np.array([MOMENT], dtype="M8[ns]"))
    assert keys(TIME, np.array([MOMENT])) == cell
    near = bf.WideDomain.from_steps(start="1970-01-01", step="2ns", cells=9, name="t")
    assert keys(near, np.array([3999, 4000], dtype="M8[ps]")) == [1, 2]
    day = keys(TIME, np.array(["2024-03-01"], dtype="M8[D]"))
    assert day == [cell[0] - 5]
    assert keys(TIME, np.array(["2024-03-01"], dtype="M8[7D]").astype("M8[7D]")) < day
    assert keys(TIME, [datetime.date(2024, 3, 1)]) == day
    assert keys(TIME, np.array(["2024-03"], dtype="M8[M]")) == day


def test_moments_that_64_bits_of_nanoseconds_do_not_hold_lie_outside():
    far = np.array(["1600-01-01", "2900-01-01", "NaT"], dtype="M8[D]")
    assert keys(TIME, far, outside="clamp", missing="cell") == [0, 2**60 - 1, 2**60]
    texts = np.array(["1600-01-01", "2900-01-01"])
    assert keys(TIME, texts, outside="clamp") == [0, 2**60 - 1]
    with pytest.raises(InputError, match="outside time"):
        keys(TIME, far[:2])
    with pytest.raises(InputError, match="dates must be"):
        keys(TIME, np.array([5]))


def test_numbers_at_the_ends_of_64_bits_have_their_cells():
    ends = bf.WideDomain.from_steps(start=-(2**62), step=2, cells=2**62 - 1, name="n")
    low, high = -(2**62), 2**63 - 2**62 - 4
    assert keys(ends, np.array([low, low + 1, high, high + 1])) == [0, 2**62 - 2]
    large = np.array([2**64 - 1, 0], dtype=np.uint64)
    assert keys(ends, large, outside="cell") == [2**61, 2**62 - 1]
    far = [10**30, -(10**30), None]
    assert keys(ends, far, outside="clamp", missing="clamp") == [0, 2**62 - 2]


def test_floats_are_taken_where_they_are_exact_and_nowhere_else():
    near = bf.WideDomain.from_steps(start=100, step=10, cells=5, name="n")
    column = np.array([100.7, 149.9, np.inf, -np.inf, np.nan])
    assert keys(near, column, outside="cell", missing="cell") == [0, 4, 5, 6]
    with pytest.raises(InputError, match=r"beyond 2\^53.* 64-bit integers"):
        keys(bf.WideDomain.from_steps(start=1, cells=2**60, name="n"), np.array([2.0]))
    with pytest.raises(InputError, match="expects cell numbers"):
        keys(bf.WideDomain(2**40, names="n"), np.array([0.5]))
    with pytest.raises(InputError, match="must be numbers"):
        keys(near, np.array(["a"]))


def test_missing_whole_numbers_of_frames_stay_whole():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": [2**60 - 1, None]})
    domain = bf.WideDomain(2**60, names="n")
    found = bf.SparseHistogram.from_records(domain, frame, missing="cell")
    assert found.keys.tolist() == [2**60 - 1, 2**60]


def test_placing_is_that_of_python_integers():
    rng = np.random.default_rng(3)
    for _ in range(50):
        step, start = int(rng.integers(1, 100)), int(rng.integers(-(2**40), 2**40))
        rule, cells = Steps(start, step), int(rng.integers(1, 1000))
        values = rng.integers(start - 200, start + 100 * 1000, 40)
        found = place_ticks(rule, cells, values)
        for value, cell, low, high in zip(values.tolist(), *found, strict=True):
            place = (value - start) // step
            assert (low, high) == (place < 0, place >= cells)
            assert cell == (0 if low or high else place)


def test_a_rule_survives_files_and_pickles_and_bad_files_are_refused():
    wide = bf.WideDomain.product(TIME, bf.WideDomain.from_steps(step=256, cells=9))
    assert bf.WideDomain.from_dict(wide.to_dict()) == wide
    assert pickle.loads(pickle.dumps(TIME)) == TIME
    assert "in steps of 1 ns" in TIME.attributes[0].describe()
    assert "in steps of 1 ns" in extent(TIME.attributes[0])
    plain = TIME.to_dict()
    for steps in ([0, 0, None], [0, 1, "fortnight"], [2**62, 4, None]):
        plain["attributes"][0]["steps"] = steps
        with pytest.raises(DomainError, match=r"goes forward|64 bits"):
            bf.WideDomain.from_dict(plain)


def test_short_axes_are_listed_where_a_domain_is_wanted():
    hours = bf.WideDomain.from_steps(start="2024-01-01", step="1h", cells=24, name="h")
    listed = bf.Domain.product(hours)
    edges = np.arange("2024-01-01", "2024-01-02T01", dtype="M8[h]")
    assert listed == bf.Domain.from_dates(edges, name="h")
    grid = bf.WideDomain.product(bf.WideDomain(2**40, names="at"), hours)
    moments = np.datetime64("2024-01-01T05:30") + np.arange(3)
    data = bf.SparseHistogram.from_records(grid, {"at": [1, 2, 3], "h": moments})
    assert data.marginal("h").counts.tolist() == [0] * 5 + [3] + [0] * 18
    fine = bf.WideDomain.from_steps(start="2024-01-01", step="1ns", cells=9, name="h")
    with pytest.raises(DomainError, match="Keep it in a WideDomain"):
        bf.Domain.product(fine)
    assert isinstance(fine.marginal("h"), bf.WideDomain)
    with pytest.raises(DomainError, match="longer steps"):
        fine.coarsened(h=[0, 9])


def test_ranges_and_conditions_are_stated_in_values():
    asked = bf.workloads.Ranges.between(TIME, ["2000-01-02"], ["2000-01-03"])
    day = NANOSECONDS["D"]
    assert (asked.starts.tolist(), asked.ends.tolist()) == ([day], [2 * day])
    (attribute,) = TIME.attributes
    assert whole_cover(attribute, "2000-01-02") == [(day, 2 * day)]
    both = [slice("2000-01-02", "2000-01-03"), slice(None, "2000-01-02")]
    assert whole_cover(attribute, both) == [(0, 2 * day)]
    assert whole_cover(attribute, slice("2030", "2090")) == [
        ((365 * 30 + 8) * day, 2**60)
    ]
    by_ten = Axis(5, "n", steps=Steps(100, 10), extras=("(missing)",))
    assert whole_cover(by_ten, [110, "(missing)"]) == [(1, 2), (4, 5)]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (105, "inside a cell"),
        (slice(130, 110), "start before it ends"),
        (slice(400, 500), "selects no cell"),
        (slice(100, 120, 2), "no step"),
        (7, "selects no cell"),
        (0.5, "whole number"),
        (2.0**60, "2\\^53"),
    ],
)
def test_conditions_that_cut_cells_or_select_none_are_refused(condition, why):
    with pytest.raises(InputError, match=why):
        whole_cover(Axis(5, "n", steps=Steps(100, 10)), condition)


def test_ranges_between_values_need_a_rule():
    ages = bf.Domain.from_edges([0, 18, 65], name="age")
    with pytest.raises(WorkloadError, match="by a rule"):
        bf.workloads.Ranges.between(ages, [0], [18])
    with pytest.raises(WorkloadError, match="2 starts and 1 ends"):
        bf.workloads.Ranges.between(TIME, ["2000-01-02"] * 2, ["2000-01-03"])
    with pytest.raises(DomainError, match="whole numbers of the unit"):
        Steps(0, 1, "s").tick("1970-01-01T00:00:00.5")


def test_lists_and_buckets_are_published_in_values():
    moments = np.array([MOMENT] * 900, dtype="M8[ns]")
    data = bf.SparseHistogram.from_records(TIME, {"time": moments})
    policy = bf.policies.AddRemove(TIME)
    heavy = bf.SparseLaplace(policy, epsilon=1, false_cells="1e-9").release(data, 1)
    cells = heavy.cells()
    assert list(cells) == ["time", "count", "low", "high"]
    assert cells["time"].astype(str).tolist() == [MOMENT]
    assert heavy.at([MOMENT])["listed"].tolist() == [True]
    asked = bf.workloads.Ranges.between(TIME, ["2024-03-01"], ["2024-03-02"])
    release = bf.Dawa(policy, asked, epsilon=1).release(data, 1)
    table = release.buckets()
    assert table["time_from"].dtype == "M8[ns]"
    assert str(table["time_from"][0]).startswith("2000-01-01T00")
    assert list(release.to_table(None)) == ["time_from", "time_to", "count"]
    both = release.where(time=["2024-03-01", slice(None, "2010-01-01")])
    low, high = both.interval()
    assert low <= 900 <= high
    assert low <= both.count() <= high
    assert "and 1 more" in repr(both)
    assert release.where().count() == pytest.approx(release.totals.sum())
    with pytest.raises(InputError, match="stated once"):
        release.where({0: "2024"}, time="2024")


def test_wider_cells_have_two_ends_and_stray_ones_a_word():
    net = bf.WideDomain.from_steps(step=256, cells=2**30, name="net")
    extended = net.with_extra_cells(outside=True)
    data = bf.SparseHistogram.from_records(extended, {"net": [300] * 90 + [-1] * 90})
    policy = bf.policies.AddRemove(data.domain)
    cells = bf.SparseLaplace(policy, epsilon=2, false_cells="1e-9").release(data, 1)
    table = cells.cells()
    assert list(table)[:3] == ["net_from", "net_to", "net_cell"]
    assert table["net_from"].tolist() == [256, None]
    assert table["net_cell"].tolist() == ["", "(outside)"]
