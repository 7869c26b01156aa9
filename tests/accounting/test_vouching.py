"""A mechanism that is not the package's own is charged only where someone vouches."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError

LINE = bf.Domain(4)
FULL = bf.policies.Full(LINE)


class Foreign(bf.Laplace):
    """Somebody else's: nothing here has audited it."""


def made():
    return Foreign(FULL, bf.workloads.Identity(LINE), epsilon=0.25)


def test_a_foreign_mechanism_is_refused_and_nothing_is_charged():
    ledger = bf.Ledger(None, epsilon=1, policy=FULL)
    with pytest.raises(BlowfishError, match="vouch"):
        ledger.release(made(), [1, 2, 3, 4])
    assert (ledger.spent, ledger.history()) == (0, [])
    ledger.release(made(), [1, 2, 3, 4], vouched=True)
    assert ledger.spent == bf.budgets.Budget.stated(epsilon="0.25").amount


def test_a_foreign_part_is_refused_and_nothing_is_charged():
    ledger = bf.Ledger(None, epsilon=1, policy=FULL)
    own = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=0.25)
    parts = [(own, [1, 2, 3, 4]), (made(), [5, 6, 7, 8])]
    with pytest.raises(BlowfishError, match="vouch"):
        ledger.release_disjoint(parts, by="ids")
    assert (ledger.spent, ledger.history()) == (0, [])
    assert len(ledger.release_disjoint(parts, by="ids", vouched=True)) == 2
