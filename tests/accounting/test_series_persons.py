"""Persons in a series: their first records in their first epochs are counted.

With ``epochs_at_most=2`` the first two epochs of each person count, and with
``per_person(2)`` at most two of her records in each. Which ones these are must not
depend on where the table is stored.
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.epochs import read_epoch

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
PERSONS = POLICY.per_person(2, person="patient")


def test_a_database_chooses_a_persons_first_epochs_as_memory_does():
    ibis = pytest.importorskip("ibis")
    weeks = bf.Series(
        bf.Ledger(None, rho=1, policy=POLICY.per_person(person="patient")),
        column="received",
        every="week",
        level="person",
        totals=bf.series.Weights((4, 2, 1)),
        epochs_at_most=2,
        frozen=True,
    )
    generator = np.random.default_rng(8)
    table = {
        "patient": generator.integers(0, 9, 120),
        "age": generator.integers(0, 3, 120),
        "received": np.datetime64("2026-11-02T00", "us")
        + generator.integers(0, 4 * 7 * 24, 120) * np.timedelta64(1, "h"),
    }
    rows = ", ".join(
        f"({patient}, {age}, TIMESTAMP '{received}')"
        for patient, age, received in zip(*table.values(), strict=True)
    )
    stored = ibis.duckdb.connect().sql(
        f"SELECT * FROM (VALUES {rows}) AS t(patient, age, received)"
    )
    mechanism = bf.Gaussian(PERSONS, bf.workloads.Identity(AGES), rho="0.1")
    first = read_epoch("week", "2026-W45").number
    for name in ("2026-W46", "2026-W48"):
        epoch = read_epoch("week", name)
        in_memory, in_database = (
            weeks._counted(epoch, mechanism, records, first, weeks.scheme)
            for records in (table, stored)
        )
        assert in_memory.counts.tolist() == in_database.counts.tolist()
        assert in_memory.at_most == in_database.at_most == 2
        assert in_memory.counts.sum() > 0
