"""Previews and entries: numbers that are exact, sentences that read."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.journal import BudgetStanding, Charge
from blowfish_fast.accounting.statements import Entry, Preview
from blowfish_fast.errors import LedgerError

STANDING = BudgetStanding(10**9, 2 * 10**8, 1)


def test_a_preview_says_cost_and_rest():
    shown = Preview.of("dawa", 3 * 10**8, STANDING, "")
    assert (shown.cost, shown.before, shown.after) == (
        Fraction(3, 10),
        Fraction(8, 10),
        Fraction(5, 10),
    )
    assert shown.accepted
    assert shown.reason == ""
    assert str(shown) == (
        "dawa would cost eps = 0.3 of the 0.8 that remains; 0.5 would be left"
    )


def test_a_preview_of_the_last_cent_is_accepted():
    assert Preview.of("dawa", 8 * 10**8, STANDING, "").after == 0


def test_a_preview_beyond_the_budget_gives_the_numbers():
    shown = Preview.of("dawa", 8 * 10**8 + 1, STANDING, "")
    assert not shown.accepted
    assert shown.after == shown.before == Fraction(8, 10)
    assert str(shown) == (
        "dawa would be refused: it costs eps = 0.800000001, and 0.8 of 1 remains"
    )


def test_a_refusal_comes_before_the_price():
    shown = Preview.of("dawa", 10**10, STANDING, "wrong policy")
    assert shown.reason == "wrong policy"


def test_an_entry_reads_a_charge():
    part = {"mechanism": "dawa", "policy": "nobody can tell"}
    other = {"mechanism": "laplace", "policy": "nobody can tell"}
    content = {
        "time": "2024-02-29T12:00:00.000000+00:00",
        "parts": [part, other],
        "together": "ids",
    }
    entry = Entry.of(Charge(7, "a", 25 * 10**7, content, "stored"))
    assert entry.number == 7
    assert entry.time.year == 2024
    assert entry.mechanism == "dawa, laplace"
    assert entry.policy == "nobody can tell"
    assert entry.epsilon == Fraction(1, 4)
    assert (entry.state, entry.together) == ("stored", "ids")


@pytest.mark.parametrize(
    "content", [{}, {"time": 7}, {"time": "x"}, {"time": "2024-01-01", "parts": [3]}]
)
def test_a_damaged_charge_is_a_clear_error(content):
    with pytest.raises(LedgerError, match="damaged"):
        Entry.of(Charge(1, "a", 1, content, "stored"))


def test_a_page_about_an_unused_ledger_has_no_table_of_charges():
    with bf.Ledger(None, epsilon=1, policy=bf.policies.Full(bf.Domain(4))) as ledger:
        page = ledger._repr_html_()
        assert "0 of 1 spent, 1 left; 0 charges" in page
        assert "<table" not in page
