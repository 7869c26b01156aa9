"""Analysts share one budget; each has an allotment of it; public answers are free."""

from __future__ import annotations

import sqlite3
import threading
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, InputError, LedgerError

LINE = bf.Domain(6)
FULL = bf.policies.Full(LINE)
CELLS = bf.workloads.Identity(LINE)
COUNTS = np.array([3, 1, 4, 1, 5, 9])


def laplace(epsilon):
    return bf.Laplace(FULL, CELLS, epsilon=epsilon)


@pytest.fixture
def ledger(tmp_path):
    with bf.Ledger(tmp_path / "ledger", epsilon=1, policy=FULL) as made:
        yield made


def test_a_charge_counts_against_budget_and_allotment(ledger):
    ledger.allot("ann", 0.3)
    ledger.release(laplace(0.2), COUNTS, analyst="ann")
    share = ledger.allotments()["ann"]
    assert (share.granted, share.spent) == (Fraction(3, 10), Fraction(1, 5))
    assert share.remaining == Fraction(1, 10)
    assert ledger.spent == Fraction(1, 5)
    assert ledger.history()[0].analyst == "ann"


def test_an_analyst_may_spend_what_is_left_of_both(ledger):
    ledger.allot("ann", 0.3)
    ledger.allot("bob", 0.9)
    ledger.release(laplace(0.2), COUNTS, analyst="ann")
    left = [ledger.remaining_for(one) for one in ("ann", "bob", "eve", None)]
    assert left == [Fraction(1, 10), Fraction(4, 5), 0, Fraction(4, 5)]


def test_an_allotment_is_never_overspent(ledger):
    ledger.allot("ann", 0.3)
    with pytest.raises(BudgetError, match=r"of ann's 0.3 remains; nothing was charged"):
        ledger.release(laplace(0.4), COUNTS, analyst="ann")
    assert ledger.spent == 0
    assert ledger.history() == []


def test_the_budget_binds_even_where_allotments_add_up_to_more(ledger):
    ledger.allot("ann", 0.8)
    ledger.allot("bob", 0.8)
    ledger.release(laplace(0.8), COUNTS, analyst="ann")
    with pytest.raises(BudgetError, match=r"0.2 of 1 remains"):
        ledger.release(laplace(0.5), COUNTS, analyst="bob")
    assert ledger.allotments()["bob"].spent == 0


def test_whoever_has_no_allotment_is_refused(ledger):
    with pytest.raises(BudgetError, match="'eve' has no allotment"):
        ledger.release(laplace(0.1), COUNTS, analyst="eve")
    assert ledger.spent == 0


def test_allotments_change_down_to_what_was_spent(ledger):
    ledger.allot("ann", 0.5)
    ledger.release(laplace(0.2), COUNTS, analyst="ann")
    ledger.allot("ann", 0.2)
    assert ledger.allotments()["ann"].remaining == 0
    with pytest.raises(BudgetError, match="would take some of it back"):
        ledger.allot("ann", 0.1)
    ledger.verify()


def test_a_retry_is_charged_once(ledger):
    ledger.allot("ann", 0.5)
    first = ledger.release(laplace(0.3), COUNTS, request="q", analyst="ann")
    again = ledger.release(laplace(0.3), COUNTS, request="q", analyst="ann")
    assert (first.estimate == again.estimate).all()
    assert ledger.allotments()["ann"].spent == Fraction(3, 10)


def test_a_stored_answer_is_replayed_by_name_alone(ledger):
    assert ledger.replay("q") is None
    first = ledger.release(laplace(0.3), COUNTS, request="q")
    assert (ledger.replay("q").estimate == first.estimate).all()
    assert ledger.spent == Fraction(3, 10)


def test_many_threads_never_overspend_an_allotment(ledger):
    ledger.allot("ann", 0.5)
    refused = []

    def ask():
        try:
            ledger.release(laplace(0.1), COUNTS, analyst="ann")
        except BudgetError:
            refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(refused) == 7
    assert ledger.allotments()["ann"].remaining == 0
    ledger.verify()


@pytest.mark.parametrize(
    "name",
    ["", None, 5, "x" * 201, "ann\x1b[2J", "ann\nbob"],
    ids=["none", "no", "5", "x", "escape", "lines"],
)
def test_bad_names_are_refused(ledger, name):
    with pytest.raises(InputError, match="an analyst is named by a text"):
        ledger.allot(name, 0.1)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE allotment SET total = 10000000000",
        "INSERT INTO allotment VALUES ('eve', 5, 0)",
    ],
    ids=["raised", "added"],
)
def test_verify_notices_tampered_allotments(ledger, change):
    ledger.allot("ann", 0.5)
    ledger.release(laplace(0.3), COUNTS, analyst="ann")
    ledger.verify()
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(change)
    with pytest.raises(LedgerError, match="allotments differ"):
        ledger.verify()


def test_what_no_edge_moves_is_exact_free_and_logged(ledger):
    everything = bf.workloads.Total(LINE)
    exact = bf.Laplace(FULL, everything, epsilon=0.5, strategy="queries")
    release = ledger.release(exact, COUNTS, request="how many")
    assert release.answer(everything) == pytest.approx([23.0])
    assert ledger.spent == 0
    assert ledger.history()[0].epsilon == 0
    ledger.verify()


def test_under_add_remove_the_total_is_not_free(tmp_path):
    policy = bf.policies.AddRemove(LINE)
    with bf.Ledger(tmp_path / "ledger", epsilon=1, policy=policy) as ledger:
        total = bf.Laplace(
            policy, bf.workloads.Total(LINE), epsilon=0.5, strategy="queries"
        )
        ledger.release(total, COUNTS)
        assert ledger.spent == Fraction(1, 2)
