"""Series that a ledger holds, found in its log."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.ledger_rows import _read_name, stored_series
from blowfish_fast.errors import BlowfishError

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
CELLS = bf.workloads.Identity(AGES)
COUNTS = np.random.default_rng(4).integers(5, 60, (4, 3))


def _week(number):
    return f"2026-W{number:02}"


def _release(ledger, totals, weeks=4, request=None, **more):
    series = bf.Series(ledger, column="received", every="week", totals=totals, **more)
    kind = bf.Gaussian if ledger.currency.power == 2 else bf.Laplace
    mechanism = kind(POLICY, CELLS, **{ledger.currency.name: 1})
    for number in range(1, weeks + 1):
        data = COUNTS[number - 1] if totals is False else list(COUNTS[:number])
        series.release(_week(number), mechanism, data, request=request, rng=number)
    return series


@pytest.mark.parametrize(
    ("totals", "currency"),
    [
        (False, "epsilon"),
        (True, "rho"),
        (bf.series.Weights((3, 1)), "rho"),
        (bf.series.EpochBlocks(2), "epsilon"),
    ],
)
def test_every_way_to_keep_totals_is_read_off_the_log(totals, currency):
    ledger = bf.Ledger(None, policy=POLICY, **{currency: 4})
    series = _release(ledger, totals)
    ledger.release(bf.Laplace(POLICY, CELLS, epsilon="0.1"), COUNTS[0], "another")
    ((name, stored),) = stored_series(ledger).items()
    assert name == series.name
    assert (stored.column, stored.every) == ("received", "week")
    assert stored.scheme == series.scheme or stored.scheme.values == (
        series.scheme.values
    )
    mine, theirs = stored.history(CELLS), series.history(CELLS)
    np.testing.assert_allclose(mine.answers, theirs.answers)
    np.testing.assert_allclose(mine.bounds, theirs.bounds)
    assert stored.promise.budget == series.total(_week(4)).guarantee.budget


def test_persons_who_lose_the_sum_are_told_so():
    persons = POLICY.per_person(person="patient")
    ledger = bf.Ledger(None, epsilon=4, policy=persons)
    weeks = bf.Series(ledger, column="received", every="week", level="person")
    laplace = bf.Laplace(POLICY.per_person(2, person="patient"), CELLS, epsilon=1)
    for number in (1, 2):
        counts = bf.Histogram(AGES, COUNTS[number], at_most=2, person="patient")
        weeks.release(_week(number), laplace, counts, rng=number)
    (stored,) = stored_series(ledger).values()
    assert stored.promise.budget == bf.Ledger(None, epsilon=2, policy=POLICY).budget


def test_rows_that_cannot_be_added_up_are_left_out():
    ledger = bf.Ledger(None, rho=4, policy=POLICY)
    _release(ledger, True, weeks=1, request="aside")
    assert stored_series(ledger) == {}


def test_names_are_read_from_the_right():
    assert _read_name("a/week/of/week")[:2] == ("a/week/of", "week")
    with pytest.raises(BlowfishError, match="no length"):
        _read_name("received/hourly")
