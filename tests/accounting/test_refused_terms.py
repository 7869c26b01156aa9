"""What accounts refuse before anything is charged, each for its own reason."""

from __future__ import annotations

import math
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import composition
from blowfish_fast.accounting.composition import presence_cost, protects_region
from blowfish_fast.accounting.interactive_session import STEP_BITS, _step
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.errors import InputError, LedgerError, PolicyError, SizeError
from blowfish_fast.measure.budgets import Budget
from tests.accounting.test_journal_check import TERMS, refuse, tamper

LINE = bf.Domain(4)
ADD_REMOVE = bf.policies.AddRemove(LINE)


@pytest.mark.parametrize("total", ["99", "100", '"200"', "100.5"])
def test_a_raise_that_raises_nothing_is_noticed(tmp_path, total):
    path = tmp_path / "x.ledger"
    with closing(Journal(path, 100, TERMS)) as made:
        made.raise_total(200, {"why": "a second year"})
    tamper(
        path,
        "UPDATE log SET content = json_set(content, '$.total', json("
        f"'{total}')) WHERE kind = 'raise'",
        chained=True,
    )
    refuse(path, "entry 2 raises the budget to no more than it was")


def test_a_series_says_what_it_needs():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD_REMOVE)
    with pytest.raises(LedgerError, match="a series is paid from a Ledger"):
        bf.Series("a file", column="received", every="week")
    with pytest.raises(InputError, match="every is one of") as caught:
        bf.Series(ledger, column="received", every="fortnight")
    assert caught.value.received == "'fortnight'"
    for column in ("", None):
        with pytest.raises(InputError, match="column names when a record arrived"):
            bf.Series(ledger, column=column, every="week")
    assert ledger.spent == 0


def test_a_plan_for_persons_in_an_epoch_says_what_several_epochs_cost():
    persons = ADD_REMOVE.per_person(person="patient-week")
    ledger = bf.Ledger(None, epsilon=1, policy=persons)
    weeks = bf.Series(ledger, column="received", every="week", level="person-epoch")
    assert weeks.plan(4).sentence.endswith(
        "a person in w of them is protected at w times 1"
    )
    records = bf.Ledger(None, epsilon=1, policy=ADD_REMOVE)
    days = bf.Series(records, column="received", every="day")
    assert "times" not in days.plan(4).sentence


def edgeless(*_arguments):
    """Stand for a policy whose edges are too many to list."""
    raise SizeError("too many edges")


def test_what_cannot_be_walked_protects_no_region(monkeypatch):
    whole = bf.policies.Line(LINE)
    cells = np.array([1, 2])
    part = bf.policies.Graph(bf.Domain(2), [[0, 1]])
    assert protects_region(part, whole, cells)
    monkeypatch.setattr(composition, "MOST_WALKED", 1)
    assert not protects_region(part, whole, cells)
    monkeypatch.setattr(composition, "MOST_WALKED", 10)
    monkeypatch.setattr(type(whole), "edges", edgeless)
    assert not protects_region(part, whole, cells)


def test_presence_has_no_price_where_distances_cannot_be_found(monkeypatch):
    budget = Budget(Fraction(1, 2), 1)
    assert presence_cost(bf.policies.Full(LINE), budget) == math.inf
    assert presence_cost(ADD_REMOVE, budget) == Fraction(1, 2)
    monkeypatch.setattr(type(ADD_REMOVE), "distance", edgeless)
    assert presence_cost(ADD_REMOVE, budget) == math.inf


def test_the_step_of_a_sum_follows_its_largest_value():
    assert _step(np.array([1.0, -100.0, 0.0]), None) == 2.0 ** (7 - STEP_BITS)
    assert _step(np.array([0.0, 0.0]), None) == 1.0
    assert _step(np.array([1.0, -100.0]), "0.5") == 0.5


@pytest.mark.parametrize("name", ["mine", "theirs"])
def test_columns_without_names_are_not_said_to_be_strange(name):
    named = bf.policies.Full(bf.Domain(4, names=["age"]))
    bare = bf.policies.Full(bf.Domain(5))
    agreed, asked = (named, bare) if name == "mine" else (bare, named)
    ledger = bf.Ledger(None, epsilon=1, policy=agreed)
    mechanism = bf.Laplace(asked, bf.workloads.Identity(asked.domain), epsilon=1)
    with pytest.raises(PolicyError, match="neither the same, nor a projection"):
        ledger.release(mechanism, np.ones(asked.domain.size, dtype=int))
    assert ledger.spent == 0


