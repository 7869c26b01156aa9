"""Records weighed by their arrival, and a person's first ones, in every database."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.arrivals import Arrivals, FirstEpochs
from blowfish_fast.data.histogram import Counting

from .engines_at_hand import rows

# Drivers of databases warn of newer packages beside them, which is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

ROOMS = bf.Domain.from_levels(["f", "m"], name="sex")


def _edges(days):
    """Return three epochs inside the days of the table, and days outside of them."""
    low, high = days.min().astype("M8[D]"), days.max().astype("M8[D]")
    width = (high - low) // 5
    return [(low + width * at).astype(date) for at in (1, 2, 3, 4)]


@pytest.mark.long
@pytest.mark.parametrize(
    "first", [None, FirstEpochs("rooms", 3), FirstEpochs("rooms", 2, 2)]
)
def test_a_database_weighs_and_chooses_as_memory_does(engine, first):
    table = engine.table("people")
    table = table.filter(table.day.notnull() & table.sex.isin(["f", "m"]))
    held = [row for row in rows() if row[4] is not None and row[2] in ("f", "m")]
    columns = {
        "sex": np.array([row[2] for row in held], dtype=object),
        "rooms": np.array([row[3] for row in held]),
        "day": np.array([row[4] for row in held], dtype="M8[us]"),
    }
    arrivals = Arrivals.of("day", _edges(columns["day"]), [1, 5, 9])
    counting = Counting.read(ROOMS)._replace(arrivals=arrivals, first=first)
    in_memory = bf.Histogram._counted(counting, columns).counts
    in_chunks = [{name: part[at::2] for name, part in columns.items()} for at in (0, 1)]
    chunked = bf.Histogram._counted(counting, iter(in_chunks)).counts
    assert counting.query(table).counts().tolist() == in_memory.tolist()
    assert chunked.tolist() == in_memory.tolist()
    assert in_memory.sum() > 0


@pytest.mark.long
def test_columns_of_persons_are_named(engine):
    table = engine.table("people")
    arrivals = Arrivals.of("day", [date(2020, 1, 1), date(2021, 1, 1)], [1])
    counting = Counting.read(ROOMS)._replace(
        arrivals=arrivals, first=FirstEpochs("patient", 1)
    )
    with pytest.raises(bf.errors.InputError, match="no column 'patient'"):
        counting.query(table)
