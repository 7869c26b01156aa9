"""All tables of some columns at once: how accurate each would be, before it is paid."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np

from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.mechanisms.contingency import Contingency
from blowfish_fast.workloads import Tables

from .catalog import TableSpec

MOST_TABLES = 2_000
MOST_WAYS = 3


def predict_tables(
    table: TableSpec,
    budget: BudgetTerms,
    *,
    columns: list[str] | None = None,
    ways: int = 2,
    records: int | None = None,
) -> dict[str, Any]:
    """Return the predicted error of every table of up to so many of the columns.

    Free, and from public values alone: no record is read. `columns` are by default all
    attributes. With a public or guessed number of `records` mean counts of cells stand
    beside the errors; a table whose error exceeds its mean count is of use in larger
    groups only.

    Examples
    --------
    >>> sides = [{"name": name, "levels": [1, 2, 3]} for name in ("a", "b", "c")]
    >>> table = TableSpec(name="survey", attributes=sides)
    >>> found = predict_tables(table, {"epsilon": 1}, records=9000)
    >>> len(found["tables"]), found["useful"], found["tables"][-1]["columns"]
    (6, 6, ['b', 'c'])
    """
    names = [one.name for one in table.attributes] if columns is None else columns
    known = [table.attribute(one).name for one in names]
    if len(set(known)) != len(known) or not known:
        raise InputError(f"name each column once, at least one; received {names}")
    sizes = range(1, min(ways, MOST_WAYS, len(known)) + 1)
    sets = list(chain.from_iterable(combinations(known, size) for size in sizes))
    if len(sets) > MOST_TABLES:
        raise InputError(
            f"at most {MOST_TABLES:,} tables are predicted at a time; received "
            f"{len(sets):,}. Choose fewer columns"
        )
    mechanism = Contingency(table.policy(), Tables(table.domain(), sets), **budget)
    errors = mechanism.plan(records)
    found = np.sqrt(errors.variances).tolist()
    cells = errors.cells.tolist()
    counts = [None if records is None else records / one for one in cells]
    useful = [m is not None and e < m for e, m in zip(found, counts, strict=True)]
    return {
        "columns": known,
        "budget": errors.budget,
        "measured": len(errors.measured),
        "useful": None if records is None else sum(useful),
        "tables": [
            {"columns": list(one), "cells": size, "error": error, "mean_count": count}
            for one, size, error, count in zip(sets, cells, found, counts, strict=True)
        ],
    }