def test_epochs_over_other_domains_are_not_added_up():
    table = bf.Domain((3, 2), names=["age", "sex"])
    policy = bf.policies.AddRemove(table)
    ledger = bf.Ledger(None, epsilon=1, policy=policy)
    weeks = bf.Series(ledger, column="received", every="week")
    data = {
        "age": np.array([0, 1, 2]),
        "sex": np.array([0, 1, 0]),
        "received": np.array(["2026-11-02", "2026-11-09", "2026-11-16"], "M8[D]"),
    }
    ages = bf.policies.AddRemove(bf.Domain(3, names=["age"]))
    asked = [policy, policy, ages]
    for week, one in zip(("2026-W45", "2026-W46", "2026-W47"), asked, strict=True):
        laplace = bf.Laplace(one, bf.workloads.Identity(one.domain), epsilon="0.3")
        weeks.release(week, laplace, data, rng=1)
    assert weeks.total(upto="2026-W46").epochs == ("2026-W45", "2026-W46")
    with pytest.raises(InputError, match="over different domains"):
        weeks.total(upto="2026-W47")


def test_terms_are_read_anew_and_stay_from_the_first_charge_on(tmp_path):
    path = tmp_path / "x.ledger"
    wider = bf.policies.WithAbsent(bf.policies.Full(LINE))
    with bf.Ledger(path, epsilon=1, policy=ADD_REMOVE) as own, bf.Ledger(path) as other:
        other.amend(about={"version": 1})
        assert own.about == {"version": 1}
        other.amend(about={"version": 2}, policy=wider)
        assert (own.about, own.policy) == ({"version": 2}, wider)
        laplace = bf.Laplace(wider, bf.workloads.Identity(LINE), epsilon=0.5)
        other.release(laplace, [1, 2, 3, 4])
        assert own.about == {"version": 2}
        with pytest.raises(LedgerError, match="frozen"):
            other.amend(about={"version": 3})


def test_a_curators_word_is_true_or_false_and_nothing_like_it():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD_REMOVE)
    mechanism = bf.Laplace(ADD_REMOVE, bf.workloads.Identity(LINE), epsilon="0.5")
    for word in ("no", 1, np.ones(2, dtype=bool), None):
        with pytest.raises(InputError, match="vouched is True or False"):
            ledger.release(mechanism, [1, 2, 3, 4], vouched=word)
        with pytest.raises(InputError, match="scoped is True or False"):
            ledger.release_disjoint([(mechanism, [1, 2, 3, 4])], scoped=word)
    for note in ({"when": range(3)}, {1: "one", "two": 2}):
        with pytest.raises(InputError, match="a note is a mapping of plain values"):
            ledger.release(mechanism, [1, 2, 3, 4], note=note)
    assert ledger.spent == 0
    for head in (np.zeros(2), b"00", 7):
        with pytest.raises(InputError, match="a head is what verify returned"):
            ledger.verify(head)


def test_ragged_numbers_and_odd_words_are_refused_with_a_reason():
    ledger = bf.Ledger(None, epsilon=1, policy=ADD_REMOVE)
    held = {"epsilon": "0.1", "ledger": ledger}
    with pytest.raises(InputError, match="records_per_person are whole numbers"):
        bf.truncation_loss([[1], [1, 2]], at_most=2, up_to=5, **held)
    with pytest.raises(InputError, match="records_per_person are whole numbers"):
        bf.choose_at_most([[1], [1, 2]], cells=4, then=1, **held)
    for level in (np.ones(2), ["event"], "hour"):
        with pytest.raises(InputError, match='level is "event", "person-week"'):
            bf.Series(ledger, column="received", every="week", level=level)
    with pytest.raises(InputError, match="conditions name attributes"):
        bf.Session(ledger, [1, 2, 3, 4]).noisy_count("all", epsilon="0.1")
    assert ledger.spent == 0
