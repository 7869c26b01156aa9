"""Figures of nested districts: the small form, and the record of the large one."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import geography


@pytest.fixture(scope="module")
def country():
    return geography.made_up_country(3_000)


def test_the_country_is_the_same_every_time(country):
    again = geography.made_up_country(3_000)
    assert np.array_equal(country.counts, again.counts)
    assert country.nest == again.nest
    assert country.nest.names == geography.LEVELS
    assert 0.3 < (country.counts == 0).mean() < 0.4


@pytest.mark.long
def test_shares_by_importance_have_the_least_sum_of_the_closed_forms():
    figures = list(geography.plan_figures(3_000))
    sums = {(one.case, one.plan): one for one in figures if one.level == "sum"}
    for case in geography.IMPORTANCE:
        own = sums[case, geography.SHARED].measured
        assert own < sums[case, geography.LOST].measured
        assert own < sums[case, geography.EQUAL].measured
    assert "ratio" in str(figures[0])
    assert geography.Figure("fits", "", "", "", 2.0, 0.0).ratio == 1.0


def test_policies_and_fits_of_a_small_country(country):
    by_policy = {
        (one.case, one.plan, one.level): one.measured
        for one in geography.policy_figures(country)
    }
    within = ("within the county", geography.SHARED)
    assert by_policy[*within, "county"] == 0.0
    assert by_policy[*within, "block"] > 0.0
    fits = {
        (one.plan, one.level): one.measured for one in geography.fit_figures(country, 2)
    }
    assert fits["least squares", "block"] < fits["as measured", "block"]
    assert fits["whole", "block"] < fits["least squares", "block"]


def test_school_districts_gain_by_a_level_of_their_own():
    errors = {
        (one.plan, one.level): one.measured for one in geography.school_figures(4_000)
    }
    above = errors["level above tracts", "school"]
    assert above < errors["level below tracts", "school"]
    assert above < errors["spine, by importance", "school"]


def test_points_fall_into_one_district_each():
    pytest.importorskip("shapely")
    figures = {one.level: one for one in geography.point_figures(2_000, 60)}
    assert figures["other district than by shapely"].measured == 0
    assert figures["corners in no district"].measured == 0
    assert figures["corners that were looked up"].measured > 20


def test_the_nation_pays_for_what_all_levels_gain():
    nation, total = geography.nation_figures(1, 2_000)
    assert (nation.level, total.level) == ("nation", "sum")
    assert nation.ratio > 1.0 > total.ratio


def test_everything_is_recorded_once_it_is_known(monkeypatch, tmp_path):
    line = geography.Figure("plans", "case", "plan", "block", 2.0, 4.0)
    monkeypatch.setattr(
        geography, "geography_figures", lambda trials, blocks: iter([line])
    )
    other = line._replace(part="nation")
    monkeypatch.setattr(
        geography, "nation_figures", lambda countries, blocks: iter([other])
    )
    path = tmp_path / "places" / "geography.csv"
    assert list(geography.write_geography(1, quick=True, path=path)) == [line, other]
    assert not path.exists()
    list(geography.write_geography(1, quick=False, path=path))
    assert path.with_name(geography.NATIONS).exists()
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["level"], float(row["measured"])) == ("block", 2.0)


def test_the_record_meets_the_design():
    with geography.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figures = [
        geography.Figure(
            *(row[name] for name in ("part", "case", "plan", "level")),
            float(row["measured"]),
            float(row["designed"]),
        )
        for row in rows
    ]
    beyond = [one for one in figures if not one.is_met and one.level != "state"]
    # One district, the nation, pays for what all others gain.
    assert [(one.plan, one.level) for one in beyond] == [("Nested", "nation")]
    assert beyond[0].ratio < 1.035
    two = {
        (one.plan, one.level): one.measured
        for one in figures
        if one.case == "blocks and counties"
    }
    assert two["equal levels", "block"] == pytest.approx(7.62, rel=0.03)
    assert two["equal levels", "county"] == pytest.approx(6.49, rel=0.03)
    assert two["Nested", "block"] == pytest.approx(2.71, rel=0.03)
    assert two["Nested", "county"] == pytest.approx(2.76, rel=0.03)
