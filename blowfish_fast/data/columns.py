"""Tables of records, whatever library holds them, as columns in small blocks.

Data frames are read through narwhals, points of geopandas as lon, lat, x and y, an
iterator chunk by chunk. One block of rows is turned into plain arrays at a time. Arrow
would import pandas, where it is installed, to convert to numpy and from Python, which
takes longer than all that a short command has to do: its buffers are read here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.errors import InputError

from .domain import Attributes
from .places.districts import Borders

BLOCK = 2**18
"""Rows turned into cell numbers at a time."""

FEW_TEXTS = 2**16
"""Texts that are encoded here before pandas would be imported."""

EAST = ("lon", "longitude", "x", "east", "easting")
NORTH = ("lat", "latitude", "y", "north", "northing")
"""Attributes that are read off points, where a table has no column of that name."""

Column = Any
"""A one-dimensional numpy array, or a narwhals Series."""


def record_blocks(records: Any, domain: Attributes) -> Iterator[list[Column]]:
    """Yield blocks of rows, each a list of one column per attribute of `domain`.

    Parameters
    ----------
    records : frame, mapping, array or iterator of these
        The table.
    domain : Attributes
        The attributes that are read.

    Yields
    ------
    list
        One column per attribute.

    Raises
    ------
    InputError
        If a column is missing, or columns differ in length.
    """
    chunks = records if hasattr(records, "__next__") else iter([records])
    for chunk in chunks:
        columns = _columns(chunk, domain)
        rows = _common_length(columns)
        for start in range(0, rows, BLOCK):
            yield [column[start : start + BLOCK] for column in columns]


def _columns(table: Any, domain: Attributes) -> list[Column]:
    if isinstance(table, Mapping):
        return [as_column(column) for column in _by_name(table, list(table), domain)]
    if isinstance(table, np.ndarray) and table.dtype.names:
        return _by_name(table, list(table.dtype.names), domain)
    frame = None if isinstance(table, np.ndarray | list | tuple) else _frame(table)
    if frame is not None and hasattr(frame, "columns"):
        names = list(frame.columns)
        points = _of_points(table, domain)
        if points:
            return _columns({**{name: table[name] for name in names}, **points}, domain)
        if not any(domain.names) and len(names) == domain.ndim:
            return [frame[name] for name in names]
        return _by_name(frame, names, domain)
    if frame is not None:
        chosen: Sequence[Any] = [frame]
    elif domain.ndim == 1 and np.ndim(table) == 1:
        chosen = [table]
    elif isinstance(table, np.ndarray) and table.ndim == 2:
        # Whatever its shape, a row is a record: two records of two attributes too.
        chosen = list(table.T)
    else:
        chosen = list(table)
    if len(chosen) != domain.ndim:
        raise InputError(
            f"give one column per attribute: {domain.ndim} attributes, "
            f"{len(chosen)} columns. An array has one record per row; a list is one of "
            "columns, and a list of chunks is handed over as iter(chunks)"
        )
    return [as_column(column) for column in chosen]


def _of_points(table: Any, domain: Attributes) -> dict[str, Any]:
    """Return what points say of attributes that a table has no column of.

    ::

        attribute of numbers     lon, lat, x, y, ... are the coordinates themselves
        attribute of districts   the id of the district, whatever system points are in
    """
    points: Any = getattr(table, "geometry", None)
    if not (hasattr(points, "x") and hasattr(points, "y")):
        return {}
    in_districts = {
        str(attribute.name): _districts_of_points(points, attribute.borders)
        for attribute in domain.attributes
        if attribute.borders is not None
        and attribute.name not in table
        and not {*attribute.borders.columns} <= {*table}
    }
    lacking = [
        str(name)
        for name in domain.names
        if name and name not in table and name not in in_districts
    ]
    if not lacking or not {*lacking} <= {*EAST, *NORTH}:
        return in_districts
    reference = getattr(table, "crs", None)
    degrees = [name for name in lacking if name in (*EAST[:2], *NORTH[:2])]
    if degrees and reference is not None and not reference.is_geographic:
        raise InputError(
            f"{', '.join(degrees)} are degrees, and the points of this table are not",
            received=str(reference),
            way_out="Hand over table.to_crs(4326), or call the sides x and y",
        )
    sides = {name: points.x if name in EAST else points.y for name in lacking}
    return {**in_districts, **sides}


def _districts_of_points(points: Any, borders: Borders) -> AnyArray:
    """Return the id of the district of each point, in the system of the districts."""
    if getattr(points, "crs", None) is None:
        raise InputError(
            "points are placed in districts by their reference system",
            received="points without one",
            way_out="State it: table.set_crs(4326) for degrees of WGS 84",
        )
    districts = borders.districts
    moved = points if districts is None else points.to_crs(districts.system)
    return borders.column(moved.x, moved.y)


def named_column(table: Any, name: str, word: str) -> Column:
    """Return a column beside the attributes.

    Parameters
    ----------
    table : frame, mapping or array
        The table.
    name : str
        The name of the column.
    word : str
        The argument that asks for it, for the message.

    Returns
    -------
    ndarray or narwhals Series
        The column.

    Raises
    ------
    InputError
        If there is no such column.
    """
    if isinstance(table, Mapping):
        names: Sequence[str] = list(table)
    elif isinstance(table, np.ndarray) and table.dtype.names:
        names = list(table.dtype.names)
    else:
        plain = isinstance(table, np.ndarray | list | tuple)
        table = None if plain else _frame(table)
        names = list(getattr(table, "columns", ()))
    if name not in names:
        raise InputError(
            f"{word} names a column of the table, and there is no {name!r}",
            way_out="Hand over a table with names, or the column itself",
        )
    return as_column(table[name])


def _by_name(table: Any, names: Sequence[str], domain: Attributes) -> list[Any]:
    # Points stand for their districts, unless the table names these itself.
    points = {
        attribute.name: attribute.borders
        for attribute in domain.attributes
        if attribute.borders is not None
        and attribute.name not in names
        and {*attribute.borders.columns} <= {*names}
    }
    lacking = [
        name for name in domain.names if name not in names and name not in points
    ]
    if lacking:
        coordinates = [
            f"; {attribute.name} may also be told by the columns "
            f"{' and '.join(attribute.borders.columns)} of coordinates"
            for attribute in domain.attributes
            if attribute.borders is not None and attribute.name in lacking
        ]
        raise InputError(
            f"columns lack the attributes {lacking}; a table needs one column for each "
            f"of {list(domain.names)}{''.join(coordinates)}"
        )
    located = {
        name: borders.column(*(table[column] for column in borders.columns))
        for name, borders in points.items()
    }
    return [located[name] if name in located else table[name] for name in domain.names]


def _frame(table: Any) -> Any:
    """Return a narwhals frame or series; None for anything else."""
    import narwhals as nw

    if type(table).__module__.partition(".")[0] == "pyarrow":
        import pyarrow

        if isinstance(table, pyarrow.RecordBatch):
            table = pyarrow.Table.from_batches([table])
        elif isinstance(table, pyarrow.Array):
            table = pyarrow.chunked_array([table])
    frame = nw.from_native(table, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def dictionary_codes(column: Column) -> tuple[IntArray, int] | None:
    """Return a code per text, none missing, and how many; None without arrow."""
    dictionary = categories(column)
    if dictionary is not None:
        return dictionary[0].astype(np.int64), len(dictionary[1])
    texts = arrow_texts(column)
    if texts is None:
        return None
    encoded = _in_one_piece(texts.dictionary_encode())
    return plain_codes(encoded.indices), len(encoded.dictionary)


def level_codes(levels: Sequence[str], column: Column) -> IntArray | None:
    """Return places among levels, -1 for others, -2 for missing.

    Parameters
    ----------
    levels : Sequence[str]
        The levels.
    column : Column
        The values.

    Returns
    -------
    ndarray of int64 or None
        The places; None where arrow is not installed.
    """
    coded = categories(column)
    if coded is not None:
        place = {level: at for at, level in enumerate(levels)}
        # Missing ones have number -1: the last.
        return np.array([*(place.get(category, -1) for category in coded[1]), -2])[
            coded[0]
        ]
    texts = arrow_texts(column)
    if texts is None:
        return None
    import pyarrow.compute

    fitting = np.arange(len(levels))
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        # What is longer than the texts of the array is none of them.
        longest = column.dtype.itemsize // column.dtype.alignment
        fitting = fitting[[len(category) <= longest for category in levels]]
        short = [levels[at] for at in fitting.tolist()]
        values = arrow_texts(np.array(short, column.dtype))
    else:
        values = arrow_strings(levels, texts.type)
    places = pyarrow.compute.index_in(texts, value_set=values)
    codes: IntArray = plain_codes(places)
    if fitting.size < len(levels):
        codes = np.append(fitting, -1)[codes]
    if not texts.null_count:
        return codes
    return np.where(plain_array(texts.is_null()), -2, codes)


def encoded_values(column: Column) -> tuple[IntArray, list[Any]] | None:
    """Return a code per value, -1 for a missing one, and the value of each code.

    None for columns of numbers, and for texts without arrow.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return None
    if not isinstance(column, np.ndarray) and column.dtype.is_numeric():
        return None
    dictionary = categories(column)
    if dictionary is not None:
        return dictionary
    texts = arrow_texts(column)
    if texts is None:
        return None
    encoded = _in_one_piece(texts.dictionary_encode())
    codes = plain_codes(encoded.indices)
    values = encoded.dictionary.to_pylist()
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        # The bytes of an array of texts, each as long as the longest one.
        values = np.frombuffer(b"".join(values), column.dtype).tolist()
    return codes, values


