"""Disjoint parts: charged, kept and replayed together, for the largest of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)

from .test_ledger import COUNTS, FULL, LINE, laplace


@pytest.fixture(params=["memory", "disk"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "x.ledger"
    with bf.Ledger(path, epsilon=1, policy=FULL) as made:
        yield made


def test_disjoint_people_are_charged_the_largest(ledger):
    parts = [(laplace(0.25), COUNTS), (laplace(0.5), COUNTS * 2)]
    first = ledger.release_disjoint(parts, request="both")
    assert ledger.spent == Fraction(1, 2)
    assert [one.guarantee.epsilon for one in first] == [Fraction(1, 4), Fraction(1, 2)]
    again = ledger.release_disjoint(parts, request="both")
    for one, other in zip(first, again, strict=True):
        assert (one.estimate == other.estimate).all()
    assert ledger.spent == Fraction(1, 2)
    (entry,) = ledger.history()
    assert (entry.mechanism, entry.together) == ("laplace, laplace", "ids")
    with pytest.raises(LedgerError, match="another question"):
        ledger.release_disjoint(parts[::-1], request="both")
    with pytest.raises(LedgerError, match="another question"):
        ledger.release(laplace(0.5), COUNTS, "both")
    ledger.verify()


def test_disjoint_parts_are_checked_like_single_ones(ledger):
    line = bf.policies.Line(LINE)
    for parts, error in (
        ([(laplace(0.1), COUNTS), (laplace(0.1, line), COUNTS)], PolicyError),
        ([(laplace(0.1), COUNTS), (laplace(0.1), -COUNTS)], CountsError),
        ([(laplace(0.1), COUNTS), (laplace(1.1), COUNTS)], BudgetError),
        ([], InputError),
        ([(laplace(0.1), COUNTS, [0])], InputError),
        ([("laplace", COUNTS)], InputError),
    ):
        with pytest.raises(error):
            ledger.release_disjoint(parts)
    with pytest.raises(InputError, match='by must be "ids" or "regions"'):
        ledger.release_disjoint([(laplace(), COUNTS)], by="luck")
    with pytest.raises(InputError, match=r"\(mechanism, data, cells\)"):
        ledger.release_disjoint([(laplace(), COUNTS)], by="regions")
    assert ledger.spent == 0


def test_constraints_forbid_disjoint_people_unless_scoped():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])
    policy = FULL.with_constraints(known)
    parts = [(laplace(0.1, policy), COUNTS), (laplace(0.2, policy), COUNTS)]
    with bf.Ledger(None, epsilon=1, policy=policy) as ledger:
        with pytest.raises(PolicyError, match="scoped=True"):
            ledger.release_disjoint(parts)
        assert ledger.spent == 0
        ledger.release_disjoint(parts, scoped=True)
        assert ledger.spent == Fraction(1, 5)


def test_regions_that_no_edge_joins_cost_the_largest():
    blocks = bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 1])
    full = bf.policies.Full(bf.Domain(3))
    parts = [
        (laplace(0.1, full), COUNTS[:3], [0, 1, 2]),
        (laplace(0.3, full), COUNTS[3:], [3, 4, 5]),
    ]
    with bf.Ledger(None, epsilon=1, policy=blocks) as ledger:
        releases = ledger.release_disjoint(parts, by="regions", rng=1)
        assert ledger.spent == Fraction(3, 10)
        totals = [one.estimate.sum() for one in releases]
        assert totals == pytest.approx([8, 15])
    with bf.Ledger(None, epsilon=1, policy=FULL) as ledger:
        with pytest.raises(PolicyError, match="Nothing was charged"):
            ledger.release_disjoint(parts, by="regions")
        assert ledger.spent == 0
