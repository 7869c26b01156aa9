"""Rows of a Parquet file as columns, chunk by chunk.

schema   ->  is each column of the kind that the domain states?
batches  ->  numbers as float64, texts and dates as arrow holds them
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blowfish_fast._support.optional import require
from blowfish_fast.apps.cli.parsing.text_forms import TextForm, read_dates
from blowfish_fast.data.axes import Attribute
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError

from .csv_chunks import ROWS, Column, Part
from .csv_head import lacking_column


def opened_parquet(path: Path) -> Any:
    """Open a Parquet file; its schema is read, and no rows."""
    parquet = require("pyarrow.parquet", extra="frames", purpose="reading Parquet")
    try:
        return parquet.ParquetFile(str(path))
    except Exception as problem:
        raise InputError(
            f"{path} is no Parquet file that can be read ({type(problem).__name__})"
        ) from None


def check_schema(file: Any, wanted: list[Column], domain: Domain, path: Path) -> None:
    """Refuse columns that are not there, or not of the kind that is stated."""
    schema = file.schema_arrow
    if file.metadata.num_rows == 0:
        raise InputError(
            f"{path} names its columns and holds no record; is it the right file? "
            "Nothing was charged"
        )
    names = list(schema.names)
    if not all(one.name in names for one in wanted):
        raise InputError(lacking_column([one.name for one in wanted], names, path))
    for one in wanted:
        _check_type(one, schema.field(one.name).type, domain, path)


def _check_type(wanted: Column, kind: Any, domain: Domain, path: Path) -> None:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = types.is_string(kind) or types.is_large_string(kind)
    whole = types.is_integer(kind) or types.is_boolean(kind)
    if wanted.kind == "number":
        fits = whole or types.is_floating(kind) or types.is_decimal(kind)
    elif wanted.kind == "date":
        fits = texts or types.is_date(kind) or types.is_timestamp(kind)
    else:
        attribute = domain.attributes[domain.axis(wanted.name)]
        truths = types.is_boolean(kind) and truth_levels(attribute) is not None
        fits = texts or truths or (_has_numbers(attribute) and whole)
    if not fits:
        raise InputError(
            f"the domain says that {wanted.name!r} is a {wanted.kind}, and its column "
            f"in {path} is of type {kind}; state cells of that kind, or convert the "
            "column"
        )


def truth_levels(attribute: Attribute) -> tuple[str, str] | None:
    """Return how the categories true and false are written; None for any others."""
    levels = [str(one) for one in (attribute.levels or ())[: attribute.regular]]
    written = {level.lower(): level for level in levels}
    if not written or not set(written) <= {"true", "false"}:
        return None
    return written.get("true", "true"), written.get("false", "false")


def _has_numbers(attribute: Attribute) -> bool:
    """Return whether the categories of an attribute are all whole numbers."""
    levels = (attribute.levels or ())[: attribute.regular]
    return all(isinstance(level, int) for level in levels)


def rows_in_chunks(
    file: Any, wanted: list[Column], domain: Domain, done: Part
) -> Iterator[dict[str, Any]]:
    """Yield the wanted columns, chunk by chunk."""
    truths = {one.name: truth_levels(one) for one in domain.attributes}
    rows = max(file.metadata.num_rows, 1)
    read = 0
    names = list(dict.fromkeys(one.name for one in wanted))
    for batch in file.iter_batches(batch_size=4 * ROWS, columns=names):
        yield {
            one.name: _from_arrow(batch.column(one.name), one, truths.get(one.name))
            for one in wanted
        }
        read += batch.num_rows
        done(read / rows)


def _from_arrow(column: Any, wanted: Column, truths: tuple[str, str] | None) -> Any:
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_large_string(column.type):
        column = column.cast("string")
    if wanted.kind == "number":
        numbers = column.cast("float64", safe=False)
        return numbers.to_numpy(zero_copy_only=False)
    if wanted.kind == "date" and types.is_string(column.type):
        return read_dates(column.to_pylist(), wanted.name, TextForm())
    if wanted.kind == "category" and types.is_boolean(column.type):
        if truths is None:
            return column.cast("int8")
        import pyarrow.compute

        return pyarrow.compute.if_else(column, *truths)
    return column
