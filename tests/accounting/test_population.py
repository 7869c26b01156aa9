"""One budget for all tables that hold the same people."""

from __future__ import annotations

import gc
from fractions import Fraction
from types import SimpleNamespace

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import population
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError

AGES, VALUES = bf.Domain(6, names=["age"]), bf.Domain(4, names=["value"])
VISITS, LABS = bf.policies.AddRemove(AGES), bf.policies.Line(VALUES)
JOIN = bf.Domain((6, 4), names=["age", "value"])


@pytest.fixture
def people():
    return bf.Population(
        "patients",
        person="patient",
        tables={"visits": VISITS, "labs": LABS},
        epsilon=1,
    )


def _laplace(policy, epsilon="0.4"):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


def _counts(domain, person="patient", at_most=3):
    counts = [[1] * domain.shape[1]] * domain.shape[0] if domain.ndim == 2 else None
    plain = [2] * domain.size if counts is None else counts
    return bf.Histogram(domain, plain, at_most=at_most, person=person)


def test_releases_from_all_tables_add_up(people):
    people.release("visits", _laplace(people.policy("visits", 3)), _counts(AGES), rng=1)
    labs = _laplace(people.policy("labs", 3))
    people.release("labs", labs, _counts(VALUES), rng=1)
    assert people.spent == Fraction(4, 5)
    with pytest.raises(BudgetError, match="remains"):
        people.release("labs", labs, _counts(VALUES), rng=1)
    assert people.sentence().endswith("at eps = 0.8, the sum over all tables")
    assert [one.note["tables"] for one in people.ledger.history()] == [
        ["visits"],
        ["labs"],
    ]


def test_a_release_under_the_policy_of_another_table_is_refused(people):
    with pytest.raises(PolicyError, match="ledger is about value"):
        people.release("labs", _laplace(people.policy("visits", 3)), _counts(AGES))
    with pytest.raises(PolicyError, match="persons with all their records"):
        people.release("visits", _laplace(VISITS), _counts(AGES))
    with pytest.raises(InputError, match=r"has the tables \['labs', 'visits'\]"):
        people.release("bills", _laplace(people.policy("visits", 3)), _counts(AGES))
    assert people.spent == 0


class Foreign(bf.Laplace):
    """Somebody else's: nothing here has audited it."""


def test_only_mechanisms_are_released_and_foreign_ones_need_a_curators_word(people):
    policy = people.policy("visits", 3)
    with pytest.raises(InputError, match="ledger releases mechanisms, such as"):
        people.release("visits", policy, _counts(AGES))
    strange = Foreign(policy, bf.workloads.Identity(AGES), epsilon="0.4")
    with pytest.raises(InputError, match="from a curator who vouches") as caught:
        people.release("visits", strange, _counts(AGES), rng=1)
    assert caught.value.code == "not_vouched"
    assert (people.spent, people.ledger.history()) == (0, [])
    people.release("visits", strange, _counts(AGES), rng=1, vouched=True)
    assert people.spent == Fraction(2, 5)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"visits": AGES}, "given by name and policy"),
        ({7: VISITS}, "given by name and policy"),
        ({}, "name each table once, and at least one"),
        (
            [bf.PeopleTable("visits", VISITS), bf.PeopleTable("visits", LABS)],
            "name each table once, and at least one",
        ),
    ],
)
def test_tables_without_a_name_and_a_policy_of_their_own_are_refused(tables, reason):
    with pytest.raises(InputError, match=reason):
        bf.Population("patients", person="patient", tables=tables, epsilon=1)


@pytest.mark.parametrize("person", [None, "doctor"])
def test_data_that_lost_the_person_are_refused(people, person):
    data = _counts(AGES, person) if person else [1] * 6
    with pytest.raises(PolicyError) as caught:
        people.release("visits", _laplace(people.policy("visits", 3)), data)
    assert caught.value.code == "person_lost"
    assert people.spent == 0


