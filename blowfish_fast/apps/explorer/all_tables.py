"""All tables of some columns at once: how accurate each would be, before it is paid."""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import Any, get_args

import numpy as np

from blowfish_fast._support.validation import as_choice
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.mechanisms.chosen_tables import Chooser, ChosenTables
from blowfish_fast.workloads import Tables

from .catalog import TableSpec

MOST_TABLES = 2_000
"""Tables that are predicted in one call: a page shows no more."""
MOST_WAYS = 3
"""Columns of the widest table."""
FEW_TABLES = 64
"""Tables up to which a prediction takes a moment, if they are small together."""
FEW_CELLS = 2**16
"""Cells of all of them together."""


def predict_tables(
    table: TableSpec,
    budget: BudgetTerms,
    *,
    columns: list[str] | None = None,
    ways: int = 2,
    records: int | None = None,
    choose: Chooser = "plan",
) -> dict[str, Any]:
    """Return the predicted error of every table of up to so many of the columns.

    It is free, and it uses public values alone: no record is read.

    Parameters
    ----------
    table : TableSpec
        The described table, with its policies.
    budget : dict
        The budget of all tables together, by the words of a mechanism: epsilon,
        rho, delta.
    columns : list of str, optional
        The attributes whose tables are predicted; by default all of them.
    ways : int
        Columns of the widest table; at most 3 are taken.
    records : int, optional
        The number of records, public or guessed. With it, mean counts of cells
        stand beside the errors. A table whose error exceeds its mean count is of
        use in larger groups only.
    choose : {"plan", "data", "best"}
        Whether public sizes or the data would say which tables are measured; "best"
        decides by the number of records.

    Returns
    -------
    dict
        The columns, the budget, how many tables are measured, how many are useful
        (None without a number of records), and under "tables" the columns, cells,
        standard error per cell and mean count of each. All these are of the plan: of
        tables that the data choose no error is known beforehand. Under "decided"
        stands what would be done ("plan", "data", or None where a noisy number of
        records would decide), under "misplaced" the share of the records that the
        plan predicts to misplace (None without a number of them), and under
        "described" what `described_columns` returns.

    Raises
    ------
    InputError
        If a column is named twice, or there are more than 2,000 tables.

    Examples
    --------
    >>> sides = [{"name": name, "levels": [1, 2, 3]} for name in ("a", "b", "c")]
    >>> table = TableSpec(name="survey", attributes=sides)
    >>> prediction = predict_tables(table, {"epsilon": 1}, records=9000)
    >>> len(prediction["tables"]), prediction["useful"]
    (6, 6)
    >>> predict_tables(table, {"epsilon": "0.1"}, records=50, choose="best")["decided"]
    'data'
    >>> prediction["tables"][-1]["columns"]
    ['b', 'c']
    """
    table = table.without_words()
    sets = column_sets(table, columns, ways)
    chosen = [subset[0] for subset in sets if len(subset) == 1]
    mechanism = ChosenTables(
        table.policy(),
        Tables(table.domain(), sets),
        choose=as_choice(choose, "choose", get_args(Chooser)),
        records=records,
        **budget,
    )
    errors = mechanism.plan(records)
    standard_errors = np.sqrt(errors.variances).tolist()
    cells = errors.cells.tolist()
    counts = [None if records is None else records / size for size in cells]
    useful = [
        count is not None and error < count
        for error, count in zip(standard_errors, counts, strict=True)
    ]
    return {
        "columns": chosen,
        "budget": errors.budget,
        "measured": len(errors.measured),
        "useful": None if records is None else sum(useful),
        "decided": mechanism.decided,
        "misplaced": None if records is None else mechanism.planned_misplaced(records),
        "described": described_columns(table, chosen),
        "tables": [
            {
                "columns": list(subset),
                "cells": size,
                "error": error,
                "mean_count": count,
            }
            for subset, size, error, count in zip(
                sets, cells, standard_errors, counts, strict=True
            )
        ],
    }


def described_columns(table: TableSpec, columns: list[str]) -> dict[str, Any] | None:
    """Return the description of some columns, from which the command line releases.

    Parameters
    ----------
    table : TableSpec
        The described table.
    columns : list of str
        The attributes that are released together.

    Returns
    -------
    dict or None
        With the keys of the shipped schema. None for a table of a population: tables
        of the same people share a budget, which the explorer keeps.
    """
    if table.population is not None:
        return None
    plain = table.to_dict()
    attributes = plain["attributes"]
    plain["attributes"] = [each for each in attributes if each["name"] in columns]
    policies = plain.get("policies", {})
    stated = {name: policies[name] for name in policies if name in columns}
    if policies and not stated:
        # Without any, whole records would be secret; here attributes move alone.
        stated = {columns[0]: {"kind": "full"}}
    plain["policies"] = stated
    sample = plain.get("sample")
    if sample is not None and sample.get("column") not in (None, *columns):
        # Strata and weights are those of a column that is left out.
        del plain["sample"]
    return plain


def column_sets(
    table: TableSpec, columns: list[str] | None, ways: int
) -> list[tuple[str, ...]]:
    """Return the columns of every table of up to so many of them.

    Parameters
    ----------
    table : TableSpec
        The described table.
    columns : list of str, optional
        The attributes; by default all that hold no words.
    ways : int
        Columns of the widest table.

    Returns
    -------
    list of tuple
        Single columns first, in the order in which they were named.

    Raises
    ------
    InputError
        If a column is named twice, or there are more than 2,000 tables.
    """
    table = table.without_words()
    every = [attribute.name for attribute in table.attributes]
    names = every if columns is None else columns
    chosen = [table.attribute(name).name for name in names]
    if len(set(chosen)) != len(chosen) or not chosen:
        raise InputError(f"name each column once, at least one; received {names}")
    sizes = range(1, min(ways, MOST_WAYS, len(chosen)) + 1)
    sets = list(chain.from_iterable(combinations(chosen, size) for size in sizes))
    if len(sets) > MOST_TABLES:
        raise InputError(
            f"at most {MOST_TABLES:,} tables are predicted at a time; received "
            f"{len(sets):,}. Choose fewer columns"
        )
    return sets


def is_large_prediction(table: TableSpec, columns: list[str] | None, ways: int) -> bool:
    """Return whether a prediction takes so long that others should not wait for it.

    Parameters
    ----------
    table : TableSpec
        The described table.
    columns : list of str, optional
        The attributes; by default all that hold no words.
    ways : int
        Columns of the widest table.

    Returns
    -------
    bool
        By the numbers of tables and of their cells, which are public.

    Raises
    ------
    InputError
        If a column is named twice, or there are more than 2,000 tables.
    """
    sets = column_sets(table, columns, ways)
    sizes = {name: table.attribute(name).domain().size for (name, *_) in sets}
    cells = sum(math.prod(sizes[name] for name in subset) for subset in sets)
    return len(sets) > FEW_TABLES or cells > FEW_CELLS
