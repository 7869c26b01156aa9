"""Pictures of a ledger hold its charges, its budget and its analysts."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

LINE = bf.Domain(4)
POLICY = bf.policies.Full(LINE)
DATA = [3, 0, 2, 5]


def ledger_with(*charges, epsilon=1):
    ledger = bf.Ledger(None, epsilon=epsilon, policy=POLICY)
    for request, price, analyst in charges:
        if analyst is not None:
            ledger.allot(analyst, 0.5)
        laplace = bf.Laplace(POLICY, bf.workloads.Identity(LINE), epsilon=price)
        ledger.release(laplace, DATA, request=request, rng=1, analyst=analyst)
    return ledger


def test_steps_rise_by_every_charge_up_to_what_is_spent(texts):
    ledger = ledger_with(("ages", 0.1, None), ("towns", 0.2, None))
    axes = bf.plotting.budget_over_time(ledger)
    spent = axes.lines[0]
    assert spent.get_xdata().tolist() == [0, 1, 2, 3]
    assert spent.get_ydata().tolist() == [0.0, 0.1, 0.3, 0.3]
    assert spent.get_drawstyle() == "steps-post"
    budget = axes.lines[-1]
    assert set(budget.get_ydata()) == {1.0}
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 1
    assert axes.get_title() == "2 charges, eps = 0.7 of 1 left"
    shown = texts(axes)
    assert {"ages", "towns", "budget 1", "spent 0.3"} <= set(shown)
    assert axes.get_xlabel() == "charges"
    assert [one for one in axes.get_xticks() if not one.is_integer()] == []


def test_requests_without_a_name_go_by_their_mechanism(texts):
    axes = bf.plotting.budget_over_time(ledger_with((None, 0.1, None)))
    assert "laplace" in texts(axes)
    assert axes.get_title().startswith("1 charge,")


def test_analysts_with_an_allotment_have_their_own_steps(texts):
    ledger = ledger_with(
        ("one", 0.1, "ana"), ("two", 0.2, "ben"), ("three", 0.15, "ana")
    )
    axes = bf.plotting.budget_over_time(ledger)
    lines = {one.get_label(): one for one in axes.lines}
    assert lines["ana"].get_ydata().tolist() == [0.0, 0.1, 0.25, 0.25]
    assert lines["ana"].get_xdata().tolist() == [0, 1, 3, 4]
    assert lines["ben"].get_ydata().tolist() == [0.0, 0.2, 0.2]
    assert {"ana 0.25 of 0.5", "ben 0.2 of 0.5"} <= set(texts(axes))


def test_charges_days_apart_lie_along_time(monkeypatch, texts):
    ledger = ledger_with(("one", 0.1, None), ("two", 0.2, None))
    first, second = ledger.history()
    later = dataclasses.replace(second, time=first.time + timedelta(days=30))
    monkeypatch.setattr(ledger, "history", lambda: [first, later])
    axes = bf.plotting.budget_over_time(ledger)
    places = axes.lines[0].get_xdata()
    assert places[2] - places[1] == pytest.approx(30)
    assert axes.get_xlim() == pytest.approx((places[1] - 1.8, places[2] + 3.6))
    assert axes.get_xlabel() == "time (UTC)"
    counted = bf.plotting.budget_over_time(ledger, along="charges")
    assert counted.get_xlabel() == "charges"


def test_an_empty_ledger_shows_its_budget(texts):
    for along in (None, "time"):
        axes = bf.plotting.budget_over_time(ledger_with(), along=along)
        assert axes.lines[0].get_ydata().tolist() == [0.0, 0.0]
        assert "budget 1" in texts(axes)
    charged = ledger_with(("one", 0.1, None))
    assert bf.plotting.budget_over_time(charged, along="time").get_xlabel() == (
        "time (UTC)"
    )


def test_names_that_would_cover_another_are_left_out(texts):
    many = [(f"request number {one}", 0.001, None) for one in range(16)]
    shown = texts(bf.plotting.budget_over_time(ledger_with(*many)))
    named = [one for one in shown if one.startswith("request number")]
    assert 1 <= len(named) < 16
    more = [(f"request number {one}", 0.001, None) for one in range(17)]
    shown = texts(bf.plotting.budget_over_time(ledger_with(*more)))
    assert not any(one.startswith("request number") for one in shown)


def test_other_things_are_refused():
    with pytest.raises(InputError, match="draws a Ledger"):
        bf.plotting.budget_over_time(POLICY)
    with pytest.raises(InputError, match="along must be"):
        bf.plotting.budget_over_time(ledger_with(), along="days")
