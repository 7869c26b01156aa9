"""Columns that come after the first charge: Lemma CO14, and what it does not cover."""

from __future__ import annotations

import sqlite3
from itertools import product

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import statements
from blowfish_fast.accounting.journal import ReleasedColumns
from blowfish_fast.errors import InputError, LedgerError, PolicyError
from blowfish_fast.policies import protocol
from blowfish_fast.policies.constraints import CountConstraints

AGE = bf.Domain.from_edges(range(0, 41, 10), name="age")
FINE_AGE = bf.Domain.from_edges(range(0, 41, 5), name="age")
OTHER_AGE = bf.Domain.from_edges([0, 15, 40], name="age")
SEX = bf.Domain.from_levels(["f", "m"], name="sex")
TOWN = bf.Domain.from_levels(["x", "y", "z"], name="town")
SPELLED = bf.Domain.from_levels(["x", "y"], name="town")
KINDS = {
    "full": bf.policies.Full,
    "add_remove": bf.policies.AddRemove,
    "attribute": bf.policies.Attribute,
    "present": lambda domain: bf.policies.WithAbsent(bf.policies.Full(domain)),
    "persons": lambda domain: bf.policies.Full(domain).per_person(3, person="id"),
    # As ledgers of jobs are: each release says how many records of a person count.
    "any number": lambda domain: bf.policies.AddRemove(domain).per_person(person="id"),
}


def over(kind, *columns):
    return KINDS[kind](bf.Domain.product(*columns))


def charged(kind="full", *columns, path=None):
    ledger = bf.Ledger(path, epsilon=1, policy=over(kind, *(columns or (AGE, TOWN))))
    policy = ledger.policy
    counts = np.arange(AGE.size)
    if kind in ("persons", "any number"):
        # Charged without a draw: who is whom does not matter here.
        content = {"parts": [{"columns": ["age"]}], "fingerprint": "x"}
        ledger._journal.reserve("a", 10, ledger._terms().entry, content)
    else:
        seen = policy._seen_through(policy.domain.columns_for(AGE), AGE)
        ledger.release(bf.Laplace(seen, epsilon="0.25"), counts)
    return ledger


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_added_and_what_was_spent_stays(kind, tmp_path):
    ledger = charged(kind, path=tmp_path / "x.ledger")
    spent = ledger.spent
    with bf.Ledger(tmp_path / "x.ledger") as other:
        assert other.policy.domain.names == ("age", "town")
        wider = over(kind, SEX, AGE, TOWN)
        ledger.add_columns(wider, why="a second sheet", by="ann")
        assert other.policy == ledger.policy == wider
        assert other.spent == spent
        other.verify()
    with bf.Ledger(tmp_path / "x.ledger", policy=wider) as again:
        (change,) = again._journal.changes_of_terms()
        assert change.released.names == {"age"}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_which_nothing_was_released_are_corrected_or_left_out(kind):
    ledger = charged(kind)
    ledger.add_columns(over(kind, AGE, SPELLED), why="z was no town")
    ledger.add_columns(over(kind, AGE), why="towns are not released")
    ledger.add_columns(over(kind, FINE_AGE, SEX), why="finer cells unite to the old")
    ledger.verify()
    with pytest.raises(LedgerError, match="something was released of age, at prices"):
        ledger.add_columns(over(kind, OTHER_AGE, SEX), why="other cells")


@pytest.mark.parametrize(
    "policy",
    [
        over("add_remove", AGE, TOWN),
        over("attribute", AGE, TOWN),
        over("present", AGE, TOWN),
        over("persons", AGE, TOWN),
        over("full", TOWN, SEX),
        bf.policies.Product(bf.policies.Line(AGE), bf.policies.Full(TOWN)),
        over("add_remove", AGE, SEX),
    ],
)
def test_another_policy_for_what_was_released_is_refused(policy):
    ledger = charged()
    before = ledger._journal.standing()
    with pytest.raises(LedgerError, match="these stay as they are"):
        ledger.add_columns(policy, why="we hoped")
    assert ledger._journal.standing() == before


