"""Certificates of selections and groups: what they hold, what they refuse."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import (
    InputError,
    IntervalError,
    NoiseOnlyWarning,
    SeededWarning,
)
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.release.query_grid import JOINT_BITS, whole_rows
from tests.generated import example_count

AGES = bf.Domain.from_edges(range(0, 81, 5), name="age")
SEXES = bf.Domain.from_levels(["F", "M"], name="sex")
PEOPLE = bf.Domain.product(AGES, SEXES)
CELLS = bf.workloads.Identity(PEOPLE)
POLICY = bf.policies.AddRemove(PEOPLE)


def records(seed=0):
    """Ages and sexes: a dense corner inside of wide buckets, and women without old."""
    rng = np.random.default_rng(seed)
    ages = np.concatenate([rng.uniform(0, 80, 400), rng.uniform(20, 23, 300)])
    sexes = np.where(rng.random(700) < 0.4, "F", "M")
    sexes[ages > 60] = "M"
    return ages, sexes


def counted(ages, sexes):
    table = np.zeros(PEOPLE.shape, dtype=np.int64)
    np.add.at(table, ((ages // 5).astype(int), (sexes == "M") * 1), 1)
    return table


AGE, SEX = records()
COUNTS = counted(AGE, SEX)


@functools.cache
def shared_release():
    """Return the release that every test asks, drawn when the first one needs it."""
    return bf.Dawa(POLICY, CELLS, epsilon="0.1").release(COUNTS, rng=4)


def certified(ask, seed=7, epsilon=2, **options):
    """Return the answers of the release once they are certified, and the claim."""
    certifier = Certifier(
        shared_release(), ask(shared_release()), epsilon=epsilon, **options
    )
    found = certifier.release(COUNTS, rng=seed)
    return ask(shared_release().certified(found)), found


def true_parts(measure):
    """Return what is true of each sex."""
    return [measure(AGE[sex == SEX]) for sex in "FM"]


MEASURES = {
    "count": (lambda groups: groups.count(), len),
    "sum": (lambda groups: groups.sum("age"), np.sum),
    "mean": (lambda groups: groups.mean("age"), np.mean),
    "variance": (lambda groups: groups.variance("age"), np.var),
    "std": (lambda groups: groups.std("age"), np.std),
    "median": (lambda groups: groups.quantile("age"), np.median),
    "share": (lambda groups: groups.relative_count(), lambda one: len(one) / 700),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
def test_certified_groups_hold_what_is_true_of_the_records(name):
    ask, measure = MEASURES[name]
    assert ask(shared_release().group_by("sex")).interval_kind() == "noise"
    answers, found = certified(lambda release: ask(release.group_by("sex")))
    low, high = answers.intervals(of="truth").T
    true = np.array(true_parts(measure))
    assert ((low <= true) & (true <= high)).all()
    assert ((low <= answers.values_array) & (answers.values_array <= high)).all()
    assert (answers.interval_kind(), found.kind) == ("truth", "quantile")
    assert {"low", "high"} <= set(answers.to_table().columns)
    # What is certified, and then what values beyond the cells count as.
    clamped = f" {answers.clamped}" if answers.clamped else ""
    assert answers.interval_sentence("truth") == f"{found}{clamped}"
    assert str(found).startswith("All of these 2 ")


@pytest.mark.long
def test_claims_about_groups_are_false_as_rarely_as_they_say():
    def ask(release):
        return release.group_by("age").mean("age")

    cells = (AGE // 5).astype(int)
    true = np.array([AGE[cells == one].mean() for one in range(16)])
    certifier = Certifier(
        shared_release(), ask(shared_release()), epsilon=2, confidence=0.8
    )
    trials, wrong = 300, 0
    for seed in range(trials):
        kept = shared_release().certified(certifier.release(COUNTS, rng=seed))
        low, high = ask(kept).intervals(0.8, of="truth").T
        wrong += not ((low <= true) & (true <= high)).all()
    assert wrong / trials <= 0.2 + 3 * np.sqrt(0.16 / trials)


def test_selections_and_cut_cells_are_certified_alone():
    def ask(release):
        return release.where(sex="F", age=slice(18, 42)).mean("age")

    with pytest.raises(IntervalError, match="certificate of these answers"):
        ask(shared_release()).interval(of="truth")
    answer, found = certified(ask)
    low, high = answer.interval(of="truth")
    inside = AGE[(SEX == "F") & (AGE >= 18) & (AGE < 42)]
    assert low <= inside.mean() <= high
    assert answer.holds_truth
    assert answer.interval() == (low, high)
    assert str(found).startswith("All of these 1 intervals hold the true answers.")
    assert shared_release().certified(found).where(sex="M").count().holds_truth is False


def test_a_fraction_of_many_counts_is_no_promise_of_each():
    def ask(release):
        return release.group_by("age", "sex").count()

    answers, found = certified(ask)
    assert answers.interval_kind() == "certified"
    assert {"certified_low", "certified_high"} <= set(answers.to_table().columns)
    assert str(found).startswith("At least 95 % of these 32 answers lie within")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseOnlyWarning)
        assert answers.intervals().shape == (32, 2)
    # What holds with 95 % holds with less.
    np.testing.assert_array_equal(answers.intervals(0.9), answers.intervals())
    with pytest.raises(IntervalError):
        answers.intervals(0.99, of="truth")
    with pytest.raises(IntervalError):
        answers.intervals(of="truth", together=True)
    assert answers.interval_sentence("noise").startswith("Noise only")


def test_a_questions_counts_are_certified_without_asking_for_them():
    groups, found = certified(lambda release: release.group_by("sex"))
    assert groups.count().interval_kind() == "truth"
    assert not found.details
    with pytest.raises(InputError, match="certified together"):
        Certifier(
            shared_release(), shared_release().group_by("sex").count()["F"], epsilon=1
        )


def test_every_rectangle_knows_counts_medians_and_shares_of_boxes():
    found = Certifier(shared_release(), CELLS, epsilon=2, kind="all").release(
        COUNTS, rng=3
    )
    kept = shared_release().certified(found)
    groups = kept.group_by("sex")
    for name in ("count", "median", "share"):
        ask, measure = MEASURES[name]
        low, high = ask(groups).intervals(of="truth").T
        true = np.array(true_parts(measure))
        assert ((low <= true) & (true <= high)).all()
    assert groups.mean("age").interval_kind() == "noise"
    assert groups.count().interval_kind(0.99) == "noise"


def test_a_certificate_of_all_totals_serves_the_cdf_and_its_quantiles():
    policy, asked = bf.policies.AddRemove(AGES), bf.workloads.Prefixes(AGES)
    counts = COUNTS.sum(axis=1)
    wide = bf.mechanisms.StructureFirst(policy, asked, epsilon=1, buckets=3)
    release = wide.release(counts, rng=1)
    with pytest.raises(IntervalError):
        release.quantile_intervals(0.5, of="truth")
    everything = bf.workloads.AllRanges(AGES)
    found = Certifier(release, everything, epsilon=2).release(counts, rng=3)
    kept = release.certified(found)
    low, high = kept.quantile_intervals(0.5, of="truth")
    assert low <= np.median(AGE) <= high
    low, high = kept.cdf_intervals(of="truth").T
    true = np.cumsum(counts) / counts.sum()
    assert ((low <= true) & (true <= high)).all()
    with pytest.raises(IntervalError):
        kept.cdf_intervals(0.99, of="truth")


def test_certified_groups_stay_in_the_file_and_are_charged_once(tmp_path):
    ledger = bf.Ledger(None, epsilon=3, policy=POLICY)
    release = ledger.release(bf.Dawa(POLICY, CELLS, epsilon="0.1"), COUNTS, rng=4)
    asked = release.group_by("sex").mean("age")
    bought = [
        ledger.certify(release, COUNTS, asked, "means", 7, epsilon=1) for _ in range(2)
    ]
    assert (float(ledger.spent), str(bought[0])) == (1.1, str(bought[1]))
    with pytest.warns(SeededWarning):
        release.certified(bought[0]).save(tmp_path / "people.release")
    kept = bf.Release.load(tmp_path / "people.release")
    low, high = kept.group_by("sex").mean("age").intervals(of="truth").T
    true = np.array(true_parts(np.mean))
    assert ((low <= true) & (true <= high)).all()


def test_answers_of_a_session_are_measured_and_need_no_certificate():
    ledger = bf.Ledger(None, epsilon=3, policy=POLICY)
    session = bf.Session(ledger, COUNTS)
    answers = session.partition("sex").noisy_count(epsilon=1, rng=1)
    with pytest.raises(IntervalError, match="measured themselves"):
        ledger.certify(shared_release(), COUNTS, answers, epsilon=1)
    assert ledger.spent == 1


@settings(deadline=None, max_examples=example_count(80))
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.sampled_from([-1, 1]))
def test_rows_in_whole_numbers_lie_beyond_the_rows_they_stand_for(values, sign):
    rows = np.array([values, np.zeros(len(values))])
    asked = bf.workloads.Linear(bf.Domain(len(values)), rows)
    whole, powers = whole_rows(asked, sign)
    found = whole.toarray()
    assert (found == np.rint(found)).all()
    assert np.abs(found).max() <= 2**JOINT_BITS
    assert (sign * (found - rows * powers[:, None]) >= 0.0).all()
    assert (np.abs(found - rows * powers[:, None]) <= 1.0).all()


def test_answers_without_intervals_of_their_own_have_certified_ones():
    policy = bf.policies.Full(PEOPLE)
    made = bf.mechanisms.Mwem(policy, CELLS, epsilon=1)
    release = made.release(COUNTS, rng=1)
    asked = release.group_by("sex").mean("age")
    with pytest.raises(IntervalError, match="not linear"):
        asked.intervals(of="noise")
    found = Certifier(release, asked, epsilon=20).release(COUNTS, rng=2)
    sure = release.certified(found).group_by("sex").mean("age")
    low, high = sure.intervals(of="truth").T
    true = np.array(true_parts(np.mean))
    assert ((low <= true) & (true <= high)).all()
