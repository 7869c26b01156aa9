"""P-values of answers about the population against stated numbers: Lemma PN17."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError, IntervalError
from blowfish_fast.release.group_answers import GroupedAnswers
from blowfish_fast.release.sampling.p_values import LEAST_P, p_values_against

ANSWERS = bf.Domain.from_levels(["yes", "no"], name="answer")


def drawn(counts, epsilon="1", seed=1, policy=bf.policies.Full):
    laplace = bf.Laplace(policy(ANSWERS), epsilon=epsilon)
    return laplace.release(counts, rng=seed).sampled(bf.sampling.Simple())


def normal_bounds(estimates):
    def bounds(confidence):
        half = stats.norm.ppf(0.5 + confidence / 2)
        return np.stack([estimates - half, estimates + half], axis=-1)

    return bounds


def test_of_normal_intervals_it_is_the_usual_one_rounded_up():
    estimates = np.array([-3.0, 0.0, 0.05, 1.0, 2.5, 5.0, 30.0])
    found = p_values_against(normal_bounds(estimates), "0")
    exact = 2 * stats.norm.sf(np.abs(estimates))
    inside = (exact < 0.9) & (exact > 1e-9)
    assert (found[inside] >= exact[inside]).all()
    assert (found[inside] <= 1.0101 * exact[inside]).all()
    assert found[1] == found[2] == 1.0
    assert found[-1] == LEAST_P


def test_without_noise_it_is_that_of_clopper_and_pearson():
    share = drawn([12, 88], epsilon="50").where(answer="yes").relative_count()
    for against in (0.05, 0.2):
        law = stats.binom(100, against)
        exact = 2 * min(law.sf(11), law.cdf(12))
        # The ladder of the noise adds a thousandth of the miss.
        assert exact <= share.p_value(against) <= 1.02 * exact
    low, _ = share.interval(of="population")
    assert share.p_value(low) == pytest.approx(0.05, rel=0.02)


def test_nobody_seen_is_no_proof_that_there_is_nobody():
    # By the variance at the estimate, which is 0, any other share would be excluded.
    empty = drawn([0, 100], epsilon="50")
    yes, everybody = empty.where(answer="yes"), empty.where()
    for answer in (yes.relative_count(), yes.ratio(everybody)):
        assert answer.p_value(0.01) > 0.5
        assert 0.001 < answer.p_value(0.05) < 0.05


def test_noise_raises_it_and_groups_have_one_each():
    quiet, noisy = (drawn([300, 700], epsilon=each) for each in ("5", "0.05"))
    p = [
        one.where(answer="yes").relative_count().p_value(0.25) for one in (quiet, noisy)
    ]
    assert p[0] < 0.01 < p[1]
    groups = quiet.group_by("answer").relative_count()
    assert groups.p_values(0.25)[0] == groups["yes"].p_value(0.25) == p[0]
    all_at_once = groups.p_values(0.25, together=True)
    assert all_at_once.tolist() == (2 * groups.p_values(0.25)).tolist()
    assert groups.p_values(0.7, together=True).max() == 1.0
    assert groups["yes"].p_value(0.25, method="normal") == pytest.approx(p[0], rel=0.5)


def share_rejected(trials):
    """Return how often the true share has a p-value of at most .05."""
    rng = np.random.default_rng(3)
    hits = 0
    for trial in range(trials):
        yes = rng.binomial(200, 0.1)
        release = drawn([yes, 200 - yes], "2", trial, bf.policies.AddRemove)
        hits += release.where(answer="yes").relative_count().p_value(0.1) <= 0.05
    return hits / trials


def test_true_numbers_are_seldom_doubted_and_a_planted_bug_doubts_them(monkeypatch):
    trials = 16
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)
    assert share_rejected(trials) <= allowed
    # Planted: the interval of the records, which leaves the sampling out.
    right = GroupedAnswers.intervals

    def of_the_records(self, confidence, *, of, method):
        return right(self, confidence, of="truth")

    monkeypatch.setattr(GroupedAnswers, "intervals", of_the_records)
    assert share_rejected(trials) > allowed


def test_wrong_numbers_and_releases_without_a_design_are_refused():
    share = drawn([300, 700]).where(answer="yes").relative_count()
    for wrong in (float("nan"), None, "many"):
        with pytest.raises(EpsilonError, match="against"):
            share.p_value(wrong)
    laplace = bf.Laplace(bf.policies.Full(ANSWERS), epsilon=1)
    plain = laplace.release([300, 700], rng=1).where(answer="yes").relative_count()
    with pytest.raises(IntervalError, match="drawn"):
        plain.p_value(0.3)
