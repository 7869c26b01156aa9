"""Running totals, windows and epochs of a series that counts records by their age."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.weights import EXPONENTS
from blowfish_fast.errors import (
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)
from blowfish_fast.measure.budgets import Budget

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
CELLS = bf.workloads.Identity(AGES)
HALF = Fraction(1, 2)


def _week(number):
    return f"2026-W{number:02}"


def _gaussian(rho="0.1", policy=POLICY):
    return bf.Gaussian(policy, bf.workloads.Identity(policy.domain), rho=rho)


def _series(ledger=None, **more):
    if ledger is None:
        ledger = bf.Ledger(None, rho=1, policy=POLICY)
    given = {"column": "received", "every": "week", "totals": True, **more}
    return bf.Series(ledger, **given)


def _counts(epochs, seed=1):
    return np.random.default_rng(seed).integers(0, 50, (epochs, 3))


# --- figures of the literature, from the plan itself -------------------------------


@pytest.mark.parametrize(
    ("epochs", "variance"), [(12, 1.460), (52, 2.342), (365, 3.868), (1000, 4.812)]
)
def test_the_square_root_reaches_the_known_optimum(epochs, variance):
    plan = _series(totals=HALF).plan(epochs, band=epochs)
    assert plan.variance == pytest.approx(variance, abs=6e-4)
    assert plan.exponent == HALF


@pytest.mark.parametrize(
    ("eighths", "day", "week", "month", "total"),
    [
        (0, 0.50, 3.50, 14.0, 91.5),
        (1, 0.53, 2.53, 7.30, 27.7),
        (2, 0.63, 2.16, 4.63, 9.79),
        (3, 0.93, 2.36, 3.91, 4.74),
        (4, 1.87, 3.67, 4.96, 3.87),
    ],
)
def test_the_exponent_trades_days_for_totals(eighths, day, week, month, total):
    days = _series(every="day", totals=Fraction(eighths, 8))
    plan = days.plan(365, {"epoch": 1, "last 7": 1, "last 28": 1}, band=365)
    wanted = {"epoch": day, "last 7": week, "last 28": month}
    for name, variance in wanted.items():
        assert plan.final[name] == pytest.approx(variance, abs=6e-3, rel=2e-3)
    assert plan.variance == pytest.approx(total, rel=4e-3)


@pytest.mark.parametrize(
    ("band", "upto"),
    [
        (52, {12: 2.15, 52: 2.70, 365: 8.34, 1000: 19.5}),
        (365, {12: 2.72, 52: 3.42, 365: 4.33, 1000: 6.51}),
        (1024, {12: 3.03, 52: 3.80, 365: 4.82, 1000: 5.34}),
    ],
)
def test_a_band_costs_little_for_ever(band, upto):
    weights = bf.series.Weights.falling(HALF, band)
    variances = weights.variances(1000, 2)
    for epoch, variance in upto.items():
        assert variances[epoch - 1] == pytest.approx(variance, rel=4e-3)


@pytest.mark.parametrize(
    ("epochs_at_most", "variances"),
    [
        (2, [26.5, 14.7, 9.49, 7.62, 8.08]),
        (8, [106, 80.6, 70.9, 74.8, 97.4]),
        (26, [345, 346, 391, 504, 756]),
    ],
)
def test_persons_in_more_epochs_want_smaller_exponents(epochs_at_most, variances):
    for exponent, variance in zip(EXPONENTS, variances, strict=True):
        weights = bf.series.Weights.falling(exponent, 52)
        found = weights.variances(52, 2, epochs_at_most=epochs_at_most).mean()
        assert found == pytest.approx(variance, rel=4e-3)


def test_the_plan_takes_the_exponent_that_serves_what_is_wanted():
    series = _series()
    assert series.plan(52, {"total": 1}, band=52).exponent == HALF
    assert series.plan(52, {"epoch": 1}, band=52).exponent == 0
    both = series.plan(52, {"epoch": 1, "last 4": 1, "total": 1}, band=52)
    assert both.exponent == Fraction(3, 8)
    assert 'totals="3/8"' in both.sentence
    for wrong in ({"last": 1}, {"last 0": 1}, {}, "total", {"total": -1}):
        with pytest.raises(InputError):
            series.plan(52, wrong)


def test_two_levels_in_epsilon_are_averaged():
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY)
    plan = _series(ledger).plan(52)
    assert (plan.block, plan.variance) == (7, pytest.approx(47.1, abs=0.05))
    plan = _series(ledger, every="day").plan(365)
    assert plan.variance == pytest.approx(140.9, abs=0.1)


# --- price: one for ever -----------------------------------------------------------


def test_one_price_serves_every_week(tmp_path):
    with bf.Ledger(tmp_path / "book", rho="0.5", policy=POLICY) as ledger:
        weeks = _series(ledger)
        counts = _counts(12)
        for number in range(1, 13):
            row = weeks.release(_week(number), _gaussian(), list(counts[:number]))
            assert ledger.spent == Fraction(1, 10)
            assert row.guarantee.rho == Fraction(1, 10)
        # A second question about a week adds up within it.
        weeks.release(_week(12), _gaussian("0.05"), list(counts), request="once more")
        assert ledger.spent == Fraction(15, 100)
        assert "rho = 0.15, the dearest epoch" in weeks.sentence()
        total = weeks.total(_week(12))
        assert total.guarantee.rho == Fraction(15, 100)
        ledger.verify()


def test_every_row_states_the_whole_price_and_its_weights():
    weeks = _series()
    row = weeks.release(_week(1), _gaussian(), [_counts(1)[0]], rng=1)
    assert str(row.guarantee).count("rho = 0.1") == 1
    assert row.details["weights"][0] == 1024
    assert row.details["epoch"] == _week(1)
    again = bf.Release.from_bytes(row.to_bytes())
    assert again.guarantee.rho == Fraction(1, 10)


def test_other_weights_are_another_series_and_add_up():
    ledger = bf.Ledger(None, rho=1, policy=POLICY)
    first, other = _series(ledger), _series(ledger, totals=HALF)
    own = _series(ledger, totals=bf.series.Weights((1024, 384)))
    assert len({first.name, other.name, own.name}) == 3
    for series, spent in ((first, "0.1"), (other, "0.2"), (own, "0.3")):
        series.release(_week(1), _gaussian(), [[1, 2, 3]], rng=1)
        assert ledger.spent == Fraction(spent)


def test_the_journal_compares_weights_and_cells_inside_the_transaction():
    ledger = bf.Ledger(None, rho=1, policy=POLICY)
    weeks = _series(ledger)
    weeks.release(_week(1), _gaussian(), [[1, 2, 3]], rng=1)
    (charge,) = ledger._journal.history()
    entry = ledger._terms().entry
    # The same name with a scale of 2^12, as a stranger's program might write it.
    forged = {
        **charge.content["series"],
        "number": charge.content["series"]["number"] + 1,
    }
    forged["weights"] = bf.series.Weights.falling("3/8", 1024, 2**12).to_dict()
    with pytest.raises(LedgerError, match="other weights"):
        ledger._journal.reserve("forged", 1, entry, {"series": forged}, None)
    forged = {**forged, "weights": charge.content["series"]["weights"], "cells": "x"}
    with pytest.raises(LedgerError, match="other cells"):
        ledger._journal.reserve("forged", 1, entry, {"series": forged}, None)


def test_the_unit_mechanism_runs_at_the_price_over_the_weights():
    weeks = _series()
    price = weeks.scheme.price(2)
    row = weeks.release(_week(1), _gaussian(), [[1, 2, 3]], rng=1)
    (variance,) = set((row.standard_errors(CELLS) ** 2).round(3))
    # Variance of discrete Gaussian noise is that of the continuous one at this size.
    assert variance == pytest.approx(price / (2 * 0.1), rel=1e-6)
    prices = [Budget(Fraction(1, 10), 2) / price]
    assert prices[0] * price == Budget(Fraction(1, 10), 2)


def test_counts_of_epochs_that_have_no_common_shape_are_refused_before_the_charge():
    weeks = _series()
    with pytest.raises(CountsError, match="counts of several epochs have one shape"):
        weeks.release(_week(1), _gaussian(), [[1, 1, 1], [], [1, 1]], rng=1)
    assert weeks.ledger.spent == 0


# --- rows follow each other --------------------------------------------------------


def test_a_gap_is_refused_and_may_be_filled_later():
    weeks, counts = _series(), _counts(4)
    weeks.release(_week(10), _gaussian(), list(counts[:1]), rng=1)
    with pytest.raises(LedgerError, match="the epoch before '2026-W12'"):
        weeks.release(_week(12), _gaussian(), list(counts[:3]), rng=1)
    assert (
        "'2026-W11' has no release yet" in weeks.preview(_week(12), _gaussian()).reason
    )
    assert float(weeks.ledger.spent) == 0.1
    weeks.release(_week(11), _gaussian(), list(counts[:2]), rng=1)
    weeks.release(_week(12), _gaussian(), list(counts[:3]), rng=1)
    with pytest.raises(LedgerError, match="before the first one"):
        weeks.release(_week(9), _gaussian(), [counts[0]], rng=1)
    # An epoch is not closed by a later one: it may be asked again, at its price.
    weeks.release(_week(11), _gaussian(), list(counts[:2]), request="late", rng=1)
    assert float(weeks.ledger.spent) == 0.2


def test_an_epoch_without_arrivals_is_released_like_any_other():
    weeks = _series()
    weeks.release(_week(1), _gaussian(), [[5, 0, 1]], rng=1)
    weeks.release(_week(2), _gaussian(), [[5, 0, 1], [0, 0, 0]], rng=1)
    assert weeks.epoch(_week(2)).epochs == (_week(2),)


def test_a_repeated_epoch_is_replayed_on_changed_data(tmp_path):
    with bf.Ledger(tmp_path / "book", rho=1, policy=POLICY) as ledger:
        weeks = _series(ledger)
        first = weeks.release(_week(1), _gaussian(), [[5, 0, 1]])
        again = weeks.release(_week(1), _gaussian(), [[50, 7, 9]])
        assert first.estimate.tolist() == again.estimate.tolist()


def test_a_series_that_was_ended_releases_nothing_more():
    weeks = _series()
    weeks.release(_week(1), _gaussian(), [[5, 0, 1]], rng=1)
    with pytest.raises(InputError, match="say why"):
        weeks.close("")
    weeks.close("the study is over")
    weeks.close("the study is over")
    with pytest.raises(LedgerError, match="the study is over"):
        weeks.release(_week(2), _gaussian(), [[5, 0, 1]] * 2, rng=1)
    assert weeks.total(_week(1)).epochs == (_week(1),)
    weeks.ledger.verify()


# --- answers -----------------------------------------------------------------------


@pytest.mark.long
def test_totals_windows_and_epochs_have_the_predicted_variance_and_cover():
    counts = _counts(8)
    runs, power = 400, 2
    weeks = _series(totals=HALF, band=8)
    weights = weeks.scheme
    unit = float(weights.price(power)) / (2 * 1.0)
    mechanism = _gaussian("1").at(Budget(Fraction(1, weights.price(power)), 2))
    noise = np.array(
        [
            mechanism.release(
                weights.weigh(counts[: t + 1]), rng=100 * run + t
            ).estimate
            - weights.weigh(counts[: t + 1])
            for run in range(runs)
            for t in range(8)
        ]
    ).reshape(runs, 8, 3)
    for last in (1, 3, 8):
        shares = weights.window_shares(8, last)[::-1]
        errors = np.tensordot(noise, shares, axes=(1, 0)).ravel()
        predicted = unit * (shares**2).sum()
        # Three standard errors of a variance of 1,200 nearly normal numbers.
        assert errors.var() == pytest.approx(predicted, rel=3 * (2 / 1200) ** 0.5)


@pytest.mark.long
def test_intervals_of_frozen_series_hold_the_truth_and_cut_at_zero():
    counts = _counts(6)
    missed = 0
    for seed in range(60):
        weeks = _series(frozen=True, band=12)
        for number in range(1, 7):
            weeks.release(
                _week(number),
                _gaussian("0.5"),
                list(counts[:number]),
                rng=17 * seed + number,
            )
        for answer, truth in (
            (weeks.total(_week(6)), counts.sum(axis=0)),
            (weeks.window(_week(6), 2), counts[-2:].sum(axis=0)),
            (weeks.epoch(_week(5)), counts[4]),
        ):
            bounds = answer.intervals(CELLS, 0.9, of="truth")
            assert bounds.min() >= 0
            missed += int(((truth < bounds[:, 0]) | (truth > bounds[:, 1])).sum())
    # 540 intervals that miss .1 each: three standard errors, at most.
    assert missed / 540 <= 0.1 + 3 * (0.09 / 540) ** 0.5
    assert answer.interval_kind(CELLS) == "truth"
    assert answer.where(age=0).count() >= 0


def test_blocks_in_epsilon_cost_the_price_once_and_err_less():
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY)
    weeks = _series(ledger, totals=bf.series.EpochBlocks(3))
    counts = _counts(7)
    laplace = bf.Laplace(POLICY, CELLS, epsilon=1)
    for number in range(1, 8):
        weeks.release(_week(number), laplace, list(counts[:number]), rng=number)
        assert ledger.spent == (1 if number > 2 else Fraction(1, 2))
    total = weeks.total(_week(7))
    assert total.weights.tolist() == [0.25] * 6 + [1.0] + [0.75] * 2
    single = laplace.at_epsilon("0.5").release([0, 0, 0], rng=1).standard_errors(CELLS)
    expected = single**2 * (6 / 16 + 1 + 2 * 9 / 16)
    np.testing.assert_allclose(total.standard_errors(CELLS) ** 2, expected)
    assert total.guarantee.epsilon == 1
    assert weeks.window(_week(7), 4).epochs == tuple(map(_week, (4, 5, 6, 7)))
    assert "eps = 1, the dearest epoch" in weeks.sentence()


def test_any_mechanism_and_any_policy_serve_in_an_epoch():
    line = bf.Domain(16, names=["age"])
    counts = np.random.default_rng(3).integers(0, 90, (4, 16))
    ranges = bf.workloads.Ranges.random(line, 20, rng=1)
    for policy, build in (
        (bf.policies.Line(line), bf.Ordered),
        (bf.policies.Full(line), bf.Hierarchy),
        (bf.policies.Threshold(line, theta=3), bf.mechanisms.OrderedHierarchical),
    ):
        ledger = bf.Ledger(None, rho=4, policy=policy)
        weeks = _series(ledger, frozen=True, band=8)
        for number in range(1, 5):
            weeks.release(
                _week(number),
                build(policy, ranges, rho=4),
                list(counts[:number]),
                rng=number,
            )
        total = weeks.total(_week(4))
        bounds = total.intervals(ranges, 0.999999)
        truth = ranges.answer(counts.sum(axis=0))
        assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).all()


# --- tables ------------------------------------------------------------------------

VISITS = {
    "age": np.array([0, 1, 1, 2, 2, 2, 0]),
    "received": np.array(
        [f"2026-11-{day:02}" for day in (2, 8, 9, 15, 16, 20, 27)], dtype="M8[D]"
    ),
}


def _weighed(weeks, name, first, table=VISITS):
    when = bf.accounting.series.epochs.read_epoch("week", name)
    begin = bf.accounting.series.epochs.read_epoch("week", first)
    counted = weeks._counted(when, _gaussian(), table, begin.number, weeks.scheme)
    return counted.counts.tolist()


def test_records_of_a_table_count_by_the_age_of_their_arrival():
    weeks = _series(totals=bf.series.Weights((4, 2, 1)))
    assert _weighed(weeks, "2026-W45", "2026-W45") == [4, 4, 0]
    assert _weighed(weeks, "2026-W46", "2026-W45") == [2, 2 + 4, 4]
    assert _weighed(weeks, "2026-W48", "2026-W45") == [4, 1, 1 + 2 + 2]
    # Arrivals before the first epoch do not count, nor do those beyond the band.
    assert _weighed(weeks, "2026-W46", "2026-W46") == [0, 4, 4]


def test_a_database_weighs_as_memory_does():
    ibis = pytest.importorskip("ibis")
    rows = ", ".join(
        f"({age}, DATE '{day}')" for age, day in zip(*VISITS.values(), strict=True)
    )
    base = ibis.duckdb.connect()
    table = base.sql(f"SELECT * FROM (VALUES {rows}) AS t(age, received)")
    weeks = _series(totals=bf.series.Weights((4, 2, 1)))
    for name, first in itertools.product(("2026-W46", "2026-W48"), ("2026-W45",)):
        assert _weighed(weeks, name, first, table) == _weighed(weeks, name, first)
    holes = base.sql("SELECT 1 AS age, CAST(NULL AS DATE) AS received")
    with pytest.raises(InputError, match="do not say when they arrived"):
        _weighed(weeks, "2026-W46", "2026-W45", holes)


# --- persons -----------------------------------------------------------------------

PERSONS = POLICY.per_person(2, person="patient")


def _people_series(**more):
    ledger = bf.Ledger(None, rho=1, policy=POLICY.per_person(person="patient"))
    return _series(ledger, level="person", **more)


def test_persons_need_a_bound_on_their_epochs_and_frozen_ones():
    with pytest.raises(InputError, match="without epochs_at_most"):
        _people_series()
    with pytest.raises(InputError, match="closed epochs that never change"):
        _people_series(epochs_at_most=2)
    with pytest.raises(InputError, match='with level="person"'):
        _series(epochs_at_most=2)
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY.per_person(person="patient"))
    with pytest.raises(InputError, match="blocks are for records"):
        _series(
            ledger,
            level="person",
            totals=bf.series.EpochBlocks(3),
            epochs_at_most=2,
            frozen=True,
        )


def test_a_persons_first_records_in_her_first_epochs_count_for_ever():
    weeks = _people_series(
        epochs_at_most=2, frozen=True, totals=bf.series.Weights((4, 2, 1))
    )
    rows = [
        # patient, age, received: three records in one week, of which two count.
        ("ann", 0, "2026-11-02T10"),
        ("ann", 1, "2026-11-02T11"),
        ("ann", 2, "2026-11-02T12"),
        ("bob", 2, "2026-11-03T09"),
        ("ann", 1, "2026-11-10T09"),
        # A third week of ann, which does not count.
        ("ann", 2, "2026-11-17T09"),
        ("bob", 0, "2026-11-17T09"),
    ]
    names = ("patient", "age", "received")
    table = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    table["received"] = np.array(table["received"], dtype="M8[s]")
    mechanism = _gaussian(policy=PERSONS)
    number = bf.accounting.series.epochs.read_epoch
    first = number("week", "2026-W45").number

    def counted(name):
        when = number("week", name)
        return weeks._counted(
            when, mechanism, table, first, weeks.scheme
        ).counts.tolist()

    assert counted("2026-W45") == [4, 4, 4]
    assert counted("2026-W46") == [2, 2 + 4, 2]
    assert counted("2026-W47") == [1 + 4, 1 + 2, 1]
    row = weeks.release("2026-W45", mechanism, table, rng=1)
    # Two epochs in a row cost (4, 6, 3, 1) squared, for at most two records each.
    assert weeks.scheme.price(2, 2) == 16 + 36 + 9 + 1
    assert row.guarantee.rho == Fraction(1, 10)
    assert "records of 2 epochs count" in weeks.sentence()
    table["patient"][0] = None
    with pytest.raises(InputError, match="do not say whose"):
        weeks.release("2026-W46", mechanism, table, rng=1)


def test_histograms_of_epochs_keep_the_bound_of_their_persons():
    weeks = _people_series(epochs_at_most=3, frozen=True)
    people = [
        bf.Histogram(AGES, counts, at_most=2, person="patient")
        for counts in ([1, 2, 3], [0, 1, 1])
    ]
    weeks.release(_week(1), _gaussian(policy=PERSONS), people[:1], rng=1)
    weeks.release(_week(2), _gaussian(policy=PERSONS), people, rng=1)
    other = bf.Histogram(AGES, [0, 1, 1], at_most=1, person="patient")
    with pytest.raises(InputError, match="by one rule"):
        weeks.release(_week(3), _gaussian(policy=PERSONS), [*people, other], rng=1)


# --- refusals and crashes ----------------------------------------------------------


def test_what_cannot_be_added_up_is_refused():
    weeks = _series()
    with pytest.raises(PolicyError, match="takes mechanisms in rho"):
        weeks.release(_week(1), bf.Laplace(POLICY, CELLS, epsilon=1), [[1, 2, 3]])
    weeks.release(_week(1), _gaussian(), [[1, 2, 3]], rng=1)
    with pytest.raises(InputError, match="the counts of all 2 epochs"):
        weeks.release(_week(2), _gaussian(), [1, 2, 3], rng=1)
    with pytest.raises(InputError, match="the counts of all 2 epochs"):
        weeks.release(_week(2), _gaussian(), [[1, 2, 3]] * 3, rng=1)
    with pytest.raises(LedgerError, match="nothing to add up"):
        weeks.total("2025-W01")
    with pytest.raises(InputError, match="there are 1 released"):
        weeks.window(_week(1), 2)
    with pytest.raises(LedgerError, match="was not released"):
        weeks.epoch(_week(5))
    with pytest.raises(InputError, match="a band goes with an exponent"):
        _series(totals=bf.series.Weights((2, 1)), band=3)


KILLED = """
import os, signal, sys
import blowfish_fast as bf

