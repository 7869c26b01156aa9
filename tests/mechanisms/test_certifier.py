"""Certificates: how often they are false, which kind is chosen, what is refused."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    BudgetError,
    EpsilonError,
    InputError,
    IntervalError,
    NoiseOnlyWarning,
    PolicyError,
    WorkloadError,
)
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.mechanisms.certifier import Certifier, one_sided_margin
from blowfish_fast.release.certificates import Certificate, spread_with

LINE = bf.Domain(64)
POLICY = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
RANGES = bf.workloads.Ranges(LINE, np.arange(0, 40), np.arange(3, 43))
SPIKE = np.zeros(64, dtype=np.int64)
SPIKE[20] = 400
"""One dense cell: in any bucket around it the others are nearly empty."""


def bucketed(counts=SPIKE, rng=1, policy=POLICY, asked=RANGES, epsilon=1):
    """A release that takes eight buckets of eight cells as even."""
    wide = bf.mechanisms.StructureFirst(policy, asked, epsilon=epsilon, buckets=2)
    return wide.release(counts, rng=rng)


def false_share(kind, trials, asked=RANGES, policy=POLICY, fraction=0.9):
    """Return how often a claim about made-up releases is false."""
    wrong = 0
    for seed in range(trials):
        release = bucketed(rng=seed, policy=policy, asked=asked)
        certifier = Certifier(
            release, asked, epsilon=0.5, kind=kind, confidence=0.9, fraction=fraction
        )
        found = certifier.release(SPIKE, rng=10_000 + seed)
        kept = release.certified(found)
        try:
            low, high = kept.intervals(asked, 0.9, of="truth").T
        except IntervalError:
            continue
        true = np.asarray(asked.answer(SPIKE))
        held = (low - 1e-9 <= true) & (true <= high + 1e-9)
        needed = asked.queries if kind == "all" else np.ceil(fraction * asked.queries)
        wrong += held.sum() < needed
    return wrong / trials


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "asked"),
    [("quantile", RANGES), ("curve", CELLS), ("all", RANGES), ("quantile", CELLS)],
)
def test_claims_are_false_as_rarely_as_they_say(kind, asked):
    trials = 150
    allowed = 0.1 + 3 * np.sqrt(0.09 / trials)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseOnlyWarning)
        assert false_share(kind, trials, asked) <= allowed


@pytest.mark.long
def test_shapes_hold_every_single_range_as_often_as_they_say():
    trials, misses = 150, np.zeros(RANGES.queries)
    true = np.asarray(RANGES.answer(SPIKE))
    for seed in range(trials):
        release = bucketed(rng=seed)
        certifier = Certifier(release, RANGES, epsilon=0.5, kind="shape")
        kept = release.certified(certifier.release(SPIKE, rng=10_000 + seed))
        assert kept.interval_kind(RANGES) == "truth"
        low, high = kept.intervals(RANGES, 0.9, of="truth").T
        misses += (true < low) | (true > high)
    assert (misses / trials).max() <= 0.1 + 4 * np.sqrt(0.09 / trials)


def test_a_spike_breaks_intervals_of_the_noise_and_not_those_of_a_certificate():
    release = bucketed()
    true = np.asarray(CELLS.answer(SPIKE))
    low, high = release.intervals(CELLS, of="noise").T
    assert ((true >= low) & (true <= high)).mean() < 0.9
    found = Certifier(release, CELLS, epsilon=2).release(SPIKE, rng=5)
    low, high = release.certified(found).intervals(CELLS, of="truth").T
    assert ((true >= low) & (true <= high)).mean() >= 0.95


def test_the_kind_of_least_predicted_width_is_taken():
    wide = bf.Domain(4096)
    counts = np.zeros(4096, dtype=int)
    policy, cells = bf.policies.AddRemove(wide), bf.workloads.Identity(wide)
    release = bf.Dawa(policy, cells, epsilon=1).release(counts, rng=1)
    certifier = Certifier(release, cells, epsilon="0.1")
    assert certifier.kind == "curve"
    others = Certifier(release, cells, epsilon="0.1", kind="quantile")
    assert certifier.predicted_width < others.predicted_width
    asked = bf.workloads.AllRanges(LINE)
    assert Certifier(bucketed(), asked, epsilon=1).kind == "all"


def test_certificates_stay_with_the_release_in_its_file(tmp_path):
    release = bucketed()
    for kind in ("quantile", "curve", "all", "shape"):
        asked = CELLS if kind == "curve" else RANGES
        certifier = Certifier(release, asked, epsilon=5, kind=kind, fraction=0.6)
        found = certifier.release(SPIKE, rng=3)
        release = release.certified(found)
        again = Certificate.from_bytes(found.to_bytes())
        assert (str(again), again.extra) == (str(found), found.extra)
    with pytest.warns(bf.errors.SeededWarning):
        release.save(tmp_path / "r.release")
    loaded = bf.Release.load(tmp_path / "r.release")
    assert [one.kind for one in loaded.certificates] == [
        *("quantile", "curve", "all", "shape")
    ]
    for asked in (CELLS, RANGES, bf.workloads.Prefixes(LINE)):
        np.testing.assert_array_equal(
            loaded.intervals(asked, of="truth"), release.intervals(asked, of="truth")
        )


def test_a_certificate_serves_its_queries_and_its_confidence_alone():
    release = bucketed()
    found = Certifier(release, RANGES, epsilon=5).release(SPIKE, rng=3)
    kept = release.certified(found)
    assert kept.interval_kind(RANGES) == "certified"
    assert kept.interval_sentence("certified", workload=RANGES) == str(found)
    kept.intervals(RANGES, of="truth")
    other = bf.workloads.Ranges(LINE, np.arange(1, 41), np.arange(3, 43))
    for asked, options in (
        (other, {}),
        (RANGES, {"confidence": 0.99}),
        (RANGES, {"together": True}),
    ):
        with pytest.raises(IntervalError, match="hold the noise"):
            kept.intervals(asked, of="truth", **options)
    with pytest.raises(InputError, match="another release"):
        bucketed(rng=2).certified(found)
    with pytest.raises(InputError, match=r"ledger\.certify"):
        release.certified("certificate")


def test_tables_name_what_a_fraction_of_intervals_holds():
    release = bucketed()
    found = Certifier(release, CELLS, epsilon=5).release(SPIKE, rng=3)
    assert {"certified_low", "certified_high"} <= set(
        release.certified(found).to_table()
    )


def test_a_mechanism_without_intervals_can_be_certified():
    release = bf.mechanisms.Mwem(POLICY, RANGES, epsilon=1).release(SPIKE, rng=1)
    found = Certifier(release, RANGES, epsilon=1).release(SPIKE, rng=2)
    assert not found.half.any()
    assert release.certified(found).intervals(RANGES, of="truth").shape == (40, 2)


def test_nothing_is_claimed_where_the_highest_ramp_fails():
    release = bucketed()
    certifier = Certifier(release, CELLS, epsilon="0.001", kind="curve", fraction=0.99)
    found = certifier.release(SPIKE, rng=4)
    assert found.extra == np.inf
    assert "Nothing can be claimed" in str(found)
    with pytest.raises(IntervalError, match="hold the noise"):
        release.certified(found).intervals(CELLS, of="truth")


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("width", [0.4, 3.0, 200.0])
def test_margins_are_least_for_laplace_and_hold_for_gaussian_noise(power, width):
    unit = round(width * 2**20 if power == 1 else 2 * width**2 * 2**20)
    scales = Scales(np.array([2**20]), unit, np.zeros(1, bool), power)
    margin = one_sided_margin(scales, 0.05)
    steps = np.arange(-int(40 * width) - 40, int(40 * width) + 41)
    law = np.exp(-np.abs(steps / width) if power == 1 else -((steps / width) ** 2) / 2)
    law /= law.sum()

    def tail(t):
        return law[steps < -t].sum()

    assert tail(margin) <= 0.05
    if power == 1 and margin:
        assert tail(margin - 1) > 0.05


def test_ranks_are_exact_where_floats_are_not():
    certifier = Certifier(bucketed(), RANGES, epsilon=1, fraction="0.7")
    assert certifier.fraction == Fraction(7, 10)
    assert certifier._rank(10) == 7


def test_what_cannot_be_certified_is_refused():
    release = bucketed()
    halves = bf.workloads.Linear(LINE, np.full((1, 64), 0.5))
    with pytest.raises(WorkloadError, match="whole numbers"):
        Certifier(release, halves, epsilon=1)
    with pytest.raises(InputError, match="fraction must lie strictly"):
        Certifier(release, RANGES, epsilon=1, fraction=1)
    with pytest.raises(InputError, match="kind"):
        Certifier(release, RANGES, epsilon=1, kind="mean")
    with pytest.raises(IntervalError, match="drawn from, and it says None"):
        Certifier(release, RANGES, epsilon=1, kind="shape", snapshot="March")
    with pytest.raises(IntervalError, match="too many"):
        Certifier(release, RANGES, epsilon=1, kind="curve")
    with pytest.raises(InputError, match="about a release"):
        Certifier("release", RANGES, epsilon=1)


def test_a_ledger_charges_keeps_and_replays_a_certificate(tmp_path):
    mechanism = bf.mechanisms.StructureFirst(POLICY, RANGES, epsilon=1, buckets=2)
    with bf.Ledger(tmp_path / "ledger", epsilon=2, policy=POLICY) as ledger:
        release = ledger.release(mechanism, SPIKE, request="march")
        asked = {"epsilon": "0.25", "request": "march, certified"}
        found = ledger.certify(release, SPIKE, RANGES, **asked)
        assert ledger.spent == Fraction(5, 4)
        again = ledger.certify(release, SPIKE, RANGES, **asked)
        assert (again.extra, ledger.spent) == (found.extra, Fraction(5, 4))
        assert release.certified(again).intervals(RANGES, of="truth").shape == (40, 2)
        with pytest.raises(BudgetError, match=r"0\.75"):
            ledger.certify(release, SPIKE, RANGES, epsilon=1)


def test_a_ledger_never_compares_data_with_those_of_the_release():
    """Hole 4 of issue 32, a comparison before the charge: one record more was told."""
    ledger = bf.Ledger(None, epsilon=99, policy=POLICY)
    mechanism = bf.mechanisms.StructureFirst(POLICY, RANGES, epsilon=1, buckets=2)
    release = ledger.release(mechanism, SPIKE, rng=1)
    for kind in (None, "quantile", "all", "shape"):
        found = [
            ledger.certify(release, data, RANGES, epsilon=1, rng=1, kind=kind)
            for data in (SPIKE, SPIKE + 1)
        ]
        assert found[0].kind == found[1].kind
        assert all("that of the data handed over, as of 2" in str(one) for one in found)
    assert ledger.spent == 9
    other = bf.Ledger(None, epsilon=9, policy=bf.policies.Full(LINE))
    with pytest.raises(PolicyError):
        other.certify(release, SPIKE, RANGES, epsilon=1, rng=1)


def test_versions_of_data_are_public_labels_and_are_compared():
    ledger = bf.Ledger(None, epsilon=99, policy=POLICY)
    mechanism = bf.mechanisms.StructureFirst(POLICY, RANGES, epsilon=1, buckets=2)
    release = ledger.release(mechanism, SPIKE, rng=1, snapshot="March")
    terms = {"epsilon": 1, "rng": 1}
    stated = ledger.certify(
        release, SPIKE, RANGES, kind="shape", snapshot="March", **terms
    )
    assert stated.per_query
    assert str(stated).count("data handed over, as of March.") == 1
    with pytest.raises(IntervalError, match=r"it says 'March'.*version 'April'"):
        ledger.certify(release, SPIKE, RANGES, kind="shape", snapshot="April", **terms)
    later = ledger.certify(release, SPIKE + 1, RANGES, snapshot="April", **terms)
    assert later.kind == "quantile"
    assert "as of April" in str(later)
    assert ledger.spent == 3
    # Of equal versions, and of these alone, the shape is among what is weighed.
    for label, weighed in (("March", True), ("April", False), (None, False)):
        kinds = Certifier(release, RANGES, epsilon=1, snapshot=label)._kinds()
        assert ("shape" in kinds) == weighed


@pytest.mark.parametrize("policy", [bf.policies.Full(LINE), bf.policies.Line(LINE)])
def test_moves_and_rho_are_certified_alike(policy):
    release = bf.Dawa(policy, RANGES, rho="0.5").release(SPIKE, rng=1)
    for kind in ("quantile", "all", "shape"):
        certifier = Certifier(release, RANGES, rho="0.5", kind=kind)
        kept = release.certified(certifier.release(SPIKE, rng=2))
        low, high = kept.intervals(RANGES, of="truth").T
        true = np.asarray(RANGES.answer(SPIKE))
        assert ((true >= low) & (true <= high)).mean() >= 0.95


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "1e-12"}])
def test_noise_beyond_what_is_drawn_is_refused_and_never_left_out(budget):
    large = 2**28 if "epsilon" in budget else 2**20
    asked = bf.workloads.Linear(LINE, np.full((1, 64), large))
    release = bf.Laplace(POLICY, CELLS, epsilon=1).release(SPIKE, rng=1)
    ledger = bf.Ledger(None, epsilon=9, policy=POLICY)
    if "rho" in budget:
        ledger = bf.Ledger(None, rho=9, policy=POLICY)
    for kind in ("quantile", "curve", None):
        with pytest.raises((EpsilonError, IntervalError)) as caught:
            ledger.certify(release, SPIKE, asked, kind=kind, **budget)
        if kind == "quantile":
            assert caught.value.code == "noise_on_errors_too_large"
    assert ledger.history() == []


@pytest.mark.parametrize("kind", ["quantile", "curve", "all", "shape"])
def test_no_number_of_records_is_refused(kind):
    """Hole 5 of issue 32, a refusal before the charge: coefficients set the border.

    A coefficient of 2^20 made 2^37 records the most that were taken (one of 2^47, in
    rho, 2^10 records), and neighbours on either side were told apart, free.
    """
    wide = bf.mechanisms.StructureFirst(POLICY, RANGES, epsilon=1, buckets=2)
    release, asked = wide.release(SPIKE, rng=1), RANGES
    if kind in ("quantile", "curve"):
        rows = np.zeros((200, 64))
        rows[0, :32] = 2.0**20
        asked = bf.workloads.Linear(LINE, rows)
    ledger = bf.Ledger(None, policy=POLICY, epsilon=9)
    for records in (2**37, 2**37 + 1, 2**57, 2**57 + 1, 2**62 - 2**11):
        counts = np.zeros(64, dtype=np.int64)
        counts[5] = records
        found = ledger.certify(release, counts, asked, rng=1, kind=kind, epsilon=1)
        assert found.kind == kind
    assert ledger.spent == 5


def test_an_overdraft_is_refused_whatever_the_number_of_records():
    release = bf.Laplace(POLICY, CELLS, epsilon=1).release(SPIKE, rng=1)
    asked = bf.workloads.Linear(LINE, np.full((1, 64), 2.0**47))
    ledger = bf.Ledger(None, rho=1, policy=POLICY)
    for records in (2**10, 2**10 + 1):
        counts = np.zeros(64, dtype=np.int64)
        counts[5] = records
        with pytest.raises(BudgetError):
            ledger.certify(release, counts, asked, rng=1, rho=10**9)


@pytest.mark.parametrize(
    ("own", "least"), [(0.0, 4.0), (1.0, 1.0), (9.0, 4.0)], ids=["none", "less", "more"]
)
def test_the_least_width_of_answers_and_shapes_is_that_of_either(own, least):
    one = np.ones(1)
    shapes = Scales(np.array([1]), 4, np.zeros(1, dtype=bool))
    assert shapes.widths.tolist() == [4.0]
    answers = Spread(one, one, one, one, one, least=own)
    assert spread_with(answers, np.ones(1, dtype=np.int64), shapes).least == least


def test_answers_and_shapes_have_the_noise_of_both():
    three = np.full(3, 5.0)
    shapes = Scales(np.array([1]), 4, np.zeros(1, dtype=bool))
    found = spread_with(Spread(*[three] * 5), np.array([0, 1, 4]), shapes)
    assert found.square.tolist() == [5.0, 21.0, 69.0]
    assert found.largest.tolist() == [5.0, 5.0, 8.0]
    assert found.steps.tolist() == [5.0, 6.0, 9.0]
    variance = float(shapes.variances[0])
    np.testing.assert_allclose(found.variance, [5.0, 5 + variance, 5 + 4 * variance])
    np.testing.assert_array_equal(found.width, [5.0, np.nan, np.nan])
