"""Ledgers that protect persons."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import PolicyError

CELLS = bf.Domain(6)
ADD = bf.policies.AddRemove(CELLS)


def _laplace(policy, epsilon="0.1"):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


def _visits(person="patient", at_most=3):
    return bf.Histogram(CELLS, [9, 1, 2, 3, 4, 5], at_most=at_most, person=person)


def test_a_ledger_of_persons_refuses_releases_about_records():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person(person="patient"))
    with pytest.raises(PolicyError, match=r"per_person\(at_most, person='patient'\)"):
        ledger.release(_laplace(ADD), [9, 1, 2, 3, 4, 5])
    assert not ledger.preview(_laplace(ADD)).accepted
    assert ledger.spent == 0


def test_a_ledger_of_records_refuses_releases_about_persons():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD)
    with pytest.raises(PolicyError, match="protect different people"):
        ledger.release(_laplace(ADD.per_person(3)), _visits())
    assert ledger.spent == 0


def test_releases_with_different_bounds_add_up_in_one_ledger():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person(person="patient"))
    for most in (1, 3, 5):
        policy = ADD.per_person(most, person="patient")
        ledger.release(_laplace(policy), _visits(at_most=most))
    assert float(ledger.spent) == pytest.approx(0.3)


def test_a_ledger_without_a_name_keeps_to_the_people_it_began_with():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person())
    ledger.release(_laplace(ADD.per_person(3)), _visits("patient"))
    with pytest.raises(PolicyError, match="whom 'patient' names"):
        ledger.release(_laplace(ADD.per_person(3)), _visits("doctor"))
    assert float(ledger.spent) == pytest.approx(0.1)


def test_regions_cost_the_largest_only_where_records_were_chosen_once():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person())
    people = _visits(None)
    halves = [[0, 1, 2], [3, 4, 5]]
    three = bf.policies.AddRemove(bf.Domain(3))
    persons, records = _laplace(three.per_person(3)), _laplace(three)
    ledger.release_disjoint(
        [(persons, people.part(cells), cells) for cells in halves], by="regions"
    )
    assert float(ledger.spent) == pytest.approx(0.1)
    apart = [(persons, _visits(None).part(cells), cells) for cells in halves]
    with pytest.raises(PolicyError, match="chosen anew for each region"):
        ledger.release_disjoint(apart, by="regions")
    plain = [(records, [1, 2, 3], cells) for cells in halves]
    with pytest.raises(PolicyError, match="not known to have"):
        ledger.release_disjoint(plain, by="regions")
    assert float(ledger.spent) == pytest.approx(0.1)


def test_sessions_ask_for_persons():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person())
    session = bf.Session(ledger, _visits(None))
    session.noisy_count({0: slice(0, 3)}, epsilon="0.2", rng=1)
    assert float(ledger.spent) == pytest.approx(0.2)
    with pytest.raises(PolicyError, match="nothing of how many records"):
        bf.Session(ledger, [1, 2, 3, 4, 5, 6]).noisy_count(epsilon="0.2", rng=1)


def test_a_session_refuses_counts_in_parts_of_persons():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD.per_person(count="persons"))
    shares = bf.Histogram(CELLS, [9, 1, 2, 3, 4, 5], at_most=3, count="persons")
    with pytest.raises(PolicyError, match="one question is not known") as caught:
        bf.Session(ledger, shares).noisy_count({0: slice(0, 3)}, epsilon="0.2", rng=1)
    assert caught.value.code == "parts_of_persons"
    assert (ledger.spent, ledger.history()) == (0, [])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_in_rho_a_group_of_k_costs_its_square(most):
    """zCDP: d edges cost d^2 rho, so noise has k times the width, k^2 the variance."""
    asked = bf.workloads.Identity(CELLS)
    single = bf.Gaussian(ADD, asked, rho="0.5").expected_error()
    policy = ADD.per_person(most, person="patient")
    grouped = bf.Gaussian(policy, asked, rho="0.5").expected_error()
    assert grouped == pytest.approx(most**2 * single, rel=1e-3)
    ledger = bf.Ledger(None, rho=1, policy=ADD.per_person(person="patient"))
    mechanism = bf.Gaussian(policy, asked, rho="0.5")
    ledger.release(mechanism, _visits(at_most=most), rng=1)
    assert ledger.spent == pytest.approx(0.5)
    with pytest.raises(PolicyError, match="persons with all their records"):
        ledger.release(bf.Gaussian(ADD, asked, rho="0.1"), [1] * 6)


def test_in_rho_one_persons_records_never_lose_more_than_was_charged():
    """All of R1 and R2 on a tiny domain: squared moves over twice the variance."""
    tiny = bf.Domain(3)
    policy = bf.policies.AddRemove(tiny).per_person(2, person="patient")
    gaussian = bf.Gaussian(policy, bf.workloads.Identity(tiny), rho="0.5")
    variance = gaussian.expected_error()[0]
    kept = [[0] * 3]
    for one in range(3):
        for other in range(one, 3):
            counts = [0] * 3
            counts[one] += 1
            counts[other] += 1
            kept.append(counts)
    losses = [sum(one**2 for one in counts) / (2 * variance) for counts in kept]
    assert max(losses) <= 0.5
    assert max(losses) == pytest.approx(0.5, rel=1e-2)
