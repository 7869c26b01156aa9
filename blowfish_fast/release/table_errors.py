"""How accurate the tables of a plan are, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole
from blowfish_fast.data.axes import as_array
from blowfish_fast.data.frames import Table
from blowfish_fast.workloads.tables import table_names


@dataclass(frozen=True, repr=False)
class TableErrors:
    """The plan of a `Contingency` and the predicted error of every asked table.

    Means by table are dominated by small tables, those by cell by large ones. A table
    whose error exceeds its counts is of use in larger groups only.

    Attributes
    ----------
    kind : str
        Which way of planning was chosen.
    domain : object
        All attributes.
    tables : tuple[tuple[int, ...], ...]
        The asked tables.
    measured : tuple[tuple[int, ...], ...]
        The tables that are measured.
    variances : ndarray of float64, shape (tables,)
        The variance of a cell of each asked table.
    budget : str
        What is spent, in words.
    records : int, optional
        How many records there are, where that is public.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 2, 5), names=["age", "sex", "region"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> mech = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=1)
    >>> print(mech.plan(records=1000))
    6 tables asked, 1 measured (blocks); epsilon = 1
    rms error of a cell, mean over tables: 3.878
    ways  tables  cells  rms error  mean count by table  by cell
       1       3     11      4.829              316.667  272.727
       2       3     38      2.598               91.667   78.947
    """

    kind: str
    domain: Any
    tables: tuple[tuple[int, ...], ...]
    measured: tuple[tuple[int, ...], ...]
    variances: FloatArray
    """Of a cell of each asked table."""
    budget: str
    records: int | None = None

    @property
    def rms(self) -> float:
        """Root of the mean variance of a cell, every table alike."""
        return math.sqrt(float(self.variances.mean()))

    @property
    def cells(self) -> IntArray:
        """Cells of each asked table."""
        sizes = self.domain.shape
        return np.array(
            [math.prod(sizes[axis] for axis in table) for table in self.tables]
        )

    def by_ways(self) -> Table:
        """Return a row per number of attributes: tables, cells, errors, mean counts."""
        ways = np.array([len(table) for table in self.tables])
        cells = self.cells
        groups = [ways == number for number in np.unique(ways)]
        columns: dict[str, Any] = {
            "ways": np.unique(ways),
            "tables": np.array([int(group.sum()) for group in groups]),
            "cells": np.array([int(cells[group].sum()) for group in groups]),
            "rms_error": np.array(
                [math.sqrt(self.variances[group].mean()) for group in groups]
            ),
        }
        if self.records is not None:
            count = as_whole(self.records, "records", 0)
            columns["mean_count_by_table"] = np.array(
                [float((count / cells[group]).mean()) for group in groups]
            )
            columns["mean_count_by_cell"] = count * columns["tables"] / columns["cells"]
        return Table(columns)

    def to_table(self) -> Table:
        """Return a row per asked table: attributes, cells, error, mean count."""
        names = (table_names(self.domain, table) for table in self.tables)
        columns: dict[str, Any] = {
            "table": as_array(tuple(" x ".join(map(str, table)) for table in names)),
            "cells": self.cells,
            "rms_error": np.sqrt(self.variances),
        }
        if self.records is not None:
            columns["mean_count"] = self.records / self.cells
        return Table(columns)

    def __str__(self) -> str:
        rows = self.by_ways()
        heads = ["ways", "tables", "cells", "rms error"]
        if self.records is not None:
            heads += ["mean count by table", "by cell"]
        forms = [",", ",", ",", ",.4g", ",.3f", ",.3f"][: len(heads)]
        values = zip(*(rows[name].tolist() for name in rows), strict=True)
        texts = [list(map(format, row, forms)) for row in values]
        lines = [heads, *texts]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            [
                f"{len(self.tables):,} tables asked, {len(self.measured):,} measured "
                f"({self.kind}); {self.budget}",
                f"rms error of a cell, mean over tables: {self.rms:,.4g}",
                *("  ".join(map(str.rjust, line, widths)) for line in lines),
            ]
        )

    __repr__ = __str__
