"""Releases of one epoch after the other."""

from __future__ import annotations

import itertools
from datetime import date, timedelta

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.blocks import best_block
from blowfish_fast.accounting.series.epochs import FORMS, read_epoch
from blowfish_fast.accounting.series.releases import SINGLE
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
VISITS = {
    "age": np.array([0, 1, 1, 2, 2, 2]),
    "received": np.array(
        [f"2026-11-{day:02}" for day in (2, 8, 9, 15, 16, 20)],
        dtype="M8[D]",
    ),
}


def _laplace(epsilon="0.3", policy=POLICY):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


@pytest.fixture
def ledger():
    return bf.Ledger(None, epsilon=1, policy=POLICY)


@pytest.fixture
def weeks(ledger):
    return bf.Series(ledger, column="received", every="week", level="event")


def test_a_series_costs_its_dearest_epoch(ledger, weeks):
    weeks.release("2026-W45", _laplace(), VISITS, rng=1)
    assert float(ledger.spent) == pytest.approx(0.3)
    weeks.release("2026-W46", _laplace("0.2"), VISITS, rng=1)
    assert float(ledger.spent) == pytest.approx(0.3)
    weeks.release("2026-W46", _laplace("0.2"), VISITS, request="again", rng=1)
    assert float(ledger.spent) == pytest.approx(0.4)
    ledger.release(_laplace("0.1"), [1, 2, 3], rng=1)
    assert float(ledger.spent) == pytest.approx(0.5)
    months = bf.Series(ledger, column="received", every="month", level="event")
    months.release("2026-11", _laplace("0.5"), VISITS, rng=1)
    assert float(ledger.spent) == pytest.approx(1.0)
    with pytest.raises(BudgetError):
        weeks.release("2026-W47", _laplace("0.5"), VISITS, rng=1)
    weeks.release("2026-W47", _laplace("0.4"), VISITS, rng=1)
    assert "dearest epoch" in weeks.sentence()
    ledger.verify()


@pytest.mark.parametrize(
    ("every", "name", "again"),
    [
        ("week", "2026-W46", "\uff12\uff10\uff12\uff16-W46"),
        ("day", "2026-11-15", "2026-11-\u0661\u0665"),
        ("year", "2026", "\u0968\u0966\u0968\u096c"),
    ],
)
def test_an_epoch_has_one_name_and_is_paid_for_each_time(ledger, every, name, again):
    series = bf.Series(ledger, column="received", every=every, level="event")
    series.release(name, _laplace(), [1, 2, 3], rng=1)
    with pytest.raises(InputError, match="is named like"):
        series.release(again, _laplace(), [1, 2, 3], rng=1)
    # Ledgers that were written with such names count them by the day of their start.
    content = {"name": series.name, "epoch": again, "price": 300_000_000}
    content["start"] = read_epoch(every, name).start.isoformat()
    entry = ledger._terms().entry
    ledger._journal.reserve("other", 300_000_000, entry, {"series": content}, None)
    assert float(ledger.spent) == pytest.approx(0.6)


def test_a_series_in_rho_is_priced_in_rho():
    ledger = bf.Ledger(None, rho=1, policy=POLICY)
    weeks = bf.Series(ledger, column="received", every="week", level="event")
    cells = bf.workloads.Identity(AGES)
    gaussian = bf.Gaussian(POLICY, cells, rho="0.1")
    weeks.release("2026-W46", gaussian, [1, 2, 3], rng=1)
    weeks.release("2026-W46", gaussian, [1, 2, 3], rng=1, request="again")
    words = "one record is protected at rho = 0.2, the dearest epoch"
    assert weeks.sentence() == words


def test_only_the_records_of_an_epoch_are_read(ledger, weeks):
    mechanism = _laplace("0.9")
    for name, wanted in (
        ("2026-W45", [1, 1, 0]),
        ("2026-W46", [0, 1, 1]),
        ("2026-W47", [0, 0, 2]),
    ):
        when = read_epoch("week", name)
        counted = weeks._counted(when, mechanism, VISITS, when.number, SINGLE)
        assert counted.counts.tolist() == wanted
        release = weeks.release(name, mechanism, VISITS, rng=1)
        noise = release.estimate - wanted
        assert np.abs(noise).max() < 30
    assert float(ledger.spent) == pytest.approx(0.9)


def test_closed_epochs_are_not_read_again(ledger, weeks):
    first = weeks.release("2026-W45", _laplace(), VISITS, rng=1)
    weeks.release("2026-W46", _laplace(), VISITS, rng=1)
    with pytest.raises(LedgerError, match="is closed"):
        weeks.release("2026-W45", _laplace(), VISITS, request="late records", rng=1)
    with pytest.raises(LedgerError, match="is closed"):
        weeks.release("2026-W44", _laplace(), VISITS, rng=1)
    again = weeks.release("2026-W45", _laplace(), VISITS, rng=1)
    assert again.estimate.tolist() == first.estimate.tolist()
    assert float(ledger.spent) == pytest.approx(0.3)


