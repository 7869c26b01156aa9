"""Where counts come from: a file, a database, or people made up on the spot.

The made-up people are nobody's records, and always the same.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.csv_files import SheetPlace, TextForm, sheet_place
from blowfish_fast.data.domain import Domain, WideDomain
from blowfish_fast.data.frames import loaded_array, numbers_from_file
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.records import Rule
from blowfish_fast.errors import InputError

from .record_files import (
    CSV,
    PARQUET,
    PLAIN,
    Chunks,
    DataSource,
    Part,
    RecordsFile,
    RecordSource,
    check_columns,
    domain_as_stored,
    needed_columns,
    refuse_absent,
)

SEED = 2014
PEOPLE = 10_000
DISTRICTS = ("centre", "east", "north", "south", "west")
FIRST_DAY = np.datetime64("2020-01-01")
DAYS = 1461
OLDEST = 90
LARGEST_INCOME = 199_900

DEMO_NAME = "blowfish-people"
"""Stem of the files that ``blowfish release --demo-data`` writes."""

EXAMPLE_JOB = Path(__file__).with_name("example_job.toml").read_text("utf-8")

DATABASES = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3")
FORMS = (
    "a .csv (.tsv, .txt, .csv.gz), .xlsx, .parquet or .npy file, a .duckdb or .sqlite "
    'file, an address such as postgres://..., or "demo" for made-up people; a .zip is '
    "unpacked first"
)
OTHER_SHEETS = (".xls", ".xlsb", ".ods")
"""Spreadsheets that are not read."""


def holds_tables(words: str) -> bool:
    """Return whether data has several tables, or sheets, of which one is named.

    Parameters
    ----------
    words : str
        The name of a file, the address of a database, or "demo".

    Returns
    -------
    bool
        True for a database and for a workbook.
    """
    path = Path(words)
    in_database = "://" in words or path.suffix.lower() in DATABASES
    return in_database or sheet_place(path) is not None


def open_source(
    words: str,
    *,
    table: str | None = None,
    named: bool = True,
    form: TextForm = PLAIN,
) -> DataSource:
    """Return the source that words stand for; nothing is counted yet.

    Parameters
    ----------
    words : str
        The name of a file, the address of a database, or "demo"; a workbook's name may
        end with ``#`` and the name of a sheet.
    table : str, optional
        A table of the database, or a sheet of the workbook.
    named : bool
        Whether the columns of the domain have names. A CSV file then holds records,
        and counts otherwise.
    form : TextForm
        How a CSV file, or a text of a workbook, writes numbers, dates and missing
        values.

    Returns
    -------
    DataSource
        The source.

    Raises
    ------
    InputError
        If the words name no data, or there is no such file.
    """
    path = Path(words)
    suffix = path.suffix.lower()
    if suffix == ".gz" and Path(path.stem).suffix.lower() in CSV:
        suffix = Path(path.stem).suffix.lower()
    in_database = "://" in words or suffix in DATABASES
    in_sheet = sheet_place(path)
    records = named and not in_database and (suffix in CSV or in_sheet is not None)
    form.check()
    if form != PLAIN and not records:
        raise InputError(
            "encoding, decimal, dates and blanks say how a CSV file of records, or a "
            f"workbook, is written, and {_shown(words)} is none; leave them out"
        )
    if in_database:
        from .database_source import DatabaseTable

        return DatabaseTable(words, table)
    if in_sheet is not None:
        return _sheet(in_sheet, table, form, named=named)
    if table is not None:
        raise InputError(
            "--data-table names a table of a database or a sheet of a workbook, and "
            f"{words!r} is none; leave it out"
        )
    if words == "demo":
        return MadeUp()
    if suffix == ".npy" or (suffix in CSV and not named):
        return CountsFile(path)
    if suffix in CSV + PARQUET:
        return RecordsFile(path, form)
    raise InputError(f"the data is {FORMS}; received {words!r}{_way_out(words)}")


def _sheet(
    place: SheetPlace, table: str | None, form: TextForm, *, named: bool
) -> RecordsFile:
    """Return a sheet of a workbook; refuse what says twice which one."""
    if not named:
        raise InputError(
            f"{place.file} holds records, whose columns have names; state cells as in "
            "--cells age=0:101:1"
        )
    sheet = place.sheet or table
    if table not in (None, sheet):
        raise InputError(
            "a sheet is named once, after the # or as --data-table",
            received=f"{place.sheet!r} and {table!r}",
            way_out="Leave one out",
        )
    whole = place.file if sheet is None else Path(f"{place.file}#{sheet}")
    return RecordsFile(whole, form)


def _way_out(words: str) -> str:
    if Path(words).suffix.lower() in OTHER_SHEETS:
        return ". Open it in a spreadsheet, and save it as .xlsx or CSV (UTF-8)"
    if words in ("-", "/dev/stdin"):
        return (
            ". Data is checked before it is read, so it cannot come through a pipe: "
            "write it to a file first"
        )
    return ""


def _shown(words: str) -> str:
    return "a database" if "://" in words else repr(words)


class CountsFile(RecordSource):
    """Counts of every cell: an array as numpy saves it, or numbers in a CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = f"{path} (counts)"
        refuse_absent(path)

    def check(self, counting: Counting[Any]) -> None:
        """Refuse an array of another shape; an array's head alone is read."""
        if counting.bound is not None:
            raise InputError(
                "counts do not say whose records they are; persons need records, in a "
                ".csv or .parquet file or a database"
            )
        if counting.weight is not None:
            raise InputError(
                f"{self.path} holds counts already; --count-column is for records"
            )
        if any(rule != Rule("refuse", "refuse") for rule in counting.rules):
            raise InputError(
                "counts hold neither missing values nor values outside; leave "
                "--missing and --outside out"
            )
        if isinstance(counting.domain, WideDomain):
            raise InputError(
                f"{self.path} holds a count of every cell, and the domain has "
                f"{counting.domain.size:,} cells; name a file of records"
            )
        if self.path.suffix.lower() == ".npy":
            self._check_shape(self._array(), counting.domain)

    def histogram(self, counting: Counting[Any], done: Part) -> Histogram:
        """Return the counts; stray values have no meaning here.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        Histogram
            The counts.

        Raises
        ------
        InputError
            If the file's shape is not that of the domain.
        """
        array, domain = self._array(), counting.domain
        self._check_shape(array, domain)
        done(1.0)
        return Histogram(domain, np.asarray(array).reshape(domain.shape))

    def open(self, counting: Counting[Any], done: Part) -> tuple[Any, Chunks]:
        """Refuse: there are no records.

        Parameters
        ----------
        counting : Counting[Domain]
            Not read.
        done : Part
            Not called.

        Returns
        -------
        tuple[Domain, Chunks]
            Nothing is ever returned.

        Raises
        ------
        InputError
            Always: a file of counts holds no records.
        """
        raise InputError(
            f"tables are counted from records; {self.path} holds counts. Name a .csv "
            "or .parquet file, or a database"
        )

    def _array(self) -> AnyArray:
        if self.path.suffix.lower() != ".npy":
            return numbers_from_file(self.path, "counts", private=True)
        return loaded_array(self.path, "counts", mapped=True)

    def _check_shape(self, array: AnyArray, domain: Domain) -> None:
        flat = array.size == domain.size and max(array.shape) == array.size
        if array.shape != domain.shape and not (flat and domain.ndim == 1):
            raise InputError(
                f"counts must have the shape of the domain, {domain.shape}; "
                f"{self.path} has shape {array.shape}"
            )