def test_what_cannot_be_said_is_refused():
    ledger = charged()
    with pytest.raises(InputError, match="say why columns are added"):
        ledger.add_columns(over("full", AGE, TOWN, SEX), why=" ")
    with pytest.raises(PolicyError, match="state the policy"):
        ledger.add_columns("full", why="a word")
    unnamed = bf.Ledger(epsilon=1, policy=bf.policies.Full(bf.Domain(4)))
    with pytest.raises(LedgerError, match="columns without names"):
        unnamed.add_columns(bf.policies.Full(bf.Domain((4, 2))), why="more")
    described = bf.Ledger(epsilon=1, policy=over("full", AGE), about={"table": "x"})
    with pytest.raises(LedgerError, match="an explorer or a population"):
        described.add_columns(over("full", AGE, SEX), why="more")


def test_another_number_of_records_of_a_person_is_refused():
    wide, ages = bf.Domain.product(AGE, SEX), bf.Domain.product(AGE)
    three = bf.policies.Full(ages).per_person(3, person="id")
    for policy, taken in (
        (bf.policies.Full(wide).per_person(3, person="id"), True),
        (bf.policies.Full(wide).per_person(2, person="id"), False),
        (bf.policies.Full(wide).per_person(person="id"), False),
        (bf.policies.Full(wide).per_person(3, person="who"), False),
        (bf.policies.Full(wide), False),
    ):
        assert protocol.extends(policy, three) == taken


def test_known_counts_are_refused():
    plain = over("full", AGE, TOWN)
    wider = over("full", AGE, TOWN, SEX)
    known = CountConstraints(plain.domain, [[1] * 6 + [0] * 6])
    assert protocol.extends(wider, plain)
    assert not protocol.extends(wider, plain.with_constraints(known))


def test_bins_of_a_release_may_show_any_column():
    ledger = bf.Ledger(epsilon=1, policy=over("full", AGE, TOWN))
    bins = ledger.policy.project(np.arange(12) % 2)
    ledger.release(bf.Laplace(bins, epsilon="0.25"), [3, 4])
    assert ledger._journal.released_columns().names is None
    with pytest.raises(LedgerError, match="released of age, town"):
        ledger.add_columns(over("full", AGE, SPELLED), why="z was no town")
    ledger.add_columns(over("full", AGE, TOWN, SEX), why="a second sheet")
    (change,) = ledger._journal.changes_of_terms()
    assert change.released.plain() == "all"
    ledger.verify()


def test_a_charge_in_between_is_noticed():
    ledger = charged()
    released, terms = ledger._journal.released_columns(), ledger._terms()
    wider = over("full", AGE, TOWN, SEX)
    plain = statements.plain_terms(wider, {}, ledger.currency)
    towns = bf.Laplace(bf.policies.Full(TOWN), epsilon="0.25")
    ledger.release(towns, [1, 2, 3])
    with pytest.raises(LedgerError, match="charged or amended meanwhile"):
        ledger._journal.add_columns(plain, terms.entry, released, {})
    released = ledger._journal.released_columns()
    with pytest.raises(LedgerError, match="charged or amended meanwhile"):
        ledger._journal.add_columns(plain, terms.entry + 1, released, {})
    assert ledger.policy == terms.policy


def test_verify_sees_an_entry_that_does_more_than_to_add_columns():
    ledger = charged()
    weaker = over("attribute", AGE, TOWN, SEX)
    plain = statements.plain_terms(weaker, {}, ledger.currency)
    released = ledger._journal.released_columns()
    ledger._journal.add_columns(plain, ledger._terms().entry, released, {})
    with pytest.raises(LedgerError, match="entry 4 does more than to add columns"):
        ledger.verify()
    noted = charged()
    wider = over("full", AGE, TOWN, SEX)
    plain = statements.plain_terms(wider, {"table": "x"}, noted.currency)
    noted._journal.add_columns(plain, noted._terms().entry, released, {})
    with pytest.raises(LedgerError, match="entry 4 does more than to add columns"):
        noted.verify()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE budget SET terms = 2",
        "UPDATE budget SET terms = 99",
        "UPDATE budget SET total = total - 1",
    ],
)
def test_the_file_itself_refuses_what_no_entry_says(change, tmp_path):
    path = tmp_path / "x.ledger"
    charged(path=path).close()
    with sqlite3.connect(path) as raw, pytest.raises(sqlite3.IntegrityError):
        raw.execute(change)