def _joined(length=1):
    both = bf.policies.WithAbsent(bf.policies.Full(JOIN), length)
    return both.per_person(3, person="patient")


def test_a_join_that_keeps_the_person_is_released(people):
    release = people.release(
        ["visits", "labs"], _laplace(_joined()), _counts(JOIN), on=["patient"], rng=1
    )
    assert release.estimate.shape == (6, 4)
    assert people.spent == Fraction(2, 5)


@pytest.mark.parametrize(
    ("policy", "on", "reason"),
    [
        (_joined(), ["ward"], "joined on 'patient'"),
        (_joined(), [], "joined on 'patient'"),
        (_joined(), ["patient", "value"], "which rows meet"),
        (_joined(4), ["patient"], "join any two cells"),
        (
            bf.policies.AddRemove(JOIN).per_person(3, person="patient"),
            ["patient"],
            "join any two cells",
        ),
        (
            bf.policies.Full(JOIN).per_person(3, person="patient"),
            ["patient"],
            "join any two cells",
        ),
        (bf.policies.WithAbsent(bf.policies.Full(JOIN)), ["patient"], "any two cells"),
    ],
)
def test_other_joins_are_refused(people, policy, on, reason):
    with pytest.raises(PolicyError, match=reason):
        people.release(["visits", "labs"], _laplace(policy), _counts(JOIN), on=on)
    assert people.spent == 0


def test_a_person_moves_no_more_of_a_join_than_was_charged():
    """Enumerate one person's rows in two tables, and count the edges of the join.

    Visits have a cell each, or are absent together; values move along a line. Joined on
    the person each row of hers is a pair; without WithAbsent(Full) the sets of pairs
    lie further apart than the rows that are kept.
    """
    single = _joined().unconstrained
    versions = [(visits, labs) for visits in (None, (0, 1)) for labs in (0, 1)]
    worst = 0
    for one in versions:
        for other in versions:
            first, second = (_pairs(*side) for side in (one, other))
            kept = [
                (first[at] if first else -1, second[at] if second else -1)
                for at in range(2)
            ]
            steps = [single.distance(*pair).item() for pair in kept]
            worst = max(worst, sum(steps))
    assert worst == 2  # the two rows that are kept, one edge each


def _pairs(visits, labs):
    return None if visits is None else [age * 4 + labs for age in visits]


@pytest.mark.long
def test_two_descriptions_of_one_source_share_the_budget():
    by_age = bf.PeopleTable("by age", VISITS, source="clinic/visits")
    by_ward = bf.PeopleTable(
        "by ward", bf.policies.AddRemove(bf.Domain(3, names=["ward"])), "clinic/visits"
    )
    people = bf.Population("p", person="id", tables=[by_age, by_ward], epsilon=1)
    assert sorted(people.tables) == ["by age", "by ward"]
    with pytest.raises(LedgerError, match="would add up unseen"):
        bf.Population("q", person="id", tables=[by_age], epsilon=1)
    coarser = bf.PeopleTable("other", bf.policies.Full(AGES), "clinic/visits")
    with pytest.raises(PolicyError, match=r"for the columns \['age'\]"):
        bf.Population("p", person="id", tables=[by_age, coarser], epsilon=1)
    del people
    gc.collect()
    assert bf.Population("q", person="id", tables=[by_age], epsilon=1).spent == 0


def test_a_population_is_opened_again(tmp_path):
    tables = {"visits": VISITS}
    path = tmp_path / "people.ledger"
    with pytest.raises(InputError, match="person names the column"):
        bf.Population("p", tables=tables, path=path, epsilon=1)
    bf.Population("p", person="id", tables=tables, path=path, epsilon=1).close()
    again = bf.Population("p", path=path)
    assert again.person == "id"
    assert again.policy("visits") == VISITS.per_person(person="id")
    with pytest.raises(LedgerError, match="other people"):
        bf.Population("q", path=path)
    with pytest.raises(LedgerError, match="is kept under"):
        bf.Population("p", person="other", tables=tables, path=path)