ages = bf.Domain(3, names=["age"]); policy = bf.policies.AddRemove(ages)
gaussian = bf.Gaussian(policy, bf.workloads.Identity(ages), rho="0.1")

def weeks_of(book):
    weeks = bf.Series(book, column="received", every="week", totals=True)
    for number in (1, 2, 3):
        if number == 2 and os.getpid() != parent:
            book._keep = lambda *given, **more: os.kill(os.getpid(), signal.SIGKILL)
        weeks.release(f"2026-W{number:02}", gaussian, [[5, 1, 2]] * number)
    return weeks

parent = os.getpid()
# A copy of this process is killed: it has the kernels loaded already.
child = os.fork()
if child == 0:
    weeks_of(bf.Ledger(sys.argv[1], rho=1, policy=policy))
killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
book = bf.Ledger(sys.argv[1], rho=1, policy=policy)
total = weeks_of(book).total("2026-W03")
print(killed, float(book.spent), total.epochs[-1], len(book.verify()))
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be copied here")
def test_a_kill_in_a_middle_epoch_loses_and_repeats_nothing(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "book")]
    again = subprocess.run(command, capture_output=True, check=True, text=True)
    assert again.stdout.split() == ["-9", "0.1", "2026-W03", "64"]


def test_only_histograms_are_added_up():
    domain = bf.Domain.product(
        bf.Domain(2, names=["sex"]), bf.Domain(2, names=["smokes"])
    )
    policy = bf.policies.AddRemove(domain)
    weeks = _series(bf.Ledger(rho=1, policy=policy))
    tables = bf.Contingency(policy, bf.workloads.Tables(domain, ways=1), rho=1)
    with pytest.raises(InputError, match="histograms up, cell by cell"):
        weeks.release(_week(1), tables, [[1, 2, 3, 4]])


