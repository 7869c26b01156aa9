"""Lines of a CSV file as columns, chunk by chunk.

    age,district          age       float64, NaN where missing
    34,north       ->     district  texts, None where empty
    ,south                day       texts like 2024-05-31

Read by pyarrow where it is installed, and by Python's own reader otherwise; both take
the same values. Numbers and dates count as missing when they are empty or read NA,
N/A, NaN, null or None, a category only when it is empty, and all of them when they
read as a `TextForm` states. Spaces around a value, or around a name of the first line,
are no part of it. What cannot be read is said without quoting it: it could be a
person's value.
"""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.apps.cli.parsing.text_forms import TextForm, read_dates, read_numbers
from blowfish_fast.errors import InputError

from .csv_head import BROKEN, CountedFile, Layout, broken_gzip, texts_of, undecoded

ROWS = 2**16
"""Rows of a chunk."""
BLOCK_BYTES = 2**22
Part = Callable[[float], None]
"""Takes the part of the file that has been read, from 0 to 1."""


class Column(NamedTuple):
    """A column that is needed: its name, and what its values are."""

    name: str
    kind: str


def lines_in_chunks(
    path: Path, layout: Layout, wanted: list[Column], form: TextForm, done: Part
) -> Iterator[dict[str, Any]]:
    """Yield the wanted columns, chunk by chunk."""
    installed = importlib.util.find_spec("pyarrow") is not None
    chunks = (_arrow_csv if installed else _plain_csv)(path, layout, wanted, form, done)
    try:
        yield from chunks
    except BROKEN:
        raise InputError(f"{broken_gzip(path)}. Nothing was charged") from None


def _arrow_csv(
    path: Path, layout: Layout, wanted: list[Column], form: TextForm, done: Part
) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.csv

    texts = {one.name: pyarrow.string() for one in wanted}
    # Others may lack a name, or share one.
    names = [
        name if name in texts else f"column {at}"
        for at, name in enumerate(layout.header)
    ]
    try:
        with CountedFile(path) as file:
            reader = pyarrow.csv.open_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=BLOCK_BYTES,
                    column_names=names,
                    skip_rows=layout.above,
                    encoding=layout.encoding.removesuffix("-sig"),
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=layout.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(names) > 1,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=list(texts), column_types=texts
                ),
            )
            for batch in reader:
                yield {
                    one.name: _from_texts(batch.column(one.name), one, form, path)
                    for one in wanted
                }
                done(file.part)
            _refuse_open_quote(path, layout, file.quotes)
    except pyarrow.ArrowInvalid as problem:
        raise InputError(_unreadable(path, layout, str(problem))) from None
    except UnicodeError:
        raise InputError(undecoded(path, layout.encoding)) from None


def _from_texts(column: Any, wanted: Column, form: TextForm, path: Path) -> Any:
    """Turn a column of texts into what cells are found from."""
    import pyarrow
    import pyarrow.compute

    if wanted.kind == "date":
        return read_dates(column.to_pylist(), wanted.name, form)
    trimmed = pyarrow.compute.utf8_trim_whitespace(column)
    absent = pyarrow.scalar(None, pyarrow.string())
    if wanted.kind == "category":
        blanks = pyarrow.array(["", *form.blanks], pyarrow.string())
        empty = pyarrow.compute.is_in(trimmed, value_set=blanks)
        return pyarrow.compute.if_else(empty, absent, trimmed)
    if form.decimal is None:
        blanks = pyarrow.array(sorted(form.absent), pyarrow.string())
        empty = pyarrow.compute.is_in(trimmed, value_set=blanks)
        known = pyarrow.compute.if_else(empty, absent, trimmed)
        try:
            return known.cast("float64").to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid:
            # What Python takes for a number is one: +5, for instance.
            pass
    return _numbers(column.to_pylist(), wanted, form, path)


def _numbers(texts: list[Any], wanted: Column, form: TextForm, path: Path) -> AnyArray:
    try:
        return read_numbers(texts, form)
    except ValueError:
        raise InputError(_no_number(path, wanted.name, form)) from None


def _plain_csv(
    path: Path, layout: Layout, wanted: list[Column], form: TextForm, done: Part
) -> Iterator[dict[str, Any]]:
    places = [layout.header.index(one.name) for one in wanted]
    columns = len(layout.header)
    try:
        with CountedFile(path) as raw, texts_of(raw, layout.encoding) as lines:
            for _ in range(layout.above):
                lines.readline()
            block: list[list[str]] = []
            for row in csv.reader(lines, delimiter=layout.delimiter):
                if not row and columns == 1:
                    # A record like any other, whose only value is missing.
                    row = [""]
                if len(row) != columns:
                    if not row:
                        continue
                    raise InputError(_unreadable(path, layout, "columns"))
                block.append([row[at] for at in places])
                if len(block) == ROWS:
                    yield _converted(block, wanted, form, path)
                    done(raw.part)
                    block = []
            if block:
                yield _converted(block, wanted, form, path)
            _refuse_open_quote(path, layout, raw.quotes)
    except UnicodeError:
        raise InputError(undecoded(path, layout.encoding)) from None
    except csv.Error:
        raise InputError(_unreadable(path, layout, "")) from None


def _converted(
    rows: list[list[str]], wanted: list[Column], form: TextForm, path: Path
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    blanks = {"", *form.blanks}
    for one, texts in zip(wanted, zip(*rows, strict=True), strict=True):
        if one.kind == "date":
            made[one.name] = read_dates(list(texts), one.name, form)
        elif one.kind == "category":
            trimmed = [text.strip() for text in texts]
            made[one.name] = np.array(
                [None if text in blanks else text for text in trimmed], dtype=object
            )
        else:
            made[one.name] = _numbers(list(texts), one, form, path)
    return made


def _refuse_open_quote(path: Path, layout: Layout, quotes: int) -> None:
    """Refuse a file whose last quotation mark is never closed.

    Both readers take all lines after such a mark as one text, so the people on them
    would be lost without a word. Marks come in pairs; only where one is odd, as in
    ``5" pipe``, is the file read once more to see whether it ends inside a text.
    """
    if quotes % 2 == 0:
        return
    try:
        with CountedFile(path) as raw, texts_of(raw, layout.encoding) as file:
            for _ in csv.reader(file, delimiter=layout.delimiter, strict=True):
                pass
    except csv.Error:
        raise InputError(
            f"{path}: every quotation mark that opens a value must be closed; one is "
            "not, and the lines after it would be lost. Close it, or double a mark "
            "that belongs to a value. Nothing was charged"
        ) from None


def _no_number(path: Path, name: str, form: TextForm) -> str:
    """Say that a value is no number, and how others would be read."""
    if form.decimal is None:
        way_out = (
            'Where 1.234,5 is meant, state decimal = "," under [data], or --decimal '
            '","; where 1,234.5 is, decimal = "."; where another word stands for '
            'missing, blanks = ["-"], or --blank=-'
        )
    else:
        way_out = (
            f"The decimal mark was stated to be {form.decimal!r}; where another word "
            'stands for missing, state blanks = ["-"] under [data], or --blank=-'
        )
    return (
        f"{path}: every value of {name} must be a number, or missing (empty, NA, NaN, "
        f"null); some are not. {way_out}. Nothing was charged"
    )


def _unreadable(path: Path, layout: Layout, problem: str) -> str:
    """Say what is wrong without a word of what the file holds."""
    if "olumns" in problem:
        return (
            f"{path}: some line has more or fewer fields than the first; values with "
            "the delimiter in them need quotes. Nothing was charged"
        )
    return undecoded(path, layout.encoding)
