"""Quantiles of selected records: the definition, and intervals that hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, InputError, SizeError
from blowfish_fast.release import quantiles
from blowfish_fast.release.query_grid import Grid
from blowfish_fast.workloads.base import form_matrix

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


@pytest.mark.long
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


@pytest.mark.long
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
    # Whoever has no value is left out.
    everybody = extended.where().quantile("x")
    assert everybody == extended.where(x=slice(None)).quantile("x")
    assert 0 <= everybody <= 2
    monkeypatch.setattr("blowfish_fast.release.quantiles.MOST_TOTALS", 3)
    with pytest.raises(SizeError, match="20 cells"):
        release.where().quantile("pay").interval()


LINE = bf.Domain.from_edges(range(33), name="x")
FLAT_AT_THE_MEDIAN = np.r_[np.full(8, 40), np.zeros(16, int), np.full(8, 40)]


def line_release(counts, seed, epsilon=0.2, mechanism=bf.Laplace):
    made = mechanism(
        bf.policies.AddRemove(LINE), bf.workloads.Prefixes(LINE), epsilon=epsilon
    )
    return made.release(counts, rng=seed)


@pytest.mark.parametrize("edges", [range(8), [0, 3, 4, 7], [0, 7]])
@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_surpluses_over_buckets_are_those_of_averaged_cells(edges, part):
    rows = quantiles.RankRows(bf.Domain(7), part)
    by_cell = np.tril(np.ones((7, 7))) - part
    counts = np.array([3, 0, 2, 5, 1, 1, 4])
    np.testing.assert_allclose(rows.answer(counts), by_cell @ counts)
    buckets = Buckets(np.array(edges))
    found = form_matrix(rows.explicit_form(buckets), buckets.edges.size - 1, most=100)
    averaged = np.stack(
        [by_cell[:, low:high].mean(axis=1) for low, high in pairwise(edges)],
        axis=1,
    )
    np.testing.assert_allclose(found.toarray(), averaged, atol=1e-15)


def test_the_first_and_the_last_cell_that_may_hold_a_quantile():
    low = np.array(
        [[-9.0, -7, -4, -1, 1, 4], [1, 1, 1, 1, 1, 1], [-2, -2, -2, -2, -2, -1]]
    )
    high = low + 3
    first, last = quantiles.scanned_places(low, high, 0.5)
    assert first.tolist() == [3, 0, 0]
    assert last.tolist() == [4, 0, 5]
    # Surpluses without noise: the cell in which the part is reached but for rounding.
    exact = np.array([-3.0, -1e-15, 0.0, 2.0])
    first, last = quantiles.scanned_places(exact, exact, 0.5)
    assert (int(first), int(last)) == (1, 1)
    # All surpluses below 0, which noise alone can bring about: the last cell.
    first, last = quantiles.scanned_places(exact - 9, exact - 9, 0.5)
    assert (int(first), int(last)) == (3, 3)
    # A part of 0 is reached in the first cell, whatever the noise.
    assert [
        int(cell) for cell in quantiles.scanned_places(low[0], high[0] + 9, 0.0)
    ] == [0, 0]


@pytest.mark.long
@pytest.mark.parametrize("mechanism", [bf.Laplace, bf.Hierarchy])
def test_scanned_intervals_hold_where_the_totals_stand_still(mechanism):
    missed, together, trials = 0, 0, 60
    for seed in range(trials):
        release = line_release(FLAT_AT_THE_MEDIAN, seed, mechanism=mechanism)
        low, high = release.where().quantile("x").interval(0.8, of="truth")
        missed += low > 7 or high < 8
        ends = release.quantile_intervals([0.25, 0.5, 0.75], 0.8, of="truth")
        cells = np.array([3, 7, 27])
        together += bool(((ends[:, 0] > cells) | (ends[:, 1] < cells + 1)).any())
    most = 0.2 * trials + 3 * (0.16 * trials) ** 0.5
    assert missed <= most
    assert together <= most


def test_a_false_sign_between_others_changes_nothing():
    """Planted elsewhere: scanning from inside would stop at the false sign."""
    low = np.array([-5.0, -1, -1, -1, -1, 2])
    high = np.array([-3.0, 1, 1, 1, 1, 4])
    ends = [int(cell) for cell in quantiles.scanned_places(low, high, 0.5)]
    assert ends == [1, 5]
    low[3], high[3] = -4, -2
    assert [int(cell) for cell in quantiles.scanned_places(low, high, 0.5)] == ends
    low[2], high[2] = 3, 5
    assert [int(cell) for cell in quantiles.scanned_places(low, high, 0.5)] == ends


def test_scanned_intervals_are_narrower_than_a_band(monkeypatch):
    even = np.full(32, 30)

    def widths():
        ends = [
            line_release(even, seed, 0.1).where().quantile("x").interval(of="truth")
            for seed in range(12)
        ]
        return np.diff(ends).mean()

    scanned = widths()
    monkeypatch.setattr(quantiles, "MOST_SURPLUSES", 0)
    assert scanned < 0.7 * widths()


def test_more_quantiles_than_totals_come_from_one_band():
    release = line_release(FLAT_AT_THE_MEDIAN, 1)
    many = np.linspace(0, 1, 40)
    band = release.quantile_intervals(many)
    alone = np.array([release.quantile_intervals(q) for q in many])
    assert np.diff(alone).mean() < np.diff(band).mean()
    table = release.quantile_intervals([[0.5, 0.1], [0.9, 0.5]])
    assert table.shape == (2, 2, 2)
    np.testing.assert_array_equal(table[0, 0], table[1, 1])
    assert table[0, 1, 0] <= table[0, 0, 0]
    assert table[0, 0, 1] <= table[1, 0, 1]


def test_records_count_as_they_may_lie_in_cells_that_are_covered_in_part():
    """Every placement of a record has a surplus between both rows."""
    town = bf.Domain.from_levels(["Bern", "Chur"], name="town")
    line = bf.Domain.from_edges(range(5), name="x")
    domain = bf.Domain.product(line, town)
    release = bf.Laplace(bf.policies.Full(domain), epsilon=1).release(
        np.full((4, 2), 9), rng=1
    )
    # Two pieces lie in cell 1, the second one reaches into cell 2, half of "Chur".
    cover = ((0.0, 1.25), (1.5, 2.5))
    grid = Grid(release, [[cover], [((0.0, 1.5),)]])
    part = 0.4
    (stretch,) = quantiles.SelectedQuantiles(grid, 0, part).stretches
    least, most = (rows.matrix.toarray() for rows in stretch.surpluses().ends)
    pieces = list(zip(stretch.pieces.starts, stretch.pieces.ends, strict=True))
    places = np.linspace(0, 4, 64, endpoint=False) + 1 / 128
    for at in places:
        for town_at in (0.2, 1.2, 1.8):
            cell = int(at) * 2 + int(town_at)
            inside = town_at < 1.5
            piece = [low <= at < high for low, high in pieces]
            for row in range(len(pieces)):
                chosen = inside and any(piece)
                up_to = inside and any(piece[: row + 1])
                surplus = float(up_to) - part * float(chosen)
                assert least[row, cell] <= surplus + 1e-12
                assert surplus <= most[row, cell] + 1e-12
