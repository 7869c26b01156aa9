"""Quantiles of selected records: the definition, and intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, SizeError

PAY_EDGES = np.arange(0, 41, 2)
PEOPLE = bf.Domain.product(
    bf.Domain.from_levels(["Bern", "Chur"], name="town"),
    bf.Domain.from_edges(PAY_EDGES, name="pay"),
    bf.Domain(3, names=["class"]),
)
COUNTS = np.random.default_rng(4).poisson(
    30 * np.exp(-((np.arange(20) - 8) ** 2) / 20)[None, :, None], PEOPLE.shape
)


def released(epsilon, rng=1, policy=bf.policies.Full):
    laplace = bf.Laplace(policy(PEOPLE), bf.workloads.Identity(PEOPLE), epsilon=epsilon)
    return laplace.release(COUNTS, rng=rng)


def spread_evenly(counts, low, high):
    """Return a dense sample of values in which every cell's records lie evenly."""
    return np.concatenate(
        [
            np.linspace(start, end, 1000 * count, endpoint=False)
            for count, start, end in zip(counts, low, high, strict=True)
        ]
    )


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.93, 1.0])
def test_equals_the_definition_on_records_spread_evenly(q):
    release = released(10**6)
    chosen = release.where(town="Chur", pay=slice(5, 31), **{"class": [0, 2]})
    counts = COUNTS[1][:, [0, 2]].sum(axis=1).astype(float)
    low, high = np.clip(PAY_EDGES[:-1], 5, 31), np.clip(PAY_EDGES[1:], 5, 31)
    kept = np.rint(counts * (high - low)).astype(int)
    values = spread_evenly(kept, low, high)
    assert abs(chosen.quantile("pay", q) - np.quantile(values, q)) < 0.05


def test_groups_are_the_selections_one_by_one():
    release = released(1)
    groups = release.group_by("class", "town").quantile("pay", 0.25)
    assert groups.measure == "quantile"
    for (number, town), answer in groups.items():
        one = release.where(town=town, **{"class": number}).quantile("pay", 0.25)
        assert answer == one
        assert answer.interval(0.9) == one.interval(0.9)
    halves = release.group_by(pay=[0, 16, 40]).quantile("pay")
    assert halves[0, 16] == release.where(pay=slice(0, 16)).quantile("pay")
    assert halves[16, 40].interval() == (
        release.where(pay=slice(16, 40)).quantile("pay").interval()
    )


def test_one_attribute_agrees_with_the_release():
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    laplace = bf.Laplace(
        bf.policies.Full(ages), bf.workloads.Identity(ages), epsilon=0.5
    )
    release = laplace.release(np.arange(20) * 7, rng=1)
    for q in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(
            release.where().quantile("age", q), release.quantile(q)
        )
    cells = bf.Domain(9, names=["cell"])
    plain = bf.Laplace(
        bf.policies.Full(cells), bf.workloads.Identity(cells), epsilon=9
    ).release(np.arange(9) * 9, rng=1)
    assert plain.where().quantile("cell", 0.3) == plain.quantile(0.3)


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_intervals_hold_as_often_as_they_say(policy):
    counts = COUNTS[0].sum(axis=1)
    totals = np.cumsum(counts)
    true_cell = int(np.searchsorted(totals, 0.5 * totals[-1]))
    low, high = PAY_EDGES[true_cell], PAY_EDGES[true_cell + 1]
    trials, hits, widths = 40, 0, []
    for seed in range(trials):
        chosen = released(0.6, seed, policy).where(town="Bern")
        start, end = chosen.quantile("pay").interval(0.8)
        hits += start <= low and high <= end
        widths.append(end - start)
        assert start <= chosen.quantile("pay") <= end
    assert hits >= 0.8 * trials
    assert np.mean(widths) < 12


def test_quantiles_of_dates_in_selections_are_dates_in_tables():
    days = bf.Domain.from_dates(
        [f"1969-{month:02d}-01" for month in (10, 11, 12)] + ["1970-01-01"], name="day"
    )
    sexes = bf.Domain.from_levels(["F", "M"], name="sex")
    people = bf.Domain.product(days, sexes)
    exact = bf.Laplace(
        bf.policies.Full(people), bf.workloads.Identity(people), epsilon=1000
    ).release([[9, 1], [0, 1], [0, 9]], rng=1)
    found = exact.group_by("sex").quantile("day", 0.5)
    table = found.to_table()
    assert table["quantile"].dtype == np.dtype("M8[D]")
    assert [str(one)[:7] for one in table["quantile"]] == ["1969-10", "1969-12"]
    assert (table["low"] <= table["quantile"]).all()
    assert (table["quantile"] <= table["high"]).all()
    # As a number it counts days, here before 1970.
    alone = exact.where(sex="F").quantile("day", 0.5)
    assert -92 <= alone.interval()[0] <= alone <= alone.interval()[1] <= -61
    whole = exact.where().quantile("day", 0.25)
    (same,) = bf.Domain.from_dates(["1969-10-01", "1969-11-01"]).attributes
    assert whole == pytest.approx(same.cuts[0] + 31 / 2)


def test_what_has_no_order_has_no_quantile(monkeypatch):
    release = released(1)
    with pytest.raises(DomainError, match="no order"):
        release.where().quantile("town")
    for q in (1.5, -0.1, float("nan"), "x", [0.1, 0.2]):
        with pytest.raises(InputError, match="one part from 0 to 1"):
            release.where().quantile("pay", q)
    missing = bf.Domain.from_edges([0, 1, 2], name="x").with_extra_cells(missing=True)
    extended = bf.Laplace(
        bf.policies.Full(missing), bf.workloads.Identity(missing), epsilon=1
    ).release([3, 4, 5], rng=1)
    with pytest.raises(InputError, match=r"first: x=slice\(None\)"):
        extended.where().quantile("x")
    assert 0 <= extended.where(x=slice(None)).quantile("x") <= 2
    monkeypatch.setattr("blowfish_fast.release.quantiles.MOST_TOTALS", 3)
    with pytest.raises(SizeError, match="20 cells"):
        release.where().quantile("pay").interval()