def test_a_preview_says_what_a_release_would_be_refused_for():
    weeks = _series()
    weeks.release(_week(10), _gaussian(), [[1, 2, 3]], rng=1)
    assert weeks.preview(_week(10), _gaussian()).cost == Fraction(1, 10)
    assert weeks.preview(_week(11), _gaussian()).cost == 0
    assert "before the first" in weeks.preview(_week(9), _gaussian()).reason
    ledger = bf.Ledger(epsilon=1, policy=POLICY)
    blocks = _series(ledger, totals=bf.series.EpochBlocks(3))
    laplace = bf.Laplace(POLICY, epsilon=1)
    for number in (1, 2):
        blocks.release(_week(number), laplace, [[1, 2, 3]] * number, rng=number)
    assert "is closed" in blocks.preview(_week(1), laplace).reason


def test_the_first_epoch_of_a_series_takes_its_counts_by_themselves():
    weeks = _series()
    row = weeks.release(_week(1), _gaussian("0.5"), [1000, 2000, 3000], rng=1)
    assert row.estimate[2] > row.estimate[0] > 500 * 1024
    ledger = bf.Ledger(rho=1, policy=POLICY.per_person(person="patient"))
    people = _series(ledger, level="person", epochs_at_most=2, frozen=True)
    once = POLICY.per_person(2, person="patient", count="persons")
    table = {"age": [0], "patient": ["ann"], "received": ["2026-11-02"]}
    with pytest.raises(PolicyError):
        people.release(_week(45), _gaussian(policy=once), table, rng=1)


