"""A stored release is made finer for the difference, once, on the same counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.recipients import make_recipient_keys
from blowfish_fast.accounting.refinements import refuse_refinement
from blowfish_fast.accounting.request import say_version
from blowfish_fast.errors import (
    BudgetError,
    EpsilonError,
    InputError,
    LedgerError,
    PrivacyError,
)
from blowfish_fast.measure import refinement
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.around_releases.refiner import Refiner

CELLS = 600
DOMAIN = bf.Domain(CELLS)
POLICY = bf.policies.AddRemove(DOMAIN)
COUNTS = np.arange(CELLS)


def rough(epsilon="0.1", policy=POLICY):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


@pytest.fixture(params=["memory", "disk"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "ledger"
    with bf.Ledger(path, epsilon=5, policy=POLICY) as made:
        made.release(rough(), COUNTS, "first", version="v1")
        yield made


def noise_of(release):
    return release.measurements[0].noisy[:CELLS] - COUNTS


def test_a_chain_costs_its_last_level_and_leaves_what_was_shown(ledger):
    shown = ledger.replay("first").estimate
    finer = ledger.refine("first", COUNTS, epsilon="0.4", version="v1")
    assert ledger.spent == Fraction("0.4")
    assert finer.guarantee.budget.epsilon == Fraction("0.4")
    assert (ledger.replay("first").estimate == shown).all()
    again = ledger.refine("first at 0.4", COUNTS, epsilon=1, version="v1")
    assert ledger.spent == 1
    assert again.mechanism == "refiner"
    costs = [float(entry.epsilon) for entry in ledger.history()]
    assert costs == [0.1, pytest.approx(0.3), pytest.approx(0.6)]
    # Under the same name it comes back, free.
    same = ledger.refine("first", COUNTS, epsilon="0.4", version="v1")
    assert (same.estimate == finer.estimate).all()
    assert ledger.spent == 1
    assert ledger.verify()


@pytest.mark.parametrize("planted", [False, True])
def test_the_finer_noise_is_drawn_given_the_first(monkeypatch, planted):
    """A second draw afresh would cost both levels: it knows nothing of the first.

    The first noise is the second one and a rest that is independent of it, so that
    their covariance is the variance of the second.
    """
    if planted:
        from blowfish_fast.measure import handle

        monkeypatch.setattr(
            handle,
            "lowered_noise",
            lambda _noise, _before, after, rng: handle._draw(after, rng),
        )
    ledger = bf.Ledger(epsilon=5, policy=POLICY)
    first = noise_of(ledger.release(rough(), COUNTS, "first", 1, version="v1"))
    finer = ledger.refine("first", COUNTS, epsilon="0.4", version="v1", rng=2)
    second = noise_of(finer)
    variance = finer.measurements[0].scales.variances[0]
    shared = float((first * second).mean())
    sigma = np.sqrt(variance * np.mean(first**2.0) * 2 / CELLS)
    assert (abs(shared - variance) < 4 * sigma) != planted
    assert abs(float((second**2.0).mean()) - variance) < 0.4 * variance


def test_one_release_has_one_successor(ledger):
    ledger.refine("first", COUNTS, epsilon="0.4", version="v1")
    with pytest.raises(LedgerError, match=r"made finer already, as 'first at 0\.4'"):
        ledger.refine("first", COUNTS, epsilon="0.5", version="v1")
    assert ledger.spent == Fraction("0.4")


def test_the_counts_must_be_known_to_be_the_same(ledger):
    ledger.release(rough(), COUNTS, "unlabelled")
    for name, version in (("first", "v2"), ("unlabelled", "v1")):
        with pytest.raises(LedgerError, match="the very counts"):
            ledger.refine(name, COUNTS, epsilon="0.4", version=version)
    with pytest.raises(InputError, match="a version"):
        ledger.refine("first", COUNTS, epsilon="0.4", version="")
    with pytest.raises(LedgerError, match="no stored release 'nothing'"):
        ledger.refine("nothing", COUNTS, epsilon="0.4", version="v1")
    assert ledger.spent == Fraction("0.2")


def test_data_without_a_version_are_refused_in_words(ledger):
    """The call of somebody who knows of no versions says what is lacking, and where."""
    spent = ledger.spent
    ledger.release(rough(), COUNTS, "unlabelled")
    for price in (False, True):
        refine = ledger.price_of_refinement if price else ledger.refine
        handed = () if price else (COUNTS,)
        for name, lacking, way_out in (
            ("first", "you state none", "State it, such as version="),
            (
                "unlabelled",
                "stored with none",
                "a fresh release, and state its version",
            ),
        ):
            with pytest.raises(LedgerError, match="nothing was charged") as caught:
                refine(name, *handed, epsilon="0.4")
            assert lacking in str(caught.value)
            assert way_out in str(caught.value)
    with pytest.raises(LedgerError, match="stored with none"):
        ledger.refine("unlabelled", COUNTS, epsilon="0.4", version="v1")
    assert float(ledger.spent - spent) == pytest.approx(0.1)


def test_a_level_that_is_no_finer_or_not_affordable_is_refused(ledger):
    with pytest.raises(BudgetError, match=r"has cost eps = 0\.1 already"):
        ledger.refine("first", COUNTS, epsilon="0.1", version="v1")
    with pytest.raises(BudgetError, match="remains"):
        ledger.refine("first", COUNTS, epsilon=6, version="v1")
    # The difference is what must be there.
    finer = ledger.refine("first", COUNTS, epsilon=5, version="v1")
    assert ledger.remaining == 0
    assert finer.guarantee.budget.epsilon == 5


def test_an_analyst_pays_the_difference(ledger):
    ledger.allot("ann", "0.25")
    for epsilon in ("0.4", Fraction(1, 3)):
        if epsilon == "0.4":
            with pytest.raises(BudgetError, match="ann's"):
                ledger.refine(
                    "first", COUNTS, epsilon=epsilon, version="v1", analyst="ann"
                )
            continue
        ledger.refine("first", COUNTS, epsilon=epsilon, version="v1", analyst="ann")
    (_, entry) = ledger.history()
    assert (entry.request, entry.analyst) == ("first at 1/3", "ann")
    spent = float(ledger.allotments()["ann"].spent)
    assert spent == pytest.approx(1 / 3 - 0.1, abs=2e-9)


def test_a_draw_that_broke_off_is_finished_under_its_charge(ledger, monkeypatch):
    def broken(*_, **__):
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "_keep", broken)
        with pytest.raises(OSError, match="no room"):
            ledger.refine("first", COUNTS, epsilon="0.4", version="v1")
    assert ledger.spent == Fraction("0.4")
    with pytest.raises(LedgerError, match="no stored release"):
        ledger.refine("first at 0.4", COUNTS, epsilon=1, version="v1")
    ledger.refine("first", COUNTS, epsilon="0.4", version="v1")
    assert ledger.spent == Fraction("0.4")


def test_what_paid_for_a_choice_too_is_not_made_finer():
    """Planted: the price of the noise alone would forget that of the partition."""
    small = bf.policies.AddRemove(bf.Domain(16))
    counts = np.arange(16)
    ledger = bf.Ledger(epsilon=5, policy=small)
    workload = bf.workloads.AllRanges(small.domain)
    ledger.release(bf.Dawa(small, workload, epsilon=1), counts, "dawa", version="v1")
    with pytest.raises(PrivacyError, match="something else than the noise of its rows"):
        ledger.refine("dawa", counts, epsilon=2, version="v1")
    parts = [(rough("0.5", small), counts)]
    ledger.release_disjoint(parts, request="disjoint")
    charge = ledger._journal.find("disjoint")
    release = ledger.replay("disjoint")
    say_version(release, "today", "v1")
    with pytest.raises(PrivacyError, match="something else"):
        refuse_refinement(
            charge,
            Refiner(release, epsilon=1),
            "v1",
            ledger.currency,
            opened=False,
        )


def test_rho_persons_and_auditors_are_refused(tmp_path):
    in_rho = bf.Ledger(rho=1, policy=POLICY)
    in_rho.release(rough(), COUNTS, "first", version="v1")
    with pytest.raises(PrivacyError, match="charges no differences"):
        in_rho.refine("first", COUNTS, epsilon=1, version="v1")

    persons = bf.policies.AddRemove(bf.Domain(3)).per_person(2, person="who")
    ledger = bf.Ledger(epsilon=5, policy=POLICY)
    ledger.release(rough(), COUNTS, "first", version="v1")
    charge = ledger._journal.find("first")
    cells = bf.policies.AddRemove(bf.Domain(3))
    release = rough(1, cells).release([1, 2, 3], rng=1)
    say_version(release, "today", "v1")
    with pytest.raises(PrivacyError, match="records of a person"):
        refuse_refinement(
            charge,
            Refiner(release, epsilon=2, policy=persons),
            "v1",
            ledger.currency,
            opened=False,
        )

    make_recipient_keys(tmp_path / "private.pem", tmp_path / "public.pem")
    path = tmp_path / "opened"
    with bf.Ledger(
        path, epsilon=5, policy=POLICY, auditor=tmp_path / "public.pem"
    ) as opened:
        opened.release(rough(), COUNTS, "first", version="v1")
        with pytest.raises(LedgerError, match="an auditor may open"):
            opened.refine("first", COUNTS, epsilon=1, version="v1")


def test_releases_without_known_rows_are_refused():
    with pytest.raises(InputError, match="release of a histogram"):
        Refiner("March", epsilon=1)
    stacked = replace(rough(1).release(COUNTS, rng=1), fresh=False)
    with pytest.raises(PrivacyError, match="one measurement, whose rows nobody chose"):
        Refiner(stacked, epsilon=2)
    release = rough(1).release(COUNTS, rng=1)
    with pytest.raises(EpsilonError, match="more than 0"):
        Refiner(release, epsilon=1).release(COUNTS, rng=1)


def test_a_handle_takes_up_rows_of_single_cells_only():
    small = bf.policies.AddRemove(bf.Domain(16))
    workload = bf.workloads.AllRanges(small.domain)
    buckets = bf.Dawa(small, workload, epsilon=1).release(np.zeros(16, int), rng=1)
    handle = Handle(
        np.zeros(16, np.int64), small, Account(Budget.of(Fraction(2))), Randomness(1)
    )
    with pytest.raises(PrivacyError, match="buckets that were chosen from the data"):
        handle.resume(buckets.measurements[0], paid=Fraction(1))
    cells = rough(1, small).release(np.zeros(16, int), rng=1)
    with pytest.raises(PrivacyError, match="would cost 1 on the worst edge"):
        handle.resume(cells.measurements[0], paid=Fraction(1, 2))


RATES = Fraction(1, 2), Fraction(1)


def joint_log_ratios(second_law):
    """Return log P(y, v | 0) / P(y, v | 1) for all small y and v."""
    slow, fast = (float(rate) for rate in RATES)

    def first(noise):
        return (1 - np.exp(-slow)) / (1 + np.exp(-slow)) * np.exp(-slow * abs(noise))

    def joint(count, y, v):
        return first(y - count) * second_law(v - count, y - count, slow, fast)

    places = [(y, v) for y in range(-8, 9) for v in range(-8, 9)]
    return np.array([np.log(joint(0, *at) / joint(1, *at)) for at in places])


def given(new, old, slow, fast):
    """Return the law of the second noise given the first, by Bayes: Lemma RF1."""

    def law(rate, noise):
        return (1 - np.exp(-rate)) / (1 + np.exp(-rate)) * np.exp(-rate * abs(noise))

    q, t = np.exp(-slow), np.exp(-fast)
    atom = t / q * ((1 - q) / (1 - t)) ** 2
    rest = atom * (new == old) + (1 - atom) * law(slow, old - new)
    return law(fast, new) * rest / law(slow, old)


def test_both_releases_together_cost_the_second_level():
    assert np.abs(joint_log_ratios(given)).max() == pytest.approx(float(RATES[1]))

    # Planted: a fresh second draw, and one on counts that changed meanwhile.
    def fresh(new, _old, _slow, fast):
        return (1 - np.exp(-fast)) / (1 + np.exp(-fast)) * np.exp(-fast * abs(new))

    def changed(new, old, slow, fast):
        return given(new, old + (new % 2), slow, fast)

    assert np.abs(joint_log_ratios(fresh)).max() == pytest.approx(float(sum(RATES)))
    assert np.abs(joint_log_ratios(changed)).max() > float(RATES[1]) + 0.1


def test_the_rates_of_a_chain_never_fall():
    release = rough(1).release(COUNTS, rng=1)
    finer = Refiner(release, epsilon=2).release(COUNTS, rng=2)
    before, after = (one.measurements[0].scales for one in (release, finer))
    lowered = refinement.lowered_scales(before, after)
    assert np.array_equal(lowered.variances, after.variances)
    measured = after.measured
    assert (after.variances < before.variances)[measured].all()
    assert np.array_equal(measured, before.measured)


def test_the_price_of_a_finer_release_is_what_is_charged(ledger):
    terms = {"epsilon": "0.4", "version": "v1"}
    price = ledger.price_of_refinement("first", **terms)
    before = ledger.spent
    ledger.refine("first", COUNTS, **terms)
    assert ledger.spent - before == price == Fraction("0.3")
    with pytest.raises(LedgerError, match="the very counts"):
        ledger.price_of_refinement("first", epsilon=1, version="v2")


def test_a_later_attempt_on_other_counts_is_not_made_finer(ledger, monkeypatch):
    """Planted: the log knows the content that the first attempt was about, alone."""

    def broken(*_, **__):
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "_keep", broken)
        with pytest.raises(OSError, match="no room"):
            ledger.release(rough(), COUNTS, "second", version="v1")
    ledger.release(rough(), COUNTS + 1, "second", version="v2")
    assert ledger.entry("second").version == "v1"
    for version in ("v1", "v2"):
        expected = ledger.replay("second").details["version"] == version
        if expected:
            ledger.refine("second", COUNTS + 1, epsilon=1, version=version)
        else:
            with pytest.raises(LedgerError, match="the very counts"):
                ledger.refine("second", COUNTS, epsilon=1, version=version)
    assert ledger.spent == Fraction("1.1")
    together = [(rough(), COUNTS, "third", None, None, False, "v3")]
    (release,) = ledger.release_together(together)
    assert release.details["version"] == ledger.entry("third").version == "v3"
