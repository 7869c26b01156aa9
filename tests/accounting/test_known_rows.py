"""Counts of a session tell others: least squares, with intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import known_rows

AGES = bf.Domain.from_edges(range(0, 41, 10), name="age")
SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
DOMAIN = bf.Domain.product(AGES, SEXES)
COUNTS = np.array([[30, 20], [12, 7], [50, 41], [3, 0]])


def session(policy=bf.policies.AddRemove, **budget):
    stated = budget or {"epsilon": 1000}
    return bf.Session(bf.Ledger(policy=policy(DOMAIN), **stated), COUNTS)


def test_what_sums_imply_is_known_and_the_rest_is_not():
    asked = session()
    assert asked.known(sex="F") is None
    everybody = asked.noisy_count(epsilon=1, rng=1)
    women = asked.noisy_count(sex="F", epsilon=1, rng=2)
    men = asked.known(sex="M")
    assert float(men) == pytest.approx(everybody - women)
    assert asked.known(age=slice(0, 10)) is None
    assert float(asked.ledger.spent) == 2.0
    low, high = men.interval(0.95)
    assert low < men < high
    assert men.holds_truth
    # Each of the two counts is off by less than their difference.
    assert high - low > women.interval(0.95)[1] - women.interval(0.95)[0]


def test_many_looks_at_one_count_are_weighed_by_their_noise():
    asked = session()
    rough = asked.noisy_count(sex="F", epsilon=1, rng=1)
    fine = asked.noisy_count(sex="F", epsilon=2, rng=2)
    known = asked.known(sex="F")
    assert min(rough, fine) - 1e-6 <= known <= max(rough, fine) + 1e-6
    assert abs(known - fine) <= abs(known - rough) + 1e-6
    width = np.diff(known.interval(0.95))[0]
    assert width <= np.diff(rough.interval(0.95))[0]


def test_one_name_is_one_draw():
    """Planted: the same draw taken for two would seem more precise than it is."""
    asked = session()
    for _ in range(3):
        asked.noisy_count(sex="F", epsilon=1, request="women", rng=1)
    once = asked.known(sex="F").interval(0.95)
    asked._asked["planted"] = asked._asked["women"]
    twice = asked.known(sex="F").interval(0.95)
    assert np.diff(twice) < np.diff(once)


def test_parts_are_known_together():
    asked = session()
    ages = asked.partition("age").noisy_count(epsilon=1, rng=1)
    old = asked.partition("age", [20, 30, 40]).known()
    assert list(old) == list(asked.partition("age", [20, 30, 40]).names)
    assert old.values_array.tolist() == pytest.approx(ages.values_array[2:].tolist())
    assert asked.partition("sex").known() is None


@pytest.mark.long
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_intervals_hold_as_often_as_they_say(currency):
    trials, beta, missed = 150, 0.2, 0
    for seed in range(trials):
        asked = session(**{currency: 1000})
        for at, conditions in enumerate(
            ({}, {"sex": "F"}, {"age": slice(0, 20)}, {"age": slice(20, 40)})
        ):
            price = {currency: 1 + at}
            asked.noisy_count(conditions, rng=4 * seed + at, **price)
        low, high = asked.known(sex="M").interval(1 - beta)
        missed += not low <= COUNTS[:, 1].sum() <= high
    assert missed <= trials * beta + 3 * np.sqrt(trials * beta * (1 - beta))


def test_public_totals_are_known_without_noise():
    asked = session(bf.policies.Full)
    total = asked.noisy_count(epsilon=1, rng=1)
    assert float(total) == COUNTS.sum()
    assert float(asked.known()) == pytest.approx(COUNTS.sum())
    assert asked.known().interval(0.95) == pytest.approx((COUNTS.sum(),) * 2)
    women = asked.noisy_count(sex="F", epsilon=1, rng=2)
    men = asked.known(sex="M")
    assert float(men) == pytest.approx(total - women)
    assert np.diff(men.interval(0.95))[0] == pytest.approx(
        np.diff(women.interval(0.95))[0], abs=2
    )


def test_sums_and_the_other_currency_are_left_out():
    asked = session(rho=100)
    asked.noisy_sum("age", epsilon=1, rng=1)
    asked.noisy_count(sex="F", epsilon=1, rng=2)
    assert asked.known(sex="F") is None
    asked.noisy_count(sex="F", rho=1, rng=3)
    assert asked.known(sex="F") is not None


def test_too_many_rows_or_sets_of_cells_are_not_solved(monkeypatch):
    asked = session()
    asked.partition("age").noisy_count(epsilon=1, rng=1)
    assert asked.known(age=slice(0, 10)) is not None
    with monkeypatch.context() as patched:
        patched.setattr(known_rows, "MOST_ROWS", 3)
        assert asked.known(age=slice(0, 10)) is None
    monkeypatch.setattr(known_rows, "MOST_ATOMS", 3)
    assert asked.known(age=slice(0, 10)) is None


@pytest.mark.parametrize("budget", [{"epsilon": 50}, {"rho": 50}])
def test_a_count_is_known_as_surely_as_it_was_told(budget):
    """Tails of Laplace noise are not those of Gaussian noise, far out above all."""
    asked = session(**budget)
    price = dict.fromkeys(budget, 1)
    women = asked.noisy_count(sex="F", **price, rng=1)
    told = np.diff(women.interval(1 - 1e-9))[0]
    known = np.diff(asked.known(sex="F").interval(1 - 1e-9))[0]
    assert told - 2 <= known <= told + 2
