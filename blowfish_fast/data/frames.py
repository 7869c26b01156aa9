"""Columns of public values for whatever frame a reader works with; tables of files.

No message quotes what the caller calls `private`.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import math
import os
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support.html import table, text
from blowfish_fast._support.interval_texts import digits_after, outward
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import (
    DomainError,
    InputError,
    MissingExtraError,
    SizeError,
)

from .axes import Axis, as_array, cut_values
from .csv_files import is_number
from .domain import Attributes, Domain
from .listed_items import LINE_END, QUOTE, QUOTED, Item, read_item, split_lines
from .tables.cross_tables import CrossTable, cross_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

MOST_ROWS = 2**20 - 1
"""Rows of a sheet of a workbook below its heading."""
NOT_IN_SHEETS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)"
)
"""Signs that no workbook holds, and where a text begins that would be read as one."""
LONGEST_TITLE = 31
"""Characters of a sheet's name."""
ROWS_AT_ONCE = 2**16
ROWS_SHOWN = 20
"""Rows that are printed; of longer tables the first and the last half of them."""

LARGEST_WHOLE = 1e15
"""Below it, whole numbers are printed in all their digits."""


MARK = "experiment"
SEEDED = "seeded noise: protects nobody"


class Table:
    """Named columns of one length; public values only.

    Parameters
    ----------
    columns : Mapping[str, ndarray]
        The columns by name.
    experiment : bool, default False
        Marks columns from a release whose noise was seeded. Frames and files carry the
        mark: pandas in `attrs`, arrow and Parquet in their metadata, others in a
        column.

    Examples
    --------
    >>> table = Table({"age": np.array([3, 70]), "town": np.array(["Bern", "Chur"])})
    >>> len(table), table["age"].tolist(), list(table)
    (2, [3, 70], ['age', 'town'])
    >>> print(table)
    age  town
      3  Bern
     70  Chur
    """

    __slots__ = ("columns", "experiment")

    columns: dict[str, AnyArray]

    def __init__(
        self, columns: Mapping[str, AnyArray], *, experiment: bool = False
    ) -> None:
        self.experiment = experiment
        self.columns = {name: np.asarray(column) for name, column in columns.items()}
        if len({column.shape for column in self.columns.values()}) > 1:
            raise DomainError("columns of a table must have one length")

    def __len__(self) -> int:
        return next((column.size for column in self.columns.values()), 0)

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self.columns:
            raise DomainError(
                f"there is no column {name!r}; this table has {list(self.columns)}"
            )
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def keys(self) -> Iterable[str]:
        """Return the names of the columns, so that ``dict(table)`` holds arrays."""
        return self.columns.keys()

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        aligned = []
        for name, rows in self._shown().items():
            # Texts begin at their left end, everything else ends at its right end.
            side = str.ljust if self.columns[name].dtype.kind in "OUS" else str.rjust
            width = max(map(len, [name, *rows]))
            aligned.append([side(text, width) for text in (name, *rows)])
        lines = ["  ".join(row).rstrip() for row in zip(*aligned, strict=True)]
        return "\n".join([*lines, *self._rest()])

    def _repr_html_(self) -> str:
        shown = self._shown()
        rows = list(zip(*shown.values(), strict=True))
        return table(list(shown), rows) + "".join(
            f"<div>{text(line)}</div>" for line in self._rest()
        )

    def _shown(self) -> dict[str, list[str]]:
        """Return the rows that are printed, as texts, by column."""
        half = ROWS_SHOWN // 2
        short = len(self) <= ROWS_SHOWN
        return {
            name: [
                _shown_value(value, name)
                for value in (column if short else column[:half])
            ]
            + ([] if short else ["..."])
            + [_shown_value(value, name) for value in column[-half:] if not short]
            for name, column in self.columns.items()
        }

    def _rest(self) -> list[str]:
        return [f"{len(self):,} rows"] if len(self) > ROWS_SHOWN else []

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand the columns over to whatever reads arrow streams."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return plain lists by column."""
        return {
            name: column.tolist() for name, column in self._marked_columns().items()
        }

    def _marked_columns(self) -> dict[str, AnyArray]:
        """Return the columns, and one more that says so where noise was seeded."""
        if not self.experiment:
            return self.columns
        return {**self.columns, MARK: np.full(len(self), SEEDED)}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas data frame."""
        library = require("pandas", extra="frames", purpose="a pandas data frame")
        frame: pandas.DataFrame = library.DataFrame(_for_frames(self.columns))
        if self.experiment:
            frame.attrs[MARK] = SEEDED
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return a polars data frame."""
        library = require("polars", extra="frames", purpose="a polars data frame")
        columns = {
            name: column.tolist() if column.dtype.kind in "OU" else column
            for name, column in _for_frames(self._marked_columns()).items()
        }
        frame: polars.DataFrame = library.DataFrame(columns, strict=False)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Return an arrow table."""
        arrow = require("pyarrow", extra="frames", purpose="an arrow table")
        table = arrow.table(
            {
                name: arrow.array(
                    column.tolist() if column.dtype.kind in "OU" else column,
                    from_pandas=True,
                )
                for name, column in _for_frames(self.columns).items()
            }
        )
        return table.replace_schema_metadata({MARK: SEEDED} if self.experiment else {})

    def to_csv(self, path: str | os.PathLike[str], *, encoding: str = "utf-8") -> None:
        """Write a CSV file with a line of names first; missing values stay empty.

        Parameters
        ----------
        path : str or os.PathLike[str]
            Where to.
        encoding : str, default 'utf-8'
            The encoding of the text.
        """
        with open(path, "w", newline="", encoding=encoding) as file:
            writer = csv.writer(file)
            columns = self._marked_columns()
            writer.writerow(columns)
            for start in range(0, len(self), ROWS_AT_ONCE):
                block = slice(start, start + ROWS_AT_ONCE)
                texts = [_texts(column[block]) for column in columns.values()]
                writer.writerows(zip(*texts, strict=True))

    def to_xlsx(self, path: str | os.PathLike[str], *, about: str = "") -> None:
        """Write a workbook.

        Parameters
        ----------
        path : str or os.PathLike[str]
            Where to.
        about : str, default ''
            Lines that stand on a sheet of their own.
        """
        write_workbook(path, {"table": self}, about=about)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file."""
        parquet = require("pyarrow.parquet", extra="frames", purpose="Parquet")
        parquet.write_table(self.to_arrow(), os.fspath(path))


