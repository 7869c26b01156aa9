"""Answers that follow from stored ones are entries of the log, at no cost."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, LedgerError

POLICY = bf.policies.AddRemove(bf.Domain(3))
COUNTS = [3, 4, 5]


@pytest.fixture(params=["memory", "disk"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "ledger"
    made = bf.Ledger(path, epsilon=2, policy=POLICY)
    made.release(bf.Laplace(POLICY, epsilon=0.5), COUNTS, "cells")
    yield made
    made.close()


def test_a_reading_is_kept_under_its_name_and_costs_nothing(ledger):
    numbers = {"values": [0.1, 2.0 / 3.0, 1e300]}
    ledger.allot("ann", 1)
    entry = ledger.keep_reading(
        "sum", numbers, sources=["cells"], analyst="ann", note={"question": "sums"}
    )
    assert (entry.mechanism, entry.analyst, entry.state) == ("read", "ann", "stored")
    assert entry.note == {"question": "sums"}
    assert float(entry.epsilon) == 0.0
    assert float(ledger.spent) == 0.5
    assert float(ledger.allotments()["ann"].spent) == 0.0
    assert ledger.reading("sum") == numbers
    # It is no release, and a release is no reading.
    assert ledger.replay("sum") is None
    assert ledger.reading("cells") is None
    assert ledger.reading("unknown") is None
    assert ledger.verify()


def test_the_first_reading_of_a_name_stands(ledger):
    first = ledger.keep_reading("sum", {"values": [1.0]}, sources=["cells"])
    second = ledger.keep_reading("sum", {"values": [2.0]}, sources=["cells"])
    assert first == second
    assert ledger.reading("sum") == {"values": [1.0]}
    with pytest.raises(LedgerError, match="another question"):
        ledger.release(bf.Laplace(POLICY, epsilon=0.5), COUNTS, "sum")
    assert len(ledger.history()) == 2


def test_sources_are_stored_answers_of_the_same_ledger(ledger):
    for name in ("nothing", "cells "):
        with pytest.raises(LedgerError, match="stored answers of the same ledger"):
            ledger.keep_reading("sum", {}, sources=["cells", name])
    with pytest.raises(InputError, match="plain values"):
        ledger.keep_reading("sum", {"values": object()}, sources=["cells"])
    assert len(ledger.history()) == 1


def test_charges_before_an_entry_are_counted_by_who_paid(ledger):
    ledger.allot("ann", 1)
    ledger.keep_reading("sum", {}, sources=["cells"])
    ledger.release(bf.Laplace(POLICY, epsilon=0.5), COUNTS, "hers", analyst="ann")
    last = ledger.history()[-1].number + 1
    assert ledger.count_charges(last, everybody=True) == 2
    assert ledger.count_charges(last) == 1
    assert ledger.count_charges(last, "ann") == 1
    assert ledger.count_charges(last, "bob") == 0
    assert ledger.count_charges(ledger.history()[0].number, everybody=True) == 0