def test_running_totals_are_free(ledger, weeks):
    for name in ("2026-W45", "2026-W46", "2026-W47"):
        weeks.release(name, _laplace(), VISITS, rng=1)
    spent = ledger.spent
    total = weeks.total(upto="2026-W46")
    parts = [ledger.replay(f"received/week/{name}") for name in total.epochs]
    np.testing.assert_allclose(total.estimate, sum(one.estimate for one in parts))
    cells = bf.workloads.Identity(AGES)
    error = parts[0].standard_errors(cells)
    np.testing.assert_allclose(total.standard_errors(cells), np.sqrt(2) * error)
    assert total.epochs == ("2026-W45", "2026-W46")
    assert ledger.spent == spent
    with pytest.raises(LedgerError, match="nothing to add up"):
        weeks.total(upto="2026-W01")


def test_charges_survive_on_disk_and_are_shared(tmp_path):
    path = tmp_path / "ledger"
    with bf.Ledger(path, epsilon=1, policy=POLICY) as ledger:
        weeks = bf.Series(ledger, column="received", every="week")
        weeks.release("2026-W45", _laplace("0.4"), VISITS)
    with bf.Ledger(path) as ledger:
        weeks = bf.Series(ledger, column="received", every="week")
        weeks.release("2026-W46", _laplace("0.4"), VISITS)
        assert float(ledger.spent) == pytest.approx(0.4)
        assert weeks.epochs() == ["2026-W45", "2026-W46"]
        assert weeks.total("2026-W46").estimate.shape == (3,)


def test_what_ties_epochs_together_is_refused(ledger):
    dated = bf.Domain(5, names=["received"])
    protected = bf.Ledger(None, epsilon=1, policy=bf.policies.Line(dated))
    with pytest.raises(PolicyError, match="changes two epochs at once"):
        bf.Series(protected, column="received", every="week")
    known = bf.policies.CountConstraints(AGES, [[1, 0, 0]])
    tied = bf.Ledger(
        None, epsilon=1, policy=bf.policies.Full(AGES).with_constraints(known)
    )
    with pytest.raises(PolicyError, match="tie records of different epochs"):
        bf.Series(tied, column="received", every="week")
    weeks = bf.Series(ledger, column="received", every="week")
    holes = {"age": [0, 1], "received": np.array(["2026-11-09", "NaT"], dtype="M8[D]")}
    with pytest.raises(CountsError, match="do not say when they arrived"):
        weeks.release("2026-W46", _laplace(), holes, rng=1)
    assert ledger.spent == 0


def test_persons_over_weeks_are_stated_honestly():
    persons = POLICY.per_person(2, person="patient")
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY.per_person(person="patient"))
    with pytest.raises(PolicyError, match="there epochs add up"):
        bf.Series(ledger, column="received", every="week", level="event")
    with pytest.raises(PolicyError, match="a person in one week"):
        bf.Series(ledger, column="received", every="week", level="person-week")
    weeks = bf.Series(ledger, column="received", every="week", level="person")
    people = bf.Histogram(AGES, [1, 2, 3], at_most=2, person="patient")
    for name in ("2026-W45", "2026-W46"):
        weeks.release(name, _laplace("0.2", persons), people, rng=1)
    assert float(ledger.spent) == pytest.approx(0.4)
    assert "the sum over the epochs so far" in weeks.sentence()
    assert float(weeks.plan(6).each) == pytest.approx(0.1)
    with pytest.raises(PolicyError, match="needs a ledger of persons"):
        bf.Series(
            bf.Ledger(None, epsilon=1, policy=POLICY),
            column="received",
            every="week",
            level="person",
        )


def test_a_person_in_one_week_is_protected_at_the_price_of_the_dearest():
    persons = POLICY.per_person(2, person="patient-week")
    whole = POLICY.per_person(person="patient-week")
    ledger = bf.Ledger(None, epsilon=1, policy=whole)
    weeks = bf.Series(ledger, column="received", every="week", level="person-week")
    people = bf.Histogram(AGES, [1, 2, 3], at_most=2, person="patient-week")
    for name in ("2026-W45", "2026-W46"):
        weeks.release(name, _laplace("0.2", persons), people, rng=1)
    assert float(ledger.spent) == pytest.approx(0.2)
    assert "in all 2 of them at eps = 0.4" in weeks.sentence()
    with pytest.raises(InputError, match="hand over a Histogram"):
        weeks.release("2026-W47", _laplace("0.2", persons), VISITS, rng=1)