def write_csv(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table so that a spreadsheet shows its letters as they are.

    Without a mark at the beginning of the file Excel garbles umlauts.

    Parameters
    ----------
    table : Table
        The table.
    path : str or os.PathLike[str]
        Where to.
    """
    texts = (column for column in table.columns.values() if column.dtype.kind in "OU")
    words = {str(value) for column in texts for value in set(column.tolist())}
    plainly = "".join({*table.columns, *words}).isascii()
    table.to_csv(path, encoding="utf-8" if plainly else "utf-8-sig")


def write_workbook(
    path: str | os.PathLike[str], sheets: Mapping[str, Table], *, about: str = ""
) -> None:
    """Write tables to the sheets of one workbook, those of two attributes crossed, too.

    A cross table stands on a sheet before the lines, with one count per cell, rounded
    to what the noise allows. Nothing is written where a table has more rows than a
    sheet holds.

    Parameters
    ----------
    path : str or os.PathLike[str]
        Where to.
    sheets : Mapping[str, Table]
        Tables by the title of their sheet.
    about : str, default ''
        Lines for a sheet of their own, which comes first.

    Raises
    ------
    SizeError
        If a table has too many rows.
    """
    openpyxl = require("openpyxl", extra="excel", purpose="a workbook")
    for title, sheet_table in sheets.items():
        check_rows(title, len(sheet_table))
    book = openpyxl.Workbook(write_only=True)
    try:
        if about:
            first = book.create_sheet("promise")
            for line in about.splitlines():
                _append(first, [line])
        for title, sheet_table in sheets.items():
            crossed = cross_table(sheet_table.columns)
            if crossed is not None:
                sheet = book.create_sheet(f"cross {title}"[:LONGEST_TITLE])
                _fill_crossed(sheet, crossed, experiment=sheet_table.experiment)
            sheet = book.create_sheet(title[:LONGEST_TITLE])
            _append(sheet, sheet_table._marked_columns())
            for row in zip(*sheet_table.to_dict().values(), strict=True):
                _append(sheet, row)
        book.save(path)
    except BaseException:
        # Sheets write to files of their own as they grow: none stays open.
        for sheet in book.worksheets:
            with contextlib.suppress(Exception):
                sheet.close()
        raise


def _fill_crossed(sheet: Any, crossed: CrossTable, *, experiment: bool) -> None:
    """Write a cross table, and below it how its counts were rounded."""
    _append(sheet, crossed.columns)
    listed = [column.tolist() for column in crossed.columns.values()]
    for row in zip(*listed, strict=True):
        _append(sheet, row)
    sheet.append([])
    if crossed.unit > 1:
        said = f"Rounded to multiples of {crossed.unit:,}: noise allows no more."
        sheet.append([said])
    sheet.append(["The next sheet has every count with its interval."])
    if experiment:
        sheet.append(["Seeded: an experiment, which protects nobody."])


def check_rows(title: str, rows: int) -> None:
    """Refuse more rows than a sheet of a workbook holds.

    Parameters
    ----------
    title : str
        The title of the sheet, for the message.
    rows : int
        How many rows it would have.

    Raises
    ------
    SizeError
        If there are too many.
    """
    if rows > MOST_ROWS:
        raise SizeError(
            f"a sheet holds at most {MOST_ROWS:,} cells",
            received=f"{title} with {rows:,}",
            way_out="Save CSV files instead",
        )


def _append(sheet: Any, values: Iterable[Any]) -> None:
    """Write a row, in which texts stay texts: ``=1+1`` is no formula, #N/A no error."""
    row = [_sheet_value(value) for value in values]
    for at, value in enumerate(row):
        if isinstance(value, str) and value[:1] in ("=", "#"):
            cell = _text_cell(sheet)
            cell.value = value
            cell.data_type = "s"
            row[at] = cell
    sheet.append(row)


def _text_cell(sheet: Any) -> Any:
    cells = require("openpyxl.cell", extra="excel", purpose="a workbook")
    return cells.WriteOnlyCell(sheet)


def _sheet_value(value: Any) -> Any:
    """Return what a sheet can hold: finite numbers and texts; None where missing.

    Control signs, and texts that read like one, are written as workbooks escape them.
    """
    if value is None or value != value:
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return NOT_IN_SHEETS.sub(lambda sign: f"_x{ord(sign[0]):04X}_", str(value))


def _for_frames(columns: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Turn hours, minutes and seconds, which not all frames know, into milliseconds."""
    return {
        name: column.astype("datetime64[ms]")
        if column.dtype.kind == "M"
        and np.datetime_data(column.dtype)[0] in ("h", "m", "s")
        else column
        for name, column in columns.items()
    }


def _shown_value(value: Any, column: str) -> str:
    """Return a value as it is printed: six digits, and nothing where it is missing.

    Columns of ends of intervals are rounded outwards.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float | np.floating):
        number = float(value)
        if abs(number) < LARGEST_WHOLE and number.is_integer():
            return f"{number:.0f}"
        large = 1e5 <= abs(number) < LARGEST_WHOLE
        end = column.rpartition("_")[2]
        if end in ("low", "high") and math.isfinite(number):
            digits = 1 if large else digits_after(number)
            number = outward(number, digits, upwards=end == "high")
        return f"{number:.1f}".removesuffix(".0") if large else f"{number:.6g}"
    return str(value)


def _texts(column: AnyArray) -> Iterator[Any]:
    if column.dtype.kind == "M":
        is_date = ~np.isnat(column)
        texts = np.datetime_as_string(column).tolist()
        return (
            text if there else "" for text, there in zip(texts, is_date, strict=True)
        )
    if column.dtype.kind == "f":
        return ("" if number != number else repr(number) for number in column.tolist())
    return iter(column.tolist())


ENDS_OF_INTERVALS = {
    f"{held}{end}"
    for held in ("", "noise_", "certified_", "population_")
    for end in ("low", "high")
}
COUNTED = {"estimate", "count", "whole", "people", "listed"}
MEASURED = {"relative_count", "rate", "sum", "mean", "variance", "std", "quantile"}
NUMBERS = COUNTED | MEASURED | ENDS_OF_INTERVALS | {"p_value", "noise_share"}
"""Columns that tables have beside those that say what a line is about."""


def attribute_column(name: str, taken: Container[str] = (), ends: str = "") -> str:
    """Return what an attribute is called in a table that has numbers of its own.

    Parameters
    ----------
    name : str
        The name of the attribute.
    taken : container of str, optional
        The columns of the attributes before it.
    ends : str, default ""
        What stands behind the name of its first column.

    Returns
    -------
    str
        The name, unless another column is called so.

    Examples
    --------
    >>> attribute_column("town"), attribute_column("low")
    ('town', 'low (column)')
    """
    while f"{name}{ends}" in NUMBERS or f"{name}{ends}" in taken:
        name = f"{name} (column)"
    return name


def cell_columns(domain: Attributes, places: list[IntArray]) -> dict[str, AnyArray]:
    """Return columns that describe cells, given their places along each axis.

    Cells between edges have two, ``_from`` and ``_to``, and a third, ``_cell``, where
    some have no place on the axis; others have one, by the attribute's name, or, where
    a number is called so, such as ``low``, by ``low (column)``.

    Parameters
    ----------
    domain : Attributes
        The attributes.
    places : list[ndarray of int64]
        The place of each cell along each axis.

    Returns
    -------
    dict[str, ndarray]
        The columns by name.
    """
    columns: dict[str, AnyArray] = {}
    for name, attribute, place in zip(
        domain.column_names, domain.attributes, places, strict=True
    ):
        ends = "_from" if _has_two_columns(attribute) else ""
        name = attribute_column(name, columns, ends)
        if attribute.levels is not None:
            columns[name] = as_array(attribute.levels)[place]
        elif attribute.cuts is not None:
            cuts = cut_values(attribute)
            none = np.nan if attribute.unit is None else "NaT"
            blank = np.array([none] * len(attribute.extras), dtype=cuts.dtype)
            columns[f"{name}_from"] = np.concatenate([cuts[:-1], blank])[place]
            columns[f"{name}_to"] = np.concatenate([cuts[1:], blank])[place]
        elif attribute.keys is not None:
            columns[name] = _words(attribute, place)
        elif attribute.steps is not None:
            columns |= _step_columns(name, attribute, place)
        else:
            columns[name] = place
        if attribute.extras and attribute.levels is None:
            words = np.array(["", *attribute.extras], dtype=object)
            behind = np.maximum(place - attribute.regular + 1, 0).astype(np.int64)
            columns[f"{name}_cell"] = words[behind]
    return columns


def _has_two_columns(attribute: Axis) -> bool:
    """Return whether a table says of each cell where it begins and where it ends."""
    if attribute.levels is not None or attribute.keys is not None:
        return False
    by_rule = attribute.cuts is None and attribute.steps is not None
    return not attribute.rule.is_single if by_rule else attribute.cuts is not None


def _words(attribute: Axis, place: AnyArray) -> AnyArray:
    """Return the words of cells that nobody listed; stray cells have none."""
    rule, regular = attribute.keys, attribute.regular
    assert rule is not None
    words = np.empty(len(place), dtype=object)
    words[:] = [rule.word(int(number)) if number < regular else "" for number in place]
    return words


def _step_columns(name: str, attribute: Axis, place: IntArray) -> dict[str, AnyArray]:
    """Return where cells by a rule begin, and where they end if that says more."""
    rule = attribute.steps
    assert rule is not None
    regular = place < attribute.regular
    ends = [np.where(regular, place, 0) + more for more in (0, 1)]
    columns: list[AnyArray] = [rule.values(end) for end in ends]
    if not regular.all():
        blank: Any = None if rule.unit is None else np.datetime64("NaT")
        columns = [np.where(regular, column, blank) for column in columns]
    if rule.is_single:
        return {name: columns[0]}
    return {f"{name}_from": columns[0], f"{name}_to": columns[1]}


DEGREES_CRS = "EPSG:4326"
DEGREES = {
    name: {"standard_name": standard, "units": units}
    for standard, units, several in (
        ("longitude", "degrees_east", ("lon", "longitude")),
        ("latitude", "degrees_north", ("lat", "latitude")),
    )
    for name in several
}
"""Sides of a map that are degrees, and what CF notes of them."""


def labelled_arrays(
    domain: Domain,
    values: Mapping[str, AnyArray],
    attributes: Mapping[str, str],
    crs: Any = None,
) -> Any:
    """Return an xarray dataset: a dimension per attribute, with what its cells are.

    Cells between edges are labelled by their centres, and the edges are their bounds,
    as the conventions for climate and forecast data (CF) have it. So a map that is
    drawn from the dataset lies where the cells lie.

    Parameters
    ----------
    domain : Domain
        The cells.
    values : mapping from str to ndarray
        One number per cell, in C order.
    attributes : mapping from str to str
        What is noted of the whole dataset.
    crs : optional
        The reference system of a map: anything that `pyproj.CRS` takes, such as 2056 or
        "EPSG:2056". Sides called lon and lat, or longitude and latitude, are degrees
        (EPSG:4326) where nothing is said.

    Returns
    -------
    xarray.Dataset
        The values; coordinates; bounds, in variables ``NAME_bounds``; and the reference
        system, where one is known, in the variable ``spatial_ref``.

    Raises
    ------
    MissingExtraError
        xarray is not installed.
    InputError
        There is no such reference system, or pyproj, which knows them, is not there.
    """
    try:
        xarray = importlib.import_module("xarray")
    except ImportError as problem:
        raise MissingExtraError(
            "a dataset of xarray needs xarray, which is not installed; install it "
            "with: pip install xarray"
        ) from problem
    names = tuple(map(attribute_column, domain.column_names))
    coordinates: dict[str, Any] = {}
    for axis, (name, own, attribute) in enumerate(
        zip(names, domain.column_names, domain.attributes, strict=True)
    ):
        cells = cell_columns(domain.marginal(axis), [np.arange(domain.shape[axis])])
        if attribute.cuts is None:
            coordinates |= {column: (name, along) for column, along in cells.items()}
            continue
        low, high = (cells.pop(f"{own}_{end}") for end in ("from", "to"))
        if attribute.unit is not None:
            # Half a day is no whole number of days.
            low, high = (dates.astype("datetime64[us]") for dates in (low, high))
        about = {"bounds": f"{name}_bounds", **DEGREES.get(own, {})}
        coordinates[name] = (name, low + (high - low) / 2, about)
        coordinates[f"{name}_bounds"] = ((name, "bounds"), np.stack([low, high], -1))
        coordinates |= {column: (name, along) for column, along in cells.items()}
    if crs is None and {"longitude", "latitude"} <= {
        DEGREES.get(name, {}).get("standard_name") for name in names
    }:
        crs = DEGREES_CRS
    mapped = {} if crs is None else {"grid_mapping": "spatial_ref"}
    if crs is not None:
        coordinates["spatial_ref"] = ((), 0, _reference_system(crs))
    return xarray.Dataset(
        {
            key: (names, array.reshape(domain.shape), mapped)
            for key, array in values.items()
        },
        coords=coordinates,
        attrs=dict(attributes),
    )


def _reference_system(crs: Any) -> dict[str, Any]:
    """Return what CF notes of a reference system; its name alone without pyproj."""
    try:
        pyproj = importlib.import_module("pyproj")
    except ImportError:
        if crs == DEGREES_CRS:
            return {"grid_mapping_name": "latitude_longitude", "spatial_ref": crs}
        raise MissingExtraError(
            "reference systems are known to pyproj, which is not installed; install "
            "it with: pip install pyproj"
        ) from None
    try:
        system = pyproj.CRS(crs)
    except pyproj.exceptions.CRSError:
        raise InputError(
            f"{crs!r} is no reference system that pyproj knows",
            way_out='Name one by its number, as in crs=2056 or "EPSG:2056"',
        ) from None
    with warnings.catch_warnings():
        # What has no word of its own in CF is in the text that stands beside it.
        warnings.simplefilter("ignore")
        attributes: dict[str, Any] = system.to_cf()
    return {**attributes, "spatial_ref": attributes["crs_wkt"]}


def numbers_from_file(path: Path, meaning: str, *, private: bool = False) -> FloatArray:
    """Return the rows of numbers of a file.

    Parameters
    ----------
    path : Path
        A .npy file, or a text file.
    meaning : str
        What the numbers are, for messages.
    private : bool, default False
        Whether messages must not quote what the file holds.

    Returns
    -------
    ndarray of float64
        The numbers.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or holds something else.
    """
    if path.suffix.lower() == ".npy":
        array = loaded_array(path, meaning)
    else:
        array = _rows(path, meaning, private)
    if array.size == 0:
        raise InputError(f"{path} holds no {meaning}; it is empty")
    return array.astype(np.float64)


def items_of(path: Path, meaning: str) -> list[str]:
    """Return the values of a list in a file, one per line, as `split_lines` has it.

    Parameters
    ----------
    path : Path
        The file.
    meaning : str
        What is expected there, for messages.

    Returns
    -------
    list[str]
        The values.

    Raises
    ------
    InputError
        If the file cannot be read, or is empty.
    """
    items = [item.text for item in split_lines(_text_of(path, meaning))]
    if not items:
        raise InputError(f"{path} holds no {meaning}; it is empty")
    return items


def _text_of(path: Path, meaning: str) -> str:
    try:
        # Line breaks stay as they are: one may belong to a value.
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InputError(
            f"{path} cannot be read ({why}); expected there: {meaning}"
        ) from None


def rows_of(path: Path, meaning: str) -> list[list[str]]:
    """Return the fields of a small public CSV file, without spaces around them.

    Parameters
    ----------
    path : Path
        The file.
    meaning : str
        What is expected there, for messages.

    Returns
    -------
    list[list[str]]
        The fields of each line.

    Raises
    ------
    InputError
        If the file cannot be read, or is empty.
    """
    text = _text_of(path, meaning)
    if QUOTE in text:
        rows = _quoted_rows(text)
    else:
        lines = [
            mark_or_field.strip()
            for mark_or_field in LINE_END.split(text)
            if mark_or_field.strip()
        ]
        between = _delimiter("".join(lines[:1]))
        rows = [
            [mark_or_field.strip() for mark_or_field in row]
            for row in csv.reader(lines, delimiter=between)
        ]
    if not rows:
        raise InputError(f"{path} holds no {meaning}; it is empty")
    return rows


def _delimiter(line: str) -> str:
    """Return what spreadsheets put between the fields of a line."""
    # A comma in a name needs quotes there, a semicolon none.
    return next((mark for mark in ",;\t" if mark in QUOTED.sub("", line)), ",")


def _quoted_rows(text: str) -> list[list[str]]:
    """Return rows of which some fields stand in quotation marks, blanks and all."""
    first = LINE_END.split(QUOTED.sub("", text.lstrip()), maxsplit=1)[0]
    ends = re.compile(f"{re.escape(_delimiter(first))}|{LINE_END.pattern}")
    rows: list[list[Item]] = [[]]
    start = 0
    while start < len(text):
        item, stop = read_item(text, start, ends)
        rows[-1].append(item)
        end = ends.match(text, stop)
        start = len(text) if end is None else end.end()
        if end is not None and LINE_END.fullmatch(end[0]):
            rows.append([])
    blank = Item("", quoted=False)
    return [[item.text for item in row] for row in rows if row and row != [blank]]


def loaded_array(path: Path, meaning: str, *, mapped: bool = False) -> AnyArray:
    """Return the numbers of a .npy file; pickled ones are refused, never run.

    Parameters
    ----------
    path : Path
        The file.
    meaning : str
        What is expected there, for messages.
    mapped : bool, default False
        Whether the numbers stay on disk until they are read.

    Returns
    -------
    ndarray
        The numbers.

    Raises
    ------
    InputError
        If the file cannot be read, or holds something else.
    """
    try:
        array: AnyArray = np.load(
            path, mmap_mode="r" if mapped else None, allow_pickle=False
        )
    except (OSError, ValueError, EOFError, MemoryError, OverflowError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else None
        raise InputError(
            f"{path} cannot be read ({why or 'no plain array of numbers'}); expected "
            f"there: {meaning}, as numpy.save writes them"
        ) from None
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"{path} holds several arrays; expected there: {meaning}, one array, as "
            "numpy.save writes it"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} must hold numbers ({meaning}); its dtype is {array.dtype}"
        )
    return array


def _rows(path: Path, meaning: str, private: bool) -> AnyArray:
    rows = rows_of(path, meaning)
    if not all(is_number(text) for text in rows[0]):
        rows = rows[1:]
    for at, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]) or not all(is_number(text) for text in row):
            description = "is not like that" if private else f"is {','.join(row)!r}"
            raise InputError(
                f"every line of {path} must hold the same number of numbers "
                f"({meaning}); row {at} {description}"
            )
    return np.array([[float(text) for text in row] for row in rows])