def test_a_file_from_before_keeps_its_columns(tmp_path):
    path = tmp_path / "x.ledger"
    charged(path=path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER changes_of_terms_are_logged")
        raw.execute(
            "CREATE TRIGGER terms_are_frozen BEFORE UPDATE ON budget "
            "WHEN NEW.terms <> OLD.terms BEGIN SELECT RAISE (ABORT, 'frozen'); END"
        )
    with bf.Ledger(path) as ledger:
        with pytest.raises(LedgerError, match="made before columns could be added"):
            ledger.add_columns(over("full", AGE, TOWN, SEX), why="a second sheet")
        assert ledger.policy.domain.names == ("age", "town")
        ledger.verify()


def seen_edges(policy, columns):
    """The pairs of cells of some columns that edges join, by walking all of them."""
    shape = policy.domain.shape
    axes = [policy.domain.axis(name) for name in columns]
    cells = [
        tuple(cell[axis] for axis in axes)
        for cell in product(*(range(side) for side in shape))
    ]
    pairs = np.concatenate([np.zeros((0, 2), int), *policy._edges()])
    return {
        frozenset((cells[first], cells[second]))
        for first, second in pairs.tolist()
        if cells[first] != cells[second]
    }


def graphs(rng, domain):
    full = bf.policies.Full(domain)
    yield full
    yield bf.policies.Attribute(domain)
    yield bf.policies.Threshold(domain, theta=1, metric="l1")
    edges = np.argwhere(np.triu(rng.random((domain.size, domain.size)) < 0.3, 1))
    if len(edges):
        yield bf.policies.Graph(domain, edges)


def violations():
    """Count pairs that `extends` takes, and those of them that the lemma does not."""
    small = bf.Domain(3, names="a")
    wide = bf.Domain.product(small, bf.Domain(2, names="b"))
    rng = np.random.default_rng(20261118)
    taken = wrong = 0
    for _ in range(20):
        for policy, other in product(graphs(rng, wide), graphs(rng, small)):
            if protocol.extends(policy, other):
                taken += 1
                wrong += seen_edges(policy, "a") != seen_edges(other, "a")
    return taken, wrong


def test_what_is_taken_has_the_same_edges_on_the_columns_of_both():
    taken, wrong = violations()
    assert taken > 20
    assert wrong == 0


def test_a_policy_of_one_column_becomes_one_factor_of_several():
    ledger = bf.Ledger(epsilon=1, policy=bf.policies.Line(AGE))
    ledger.release(bf.Laplace(ledger.policy, epsilon="0.25"), [1, 2, 3, 4])
    both = bf.policies.Product(bf.policies.Line(AGE), bf.policies.Full(SEX))
    ledger.add_columns(both, why="a second sheet")
    assert ledger.policy == both
    ledger.verify()


def test_more_edges_are_refused_and_so_are_fewer():
    # More would be charged too little for, fewer would take a promise back.
    line = bf.policies.Product(bf.policies.Line(AGE), bf.policies.Full(SEX))
    assert protocol.extends(line, bf.policies.Line(AGE))
    assert not protocol.extends(over("full", AGE, SEX), bf.policies.Line(AGE))
    assert not protocol.extends(line, bf.policies.Full(AGE))


def test_a_check_that_takes_everything_would_be_noticed(monkeypatch):
    monkeypatch.setattr(protocol, "implies", lambda policy, other: True)
    assert violations()[1] > 0


def test_charges_name_their_columns():
    assert ReleasedColumns.of([]) == (0, frozenset())
    ledger = charged("full", AGE, TOWN)
    part = ledger._journal.history()[0].content["parts"][0]
    assert part["columns"] == ["age"]
