"""Ranges of 2^60 cells: accuracy, intervals of the truth, files, ledgers, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    DomainError,
    InputError,
    NoEstimateError,
    PolicyError,
    ReleaseFileError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.mechanisms.wide_questions import check_unfitted, check_wide

TIME = bf.WideDomain(2**60, names="time")
P = bf.policies


def clustered(records=20_000, seed=1):
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2**59, 20)
    far = np.abs(rng.laplace(scale=2.0 ** rng.integers(20, 45, records)))
    places = np.sort(centres[rng.integers(0, 20, records)] + far.astype(np.int64))
    return places, bf.SparseHistogram.from_records(TIME, {"time": places})


PLACES, DATA = clustered()
RNG = np.random.default_rng(2)
LENGTHS = (2.0 ** RNG.uniform(20, 55, 200)).astype(np.int64)
STARTS = np.maximum(PLACES[RNG.integers(0, PLACES.size, 200)] - LENGTHS // 2, 0)
ASKED = bf.workloads.Ranges(TIME, STARTS, np.minimum(STARTS + LENGTHS, 2**60))
TRUE = np.searchsorted(PLACES, ASKED.ends) - np.searchsorted(PLACES, ASKED.starts)


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
@pytest.mark.parametrize(
    "policy",
    [
        P.AddRemove(TIME),
        P.Full(TIME),
        P.Line(TIME),
        P.Threshold(TIME, theta=2**30),
        P.AddRemove(TIME).per_person(2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_ranges_hold_the_truth_under_every_policy(policy, budget):
    data = DATA
    if policy.person_rule is not None:
        columns = {"time": PLACES, "who": np.arange(PLACES.size) // 2}
        data = bf.SparseHistogram.from_records(TIME, columns, person="who", at_most=2)
    mechanism = bf.Dawa(policy, ASKED, **budget)
    release = mechanism.release(data, rng=3)
    answers = release.answer(ASKED)
    # Far better than nothing, which is off by all records of a range.
    assert np.abs(answers - TRUE).mean() < 0.1 * TRUE.mean()
    low, high = release.intervals(ASKED, 0.95, of="truth").T
    assert ((low <= answers) & (answers <= high)).all()
    missed = ((low > TRUE) | (high < TRUE)).mean()
    assert missed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    noise = release.intervals(ASKED, 0.95, of="noise")
    assert ((noise[:, 0] <= answers) & (answers <= noise[:, 1])).all()
    assert release.holds_truth(ASKED).all()


def test_buckets_are_a_table_with_intervals_of_the_truth():
    release = bf.Dawa(P.AddRemove(TIME), ASKED, epsilon=1).release(DATA, rng=1)
    table = release.buckets()
    assert list(table) == ["time_from", "time_to", "count", "low", "high"]
    assert len(table) == release.details["buckets"]
    places = np.searchsorted(PLACES, release.edges)
    held = (table["low"] <= np.diff(places)) & (np.diff(places) <= table["high"])
    assert held.mean() > 0.93
    assert list(release.to_table(None)) == ["time_from", "time_to", "count"]
    whole = bf.workloads.Ranges(TIME, [0], [2**60])
    assert release.answer(whole)[0] == pytest.approx(table["count"].sum())


def test_the_total_is_exact_where_it_is_public():
    release = bf.Dawa(P.Full(TIME), ASKED, epsilon="0.1").release(DATA, rng=1)
    whole = bf.workloads.Ranges(TIME, [0], [2**60])
    assert release.answer(whole)[0] == pytest.approx(PLACES.size, abs=1e-6)


def test_answers_agree_with_a_dense_release_over_the_same_buckets():
    line = bf.Domain(4096)
    wide = bf.WideDomain(4096)
    counts = np.zeros(4096, dtype=np.int64)
    counts[[5, 900, 901]] = [400, 70, 800]
    records = np.repeat(np.arange(4096), counts)
    data = bf.SparseHistogram.from_records(wide, [records])
    starts, ends = [0, 5, 890], [4096, 6, 3000]
    over = bf.workloads.Ranges
    dense = bf.Dawa(
        P.AddRemove(line),
        over(line, starts, ends),
        epsilon=1,
        partition=bf.partitions.Descent(),
        fit=None,
    ).release(counts, rng=5)
    sparse = bf.Dawa(P.AddRemove(wide), over(wide, starts, ends), epsilon=1)
    found = sparse.release(data, rng=5)
    np.testing.assert_array_equal(found.edges, dense.details["edges"])
    np.testing.assert_allclose(
        found.answer(over(wide, starts, ends)), dense.answer(over(line, starts, ends))
    )
    np.testing.assert_allclose(
        found.standard_errors(over(wide, starts, ends)),
        dense.standard_errors(over(line, starts, ends)),
    )


@pytest.mark.parametrize("theta", [1, 2, 7, 40])
def test_wide_thresholds_have_the_quotients_of_dense_ones(theta, generator):
    for _ in range(20):
        inner = generator.integers(1, 60, generator.integers(1, 9))
        buckets = Buckets(np.unique([0, 60, *inner]))
        dense = P.Threshold(bf.Domain(60), theta).project(buckets)
        wide = P.Threshold(bf.WideDomain(60), theta).project(buckets)
        assert wide == dense


def test_a_ledger_charges_and_keeps_it(tmp_path):
    policy = P.AddRemove(TIME)
    mechanism = bf.Dawa(policy, ASKED, epsilon="0.5")
    with bf.Ledger(tmp_path / "book", epsilon=1, policy=policy) as ledger:
        first = ledger.release(mechanism, DATA, request="log")
        again = ledger.release(mechanism, DATA, request="log")
        assert float(ledger.spent) == 0.5
    assert first.to_bytes() == again.to_bytes()
    first.save(tmp_path / "log.blowfish")
    loaded = bf.RangesRelease.load(tmp_path / "log.blowfish")
    np.testing.assert_array_equal(loaded.answer(ASKED), first.answer(ASKED))
    np.testing.assert_array_equal(loaded.intervals(ASKED), first.intervals(ASKED))
    assert repr(loaded) == repr(first)
    with pytest.raises(ReleaseFileError, match=r"RangesRelease\.load"):
        bf.HistogramRelease.load(tmp_path / "log.blowfish")


def test_a_range_is_selected_by_a_slice():
    release = bf.Dawa(P.AddRemove(TIME), ASKED, epsilon=1).release(DATA, rng=1)
    half = release.where(time=slice(None, 2**58))
    asked = bf.workloads.Ranges(TIME, [0], [2**58])
    assert half.count() == release.answer(asked)[0]
    assert half.interval() == tuple(release.intervals(asked)[0])
    assert "RangeSelection([0, " in repr(half)
    for wrong in ({"time": 2**61}, {"time": slice(9, 5)}, {"time": slice(0, 9, 2)}):
        with pytest.raises(InputError):
            release.where(wrong)
    with pytest.raises(DomainError, match="no attribute"):
        release.where(place=slice(0, 5))
    with pytest.raises(NoEstimateError, match="no estimate of every cell"):
        release.sample()


def test_nothing_before_the_release_depends_on_the_data():
    mechanism = bf.Dawa(P.AddRemove(TIME), ASKED, epsilon=1)
    before = mechanism.memory_needed()
    mechanism.release(DATA, rng=1)
    assert mechanism.memory_needed() == before
    small = bf.partitions.Descent(most_buckets=100)
    assert (
        bf.Dawa(P.AddRemove(TIME), ASKED, epsilon=1, partition=small).memory_needed()
        < before / 1000
    )


@pytest.mark.parametrize("epsilon", ["0.01", 20])
def test_empty_domains_and_single_cells_are_released(epsilon):
    ends = bf.workloads.Ranges(TIME, [2**60 - 1, 0], [2**60, 2**60])
    for places in ([], [2**60 - 1] * 500):
        data = bf.SparseHistogram.from_records(
            TIME, {"time": np.array(places, dtype=np.int64)}
        )
        release = bf.Dawa(P.AddRemove(TIME), ends, epsilon=epsilon).release(data, rng=1)
        low, high = release.intervals(ends)[1]
        assert low <= len(places) <= high


def test_what_needs_all_cells_is_refused():
    policy = P.AddRemove(TIME)
    cases = [
        (
            {"partition": bf.partitions.DyadicTree()},
            InputError,
            "from its root",
        ),
        ({"partition": None}, InputError, "from its root"),
        ({"fit": "non_negative"}, InputError, "no fit changes"),
        ({"fit": "shrink"}, InputError, "no fit changes"),
    ]
    for options, error, reason in cases:
        with pytest.raises(error, match=reason):
            bf.Dawa(policy, ASKED, epsilon=1, **options)
    with pytest.raises(WorkloadError, match="ranges are asked"):
        bf.Dawa(policy, bf.workloads.Identity(TIME), epsilon=1)
    pair = bf.WideDomain((2**20, 2**20))
    with pytest.raises(WorkloadError):
        bf.workloads.Ranges(pair, [0], [1])
    cube = bf.WideDomain((2**20, 2**20, 2**20))
    with pytest.raises(DomainError, match="one attribute"):
        check_wide(P.AddRemove(cube), ASKED, "best")
    with pytest.raises(PolicyError, match="in cells of one attribute"):
        P.Threshold(pair, theta=3)
    with pytest.raises(SizeError, match="not listed one by one"):
        _ = Buckets.single_cells(2**40).edges
    assert check_unfitted(None) is None


def test_other_data_are_refused():
    mechanism = bf.Dawa(P.AddRemove(TIME), ASKED, epsilon=1)
    with pytest.raises(InputError, match="those of a SparseHistogram"):
        mechanism.release([1, 2])
    other = bf.SparseHistogram.from_records(bf.WideDomain(2**60, names="x"), {"x": [1]})
    with pytest.raises(DomainError, match="build both over one domain"):
        mechanism.release(other)
