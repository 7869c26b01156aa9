"""Everything around a first look: its file is read, its price paid, its result told.

A first look (`FirstLook`) publishes bars of every column of a file of which nothing is
stated. The names of the columns are public and read from the head. Then the ledger is
asked whether it would pay, and only then are the answers below the head read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfish_fast._support.optional import require
from blowfish_fast.accounting.ledger import Ledger
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
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook

MOST_VALUES = 1000
"""The most different values that are listed of a column whose values are public."""

if TYPE_CHECKING:
    from blowfish_fast.data.domain import Domain
    from blowfish_fast.release.wide.look_release import LookRelease


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


@contextmanager
def paid_by(
    path: Path | None,
    total: str | None,
    request: str | None,
    seed: int | None,
    mechanism: FirstLook,
) -> Iterator[Ledger | None]:
    """Open the ledger that pays for a look, once it is sure that it would pay.

    Nothing is charged here. A ledger that would refuse is found out before the answers
    are read.

    Parameters
    ----------
    path : Path or None
        The file of the ledger; None if no ledger keeps account of the look.
    total : str or None
        The whole budget, for a ledger that does not exist yet.
    request : str or None
        The name under which the ledger keeps the look.
    seed : int or None
        A seed, which is refused beside a ledger: seeded draws protect nobody.
    mechanism : FirstLook
        The look that would be charged.

    Yields
    ------
    Ledger or None
        The ledger, open; None without a path.

    Raises
    ------
    InputError
        If a budget or a request is stated without a ledger, or a seed beside one.
    LedgerError
        If the ledger does not exist and no budget is stated for it.
    BudgetError or PolicyError
        If the ledger would refuse the look.
    """
    if path is None:
        if total is not None or request is not None:
            raise InputError(
                "a budget and a request belong to a ledger; name its file, --ledger"
            )
        yield None
        return
    if seed is not None:
        raise InputError(
            "a seed makes an experiment, which no ledger pays for; leave --seed or "
            "--ledger out"
        )
    if not path.exists() and total is None:
        raise LedgerError(
            f"there is no ledger at {path}; state its whole budget, --budget 2, and it "
            "is made"
        )
    terms: dict[str, Any] = {} if path.exists() else {"policy": mechanism.policy}
    with Ledger(path, epsilon=total, **terms) as ledger:
        paid_before = request is not None and ledger.entry(request) is not None
        preview = ledger.preview(mechanism)
        if not paid_before and not preview.accepted:
            policy_fits = mechanism.policy.implies(ledger.policy)
            kind = BudgetError if policy_fits else PolicyError
            raise kind(f"{preview.reason}. Nothing was charged")
        yield ledger


def as_plain(look: LookRelease, confidence: float) -> list[dict[str, Any]]:
    """Return what was published of each column as plain data.

    Parameters
    ----------
    look : LookRelease
        The published look.
    confidence : float
        The probability with which each interval holds.

    Returns
    -------
    list of dict
        For each column its name and kind, its bars, how many answers are missing or
        lie beside the bars, its quantiles and its middle, and whether noise hides so
        much that the page draws it in grey.
    """
    return [
        {
            "column": column.name,
            "kind": column.kind,
            "bars": [bar._asdict() for bar in column.bars(confidence)],
            "missing": column.missing(confidence)._asdict(),
            "other": column.stray(confidence)._asdict(),
            "quantiles": {
                # An end that is infinite is no number of JSON.
                str(part): [None if math.isinf(place) else place for place in places]
                for part, places in column.quantiles(confidence).items()
            },
            "middle": column.middle(),
            "too_noisy": column.too_noisy(confidence),
        }
        for column in look.columns
    ]
