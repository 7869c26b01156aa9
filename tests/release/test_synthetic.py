"""Synthetic records: non-negative, with the right total, inside their cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.release.synthetic import (
    LEAST_PART,
    non_negative_shares,
    round_counts,
    sample_records,
)
from tests.generated import example_count

DOMAIN = bf.Domain.product(
    bf.Domain.from_edges([0, 10, 30], name="age"),
    bf.Domain.from_levels(["F", "M"], name="sex"),
    bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2024-02-03"], name="day"),
    bf.Domain(2, names=["number"]),
)
ESTIMATES = st.lists(st.floats(-100, 100), min_size=1, max_size=12).map(np.array)


@settings(deadline=None, max_examples=example_count(100))
@given(ESTIMATES, st.integers(0, 200))
def test_shares_are_the_nearest_ones(estimate, total):
    shares = non_negative_shares(estimate, total)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(), total, atol=1e-6)
    own = estimate.sum()
    part = max(LEAST_PART * np.abs(estimate).sum(), 1e-100)
    scaled = estimate * (total / own) if own > part else estimate
    # One constant is taken from every cell that stays; those it would make negative
    # are 0 (the optimality conditions of the projection).
    kept = shares > 1e-9 * (1 + np.abs(scaled).max())
    if kept.any():
        taken = (scaled - shares)[kept]
        size = 1e-9 * (1 + np.abs(scaled).max())
        np.testing.assert_allclose(taken, taken[0], atol=10 * size)
        assert (scaled[~kept] <= taken[0] + 10 * size).all()


@settings(deadline=None, max_examples=example_count(100))
@given(ESTIMATES, st.integers(0, 200), st.integers(0, 2**20))
@example(np.array([5e-324]), 200, 0)
@example(np.array([100.0, -100.0, 1e-13]), 200, 0)
def test_rounding_moves_no_share_by_a_record(estimate, total, seed):
    shares = non_negative_shares(estimate, total)
    counts = round_counts(shares, total, np.random.default_rng(seed))
    assert counts.sum() == total
    assert (np.abs(counts - shares) < 1 + 1e-6).all()


def test_rounding_has_no_bias():
    shares = np.array([0.3, 0.45, 1.25])
    rng = np.random.default_rng(1)
    drawn = np.mean([round_counts(shares, 2, rng) for _ in range(4000)], axis=0)
    assert (np.abs(drawn - shares) < 4 * 0.5 / np.sqrt(4000)).all()


def test_records_lie_in_their_cells_and_count_to_the_estimate(generator):
    estimate = generator.integers(0, 40, DOMAIN.shape).astype(float)
    records = sample_records(DOMAIN, estimate, rng=1)
    again = bf.Histogram.from_records(DOMAIN, records.columns)
    assert (again.counts == estimate).all()
    assert records["sex"].dtype == object
    assert records["number"].dtype.kind == "i"
    first_days = records["day"] < np.datetime64("2024-02-01")
    assert len(np.unique(records["day"][first_days])) == 31


def test_stray_cells_come_back_as_stray_values(generator):
    domain = DOMAIN.with_extra_cells(outside=True, missing=True)
    estimate = generator.integers(0, 5, domain.shape).astype(float)
    records = sample_records(domain, estimate, rng=1)
    again = bf.Histogram.from_records(domain, records.columns)
    assert (again.counts == estimate).all()


def test_a_release_draws_as_many_records_as_it_has(tmp_path):
    release = bf.Laplace(
        bf.policies.Full(DOMAIN), bf.workloads.Identity(DOMAIN), epsilon=0.5
    ).release(np.full(DOMAIN.shape, 4), rng=1)
    assert (release.estimate < 0).any()
    table = release.sample(rng=7)
    assert len(table) == 4 * DOMAIN.size
    assert table.to_dict() == release.sample(rng=7).to_dict()
    assert len(release.sample(n=5)) == 5
    assert len(release.sample(n=0)) == 0
    table.to_csv(tmp_path / "records.csv")
    assert (
        (tmp_path / "records.csv")
        .read_text()
        .startswith("age,sex,day,number,experiment\n")
    )
    with pytest.raises(InputError, match="at least 0"):
        release.sample(n=-1)
    with pytest.raises(SizeError, match=r"sample\(n="):
        release.sample(n=2**40)


def test_nothing_but_noise_below_zero_draws_nobody():
    line = bf.Domain(3)
    assert len(sample_records(line, np.array([-5.0, 1.0, 0.5]))) == 0
    assert len(sample_records(line, np.array([-5.0, 1.0, 0.5]), 3)) == 3


def test_few_records_of_many_cells_repeat_no_pattern_of_theirs():
    # Twenty equal groups of an outer attribute, and as many records: steps of equal
    # length along the running totals would meet the same inner cell in each of them.
    domain = bf.Domain((20, 50))
    estimate = np.tile(np.linspace(1, 3, 50), (20, 1))
    for records in (5, 20, 100):
        means = [
            sample_records(domain, estimate, records, rng=seed)["axis1"].mean()
            for seed in range(200)
        ]
        inner = np.arange(50)
        shares = estimate[0] / estimate[0].sum()
        middle = inner @ shares
        apart = np.sqrt((inner - middle) ** 2 @ shares / records)
        assert np.std(means) < 1.2 * apart
        assert abs(np.mean(means) - middle) < 4 * apart / np.sqrt(200)


def test_ranges_of_cells_keep_their_totals_but_for_a_few_records():
    shares = np.random.default_rng(1).dirichlet(np.ones(4096)) * 1000
    counts = round_counts(shares, 1000, np.random.default_rng(2))
    assert np.abs(np.cumsum(counts - shares)).max() < 6


def test_a_published_release_is_whole_and_keeps_its_total():
    domain = bf.Domain((6, 40))
    cells = bf.workloads.Identity(domain)
    mech = bf.Laplace(bf.policies.Full(domain), cells, epsilon=1)
    release = mech.release(np.random.default_rng(3).poisson(2, domain.shape), rng=4)
    whole = release.rounded()
    assert (whole.estimate >= 0).all()
    assert (whole.estimate == np.round(whole.estimate)).all()
    assert whole.estimate.sum() == round(release.estimate.sum())
    assert (whole.estimate == release.rounded().estimate).all()
    before, after = (one.intervals(cells, of="noise") for one in (release, whole))
    assert (after[:, 0] <= np.minimum(before[:, 0], whole.estimate.reshape(-1))).all()
    assert (after[:, 1] >= np.maximum(before[:, 1], whole.estimate.reshape(-1))).all()
    nothing = mech.release(np.zeros(domain.shape), rng=4)
    assert (nothing.rounded().estimate == 0).all()


def test_a_seed_that_is_none_is_refused():
    with pytest.raises(InputError, match="rng must be"):
        sample_records(bf.Domain(3), np.ones(3), 3, rng="x")
