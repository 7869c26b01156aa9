"""Which ledger pays for a first look, and when it refuses: `look_payment.py`."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.look_payment import paid_by
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook

LOOK = FirstLook(["sex", "age"], epsilon=2)


def refuse(kind, words, *asked):
    with pytest.raises(kind, match=words), paid_by(*asked):
        pass


@pytest.fixture
def book(tmp_path):
    return tmp_path / "book"


def test_without_a_ledger_nobody_keeps_account_and_nothing_about_one_is_stated():
    with paid_by(None, None, None, 1, LOOK) as ledger:
        assert ledger is None
    for total, request in (("3", None), (None, "look")):
        refuse(InputError, "belong to a ledger", None, total, request, None, LOOK)


def test_a_new_ledger_is_made_with_its_whole_budget_and_nothing_is_charged(book):
    refuse(LedgerError, "state its whole budget", book, None, None, None, LOOK)
    with paid_by(book, "3", None, None, LOOK) as ledger:
        assert float(ledger.remaining) == 3
    with paid_by(book, None, None, None, LOOK) as ledger:
        assert float(ledger.remaining) == 3


def test_a_seed_is_not_paid_for_and_no_ledger_is_made(book):
    refuse(InputError, "no ledger pays", book, "3", None, 1, LOOK)
    assert not book.exists()


def test_a_ledger_with_too_little_left_refuses_and_one_of_other_people_too(book):
    refuse(BudgetError, "Nothing was charged", book, "1", None, None, LOOK)
    cells = bf.Domain.from_levels(["f", "m"], name="sex")
    other = book.with_name("other")
    with bf.Ledger(other, epsilon=9, policy=bf.policies.Full(cells)):
        pass
    refuse(PolicyError, "Nothing was charged", other, None, None, None, LOOK)
