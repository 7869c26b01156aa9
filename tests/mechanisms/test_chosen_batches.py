"""Batches of chosen tables: attributes alone, running totals, and what edges pay."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.chosen_tables_run import TablesRun

AGES, THETA, EPSILON = 600, 3, 3


@pytest.fixture(scope="module")
def survey():
    """One attribute of many cells whose moves change three totals, and four small."""
    ages = bf.Domain(AGES, names=["age"])
    domain = bf.Domain.product(ages, *(bf.Domain(4, names=[name]) for name in "abcd"))
    near = {"age": bf.policies.Threshold(ages, theta=THETA)}
    policy = bf.policies.TablePolicy(domain, near)
    rng = np.random.default_rng(0)
    records = rng.integers(0, [AGES, 4, 4, 4, 4], size=(30_000, 5))
    # The second small attribute follows the first.
    records[:, 2] = np.where(rng.random(30_000) < 0.7, records[:, 1], records[:, 2])
    counts = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(counts, tuple(records.T), 1)
    asked = bf.workloads.Tables(domain, ways=2)
    mechanism = bf.ChosenTables(policy, asked, choose="data", epsilon=EPSILON)
    return mechanism, bf.Histogram(domain, counts)


def widths_by_table(measurement):
    """Return the noise of each table of a measurement, and which are running totals."""
    strategy = measurement.strategy
    widths = measurement.scales.widths[strategy.starts[:-1]].tolist()
    noisy = zip(strategy.tables, widths, strict=True)
    return [
        (table.axes, width, place in strategy.running)
        for place, (table, width) in enumerate(noisy)
    ]


def batches_of(release):
    steps = release.details["steps"]
    return [
        widths_by_table(measurement)
        for step, measurement in zip(steps, release.measurements, strict=True)
        if step == "chosen"
    ]


def noises_of_pairs(release):
    return {
        width
        for batch in batches_of(release)
        for axes, width, _ in batch
        if len(axes) == 2
    }


@pytest.mark.long
def test_totals_of_long_moves_make_no_other_table_noisier(survey, monkeypatch):
    mechanism, data = survey
    release = mechanism.release(data, rng=1)
    batches = batches_of(release)
    assert any(running for batch in batches for *_, running in batch)
    assert len(noises_of_pairs(release)) == 1
    # What is said of the release counts tables of several attributes alone.
    pairs = {axes for batch in batches for axes, *_ in batch if len(axes) == 2}
    assert f"{len(pairs)} chosen" in repr(release)
    # Planted: totals at the rate of all, which a move of three cells pays three times.
    right = TablesRun._measure

    def at_one_rate(self, step, tables, shares, budget, running=()):
        if step == "chosen":
            shares = [float(bool(table.axes)) for table in tables]
        return right(self, step, tables, shares, budget, running)

    monkeypatch.setattr(TablesRun, "_measure", at_one_rate)
    assert len(noises_of_pairs(mechanism.release(data, rng=1))) > 1


@pytest.mark.long
def test_no_attribute_pays_more_than_the_budget(survey):
    mechanism, data = survey
    for seed in (1, 2):
        release = mechanism.release(data, rng=seed)
        paid = np.zeros(5)
        for measurement in release.measurements:
            for axes, width, running in widths_by_table(measurement):
                for axis in axes:
                    # Two cells of a table, or the totals between both ends.
                    paid[axis] += (THETA if running else 2) / width if width else 0.0
        assert (paid <= EPSILON * (1 + 1e-6)).all()
        assert paid.max() > 0.99 * EPSILON


@pytest.mark.long
def test_intervals_of_a_single_table_are_those_of_its_first_measurement(survey):
    mechanism, data = survey
    release = mechanism.release(data, rng=1)
    again = {
        axes[0] for batch in batches_of(release) for axes, *_ in batch if len(axes) == 1
    }
    assert again
    for axis in again:
        assert release.table(release.domain.names[axis]).details["step"] == "single"