def categories(column: Column) -> tuple[IntArray, list[Any]] | None:
    """Return the numbers and texts of categories; None for other columns."""
    if isinstance(column, np.ndarray):
        return None
    native: Any = column.to_native()
    if hasattr(getattr(native, "cat", None), "codes"):
        return native.cat.codes.to_numpy(), native.cat.categories.tolist()
    if find_spec("pyarrow") is None or "String" in str(column.dtype):
        return None
    arrow: Any = column.to_arrow()
    if not hasattr(arrow.type, "index_type"):
        return None
    # Encoded anew: a dictionary of arrow may hold one text twice, and nulls.
    encoded = _in_one_piece(arrow.cast(arrow.type.value_type).dictionary_encode())
    codes = plain_codes(encoded.indices)
    return codes, encoded.dictionary.to_pylist()


def text_bytes(column: Column) -> tuple[AnyArray, IntArray, IntArray] | None:
    """Return texts, or numbers as texts, as bytes laid end to end, and their places.

    These are where each starts and where it ends. None without arrow.
    """
    if find_spec("pyarrow") is None:
        return None
    import pyarrow

    plain = isinstance(column, np.ndarray)
    arrow = pyarrow.array(column) if plain else column.to_arrow()
    for kind in (getattr(arrow.type, "value_type", arrow.type), "large_string"):
        arrow = arrow.cast(kind)
    whole = arrow.combine_chunks() if hasattr(arrow, "combine_chunks") else arrow
    _, places, data = whole.buffers()
    offsets = np.frombuffer(places, np.int64)[whole.offset :][: len(whole) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets[:-1], offsets[1:]


def _in_one_piece(encoded: Any) -> Any:
    chunked = hasattr(encoded, "combine_chunks")
    return encoded.unify_dictionaries().combine_chunks() if chunked else encoded


def arrow_texts(column: Column) -> Any:
    """Return texts as an arrow array; None if they are none, or without arrow."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow

    native: Any = None if isinstance(column, np.ndarray) else column.to_native()
    if getattr(getattr(native, "dtype", None), "storage", "") == "python":
        # Pandas keeps objects, and arrow reads these faster by itself.
        column = native.to_numpy()
    plain = isinstance(column, np.ndarray)
    if plain and column.dtype.kind == "U" and column.dtype.itemsize:
        own = np.ascontiguousarray(column)
        kind, data = pyarrow.binary(own.dtype.itemsize), pyarrow.py_buffer(own)
        return pyarrow.FixedSizeBinaryArray.from_buffers(kind, own.size, [None, data])
    try:
        if plain and column.dtype.kind == "O":
            arrow = arrow_strings(column.tolist())
        elif plain:
            arrow = pyarrow.array(column, from_pandas=True)
        else:
            arrow = column.to_arrow()
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    nested = pyarrow.types.is_nested(arrow.type)
    if "string_view" in str(arrow.type) and not nested:
        # Arrow looks nothing up among texts that are laid out so.
        try:
            arrow = arrow.cast("large_string")
        except pyarrow.ArrowNotImplementedError:
            # Arrow 16 knows the layout and does not change it.
            arrow = arrow_strings(arrow.to_pylist())
    return arrow if "string" in str(arrow.type) and not nested else None


def as_column(values: Any) -> Column:
    """Read one column: an array, a list, or a series of any data-frame library."""
    if isinstance(values, np.ma.MaskedArray):
        plain = np.ma.getdata(values).astype(object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    if isinstance(values, list | tuple | range):
        return _from_list(values)
    if isinstance(values, np.ndarray):
        return values
    series = _frame(values)
    return np.asarray(values) if series is None else series


def _from_list(values: Sequence[Any]) -> AnyArray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("columns must be one-dimensional; received nested ones") from (
            None
        )
    kind = array.dtype.kind
    texts = kind in "US" and all(isinstance(value, str) for value in values)
    lossy = kind in "US" and not (texts and "\0" not in "".join(values))
    if lossy or (kind == "f" and all(isinstance(value, int) for value in values)):
        # numpy would spell numbers and None out as texts, drop NUL at their end, and
        # round whole numbers from 2^63 on.
        return np.array(values, dtype=object)
    return array


def _common_length(columns: Sequence[Column]) -> int:
    flat = all(getattr(column, "ndim", 1) == 1 for column in columns)
    lengths = {len(column) for column in columns} if flat else set()
    if len(lengths) != 1:
        raise InputError("columns must be one-dimensional and of the same length")
    return lengths.pop()


def plain_array(column: Any) -> AnyArray:
    """Return an Arrow column of numbers, truth values or times as a numpy array.

    Parameters
    ----------
    column : pyarrow Array or ChunkedArray
        The column.

    Returns
    -------
    ndarray
        What `to_numpy` of Arrow returns: missing ones are NaN or NaT, and whole numbers
        with missing ones are float64.

    Examples
    --------
    >>> import pyarrow
    >>> plain_array(pyarrow.array([1, None, 3])[1:])
    array([nan,  3.])
    """
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        parts = [plain_array(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.asarray(column)
    kind, types = column.type, pyarrow.types
    number = types.is_integer(kind) or types.is_floating(kind)
    moment = types.is_timestamp(kind) and kind.tz is None
    truth = types.is_boolean(kind) and not column.null_count
    if not (number or moment or truth):
        return np.asarray(column)
    valid, data = column.buffers()
    if truth:
        return _bits(data, column.offset, len(column))
    dtype = np.dtype(f"M8[{kind.unit}]") if moment else np.dtype(kind.to_pandas_dtype())
    start = column.offset * dtype.itemsize
    values: AnyArray = np.empty(0, dtype)
    if len(column):
        values = np.frombuffer(data, dtype, len(column), start)
    if column.null_count:
        wide = values.astype(np.float64) if dtype.kind in "iu" else values
        none: Any = np.datetime64("NaT") if moment else np.nan
        values = np.where(_bits(valid, column.offset, len(column)), wide, none)
        values = values.astype(wide.dtype, copy=False)
    return values


def plain_codes(column: Any) -> IntArray:
    """Return an Arrow column of numbers of places, with -1 for missing ones.

    Parameters
    ----------
    column : pyarrow Array or ChunkedArray
        Whole numbers below 2^53.

    Returns
    -------
    ndarray of int64
        The numbers.

    Examples
    --------
    >>> import pyarrow
    >>> plain_codes(pyarrow.array([4, None, 3])).tolist()
    [4, -1, 3]
    """
    places = plain_array(column)
    if places.dtype.kind == "f":
        places = np.where(np.isnan(places), -1.0, places)
    return places.astype(np.int64, copy=False)


def arrow_strings(texts: Sequence[Any], kind: Any = None) -> Any:
    """Return texts as an Arrow array, of another type of texts if one is named.

    Parameters
    ----------
    texts : sequence of str
        The texts; None is a missing one.
    kind : pyarrow type, optional
        The type of the array; None takes what Arrow takes for texts.

    Returns
    -------
    pyarrow Array
        The texts; what else stands among them is left to Arrow, which may refuse it.

    Examples
    --------
    >>> arrow_strings(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    import pyarrow

    by_arrow = "pandas" in sys.modules or not 0 < len(texts) <= FEW_TEXTS
    if by_arrow or not all(type(text) is str or text is None for text in texts):
        return pyarrow.array(texts, kind, from_pandas=True)
    encoded = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    present = np.packbits([text is not None for text in texts], bitorder="little")
    buffers = [pyarrow.py_buffer(part) for part in (present, ends, b"".join(encoded))]
    array = pyarrow.Array.from_buffers(pyarrow.large_string(), len(texts), buffers)
    return array.cast(pyarrow.string() if kind is None else kind)


def _bits(buffer: Any, start: int, number: int) -> BoolArray:
    """Return so many bits of a buffer, from a place on, as truth values."""
    packed = np.frombuffer(buffer or b"", np.uint8)
    bits = np.unpackbits(packed, count=start + number, bitorder="little")
    return bits[start:].astype(np.bool_)
