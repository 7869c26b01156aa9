"""A ledger and its model side by side, through any sequence of events."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import blowfish_fast as bf
from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    FailedDrawError,
    LedgerError,
    PolicyError,
)

LINE = bf.Domain(4)
POLICIES = [bf.policies.Full(LINE), bf.policies.Line(LINE)]
EPSILONS = [Fraction(1, 10), Fraction(1, 3), Fraction(2, 7)]
COUNTS = [3, 1, 4, 1]
FAILED = "a draw that failed"
breaking = None
meanwhile = None


class BrokenDraw(Exception):
    """A failure of the draw, which depends on the data: it is the stored outcome."""


class Interruption(BaseException):
    """A stop from outside, whose moment tells nothing: the draw may be repeated."""


BREAKS = [None, BrokenDraw, Interruption]


class Fragile(bf.Laplace):
    """Laplace that breaks off by `breaking`, or lets others act, after the charge."""

    def _run(self, private):
        global meanwhile
        outcome = super()._run(private)
        if private.dry_run:
            return outcome
        if breaking is not None:
            raise breaking
        if meanwhile is not None:
            others, meanwhile = meanwhile, None
            others()
        return outcome


# The machine is about books, not about who vouches for a mechanism from outside.
Fragile.__module__ = bf.Laplace.__module__


def mechanism(epsilon, policy):
    return Fragile(policy, bf.workloads.Identity(LINE), epsilon=epsilon)


class LedgerMachine(RuleBasedStateMachine):
    on_disk = False

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) if self.on_disk else None
        self.path = self.folder and self.folder / "machine.ledger"
        self.total, self.spent, self.policy = 10**9, 0, POLICIES[0]
        self.known = {}
        self.heads = []
        self.ledger = bf.Ledger(self.path, epsilon=1, policy=self.policy)

    def teardown(self):
        for head in [None, *self.heads]:
            self.ledger.verify(head)
        self.ledger.close()
        if self.folder:
            shutil.rmtree(self.folder)

    @rule(
        name=st.sampled_from("abcde"),
        epsilon=st.sampled_from(EPSILONS),
        breaks=st.sampled_from(BREAKS),
    )
    def ask(self, name, epsilon, breaks):
        global breaking
        expected, drawn = self.foresee(name, epsilon, EPSILON.charged(epsilon), breaks)
        breaking = breaks
        try:
            if expected is not None:
                with pytest.raises(expected):
                    self.ledger.release(
                        mechanism(epsilon, self.policy), COUNTS, name, vouched=True
                    )
                return
            answer = self.ledger.release(
                mechanism(epsilon, self.policy), COUNTS, name, vouched=True
            )
        finally:
            breaking = None
        if drawn:
            self.known[name][1] = answer.estimate
        assert (answer.estimate == self.known[name][1]).all()

    def foresee(self, name, asked, cost, breaks):
        """Charge the model; return the error to expect, and whether noise is drawn."""
        if name not in self.known:
            if self.spent + cost > self.total:
                return BudgetError, False
            self.known[name] = [asked, None]
            self.spent += cost
        if self.known[name][0] != asked:
            return LedgerError, False
        drawn = self.known[name][1] is None
        if drawn and breaks is Interruption:
            return Interruption, drawn
        if drawn and breaks is BrokenDraw:
            self.known[name][1] = FAILED
        failed = self.known[name][1] is FAILED
        return (FailedDrawError if failed else None), drawn

    @rule(name=st.sampled_from("fgh"), epsilon=st.sampled_from(EPSILONS))
    def ask_twice_at_once(self, name, epsilon):
        """Ask, and before the draw is stored let another attempt be faster."""
        global meanwhile
        cost = EPSILON.charged(epsilon)
        if name in self.known or self.spent + cost > self.total:
            return
        faster = []

        def others():
            rival = bf.Ledger(self.path) if self.on_disk else self.ledger
            faster.append(
                rival.release(
                    mechanism(epsilon, self.policy), COUNTS, name, vouched=True
                )
            )

        meanwhile = others
        answer = self.ledger.release(
            mechanism(epsilon, self.policy), COUNTS, name, vouched=True
        )
        assert meanwhile is None
        assert (answer.estimate == faster[0].estimate).all()
        self.spent += cost
        self.known[name] = [epsilon, answer.estimate]

    @rule(
        name=st.sampled_from("xyz"),
        epsilons=st.lists(st.sampled_from(EPSILONS), min_size=1, max_size=3),
        breaks=st.sampled_from(BREAKS),
    )
    def ask_for_disjoint_people(self, name, epsilons, breaks):
        global breaking
        cost = max(EPSILON.charged(one) for one in epsilons)
        parts = [(mechanism(one, self.policy), COUNTS) for one in epsilons]
        expected, drawn = self.foresee(name, epsilons, cost, breaks)
        breaking = breaks
        try:
            if expected is not None:
                with pytest.raises(expected):
                    self.ledger.release_disjoint(parts, request=name)
                return
            answers = self.ledger.release_disjoint(parts, request=name)
        finally:
            breaking = None
        estimates = [one.estimate for one in answers]
        if drawn:
            self.known[name][1] = estimates
        assert len(estimates) == len(epsilons)
        assert np.array_equal(estimates, self.known[name][1])

    @rule(epsilon=st.sampled_from(EPSILONS))
    def preview(self, epsilon):
        shown = self.ledger.preview(mechanism(epsilon, self.policy))
        cost = EPSILON.charged(epsilon)
        assert shown.accepted == (self.spent + cost <= self.total)
        assert shown.cost == Fraction(cost, 10**9)

    @rule()
    def bad_data(self):
        affordable = self.spent + EPSILON.charged(EPSILONS[0]) <= self.total
        # What cannot be paid is refused before anybody looks at the data.
        with pytest.raises(CountsError if affordable else BudgetError):
            self.ledger.release(mechanism(EPSILONS[0], self.policy), [1], vouched=True)

    @rule()
    def bad_policy(self):
        absent = bf.policies.AddRemove(LINE)
        with pytest.raises(PolicyError):
            self.ledger.release(mechanism(EPSILONS[0], absent), COUNTS, vouched=True)

    @rule(tenths=st.integers(1, 20), policy=st.sampled_from(POLICIES))
    def amend(self, tenths, policy):
        if self.known:
            with pytest.raises(LedgerError):
                self.ledger.amend(epsilon=Fraction(tenths, 10), policy=policy)
            return
        self.ledger.amend(epsilon=Fraction(tenths, 10), policy=policy)
        self.total, self.policy = tenths * 10**8, policy

    @rule()
    def note_head(self):
        self.heads.append(self.ledger.verify())

    @precondition(lambda self: self.on_disk)
    @rule(close=st.booleans())
    def reopen(self, close):
        if close:
            self.ledger.close()
        self.ledger = bf.Ledger(
            self.path, epsilon=Fraction(self.total, 10**9), policy=self.policy
        )

    @invariant()
    def books_agree(self):
        assert self.ledger.spent == Fraction(self.spent, 10**9)
        assert self.ledger.spent + self.ledger.remaining == self.ledger.epsilon
        assert self.ledger.remaining >= 0
        history = self.ledger.history()
        assert {entry.request for entry in history} == self.known.keys()
        for entry in history:
            stored = self.known[entry.request][1] is not None
            assert entry.state == ("stored" if stored else "reserved")


class DiskMachine(LedgerMachine):
    on_disk = True


class TestMemory(LedgerMachine.TestCase):
    settings = settings(max_examples=30, stateful_step_count=20)


class TestDisk(DiskMachine.TestCase):
    settings = settings(
        max_examples=8,
        stateful_step_count=12,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
