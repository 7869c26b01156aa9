"""ChosenPrivately: the choice is charged, the rest measures, nothing else is read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.private_choice import ChosenPrivately
from blowfish_fast.errors import DataDependentError, EpsilonError, InputError
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.randomness import Randomness

LINE = bf.Domain(32)
POLICY = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
SHAPES = {"even": np.full(32, 50), "spike": np.eye(1, 32, dtype=int)[0] * 1600}
LAPLACE = bf.Laplace(POLICY, CELLS, epsilon=1)
DAWA = bf.Dawa(POLICY, CELLS, epsilon=1)


def chooser(candidates=None, **settings):
    given = {"even": DAWA, "spike": LAPLACE} if candidates is None else candidates
    return ChosenPrivately(
        POLICY, CELLS, epsilon=1, shapes=SHAPES, candidates=given, **settings
    )


def calls(mechanism, counts):
    account = Account(mechanism.epsilon)
    private = mechanism._handle(np.asarray(counts), account, Randomness(1))
    return mechanism._run(private), account


@pytest.mark.parametrize(
    ("counts", "shape", "name"),
    [
        ([49, 51] * 16, "even", "dawa"),
        ([0] * 20 + [1590] + [0] * 11, "spike", "laplace"),
    ],
)
def test_the_mechanism_of_the_nearest_shape_is_used(counts, shape, name):
    release = chooser(share="0.5").release(counts, rng=2)
    assert release.details["resembles"] == shape
    assert release.details["chosen_mechanism"] == name
    assert release.guarantee.epsilon == 1
    assert release.mechanism == "chosen_privately"
    assert release.intervals(CELLS, of="noise").shape == (32, 2)


def test_the_choice_and_the_release_share_epsilon():
    outcome, account = calls(chooser(share="0.2"), [0] * 31 + [1600])
    assert outcome.details["chosen_mechanism"] == "laplace"
    assert [one.name for one in account.calls] == ["nearest_shape", "cells"]
    assert [one.budget for one in account.calls] == [Fraction(1, 5), Fraction(4, 5)]
    width = outcome.measurements[0].scales.widths[0]
    assert width == pytest.approx(1.25, rel=1e-6)


def test_the_chosen_candidate_divides_what_the_choice_left():
    """Its shares are of the remaining epsilon, as if it had been made for that."""
    chosen, account = calls(chooser(share="0.2"), [49, 51] * 16)
    assert chosen.details["chosen_mechanism"] == "dawa"
    _, spent = calls(bf.Dawa(POLICY, CELLS, epsilon="0.8"), [49, 51] * 16)
    assert [one.name for one in account.calls[1:]] == [one.name for one in spent.calls]
    assert [one.budget for one in account.calls[1:]] == [
        one.budget for one in spent.calls
    ]
    assert account.spent == 1


def test_where_there_is_nothing_to_choose_nothing_is_spent():
    outcome, account = calls(chooser({"even": DAWA, "spike": DAWA}), [50] * 32)
    assert outcome.details["resembles"] == "any"
    assert "nearest_shape" not in [one.name for one in account.calls]
    assert account.spent == 1


def test_a_ledger_charges_it_like_any_other():
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY)
    ledger.release(chooser(), [50] * 32)
    assert ledger.remaining == 0


def test_the_error_depends_on_the_data():
    with pytest.raises(DataDependentError, match="chooses from the data"):
        chooser().expected_error()


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="every shape needs one candidate"):
        chooser({"even": DAWA})
    full = bf.Laplace(bf.policies.Full(LINE), CELLS, epsilon=1)
    with pytest.raises(InputError, match="the candidate for spike"):
        chooser({"even": DAWA, "spike": full})
    with pytest.raises(EpsilonError, match="share"):
        chooser(share=1)
    with pytest.raises(InputError, match="the shapes have 5 cells"):
        ChosenPrivately(
            POLICY,
            CELLS,
            epsilon=1,
            shapes={"even": np.ones(5, int)},
            candidates={"even": DAWA},
        )
