"""What is not the package's own is charged only where someone vouches for it.

Hole 7 of issue 32, a charge below its price: policies, workloads and selectors of
strangers were taken at their word.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support.plug_ins import outside_parts
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.selectors.partitions import DyadicTree
from blowfish_fast.mechanisms.registry import MECHANISMS

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


class Everything(bf.policies.Line):
    """Says that it has the edges of any other policy, and has those of a line."""

    def _includes(self, other):
        return True


class Sixteenfold(bf.workloads.Identity):
    """Answers what is not in its coefficients."""

    def answer(self, counts):
        return 1000 * super().answer(counts)


class Elsewhere(bf.Domain):
    """A domain of somebody else's."""


class Counted(bf.Histogram):
    """A histogram of somebody else's."""


class Split(DyadicTree):
    """A partition of somebody else's."""


def by_ledger(mechanism, data, **word):
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    return ledger, functools.partial(ledger.release, mechanism, data, rng=1, **word)


def by_parts(mechanism, data, **word):
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    parts = [(mechanism, data)]
    return ledger, functools.partial(ledger.release_disjoint, parts, rng=1, **word)


def by_series(mechanism, data, **word):
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    series = bf.Series(ledger, column="received", every="week")
    asked = functools.partial(series.release, "2026-W46", rng=1, **word)
    return ledger, functools.partial(asked, mechanism, data)


COUNTS = np.array([3, 0, 2, 5])
CELLS = bf.workloads.Identity(LINE)
STRANGE = {
    "policy": (bf.Laplace(Everything(LINE), CELLS, epsilon=1), COUNTS),
    "workload": (bf.Laplace(FULL, Sixteenfold(LINE), epsilon=1), COUNTS),
    "partition": (bf.Dawa(FULL, CELLS, epsilon=1, partition=Split()), COUNTS),
    "domain": (
        bf.Laplace(
            bf.policies.Full(Elsewhere(4)),
            bf.workloads.Identity(Elsewhere(4)),
            epsilon=1,
        ),
        COUNTS,
    ),
    "data": (bf.Laplace(FULL, CELLS, epsilon=1), Counted(LINE, COUNTS)),
}


@pytest.mark.parametrize("asked", [by_ledger, by_parts, by_series])
@pytest.mark.parametrize("part", STRANGE)
def test_strange_parts_are_refused_uncharged_through_every_face(part, asked):
    ledger, release = asked(*STRANGE[part])
    with pytest.raises(BlowfishError, match=r"test_vouching.*vouches") as caught:
        release()
    assert caught.value.code == "not_vouched"
    assert (ledger.spent, ledger.history()) == (0, [])
    if part in ("partition", "data"):
        ledger, release = asked(*STRANGE[part], vouched=True)
        release()
        assert ledger.spent == 1


def test_a_population_takes_nothing_strange():
    secret = bf.policies.AddRemove(LINE)
    people = bf.Population("p", person="id", tables={"visits": secret}, epsilon=9)
    asked = people.policy("visits", at_most=1)
    data = bf.Histogram(LINE, COUNTS, at_most=1, person="id")
    strange = bf.Laplace(asked, Sixteenfold(LINE), epsilon=1)
    with pytest.raises(BlowfishError, match="vouch"):
        people.release("visits", strange, data, rng=1)
    assert people.spent == 0
    people.release("visits", strange, data, rng=1, vouched=True)


def test_a_certificate_of_a_strange_workload_is_refused():
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    release = ledger.release(bf.Laplace(FULL, CELLS, epsilon=1), COUNTS, rng=1)
    with pytest.raises(BlowfishError, match="Sixteenfold"):
        ledger.certify(release, COUNTS, Sixteenfold(LINE), epsilon=1, rng=1)
    assert ledger.spent == 1
    ledger.certify(release, COUNTS, Sixteenfold(LINE), epsilon=1, rng=1, vouched=True)


def test_a_session_takes_no_strange_data():
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    session = bf.Session(ledger, Counted(LINE, COUNTS))
    with pytest.raises(BlowfishError, match="Counted"):
        session.noisy_count(epsilon=1, rng=1)
    assert ledger.spent == 0


def test_a_method_that_was_replaced_on_an_object_is_strange():
    policy = bf.policies.Line(LINE)
    policy.__dict__["_includes"] = lambda other: True
    workload = bf.workloads.Identity(LINE)
    workload.__dict__["answer"] = types.MethodType(Sixteenfold.answer, workload)
    for mechanism in (
        bf.Laplace(policy, CELLS, epsilon=1),
        bf.Laplace(FULL, workload, epsilon=1),
    ):
        (first, *_) = outside_parts(mechanism)
        assert "replaced on the object" in first
        ledger = bf.Ledger(None, epsilon=9, policy=FULL)
        with pytest.raises(BlowfishError, match="replaced on the object"):
            ledger.release(mechanism, COUNTS, rng=1)
        assert ledger.spent == 0


@pytest.mark.parametrize("name", MECHANISMS)
def test_nothing_of_ours_is_strange_before_or_after_a_release(name):
    domain = bf.Domain.from_edges(range(17), name="age")
    policy = bf.policies.AddRemove(domain)
    mechanism, data = MECHANISMS[name].example(domain, policy, 1)
    assert outside_parts(mechanism, data) == []
    mechanism.release(data, rng=1)
    assert outside_parts(mechanism, data) == []


class Meanwhile(Mapping):
    """Something that has its owner derive a value whenever it is looked at."""

    def __init__(self, owner):
        self.owner = owner

    def __getitem__(self, name):
        raise KeyError(name)

    def __len__(self):
        return 0

    def __iter__(self):
        self.owner.__dict__[f"derived_{len(self.owner.__dict__)}"] = None
        return iter(())

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self))


def test_what_another_thread_derives_meanwhile_does_not_stop_the_walk():
    # Of sixteen people who asked the same at once, one met a RuntimeError: a plan is
    # shared by threads, and a policy keeps what it derives among its attributes.
    policy = bf.policies.Full(bf.Domain(4))
    policy.__dict__["held"] = Meanwhile(policy)
    mechanism = bf.Laplace(policy, bf.workloads.Identity(LINE), epsilon=0.25)
    before = len(policy.__dict__)
    assert any("Meanwhile" in place for place in outside_parts(mechanism))
    assert len(policy.__dict__) > before


def test_what_another_thread_derives_meanwhile_is_no_part_of_a_workload():
    asked = bf.workloads.Identity(LINE)
    stated = asked.to_dict()
    asked.__dict__["held"] = Meanwhile(asked)
    assert {**asked.to_dict(), "held": None} == {**stated, "held": None}
    assert any(name.startswith("derived") for name in vars(asked))
