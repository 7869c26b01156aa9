"""Releases about persons: what data they take, and what one person can change."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.grey_box import price_together
from blowfish_fast.audit.neighbours import most_moves
from blowfish_fast.audit.witness import watch_example
from blowfish_fast.errors import PolicyError
from blowfish_fast.measure.handle import Handle
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.mechanisms.registry import MECHANISMS

CELLS = bf.Domain(4)
FAMILIES = {
    "add_remove": bf.policies.AddRemove(CELLS),
    "line": bf.policies.Line(CELLS),
    "full": bf.policies.Full(CELLS),
}
RULES = [(2, "records"), (3, "persons")]


def _runs(name, policy):
    try:
        return watch_example(MECHANISMS[name], policy, Fraction(1))
    except (PolicyError, bf.errors.DomainError, bf.errors.InputError):
        return None


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_no_person_costs_more_than_was_charged(name):
    ran = 0
    for base, (most, count) in itertools.product(FAMILIES.values(), RULES):
        policy = base.per_person(most, count=count)
        single = _runs(name, base)
        testimony = _runs(name, policy)
        assert (testimony is None) == (single is None)
        if testimony is None:
            continue
        ran += 1
        for step in testimony.measured:
            assert step.group_size == policy.group_size
            assert price_together(step.result, policy) <= step.charged
        for step in testimony.selected:
            assert step.calibrated is None or (
                step.calibrated * policy.group_size <= step.charged
            )
    assert ran > 0


def test_a_handle_that_forgets_the_group_is_caught(monkeypatch):
    policy = FAMILIES["add_remove"].per_person(2)
    plain = Handle.__init__

    def forgetful(self, *given, **named):
        plain(self, *given, **named)
        self._group_size = 1

    monkeypatch.setattr(Handle, "__init__", forgetful)
    (step,) = watch_example(bf.Laplace, policy, Fraction(1)).measured
    assert price_together(step.result, policy) == 2 * step.charged


def test_one_person_changes_as_many_records_as_the_policy_says():
    for base in FAMILIES.values():
        assert most_moves(base.per_person(3))[0] == 3
        assert most_moves(base.per_person(3, count="persons"))[0] == 6


@pytest.mark.parametrize("base", FAMILIES.values(), ids=list(FAMILIES))
def test_predicted_errors_are_those_of_single_records_at_a_part_of_epsilon(base):
    asked = bf.workloads.Prefixes(CELLS)
    for mechanism in (bf.Laplace, bf.Hierarchy):
        group = mechanism(base.per_person(5), asked, epsilon=1).expected_error()
        single = mechanism(base, asked, epsilon=Fraction(1, 5)).expected_error()
        np.testing.assert_allclose(group, single, rtol=1e-6)


@pytest.mark.parametrize("base", FAMILIES.values(), ids=list(FAMILIES))
def test_counting_persons_costs_as_much_as_one_record(base):
    asked = bf.workloads.Identity(CELLS)
    once = bf.Laplace(base.per_person(12, count="persons"), asked, epsilon=1)
    single = bf.Laplace(base, asked, epsilon=1)
    # Noise in units is finer than whole records, so its variance is a little larger:
    # that of the continuous law, 2 / eps^2, instead of the discrete one.
    assert once.expected_total_error() < 1.2 * single.expected_total_error()


def test_estimates_and_intervals_are_in_persons():
    policy = FAMILIES["add_remove"].per_person(3, count="persons")
    mechanism = bf.Laplace(policy, bf.workloads.Identity(CELLS), epsilon=20)
    data = data_for(policy, [400, 0, 7, 90])
    release = mechanism.release(data, rng=5)
    assert release.units == 6
    np.testing.assert_allclose(release.estimate, [400, 0, 7, 90], atol=2)
    asked = bf.workloads.Identity(CELLS)
    low, high = release.intervals(asked, of="noise").T
    assert (high - low < 2).all()
    assert (high > low).all()
    errors = release.standard_errors(asked)
    np.testing.assert_allclose(errors**2, mechanism.expected_error())
    low, high = release.cdf_intervals(of="noise").T
    assert (high - low < 0.05).all()
    again = bf.Release.from_bytes(release.to_bytes())
    np.testing.assert_array_equal(
        *(one.intervals(asked, of="noise") for one in (again, release))
    )
    assert "each person counts once" in str(release.guarantee)


def test_intervals_of_persons_hold_what_they_say():
    policy = FAMILIES["line"].per_person(4, count="persons")
    asked = bf.workloads.Identity(CELLS)
    mechanism = bf.Laplace(policy, asked, epsilon=1)
    data = data_for(policy, [40, 0, 7, 90])
    inside = 0
    for seed in range(200):
        low, high = (
            mechanism.release(data, rng=seed).intervals(asked, 0.9, of="noise").T
        )
        inside += int(((low <= [40, 0, 7, 90]) & (high >= [40, 0, 7, 90])).sum())
    assert 0.9 * 800 - 40 <= inside <= 800


def _laplace(policy):
    return bf.Laplace(policy, bf.workloads.Identity(CELLS), epsilon=1)


def test_data_must_say_how_many_records_of_a_person_they_hold():
    persons = _laplace(FAMILIES["line"].per_person(3, person="patient"))
    with pytest.raises(PolicyError, match="do not say how many records of a person"):
        persons.release([1, 2, 3, 4], rng=1)
    with pytest.raises(PolicyError, match="do not say how many records of a person"):
        persons.release(bf.Histogram(CELLS, [1, 2, 3, 4]), rng=1)
    many = bf.Histogram(CELLS, [1, 2, 3, 4], at_most=4, person="patient")
    with pytest.raises(PolicyError, match="counts at most 3 records of a person"):
        persons.release(many, rng=1)
    other = bf.Histogram(CELLS, [1, 2, 3, 4], at_most=2, person="doctor")
    with pytest.raises(PolicyError, match="column 'patient' names"):
        persons.release(other, rng=1)
    few = bf.Histogram(CELLS, [1, 2, 3, 4], at_most=2, person="patient")
    assert persons.release(few, rng=1).estimate.shape == (4,)


def test_one_rule_of_counting_for_data_and_policy():
    once = _laplace(FAMILIES["line"].per_person(3, count="persons"))
    with pytest.raises(PolicyError, match="count by one rule"):
        once.release(bf.Histogram(CELLS, [1, 2, 3, 4], at_most=3), rng=1)
    fewer = bf.Histogram(CELLS, [6, 0, 0, 0], at_most=2, count="persons")
    with pytest.raises(PolicyError, match="count by one rule"):
        once.release(fewer, rng=1)


def test_single_records_are_not_protected_by_bounded_counts():
    bounded = bf.Histogram(CELLS, [1, 2, 3, 4], at_most=2)
    with pytest.raises(PolicyError, match="can take the place of another"):
        _laplace(FAMILIES["line"]).release(bounded, rng=1)


def test_advice_is_asked_of_single_records_where_persons_count_once():
    policy = FAMILIES["line"].per_person(3, count="persons")
    asked = bf.workloads.Prefixes(CELLS)
    with pytest.raises(PolicyError, match="persons who count once"):
        bf.compare(policy, asked, epsilon=1)
    with pytest.raises(PolicyError, match="persons who count once"):
        bf.translate(policy, asked, alpha=5, beta=0.1)
    five = bf.compare(FAMILIES["line"].per_person(5), asked, epsilon=1).best.total
    one = bf.compare(FAMILIES["line"], asked, epsilon=Fraction(1, 5)).best.total
    assert five == pytest.approx(one, rel=1e-6)
