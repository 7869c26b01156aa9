"""Records from CSV and Parquet files, counted chunk by chunk: memory stays small.

header, schema  ->  are the columns there?       all that a dry run reads
chunk by chunk  ->  cells  ->  counts            files may be larger than memory
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.apps.cli.parsing.text_forms import TextForm
from blowfish_fast.data.axes import Attribute
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.records import Rule, cell_blocks
from blowfish_fast.errors import CountsError, InputError

from .csv_chunks import Column, Part, lines_in_chunks
from .csv_head import csv_layout
from .parquet_chunks import check_schema, opened_parquet, rows_in_chunks

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")


PLAIN = TextForm()


class RecordsFile:
    """A CSV or Parquet file with a line, or row, for each record.

    Parameters
    ----------
    path : path
        The file.
    count_column : str, optional
        A column that says how many records a line stands for; without, each is one.
    form : TextForm, optional
        How the texts of a CSV file are written.
    """

    def __init__(
        self,
        path: Path,
        count_column: str | None = None,
        form: TextForm = PLAIN,
    ) -> None:
        self.path, self.count_column, self.form = path, count_column, form
        if not path.is_file():
            raise InputError(f"there is no file {path}; check the path of the data")

    @property
    def description(self) -> str:
        """What messages call it."""
        return str(self.path)

    def check(self, domain: Domain) -> None:
        """Refuse a file that lacks columns; reads its first line or schema only."""
        wanted = self._wanted(domain)
        if self.path.suffix.lower() in PARQUET:
            check_schema(opened_parquet(self.path), wanted, domain, self.path)
        else:
            csv_layout(self.path, [one.name for one in wanted], self.form)

    def histogram(self, domain: Domain, rules: list[Rule], done: Part) -> Histogram:
        """Count the records of every cell of `domain`, extra cells included."""
        self.check(domain)
        wanted = self._wanted(domain)
        if self.path.suffix.lower() in PARQUET:
            chunks = rows_in_chunks(opened_parquet(self.path), wanted, domain, done)
        else:
            layout = csv_layout(self.path, [one.name for one in wanted], self.form)
            chunks = lines_in_chunks(self.path, layout, wanted, self.form, done)
        return counted(chunks, domain, rules, self.count_column)

    def _wanted(self, domain: Domain) -> list[Column]:
        wanted = [_needed(one) for one in domain.attributes]
        if self.count_column is not None:
            wanted.append(Column(self.count_column, "number"))
        return wanted


def counted(
    chunks: Iterator[dict[str, Any]],
    domain: Domain,
    rules: list[Rule],
    count_column: str | None,
) -> Histogram:
    """Count chunks of columns by cell; `domain` has its extra cells already."""
    counts = np.zeros(domain.size, dtype=np.int64)
    reading: Domain | None = None
    for chunk in chunks:
        if reading is None:
            texts = [name for name, column in chunk.items() if _is_text(column)]
            reading = domain_as_stored(domain, texts=texts, truths=[])
        weights = None
        if count_column is not None:
            weights = _whole(chunk[count_column], count_column)
        start = 0
        for cells in cell_blocks(reading, rules, chunk):
            if weights is None:
                kernels.count_into(counts, cells)
            else:
                np.add.at(counts, cells, weights[start : start + cells.size])
            start += cells.size
    return Histogram(domain, counts.reshape(domain.shape))


def _needed(attribute: Attribute) -> Column:
    if attribute.name is None:
        raise InputError(
            "records have columns with names, and the domain names none; state it as "
            "age=0:101:1, for instance. Cells without names are for files of counts "
            "(.npy)"
        )
    if attribute.levels is not None:
        return Column(attribute.name, "category")
    return Column(attribute.name, "number" if attribute.unit is None else "date")


def domain_as_stored(
    domain: Domain, *, texts: Sequence[str], truths: Sequence[str]
) -> Domain:
    """Return the domain with categories as the columns spell them.

    Parameters
    ----------
    domain : Domain
        As stated, where a category of digits is a number and "true" is a text.
    texts, truths : sequence of str
        Columns that hold texts, and truth values.
    """
    attributes = []
    for one in domain.attributes:
        levels, regular = one.levels, one.regular
        if levels is not None and one.name in texts:
            levels = tuple(str(level) for level in levels)
        elif levels is not None and one.name in truths:
            spelt = [str(level).lower() for level in levels[:regular]]
            if set(spelt) <= {"true", "false"}:
                levels = (*(level == "true" for level in spelt), *levels[regular:])
        attributes.append(replace(one, levels=levels))
    return Domain._of(attributes)


def _is_text(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "OU"
    return "string" in str(column.type)


def _whole(column: AnyArray, name: str) -> IntArray:
    numbers = np.asarray(column, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        fits = (numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)
    if not fits.all():
        raise CountsError(
            f"the column {name!r} must say how many records a line stands for, a "
            "whole number from 0; it holds something else"
        )
    return numbers.astype(np.int64)