def test_charges_say_which_version_they_read(tmp_path):
    ledger = bf.Ledger(tmp_path / "ledger", epsilon=1, policy=VISITS)
    release = ledger.release(
        _laplace(VISITS), [1] * 6, request="March", snapshot="v 2026-03-31"
    )
    assert release.details["as_of"] == "v 2026-03-31"
    assert ledger.replay("March").details["as_of"] == "v 2026-03-31"
    again = ledger.release(
        _laplace(VISITS), [9] * 6, request="March", snapshot="v 2026-04-30"
    )
    assert again.details["as_of"] == "v 2026-03-31", "a replay is of the old version"
    plain = ledger.release(_laplace(VISITS), [1] * 6)
    assert ledger.history()[0].snapshot == "v 2026-03-31"
    assert plain.details["as_of"] == ledger.history()[1].snapshot
    with pytest.raises(InputError, match="a snapshot is named"):
        ledger.release(_laplace(VISITS), [1] * 6, snapshot="a\nb")


def test_a_table_that_is_added_is_paid_by_one_ledger_of_a_folder(tmp_path):
    def made(name, source):
        table = bf.PeopleTable("visits", VISITS, source)
        path = tmp_path / f"{name}.ledger"
        return bf.Population(name, person="id", tables=[table], path=path, epsilon=1)

    made("guests", "clinic/guests").close()
    people = made("patients", "clinic/visits")
    population._OWNERS.clear()
    with pytest.raises(LedgerError, match="'guests' pays for releases"):
        people.add(bf.PeopleTable("labs", LABS, "clinic/guests"))
    people.add(bf.PeopleTable("labs", LABS, "clinic/labs"))
    people.close()
    assert sorted(bf.Population("patients", path=people.ledger.path).tables) == [
        "labs",
        "visits",
    ]


def test_a_closed_population_leaves_its_sources_to_the_ledgers_of_its_folder(tmp_path):
    def made(folder):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / f"{len(list((tmp_path / folder).iterdir()))}.ledger"
        table = bf.PeopleTable("visits", VISITS, "ward/visits")
        return bf.Population("ward", person="id", tables=[table], path=path, epsilon=1)

    first = made("one")
    with pytest.raises(LedgerError, match="'ward' pays for releases"):
        made("two")
    first.close()
    with pytest.raises(LedgerError, match="'ward' pays for releases"):
        made("one")
    made("three").close()


@pytest.mark.parametrize(
    ("source", "told"), [("ward/wide", "ward/wide"), (None, "wide")]
)
def test_a_table_of_a_catalog_is_read_with_its_policy_and_source(source, told):
    described = SimpleNamespace(name="wide", source=source, policy=lambda: VISITS)
    people = bf.Population("p", person="id", tables=[described], epsilon=1)
    assert people.tables["wide"].source == told
    assert people.tables["wide"].policy == VISITS.per_person(person="id")
    assert repr(people).startswith("Population('p', ['wide'], Ledger")
    assert people.remaining == 1
    # In memory nothing pays any longer once it is closed, so the source stays taken.
    people.close()
    with pytest.raises(LedgerError, match="would add up unseen"):
        bf.Population("q", person="id", tables=[described], epsilon=1)


def test_a_table_of_a_catalog_without_a_policy_is_refused():
    with pytest.raises(InputError, match="given by name and policy"):
        bf.Population(
            "p", person="id", tables=[SimpleNamespace(source="ward")], epsilon=1
        )


def _described(name, attribute, policy, source, columns=None):
    domain = bf.Domain(6, names=[attribute])
    return bf.PeopleTable(name, policy(domain), source, columns)


def _near(domain):
    return bf.policies.Threshold(domain, 2)


def _apart(domain):
    return bf.policies.Blocks(domain, range(6))


