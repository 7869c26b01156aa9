"""A file of which nothing is stated: names of columns from its head, answers as texts.

    sex;age;         columns_of     ["sex", "age", "column 3"]     reads the head alone
    f;20;1,5         read_answers   {"sex": ["f", "m"], ...}       reads every line
    m;41;

The names are public. The answers below the head are not: only a mechanism may see them,
after a ledger has agreed to pay. `values_of` is the exception, for columns whose values
the curator calls public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blowfish_fast._support.optional import require
from blowfish_fast.apps.cli.files.record_files import (
    PARQUET,
    head_of,
    records_of,
    refuse_absent,
    truths_of,
)
from blowfish_fast.data.csv_files import (
    TextForm,
    duckdb_module,
    lacking_columns,
    literal,
    told_apart,
)
from blowfish_fast.data.tables.answers import SurveyAnswers
from blowfish_fast.errors import InputError

MOST_VALUES = 1000
"""The most different values that are listed of a column whose values are public."""

if TYPE_CHECKING:
    from blowfish_fast.data.domain import Domain


def columns_of(path: Path, form: TextForm, wanted: Sequence[str]) -> list[str]:
    """Return the names of the wanted columns, or of all columns, from the head alone.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file, or a workbook.
    form : TextForm
        How a CSV file writes its texts.
    wanted : sequence of str
        Names of columns; an empty sequence asks for all of them.

    Returns
    -------
    list of str
        Different names, in the order of the file.

    Raises
    ------
    InputError
        If the file or a column is not there; the nearest names come first.
    """
    refuse_absent(path)
    names = _parquet_names(path) if _is_parquet(path) else _csv_names(path, form)
    if any(name not in names for name in wanted):
        if not _is_parquet(path):
            # A name that several columns have is refused in words of its own.
            head_of(path, wanted, form)
        raise lacking_columns(path, list(wanted), names)
    return [name for name in names if name in wanted] if wanted else names


def read_answers(
    path: Path,
    form: TextForm,
    names: Sequence[str],
    stated: Mapping[str, Domain] | None = None,
) -> SurveyAnswers:
    """Return the answers of some columns of a file, as texts.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file, or a workbook.
    form : TextForm
        How a CSV file writes its texts.
    names : sequence of str
        The columns, as `columns_of` returned them.
    stated : mapping from name to Domain, optional
        Cells that were stated: a sheet's truths are spelled as their categories are.

    Returns
    -------
    SurveyAnswers
        The texts of every column, row by row.
    """
    require("pyarrow", extra="files", purpose="reading files of records")
    if _is_parquet(path):
        source = f"read_parquet({literal(str(path))})"
        selected = [f"CAST({_quoted(name)} AS VARCHAR)" for name in names]
        return _answers(source, selected, names, None)
    head = head_of(path, [], form)
    places = [_csv_names(path, form).index(name) for name in names]
    truths: dict[str, tuple[str, str]] = {}
    for domain in (stated or {}).values():
        truths |= truths_of(domain)
    with records_of(path, head, form, truths).open() as table:
        selected = [f"c{place}" for place in places]
        return _answers(table.source(texts=True), selected, names, form.decimal)


def values_of(path: Path, form: TextForm, name: str) -> list[str]:
    """Return the different values of a column that the curator called public.

    This reads the column without noise: nothing protects it.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file, or a workbook.
    form : TextForm
        How a CSV file writes its texts.
    name : str
        The column.

    Returns
    -------
    list of str
        The values in their order, as a release counts them.

    Raises
    ------
    InputError
        If there are more than `MOST_VALUES`.
    """
    answers = read_answers(path, form, [name]).columns[name]
    values = answers.different(blanks_around=_is_parquet(path))
    if len(values) > MOST_VALUES:
        raise InputError(
            f"a list of categories holds at most {MOST_VALUES:,} values",
            received=f"more of them in {name!r}",
            way_out="State the cells of the column by hand",
        )
    return values


def _answers(
    source: str, selected: Sequence[str], names: Sequence[str], decimal: str | None
) -> SurveyAnswers:
    """Read columns by DuckDB, under names of our own: a file may repeat its names.

    Parameters
    ----------
    source : str
        A table of DuckDB, in SQL.
    selected : sequence of str
        What is read for each name, in SQL.
    names : sequence of str
        The names of the columns.
    decimal : str, optional
        The decimal mark of texts; None where numbers are read from a typed file.

    Returns
    -------
    SurveyAnswers
        The texts of every column.
    """
    listed = ", ".join(f"{column} AS v{at}" for at, column in enumerate(selected))
    with duckdb_module().connect() as connection:
        result = connection.execute(f"SELECT {listed} FROM {source}")
        # Before DuckDB 1.5 the method had another name.
        fetch = getattr(result, "to_arrow_table", None) or result.fetch_arrow_table
        table = fetch()
    columns = {
        name: table.column(f"v{at}").to_pylist() for at, name in enumerate(names)
    }
    return SurveyAnswers(columns, decimal)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _csv_names(path: Path, form: TextForm) -> list[str]:
    """Return the names of the head; one that is missing or repeated becomes its place.

    The third column of a file is "column 3" then.
    """
    return told_apart(head_of(path, [], form).names)


def _parquet_names(path: Path) -> list[str]:
    parquet = require("pyarrow.parquet", extra="files", purpose="reading Parquet files")
    try:
        return [str(name) for name in parquet.read_schema(path).names]
    except Exception as problem:
        raise InputError(
            f"{path} is no Parquet file ({type(problem).__name__})"
        ) from None
