"""Questions one at a time: charged first, calibrated to the policy, replayed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.accounting.interactive_session import single_draw_half_width
from blowfish_fast.audit import audit_measurements, policy_families
from blowfish_fast.errors import (
    BudgetError,
    DomainError,
    FailedDrawError,
    InputError,
    IntervalError,
    LedgerError,
    NoiseOnlyWarning,
    RandomnessError,
)
from tests.generated import example_count

PEOPLE = bf.Domain.product(
    bf.Domain.from_edges([0, 10, 20, 40], name="age"),
    bf.Domain.from_levels(["F", "M"], name="sex"),
)
COUNTS = np.array([[30, 20], [10, 0], [7, 5]])


def session(policy=bf.policies.AddRemove, epsilon=100, path=None, domain=PEOPLE):
    ledger = bf.Ledger(path, epsilon=epsilon, policy=policy(domain))
    return bf.Session(ledger, COUNTS)


def test_answers_are_near_the_truth_and_paid_for():
    # A sum moves by 30 at most, so that secure noise reaches 5 with e^-83.
    asked = session(epsilon=2000)
    assert round(asked.noisy_count(sex="F", epsilon=500)) == 47
    assert round(asked.noisy_count(epsilon=500)) == 72
    total = asked.noisy_sum("age", sex="F", epsilon=500)
    assert abs(total - (30 * 5 + 10 * 15 + 7 * 30)) < 5
    clamped = asked.noisy_sum("age", sex="F", low=10, high=20, epsilon=500)
    assert abs(clamped - (30 * 10 + 10 * 15 + 7 * 20)) < 5
    assert asked.ledger.remaining == 0
    with pytest.raises(BudgetError):
        asked.noisy_count(epsilon=0.1)


def test_answers_are_charged_before_they_are_drawn(monkeypatch):
    asked = session()
    seen = []

    def broken(*arguments, **options):
        seen.append(asked.ledger.spent)
        raise RuntimeError("lights out")

    monkeypatch.setattr("blowfish_fast.measure.handle._draw", broken)
    with pytest.raises(FailedDrawError) as failure:
        asked.noisy_count(sex="F", epsilon=1, request="women")
    assert "lights out" not in str(failure.value)
    assert failure.value.__context__ is None
    assert failure.value.__cause__ is None
    assert seen == [1]
    monkeypatch.undo()
    # The failure is the stored outcome of the charge: nobody draws a second time.
    with pytest.raises(FailedDrawError):
        asked.noisy_count(sex="F", epsilon=1, request="women")
    assert asked.ledger.spent == 1
    asked.noisy_count(sex="F", epsilon=1, request="women again")
    assert asked.ledger.spent == 2


def test_an_interrupted_answer_is_finished_under_its_charge(monkeypatch):
    asked = session()

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("blowfish_fast.measure.handle._draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asked.noisy_count(sex="F", epsilon=1, request="women")
    assert asked.ledger.spent == 1
    monkeypatch.undo()
    asked.noisy_count(sex="F", epsilon=1, request="women")
    assert asked.ledger.spent == 1


def test_a_named_question_is_answered_once(tmp_path):
    asked = session(path=tmp_path / "people.ledger")
    first = asked.noisy_count(sex="F", epsilon=1, request="women")
    again = asked.noisy_count(sex="F", epsilon=1, request="women")
    assert first == again
    assert first.interval() == again.interval()
    assert asked.ledger.spent == 1
    total = asked.noisy_sum("age", sex="F", epsilon=2, request="years of women")
    assert asked.noisy_sum("age", sex="F", epsilon=2, request="years of women") == total
    parts = asked.partition("sex")
    sums = parts.noisy_sum("age", epsilon=1, request="years of each")
    assert parts.noisy_sum("age", epsilon=1, request="years of each") == sums
    assert len(asked.ledger.history()) == 3
    with pytest.raises(LedgerError, match="another question"):
        asked.noisy_count(sex="M", epsilon=1, request="women")
    with pytest.raises(RandomnessError, match="on disk"):
        asked.noisy_count(sex="F", epsilon=1, rng=3)


def test_the_parts_cost_no_more_than_one_where_nothing_crosses():
    asked = session()
    scale = {}
    for policy in (bf.policies.AddRemove, bf.policies.Full):
        asked = session(policy)
        answers = asked.partition("sex").noisy_count(epsilon=2, rng=1)
        assert list(answers) == ["F", "M"]
        assert asked.ledger.spent == 2
        low, high = answers["F"].interval(0.9)
        assert low <= answers["F"] <= high
        scale[policy] = high - low
    # Under Full a record moves from one part to the other and changes both.
    assert scale[bf.policies.Full] > 1.5 * scale[bf.policies.AddRemove]


def test_parts_may_be_bins_and_may_be_summed():
    asked = session(epsilon=300)
    by_age = asked.partition("age", {"child": slice(0, 20), "adult": slice(20, 40)})
    assert by_age.names == ["child", "adult"]
    counts = by_age.noisy_count(epsilon=100)
    assert {name: round(one) for name, one in counts.items()} == {
        "child": 60,
        "adult": 12,
    }
    sums = asked.partition("age", [0, 10, 40], sex="F").noisy_sum("age", epsilon=100)
    assert [round(one / 10) for one in sums.values()] == [15, 36]
    assert sums.to_table().to_dict()["age_to"] == [10, 40]


@pytest.mark.parametrize("family", policy_families(bf.Domain((3, 2))))
def test_every_question_pays_for_every_edge(family, monkeypatch):
    """Grey box: the mechanism that a session builds, against all edges."""
    domain = bf.Domain((3, 2))
    policy = policy_families(domain)[family]
    mechanisms = []
    ledger = bf.Ledger(None, epsilon=10, policy=policy)
    original = type(ledger).release

    def watched(self, mechanism, *arguments, **options):
        mechanisms.append(mechanism)
        return original(self, mechanism, *arguments, **options)

    monkeypatch.setattr(type(ledger), "release", watched)
    asked = bf.Session(ledger, COUNTS)
    asked.noisy_count({0: slice(0, 2), 1: 1}, epsilon="0.3")
    asked.noisy_sum(0, {1: 1}, epsilon="0.3", step=1)
    asked.partition(1).noisy_count(epsilon="0.3")
    asked.partition(0).noisy_sum(1, epsilon="0.3", low=-1)
    assert len(mechanisms) == 4
    for mechanism in mechanisms:
        assert all(price.passed for price in audit_measurements(mechanism, COUNTS))
    assert ledger.spent == Fraction(12, 10)


def test_sums_hold_the_truth_only_where_values_are_those_of_records():
    asked = session(epsilon=1000)
    assert asked.noisy_count(sex="F", epsilon=1).holds_truth
    years = asked.noisy_sum("age", epsilon=50)
    assert not years.holds_truth
    with pytest.warns(NoiseOnlyWarning, match="middle of their cell"):
        years.interval()
    with pytest.raises(IntervalError, match="middle of their cell"):
        years.interval(of="truth")
    parts = asked.partition("sex").noisy_sum("age", epsilon=50)
    assert {"noise_low", "noise_high"} <= set(parts.to_table().columns)
    rooms = bf.Domain.from_levels([1, 2, 7], name="rooms")
    ledger = bf.Ledger(None, epsilon=1000, policy=bf.policies.AddRemove(rooms))
    homes = bf.Session(ledger, [4, 0, 9])
    low, high = homes.noisy_sum("rooms", epsilon=50).interval(1 - 1e-9, of="truth")
    assert low <= 67 <= high
    assert not homes.noisy_sum("rooms", high=5, epsilon=50).holds_truth
    assert not homes.noisy_sum("rooms", step=2, epsilon=50).holds_truth


@pytest.mark.long
def test_intervals_hold_as_often_as_they_say():
    asked = session(bf.policies.Full, epsilon=10**6)
    hits = 0
    for seed in range(150):
        low, high = asked.noisy_count(sex="F", epsilon=0.5, rng=seed).interval(0.8)
        hits += low <= 47 <= high
    assert hits / 150 >= 0.8 - 3 * np.sqrt(0.16 / 150)


@pytest.mark.parametrize("budget", [{"epsilon": "0.5"}, {"rho": "1/8"}], ids=str)
def test_intervals_are_those_of_the_noise_that_was_drawn(budget):
    # Both have a scale of 2, and their laws differ.
    away = np.arange(-200, 201)
    law = np.exp(-(away**2) / 8.0) if "rho" in budget else np.exp(-np.abs(away) / 2.0)
    tails = [law[np.abs(away) > one].sum() / law.sum() for one in range(50)]
    least = next(one for one, tail in enumerate(tails) if tail <= 0.05)
    ledger = bf.Ledger(None, **budget, policy=bf.policies.AddRemove(PEOPLE))
    asked = bf.Session(ledger, COUNTS).noisy_count(sex="F", **budget, rng=1)
    low, high = asked.interval(0.95)
    assert (high - low) / 2 == pytest.approx(least, abs=1e-6)


@settings(deadline=None, max_examples=example_count(60))
@given(st.floats(0.05, 50), st.floats(0.001, 0.999))
def test_half_widths_are_the_least_for_one_draw(width, miss):
    half = single_draw_half_width(width, miss)
    law = np.exp(-np.arange(0, 3000) / width)
    law /= law[0] + 2 * law[1:].sum()
    assert 2 * law[int(half) + 1 :].sum() <= miss * (1 + 1e-9)
    if half > 0:
        assert 2 * law[int(half) :].sum() >= miss * (1 - 1e-9)


def test_public_totals_are_exact():
    total = session(bf.policies.Full).noisy_count(epsilon=0.1)
    assert total == 72
    assert total.interval() == (72, 72)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.noisy_count(age=slice(0, 15), epsilon=1), InputError, "borders"),
        (lambda s: s.noisy_sum("sex", epsilon=1), DomainError, "no sum"),
        (lambda s: s.noisy_sum("age", low=3, high=1, epsilon=1), InputError, "exceed"),
        (lambda s: s.noisy_sum("age", step=0, epsilon=1), InputError, "step"),
        (lambda s: s.noisy_sum("age", step=1e-9, epsilon=1), InputError, "2\\^24"),
        (lambda s: s.noisy_count(town="Bern", epsilon=1), DomainError, "no attribute"),
        (lambda s: s.noisy_count(sex="X", epsilon=1), InputError, "not known"),
        (lambda s: s.noisy_count(epsilon=0), InputError, "greater than 0"),
        (
            lambda s: s.partition("age", {"a": slice(0, 20), "b": slice(10, 40)}),
            InputError,
            "exclude each other",
        ),
    ],
)
def test_bad_questions_cost_nothing(ask, error, words):
    asked = session()
    with pytest.raises(error, match=words):
        ask(asked)
    assert asked.ledger.spent == 0


def test_missing_values_are_left_out_of_sums():
    domain = PEOPLE.with_extra_cells(missing="age")
    policy = bf.policies.AddRemove(domain)
    asked = bf.Session(bf.Ledger(None, epsilon=9, policy=policy), np.ones((4, 2)))
    everybody = asked.noisy_sum("age", epsilon=1, rng=1)
    among = asked.noisy_sum("age", age=slice(None), epsilon=1, rng=1)
    assert everybody == among != 0
    assert everybody.left_out == "Records whose age is missing are left out."
    assert among.left_out is None
    with pytest.raises(InputError, match="have no value"):
        asked.noisy_sum("age", age="(missing)", epsilon=1)
    assert asked.noisy_count(age="(missing)", epsilon=1, rng=1).interval()[1] > 0
    assert "(missing)" in asked.partition("age").noisy_count(epsilon=1)


def test_a_session_needs_a_ledger_and_fitting_data_and_prints_neither():
    with pytest.raises(LedgerError, match="paid from a Ledger"):
        bf.Session(None, COUNTS)
    ledger = bf.Ledger(None, epsilon=1, policy=bf.policies.Full(PEOPLE))
    with pytest.raises(DomainError, match="over one Domain"):
        bf.Session(ledger, bf.Histogram(bf.Domain((3, 2)), COUNTS))
    with pytest.raises(InputError, match="shape of the domain"):
        bf.Session(ledger, [1, 2])
    shown = repr(bf.Session(ledger, bf.Histogram(PEOPLE, COUNTS)))
    assert "30" not in shown
    assert "counts hidden" in shown
    assert repr(session().partition("sex")) == "Parts(by sex: 2)"