@pytest.mark.parametrize(
    "second",
    [
        ("years", "{}/visits", {"years": "age"}),
        ("years", "{}/visits", {"years": '"AGE"'}),
        ("age", "{}/Visits", None),
        ("age", '{}/"main"."visits"', None),
        ("Age", "{}/visits", None),
        ("age", "{}/visits", {"age": "age"}),
    ],
)
def test_a_column_has_one_policy_whatever_it_is_called(request, second):
    """Hole 3 of issue 32: exact counts of every age beside a threshold, free.

    A second name, another case, quotes or a default schema made another attribute.
    """
    place = request.node.name
    name, source, columns = second
    near = _described("near", "age", _near, f"{place}/visits")
    apart = _described("apart", name, _apart, source.format(place), columns)
    terms = {"person": "id", "epsilon": 1}
    with pytest.raises(PolicyError, match=r"for the columns \['age'\]"):
        bf.Population("patients", tables=[near, apart], **terms)
    people = bf.Population("patients", tables=[near], **terms)
    with pytest.raises(PolicyError, match="different policies"):
        people.add(apart)
    # Other columns, other sources and the same policy are another matter.
    people.add(_described("weights", "weight", bf.policies.Line, f"{place}/visits"))
    people.add(_described("labs", "age", bf.policies.Line, f"{place}/labs"))
    people.add(_described("again", "age", _near, f"{place}/visits"))


def test_another_spelling_of_a_source_gets_no_second_budget(tmp_path):
    ages = _described("visits", "age", bf.policies.Line, "spelt/visits")
    terms = {"person": "id", "epsilon": 1}
    path = tmp_path / "a.ledger"
    bf.Population("patients", tables=[ages], path=path, **terms).close()
    again = ages._replace(source='SPELT/main."visits"')
    with pytest.raises(LedgerError, match="add up unseen"):
        bf.Population("guests", tables=[again], path=tmp_path / "b.ledger", **terms)


def test_columns_are_kept_with_the_ledger_and_joined_on_by_their_own_names(tmp_path):
    columns = {"years": "age"}
    years = _described("visits", "years", bf.policies.Line, "kept/visits", columns)
    labs = bf.PeopleTable("labs", bf.policies.Line(VALUES), "kept/labs")
    path = tmp_path / "a.ledger"
    stated = {"person": "id", "tables": [years, labs], "epsilon": 1}
    bf.Population("patients", path=path, **stated).close()
    people = bf.Population("patients", path=path)
    assert people.tables["visits"].read_columns == {"years": "age"}
    join = bf.Domain((6, 4), names=["years", "value"])
    policy = bf.policies.Full(join).per_person(3, person="id")
    tables, on = ["visits", "labs"], ["id", "AGE"]
    with pytest.raises(PolicyError, match=r"a join on \['AGE'\]"):
        people.release(tables, _laplace(policy), _counts(join, person="id"), on=on)
    people.close()


def test_columns_that_make_no_sense_are_refused():
    for columns, reason in (
        ({"height": "h"}, "columns are given by the attributes"),
        ({"age": 3}, "tables are given by name and policy"),
    ):
        table = _described("v", "age", bf.policies.Line, "sense/visits", columns)
        with pytest.raises(InputError, match=reason):
            bf.Population("patients", person="id", tables=[table], epsilon=1)


@pytest.mark.parametrize("policy", [bf.policies.Attribute, bf.policies.Full])
def test_two_attributes_of_one_column_move_together(policy):
    both = bf.Domain((6, 6), names=["age", "years"])
    source = f"twice/{policy.__name__}"
    table = bf.PeopleTable("v", policy(both), source, {"years": "age"})
    if policy is bf.policies.Full:
        bf.Population("patients", person="id", tables=[table], epsilon=1)
        return
    with pytest.raises(PolicyError, match="read from one column"):
        bf.Population("patients", person="id", tables=[table], epsilon=1)
