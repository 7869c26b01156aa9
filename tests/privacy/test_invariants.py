"""Each invariant is broken on purpose in what a watched run noted, and named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.invariants import (
    Breach,
    _check_seed_marks,
    audit_charges,
    audit_disclosure,
    audit_testimony,
)
from blowfish_fast.audit.plan import AuditTask
from blowfish_fast.audit.verdicts import _breach_verdict
from blowfish_fast.audit.witness import Draw, replay, watch
from blowfish_fast.errors import BlowfishError, PrivacyError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import LinearStrategy

LINE = bf.Domain(4)
FULL = bf.policies.Full(LINE)


def watched(kind=bf.Laplace, **changed):
    """Return a watched run with its first step changed."""
    testimony = watch(*kind.example(LINE, FULL, 1))
    first, *others = testimony.steps
    return replace(testimony, steps=[first._replace(**changed), *others])


def broken(testimony):
    """Return what is found, by invariant."""
    return {one.invariant: one.found for one in audit_testimony(testimony)}


def test_a_verdict_counts_breaches_against_none():
    task = AuditTask("mechanism", "laplace", (4,), "full")
    kept = _breach_verdict("invariants", task, [])
    assert (kept.epsilon, kept.found, kept.passed) == (0.0, 0.0, True)
    broken = [Breach("budget", "1/2 too much")] * 2
    missed = _breach_verdict("invariants", task, broken)
    assert (missed.epsilon, missed.found, missed.passed) == (0.0, 2.0, False)
    assert missed.note == "laplace: budget: 1/2 too much"


def test_an_honest_run_breaks_nothing():
    assert broken(watched()) == {}
    assert broken(watched(bf.Dawa)) == {}


def test_a_draw_before_its_charge_is_found():
    diary = watched().steps[0].diary
    found = broken(watched(diary=diary[::-1]))
    assert found == {"charged before drawn": "cells drew before it was charged"}


def test_steps_that_do_not_add_up_to_the_account_are_found():
    found = broken(watched(charged=Budget(Fraction(1, 2))))
    assert "the account holds" in found["the account adds up"]
    testimony = watched()
    poorer = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=Fraction(1, 2))
    found = broken(replace(testimony, mechanism=poorer))
    assert found["the account adds up"].startswith("spent ")


@pytest.mark.parametrize("calibrated", [None, Fraction(99)])
def test_a_selector_that_got_more_than_was_charged_is_found(calibrated):
    found = broken(watched(bf.Dawa, calibrated=calibrated))
    assert f"calibrated to {calibrated}" in found["selectors get what was charged"]


def test_rows_and_rates_that_are_not_whole_are_found():
    result = watched().steps[0].result
    rows = result._replace(noisy=result.noisy.astype(np.float64))
    found = broken(watched(result=rows))
    assert found["integer lattice"] == "cells published rows of type float64"
    scales = result.scales._replace(rates=result.scales.rates.astype(np.int32))
    found = broken(watched(result=result.with_scales(scales)))
    assert found["integer lattice"] == "cells has rates of type int32"


def changed_draw(**changed):
    step = watched().steps[0]
    return tuple(
        note._replace(**changed) if isinstance(note, Draw) else note
        for note in step.diary
    )


def test_noise_other_than_declared_is_found():
    step = watched().steps[0]
    law = step.result.scales
    none = law._replace(rates=law.rates * 0, exact=np.ones_like(law.exact))
    wanted = {
        "and drew 2 times": {"diary": step.diary + step.diary[-1:]},
        "and drew gaussian": {"diary": changed_draw(law="gaussian")},
        "of other scales than it declared": {"diary": changed_draw(numerators=7)},
        "though it declared none": {"result": step.result.with_scales(none)},
        "than its rows with the noise drawn": {
            "result": step.result._replace(noisy=step.result.noisy + 1)
        },
    }
    for reason, changed in wanted.items():
        assert reason in broken(watched(**changed))["noise as declared"], reason


def test_a_row_that_moves_and_has_no_noise_is_found():
    step = watched().steps[0]
    scales = step.result.scales
    bare = np.arange(scales.rates.size) == 2
    rates, exact = np.where(bare, 0, scales.rates), scales.exact | bare
    spared = step.result.with_scales(scales._replace(rates=rates, exact=exact))
    found = broken(watched(result=spared))
    assert found["noise on every row that moves"].endswith("row 2 without any noise")


def test_what_a_release_must_not_hold_is_found():
    testimony = watched()
    strange = replace(testimony.outcome, details={"inner": {"kept": object()}})
    found = broken(replace(testimony, outcome=strange))
    assert found["plain details"] == "details.inner.kept holds a object"
    view = replace(testimony.outcome, details={"kept": testimony.counts[1:]})
    found = broken(replace(testimony, outcome=view))
    assert (
        found["no view of the counts"] == "outcome.details.kept is a view of the counts"
    )


def test_a_recipe_that_asks_for_something_else_cannot_be_replayed():
    testimony = watched()
    with pytest.raises(PrivacyError, match="a replay asked for measure"):
        replay(replace(testimony, steps=[]))
    with pytest.raises(PrivacyError, match="depends on counts"):
        replay(watched(charged=Budget(Fraction(1, 2))))


def made_up_mechanism(*, seeded, secure, says="it protects nobody", spent=1):
    """Return what looks like a mechanism whose releases carry these marks."""
    same = SimpleNamespace(
        scales=SimpleNamespace(
            measured=np.ones(64, dtype=np.bool_), widths=np.ones(64)
        ),
        noisy=np.arange(64),
    )

    class Marks(SimpleNamespace):
        def __str__(self):
            return says

    def release(_data, rng=None):
        marks = Marks(budget=Budget(Fraction(spent)), spent=spent)
        private = secure if rng is None else seeded
        return SimpleNamespace(private=private, guarantee=marks, measurements=[same])

    return SimpleNamespace(
        release=release, budget=Budget(Fraction(1)), domain=LINE, policy=FULL
    )


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"seeded": True, "secure": True}, "does not say that it protects nobody"),
        (
            {"seeded": False, "secure": True, "says": "it is safe"},
            "does not say that it protects nobody",
        ),
        ({"seeded": False, "secure": False}, "does not say that its noise was secure"),
        ({"seeded": False, "secure": True, "spent": 2}, "promised epsilon = 1, spent"),
        ({"seeded": False, "secure": True}, "two secure releases carry the same noise"),
    ],
)
def test_marks_that_are_missing_or_wrong_are_found(made, reason):
    found = list(_check_seed_marks(made_up_mechanism(**made), None, 1))
    assert any(reason in one for one in found), found


def test_true_values_in_a_release_are_found(monkeypatch):
    faint = Fraction(1, 100)
    edges = bf.Transformed(
        FULL, bf.workloads.Identity(LINE), epsilon=faint, strategy="edges"
    )
    assert audit_disclosure(edges) == []
    nothing = bf.policies.Graph(LINE, np.zeros((0, 2), dtype=np.int64))
    public = bf.Laplace(nothing, bf.workloads.Identity(LINE), epsilon=faint)
    assert audit_disclosure(public) == []
    plain = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=faint)
    monkeypatch.setattr(
        LinearStrategy, "published", lambda _self, rows, _noise, _scales: rows
    )
    found = {one.found for one in audit_disclosure(plain)}
    assert "row 0 of measurement 0 equals the true values" in found
    assert "outcome.estimate equals the true values" in found


class Counter:
    """A ledger in memory with one rule broken at a time."""

    fault = ""

    def __init__(self, _path, *, policy, epsilon):
        self.budget, self.spent = Fraction(epsilon), Fraction(0)
        self.failed = {}

    def release(self, mechanism, data, *, request=None, **_word):
        price = mechanism.epsilon
        if request in self.failed and self.fault != "again":
            raise self.failed[request]
        if self.spent + price > self.budget and self.fault != "too much":
            self.spent += price if self.fault == "refusal" else 0
            raise BlowfishError("the budget does not allow it")
        self.spent += price if self.fault != "late" else 0
        try:
            mechanism.release(data, rng=1 if self.fault == "words" else None)
        except Exception as problem:
            self.spent -= price if self.fault == "refund" else 0
            self.failed[request] = problem
            raise
        self.spent += price if self.fault == "late" else 0


@pytest.mark.parametrize(
    ("fault", "invariants"),
    [
        ("", []),
        ("late", ["charged before drawn", "no refund"]),
        ("again", ["one draw for a charge"]),
        ("words", ["a failure tells nothing"]),
        ("refund", ["no refund"]),
        ("refusal", ["refusals cost nothing"]),
        ("too much", ["no more than the budget"]),
    ],
)
def test_a_ledger_with_one_broken_rule_is_found(fault, invariants):
    kind = type("Broken", (Counter,), {"fault": fault})
    example = bf.Laplace.example(LINE, FULL, 1)
    assert audit_charges(bf.Ledger, *example) == []
    found = audit_charges(kind, *example)
    assert [one.invariant for one in found] == invariants
    assert all(str(one).startswith(f"{one.invariant}: ") for one in found)
