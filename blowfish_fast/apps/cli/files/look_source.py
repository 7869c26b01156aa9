"""What a first look reads and who pays for it: header, answers, ledger."""

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
"""Of a column whose values are called public."""

if TYPE_CHECKING:
    from blowfish_fast.data.domain import Domain
    from blowfish_fast.release.wide.look_release import LookRelease


def columns_of(path: Path, form: TextForm, wanted: Sequence[str]) -> list[str]:
    """Return the columns of a file, from its head alone, or the wanted ones of them.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file, or a workbook.
    form : TextForm
        How a CSV file writes its texts.
    wanted : sequence of str
        Names; all columns if there are none.

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
        What `columns_of` returned.
    stated : mapping from name to Domain, optional
        Cells that were stated: a sheet's truths are spelled as their categories are.

    Returns
    -------
    SurveyAnswers
        The table.
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
    """Return the different values of a column, which the curator called public.

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
    listed = ", ".join(f"{column} AS v{at}" for at, column in enumerate(selected))
    with duckdb_module().connect() as connection:
        result = connection.execute(f"SELECT {listed} FROM {source}")
        # Called otherwise before DuckDB 1.5.
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
    """Return the names of the head; where one is missing or repeated, its place."""
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
    """Yield the ledger that pays, after asking it what it would refuse; None without.

    Parameters
    ----------
    path : Path or None
        The file of the ledger.
    total : str or None
        The whole budget of a new one.
    request : str or None
        The name of the look.
    seed : int or None
        A seed, for which no ledger pays.
    mechanism : FirstLook
        What would be charged.

    Yields
    ------
    Ledger or None
        The ledger, open.

    Raises
    ------
    InputError
        If terms of a ledger are stated without one, or a seed beside it.
    BudgetError or PolicyError
        If the ledger would refuse.
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
        weighed = ledger.preview(mechanism)
        if not paid_before and not weighed.accepted:
            same = mechanism.policy.implies(ledger.policy)
            kind = BudgetError if same else PolicyError
            raise kind(f"{weighed.reason}. Nothing was charged")
        yield ledger


def as_plain(look: LookRelease, confidence: float) -> list[dict[str, Any]]:
    """Return what was published of each column as plain data.

    Parameters
    ----------
    look : LookRelease
        What was published.
    confidence : float
        Of each interval.

    Returns
    -------
    list of dict
        Name, kind, bars, missing answers, others, quantiles, and whether it is grey.
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