def test_persons_that_count_once_are_bounded_by_the_caller():
    once = POLICY.per_person(2, person="patient-week", count="persons")
    whole = POLICY.per_person(person="patient-week", count="persons")
    weeks = _series(bf.Ledger(rho=1, policy=whole), level="person-week", frozen=True)
    table = {"age": [0], "patient": ["ann"], "received": ["2026-11-02"]}
    with pytest.raises(InputError, match="takes a Histogram"):
        weeks.release("2026-W45", _gaussian(policy=once), table, rng=1)
    counted = bf.Histogram(
        AGES, [2, 4, 2], at_most=2, person="patient-week", count="persons"
    )
    weeks.release("2026-W45", _gaussian(policy=once), [counted], rng=1)
    assert weeks.sentence().startswith("a person in one epoch is protected at rho")
    assert "in all" not in weeks.sentence()


def test_a_row_that_was_asked_under_a_name_only_is_no_row():
    weeks = _series()
    weeks.release(_week(1), _gaussian(), [[1, 2, 3]], request="other", rng=1)
    with pytest.raises(LedgerError, match="without a request name"):
        weeks.total(_week(1))


def test_stated_blocks_and_weights_are_planned_as_stated():
    ledger = bf.Ledger(epsilon=1, policy=POLICY)
    stated = _series(ledger, totals=bf.series.EpochBlocks(5))
    assert stated.plan(52).block == 5
    own = _series(ledger, totals=bf.series.Weights((2, 1)))
    assert own.plan(10).block == 1
    in_rho = _series(totals=bf.series.EpochBlocks(5))
    assert in_rho.plan(52).block == 5
    assert _series(totals=bf.series.Weights((2, 1))).plan(10, band=4).exponent == 0
    with pytest.raises(InputError, match="of a series"):
        _series().plan(10, {3: 1})
