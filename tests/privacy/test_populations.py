"""Promises about people in several tables, each with the bugs that would break it.

A check returns what is wrong, in words: nothing as the library is, something under
every bug that is planted for it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import ledger as ledger_module
from blowfish_fast.accounting import population as population_module
from blowfish_fast.accounting import request as request_module
from blowfish_fast.accounting.population import Population
from blowfish_fast.errors import BlowfishError, BudgetError

AGES, WARDS = bf.Domain(6, names=["age"]), bf.Domain(3, names=["ward"])
BY_AGE, BY_WARD = bf.policies.AddRemove(AGES), bf.policies.AddRemove(WARDS)
JOINED = bf.Domain((6, 3), names=["age", "ward"])
MOST = 2


def laplace(policy, epsilon=1):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


def counts(domain, person="patient"):
    return bf.Histogram(domain, np.ones(domain.shape, int), at_most=MOST, person=person)


def spend_all(people):
    """Release from every table until the budget is used up; return what was spent."""
    for name in people.tables:
        policy = people.policy(name, MOST)
        try:
            people.release(name, laplace(policy), counts(policy.domain))
        except BudgetError:
            continue
    return people.spent


def budgets_of_one_source(folder):
    """Describe one source twice, within and across populations, and spend all."""
    tables = [
        bf.PeopleTable("by age", BY_AGE, "clinic/visits"),
        bf.PeopleTable("by ward", BY_WARD, "clinic/visits"),
    ]
    made, spent = [], 0
    for at, described in enumerate((tables, tables[1:])):
        path = None if folder is None else folder / f"{at}.ledger"
        try:
            one = Population(
                f"people {at}", person="patient", tables=described, path=path, epsilon=1
            )
        except BlowfishError:
            continue
        made.append(one)
        spent += spend_all(one)
        if folder is not None:
            # As if the process had ended: only files remember.
            one.close()
            population_module._OWNERS.clear()
    return [f"a person lost {spent} under budgets of 1"] if spent > 1 else []


def policies_of_one_attribute(_folder):
    """State two policies for one attribute of a source; the sum protects neither."""
    finer = bf.policies.Line(AGES)
    tables = [
        bf.PeopleTable("by age", BY_AGE, "clinic/visits"),
        bf.PeopleTable("again", finer, "clinic/visits"),
    ]
    try:
        people = Population("people", person="patient", tables=tables, epsilon=2)
    except BlowfishError:
        return []
    spend_all(people)
    return [f"{people.spent} was spent under two policies of {AGES.names}"]


def rows_that_move(on):
    """Return how many rows of a join change at most with one patient's only visit."""
    visits = [("Ann", 0), ("Bob", 1)]
    stays = [("Ann", 0), ("Bob", 0), ("Cy", 0), ("Dee", 0)]
    other = [("Bob", 1)]
    sides = [
        sorted(
            (age, ward)
            for (who, age), (whose, ward) in product(version, stays)
            if on != "patient" or who == whose
        )
        for version in (visits, other)
    ]
    return len(sides[0]) - len(sides[1])


def joins_that_lose_the_person(_folder):
    """Join on something else than the person, or count somebody else's rows."""
    both = bf.policies.WithAbsent(bf.policies.Full(JOINED))
    policy = both.per_person(MOST, person="patient")
    tables = {"visits": BY_AGE, "stays": BY_WARD}
    people = Population("people", person="patient", tables=tables, epsilon=9)
    names = ["visits", "stays"]
    found = []
    for on, person in product((["patient"], ["day"]), ("patient", "doctor")):
        moved = rows_that_move(on[0])
        try:
            people.release(names, laplace(policy), counts(JOINED, person), on=on, rng=1)
        except BlowfishError:
            continue
        if person != "patient":
            found.append(f"at most {MOST} rows of a {person} bound no patient")
        if moved > MOST:
            found.append(f"joined on {on}, {moved} rows moved of {MOST} charged")
    return found


def versions_that_were_read(folder):
    """Release from two versions of the data under names, and ask again."""
    path = folder / "versions.ledger"
    people = Population(
        "people", person="patient", tables={"visits": BY_AGE}, path=path, epsilon=1
    )
    asked = laplace(people.policy("visits", MOST), "0.1")
    labels, said = ["v1", "v2"], []
    for label, name in [("v1", "one"), ("v2", "two"), ("v2", "one")]:
        release = people.release(
            "visits", asked, counts(AGES), request=name, snapshot=label
        )
        said.append(release.details.get("as_of"))
    logged = [one.snapshot for one in people.ledger.history()]
    people.close()
    wrong = []
    if logged != labels:
        wrong.append(f"the log says {logged} where {labels} were read")
    if said != ["v1", "v2", "v1"]:
        wrong.append(f"answers say {said}")
    return wrong


CHECKS = {
    "budgets": lambda _folder: budgets_of_one_source(None),
    "budgets on disk": budgets_of_one_source,
    "policies": policies_of_one_attribute,
    "joins": joins_that_lose_the_person,
    "versions": versions_that_were_read,
}


def nothing(*_arguments, **_options):
    """Stand for a step that was forgotten."""


class Anybody(str):
    """A name that equals every other: whose rows were bounded is not looked at."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __ne__(self, other):
        return False


def forget_whose_rows(patch):
    right = Population.__init__

    def careless(self, *arguments, **options):
        right(self, *arguments, **options)
        self.person = Anybody(self.person)

    patch.setattr(Population, "__init__", careless)
    patch.setattr(Population, "_check_join", nothing)


PLANTS = {
    "a second population is let in": (
        "budgets",
        lambda patch: patch.setattr(Population, "_own", nothing),
    ),
    "other ledgers of the folder are not read": (
        "budgets on disk",
        lambda patch: patch.setattr(population_module, "terms_beside", lambda _: ()),
    ),
    "descriptions may disagree": (
        "policies",
        lambda patch: patch.setattr(population_module, "_refuse_disagreement", nothing),
    ),
    "joins are not checked": (
        "joins",
        lambda patch: patch.setattr(Population, "_check_join", nothing),
    ),
    "whose rows were bounded is not asked": ("joins", forget_whose_rows),
    "answers do not say their version": (
        "versions",
        lambda patch: patch.setattr(ledger_module, "say_version", nothing),
    ),
    "charges are labelled with the time alone": (
        "versions",
        lambda patch: patch.setattr(request_module, "as_label", lambda _: "today"),
    ),
}


@pytest.fixture(autouse=True)
def _no_other_population():
    # Those of earlier tests own their sources until they are collected.
    population_module._OWNERS.clear()


@pytest.mark.parametrize("check", CHECKS)
def test_promises_about_populations_hold(check, tmp_path):
    assert CHECKS[check](tmp_path) == []


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_of_populations_is_caught(bug, tmp_path, monkeypatch):
    check, plant = PLANTS[bug]
    plant(monkeypatch)
    assert CHECKS[check](tmp_path) != []


def test_a_join_on_the_person_moves_her_rows_alone():
    assert rows_that_move("patient") == 1
    assert rows_that_move("day") == 4