def test_record_level_mechanisms_stay_out_of_a_series_of_persons():
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY.per_person(person="patient"))
    weeks = bf.Series(ledger, column="received", every="week", level="person")
    with pytest.raises(PolicyError, match="protects persons"):
        weeks.release("2026-W45", _laplace(), [1, 2, 3], rng=1)


@pytest.mark.parametrize("every", sorted(FORMS))
def test_epochs_follow_each_other_without_gap_or_overlap(every):
    day, last = date(2019, 12, 30), None
    for _ in range(800):
        year, week, _ = day.isocalendar()
        name = {
            "day": day.isoformat(),
            "week": f"{year}-W{week:02}",
            "month": f"{day.year}-{day.month:02}",
            "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
            "year": str(day.year),
        }[every]
        epoch = read_epoch(every, name)
        assert epoch.start <= day < epoch.stop
        if last is not None and last.name != name:
            assert last.stop == epoch.start
        last, day = epoch, day + timedelta(days=1)


def test_names_of_other_epochs_are_refused(weeks):
    for name in ("2026-46", "2026-W54", 46, "2026-W4"):
        with pytest.raises(InputError, match="named like '2026-W46'"):
            weeks.release(name, _laplace(), VISITS, rng=1)
    with pytest.raises(InputError, match="every is one of"):
        bf.Series(weeks.ledger, column="received", every="fortnight")
    with pytest.raises(InputError, match="level is"):
        bf.Series(weeks.ledger, column="received", every="week", level="user")


def test_two_levels_err_less_on_long_series(weeks):
    assert best_block(12) == (1, 13.0)
    assert best_block(52)[0] > 1
    size, mean = best_block(365)
    assert (size > 1, mean) == (True, pytest.approx(145, abs=1))
    assert weeks.plan(30).block == 1
    assert "block of 18" in weeks.plan(365).sentence


def test_an_edge_inside_a_week_changes_one_epoch_and_one_across_two():
    cells = list(itertools.product(range(3), range(3)))
    inside = {(one, two) for one in cells for two in cells if one[0] == two[0]}
    across = {(one, two) for one in cells for two in cells if one[1] == two[1]}
    assert max(len({one[0], two[0]}) for one, two in inside) == 1
    assert max(len({one[0], two[0]}) for one, two in across) == 2


def test_a_frame_is_read_as_the_same_columns_are(ledger, weeks):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: list(one) for name, one in VISITS.items()})
    other = bf.Ledger(None, epsilon=1, policy=POLICY)
    framed = bf.Series(other, column="received", every="week", level="event")
    first = weeks.release("2026-W46", _laplace(), VISITS, rng=1)
    again = framed.release("2026-W46", _laplace(), frame, rng=1)
    assert again.estimate.tolist() == first.estimate.tolist()


def test_what_the_dearest_epoch_paid_every_other_one_may_cost(ledger, weeks):
    before = weeks.plan(4)
    weeks.release("2026-W46", _laplace(), VISITS, rng=1)
    assert ledger.remaining < before.each
    assert weeks.plan(4) == before
    assert weeks.preview("2026-W47", _laplace()).reason == ""


def test_a_plan_in_rho_knows_the_noise_of_rho():
    policy = bf.policies.AddRemove(AGES)
    weeks = bf.Series(
        bf.Ledger(None, rho="0.5", policy=policy), column="received", every="week"
    )
    once = bf.Gaussian(policy, bf.workloads.Identity(AGES), rho="0.5")
    error = once.release([5, 9, 2], rng=1).standard_errors(once.workload)[0]
    assert weeks.plan(1).variance == pytest.approx(error**2, rel=0.05)
    # Two releases at half of rho err as four at all of it, not as eight.
    assert best_block(20, power=2)[0] > 1 == best_block(20)[0]
    assert best_block(9, power=2)[1] < 9 * 0.5


def test_arrivals_with_a_zone_lie_in_the_epoch_of_their_time_in_utc(weeks):
    pandas = pytest.importorskip("pandas")
    # In Berlin the hour from two to three is there twice that night.
    moments = pandas.to_datetime(
        ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T23:30"], utc=True
    )
    for zone in ("UTC", "Europe/Berlin", "America/New_York"):
        table = pandas.DataFrame(
            {"age": [0, 1, 2], "received": moments.tz_convert(zone)}
        )
        for day, arrived in (("24", 0), ("25", 3), ("26", 0)):
            days = bf.Series(weeks.ledger, column="received", every="day")
            epoch = read_epoch("day", f"2026-10-{day}")
            counted = days._counted(epoch, _laplace(), table, epoch.number, SINGLE)
            assert counted.counts.sum() == arrived


def test_the_last_day_of_the_calendar_is_refused_as_others_are(weeks):
    days = bf.Series(weeks.ledger, column="received", every="day")
    with pytest.raises(InputError, match="a day is named like"):
        days.release("9999-12-31", _laplace(), VISITS, rng=1)