class MadeUp(RecordSource):
    """People who do not exist, for trying things out."""

    description = "made-up people (demo)"

    def check(self, counting: Counting[Any]) -> None:
        """Refuse attributes that the made-up table does not have."""
        if counting.bound is not None:
            raise InputError(
                "the made-up people have one record each; leave --person out"
            )
        check_columns(self.description, needed_columns(counting), made_up_people())

    def open(self, counting: Counting[Any], done: Part) -> tuple[Any, Chunks]:
        """Return the made-up people, all at once.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        domain : Domain
            The domain, as the columns spell it.
        chunks : Chunks
            One chunk with all people.
        """
        done(1.0)
        stored = domain_as_stored(counting.domain, texts=["district"], truths=[])
        return stored, iter([made_up_people()])


def made_up_people() -> dict[str, AnyArray]:
    """Return the columns of the made-up table."""
    rng = np.random.default_rng(SEED)
    age = np.clip(16 + rng.gamma(4.5, 7.5, PEOPLE), 16, OLDEST).astype(np.int64)
    district = rng.choice(len(DISTRICTS), PEOPLE, p=[0.34, 0.2, 0.12, 0.22, 0.12])
    level = np.array([46.0, 31.0, 38.0, 34.0, 41.0])[district] * 1000
    career = 0.55 + 0.6 * np.exp(-(((age - 50) / 22.0) ** 2))
    income = np.round(level * career * rng.lognormal(0.0, 0.45, PEOPLE), -2)
    joined = FIRST_DAY + np.floor(DAYS * rng.beta(1.6, 1.0, PEOPLE)).astype(np.int64)
    return {
        "person": np.arange(1, PEOPLE + 1),
        "age": age,
        "income": np.minimum(income, LARGEST_INCOME).astype(np.int64),
        "district": np.array(DISTRICTS, dtype=object)[district],
        "joined": joined,
    }


def write_demo_people(path: Path) -> None:
    """Write the made-up table as CSV."""
    columns = made_up_people()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        zip(*(column.tolist() for column in columns.values()), strict=True)
    )
    path.write_text(text.getvalue(), encoding="utf-8")
