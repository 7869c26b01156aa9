"""Persons with all their records: what implies what, and what is refused."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import PolicyError
from blowfish_fast.policies import from_dict

LINE = bf.Domain(6)
BASES = [
    bf.policies.AddRemove(LINE),
    bf.policies.Line(LINE),
    bf.policies.Full(LINE),
    bf.policies.Threshold(LINE, theta=2),
]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("most", [1, 2, 5, None])
def test_persons_and_records_never_imply_each_other(base, most):
    persons = base.per_person(most)
    assert not base.implies(persons)
    assert not persons.implies(base)
    assert persons.implies(base.per_person())


def test_policies_of_persons_imply_each_other_by_their_edges():
    full, line = (one(LINE).per_person for one in (bf.policies.Full, bf.policies.Line))
    assert full(5).implies(line())
    assert full(5).implies(line(2))
    assert not line(5).implies(full())


def test_different_columns_and_rules_of_counting_are_different_people():
    one = bf.policies.Line(LINE)
    patients = one.per_person(3, person="patient")
    assert not patients.implies(one.per_person(person="doctor"))
    assert not patients.implies(one.per_person())
    assert not patients.implies(one.per_person(person="patient", count="persons"))
    assert patients.implies(one.per_person(person="patient"))


def test_a_projection_keeps_the_group_and_descends_from_its_parent():
    whole = bf.policies.Line(LINE).per_person(3, person="patient")
    seen = whole.project([0, 0, 1, 1, 2, 2])
    assert seen.group_size == 3
    assert seen.person_rule == whole.person_rule
    assert seen.implies(whole)
    assert not seen.implies(bf.policies.Line(LINE))


def test_through_keeps_the_group():
    ages, towns = bf.Domain(4, names=["age"]), bf.Domain(3, names=["town"])
    table = bf.policies.TablePolicy(bf.WideDomain.product(ages, towns))
    persons = table.per_person(2, person="patient")
    seen = persons.through(["age"])
    assert seen.group_size == 2
    assert seen.implies(table.per_person(person="patient"))
    assert not seen.implies(table)


def test_groups_count_records_or_units_of_persons():
    line = bf.policies.Line(LINE)
    assert line.per_person(12).group_size == 12
    assert line.per_person(12, count="persons").group_size == 27720
    assert line.per_person(12, count="persons").units == 27720
    assert line.per_person(12).units == 1


@pytest.mark.parametrize("most", [3, None])
@pytest.mark.parametrize("count", ["records", "persons"])
def test_plain_data_rebuilds_it(most, count):
    policy = bf.policies.Line(LINE).per_person(most, person="patient", count=count)
    assert from_dict(policy.to_dict()) == policy


def test_what_cannot_be_about_persons_is_refused():
    line = bf.policies.Line(LINE)
    known = bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])
    with pytest.raises(PolicyError, match="without known counts"):
        bf.policies.Full(LINE).with_constraints(known).per_person(2)
    with pytest.raises(PolicyError, match="cannot be combined"):
        bf.policies.Full(LINE).per_person(2).with_constraints(known)
    with pytest.raises(PolicyError, match="about persons already"):
        line.per_person(2).per_person(2)
    with pytest.raises(PolicyError, match="about whole records or persons"):
        bf.policies.Product(line.per_person(2), line)
    with pytest.raises(PolicyError, match="or persons"):
        bf.policies.TablePolicy(
            bf.Domain(6, names=["age"]),
            {"age": bf.policies.Line(bf.Domain(6, names=["age"])).per_person(2)},
        )
    with pytest.raises(PolicyError, match="at_most is at most 16"):
        line.per_person(17, count="persons")
    with pytest.raises(PolicyError, match='count is "records" or "persons"'):
        line.per_person(2, count="people")
    with pytest.raises(PolicyError, match="name of a column"):
        line.per_person(2, person=7)
    with pytest.raises(PolicyError, match="nothing of how many records"):
        bf.Laplace(line.per_person(), bf.workloads.Identity(LINE), epsilon=1)


def test_sensitivity_grows_with_the_records_and_not_with_units():
    asked = bf.workloads.Prefixes(LINE)
    for base in BASES:
        one = bf.sensitivity(base, asked)
        five = bf.sensitivity(base.per_person(5), asked)
        assert (five, five.exact) == (5 * one, one.exact)
        assert bf.sensitivity(base.per_person(5, count="persons"), asked) == one


def test_guarantees_say_who_is_protected_as_what():
    add = bf.policies.AddRemove(LINE).per_person(5, person="patient")
    assert "one person (column patient) with all her records" in add.describe()
    assert "at most 5 records of a person were counted" in add.describe()
    assert "is public" not in add.describe()
    line = bf.policies.Line(LINE).per_person(5)
    assert "how many records a person has is public" in line.describe()
    once = bf.policies.AddRemove(LINE).per_person(5, count="persons")
    assert "each person counts once" in once.describe()


def test_opendp_knows_no_persons():
    pytest.importorskip("opendp")
    from blowfish_fast.apps.interop.other_libraries import as_measurement, as_opendp

    policy = bf.policies.AddRemove(LINE).per_person(2)
    mechanism = bf.Laplace(policy, bf.workloads.Identity(LINE), epsilon=1)
    with pytest.raises(PolicyError, match="cannot state"):
        as_opendp(mechanism)
    assert "one person with all her records" in as_measurement(mechanism).input_metric
