"""Bounded contributions: at most k records of each person are counted.

The order is that of md5("key|person|record"), so a change of values keeps the same
records, and what is kept of one person depends on nobody else
(``docs/proofs/persons.md``, A1). The key is drawn before any record is read; it needs
no secrecy. Without record keys the choice is uniform, secret and drawn anew.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple, NoReturn

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_whole, quoted
from blowfish_fast.errors import BlowfishError, CountsError, InputError

from .axes import is_blank
from .columns import (
    Column,
    arrow_texts,
    as_column,
    categories,
    dictionary_codes,
    named_column,
    text_bytes,
)
from .domain import Attributes

COUNTED = ("records", "persons")

MOST_COUNTED_ONCE = 16
"""Most records of a person that counts once: lcm(1..16) = 720,720 units are exact."""

MOST_RECORDS = 10**6

KEY_BYTES = 16


def units_per_person(at_most: int) -> int:
    """Return Q = lcm(1..k): a person of m <= k records has m times Q/m units."""
    return math.lcm(*range(1, at_most + 1))


MOST_UNITS = units_per_person(MOST_COUNTED_ONCE)
"""Units of a person, where each counts once, at the largest number of records."""


class Bound(NamedTuple):
    """How many records of a person counts hold at most, and how she counts; public.

    Attributes
    ----------
    at_most : int
        How many records of a person are counted.
    count : str, default 'records'
        With "persons", counts are in units of 1 / lcm(1..at_most) of a person.
    person : str, optional
        The column that says whose record it is.
    choice : str, default ''
        Counts of one choice of records share this text.
    """

    at_most: int
    count: str = "records"  # type: ignore[assignment]
    person: str | None = None
    choice: str = ""

    @classmethod
    def stated(cls, at_most: Any, count: Any, person: Any) -> Bound:
        """Read what a caller says about the persons of his counts.

        Parameters
        ----------
        at_most : int
            How many records of a person are counted.
        count : str
            "records" or "persons".
        person : str or column
            The column that says whose record it is.

        Returns
        -------
        Bound
            The bound.

        Raises
        ------
        InputError
            If a term is missing or out of range.
        """
        if at_most is None:
            raise InputError(
                "say how many records of a person are counted at most: at_most=5; it "
                "is public, and never taken from the records"
            )
        number = read_at_most(at_most, count)
        name = person if isinstance(person, str) else None
        return cls(number, count, name, secrets.token_hex(KEY_BYTES))

    @property
    def units(self) -> int:
        """In how many units a person or a record is counted."""
        return units_per_person(self.at_most) if self.count == "persons" else 1

    def words(self) -> str:
        """Say in plain words what was counted."""
        once = ", each person once" if self.count == "persons" else ""
        name = "a person" if self.person is None else f"one {self.person}"
        return f"at most {self.at_most:,} records of {name}{once}"


def read_at_most(
    at_most: Any, count: Any, error: type[BlowfishError] = InputError
) -> int:
    """Read how many records of a person are counted at most.

    Parameters
    ----------
    at_most : int
        The number.
    count : str
        "records" or "persons": the rule that the number has to suit.
    error : type[BlowfishError], default InputError
        The class of the error that is raised.

    Returns
    -------
    int
        The number.

    Raises
    ------
    BlowfishError
        If a term is out of range; of the class `error`.
    """
    if not isinstance(count, str) or count not in COUNTED:
        raise error('count is "records" or "persons"', received=repr(count))
    number = as_whole(at_most, "at_most", 1)
    most = MOST_COUNTED_ONCE if count == "persons" else MOST_RECORDS
    if number > most:
        rule = f'with count="{count}", at_most is at most {most:,}'
        raise error(rule, received=number)
    return number


def new_key() -> str:
    """Draw a key for the order of records; before any of them is read."""
    return secrets.token_hex(KEY_BYTES)


def read_bound(
    domain: Attributes, person: Any, record: Any, at_most: Any, count: Any
) -> Bound | None:
    """Read what is said about persons, or None; refuse attributes as keys.

    Parameters
    ----------
    domain : Attributes
        The attributes that are counted.
    person : str or column, optional
        Whose record each row is.
    record : str or column, optional
        Which of the person's records it is.
    at_most : int, optional
        How many records of a person are counted.
    count : str
        "records" or "persons".

    Returns
    -------
    Bound or None
        The bound; None where no person is named.

    Raises
    ------
    InputError
        If terms come without a person, or a key is an attribute.
    """
    if person is None:
        plain = isinstance(count, str) and count == "records"
        if record is not None or at_most is not None or not plain:
            raise InputError(
                "record, at_most and count speak about the records of a person; say "
                'whose records they are: person="patient"'
            )
        return None
    for word, name in (("person", person), ("record", record)):
        if isinstance(name, str) and name in domain.names:
            raise InputError(
                f"{word} is a column beside the attributes: whose record it is, and "
                "which of hers, may not depend on values that the policy protects",
                received=repr(name),
                way_out="Number the records in a column of their own",
            )
    return Bound.stated(at_most, count, person)


def choose_records(
    codes: IntArray, groups: int, persons: Any, records: Any, at_most: int, key: str
) -> IntArray:
    """Return the rows that are counted: at most so many of a person.

    Rows of one person with equal keys are counted or dropped together; the same `key`
    chooses the same records, in databases too.

    Parameters
    ----------
    codes : ndarray of int64, shape (rows,)
        The number of each row's person, from `person_codes`.
    groups : int
        Number of persons.
    persons : column
        Whose record each row is, from `key_column`.
    records : column or None
        Which of her records it is; None for a secret choice.
    at_most : int
        How many records of a person are counted.
    key : str
        Decides which.

    Returns
    -------
    ndarray of int64
        The numbers of the rows.
    """
    many = np.bincount(codes, minlength=groups) > at_most
    if not many.any():
        return np.arange(codes.size)
    # Only who has more records than are kept has any to choose from.
    large = np.flatnonzero(many[codes])
    if records is None:
        tags = np.frombuffer(secrets.token_bytes(8 * large.size), dtype=np.uint64)
    else:
        salt = np.frombuffer(key.encode(), dtype=np.uint8)
        texts = [_texts(keys, large) for keys in (persons, records)]
        tags = kernels.keyed_tags(salt, *texts)
    numbers = np.cumsum(many) - 1
    starts, rows = kernels.group_rows(numbers[codes[large]], int(numbers[-1]) + 1)
    is_chosen = np.ones(codes.size, dtype=bool)
    is_chosen[large] = kernels.first_by_tag(starts, rows, tags, at_most)
    return np.flatnonzero(is_chosen)


def key_column(values: Any, word: str) -> Column:
    """Read a column of whole numbers or text; refuse others, and missing values.

    What is refused follows from the column alone, never from how many records somebody
    has. Texts become those of arrow, where it is installed, but for those of polars.

    Parameters
    ----------
    values : column
        The keys.
    word : str
        The argument that they belong to, for the message.

    Returns
    -------
    ndarray or narwhals Series
        The keys.

    Raises
    ------
    InputError
        If a key is missing, or of another kind.
    """
    column = as_column(values)
    if isinstance(column, np.ndarray):
        missing = column.dtype.kind == "O" and any(map(is_blank, column.tolist()))
        missing |= column.dtype.kind == "f" and bool(np.isnan(column).any())
    else:
        missing = bool(column.is_null().any())
    if missing:
        refuse_missing_key(word)
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise InputError(f"{word} is one column of whole numbers or text")
        if column.dtype.kind in "iuUS":
            return column
    else:
        import narwhals as nw

        kind = column.dtype
        if kind.is_integer() and kind not in (nw.Int128, nw.UInt128):
            return key_column(column.to_numpy(), word)
        grouped = kind in (nw.Categorical, nw.Enum)
        coded = categories(column) if grouped else None
        if coded is not None:
            _object_texts(np.array(coded[1], dtype=object), word)
        # Texts of polars are copied only for who has too many records.
        of_polars = kind == nw.String and column.implementation.is_polars()
        if (coded is not None or of_polars) and find_spec("pyarrow") is not None:
            return column
        if kind.is_integer() or grouped:
            column = column.cast(nw.String)
        elif kind not in (nw.String, nw.Object) and len(column):
            refuse_kind(word, str(kind))
    texts = arrow_texts(column)
    if texts is not None:
        return as_column(texts.cast("large_string"))
    plain = column if isinstance(column, np.ndarray) else column.to_numpy()
    return _object_texts(plain, word)


def person_codes(persons: Column) -> tuple[IntArray, int]:
    """Return the number of each row's person, from 0, and a number above all."""
    plain = isinstance(persons, np.ndarray)
    if plain and persons.dtype.kind in "iu":
        low = int(persons.min()) if persons.size else 0
        width = int(persons.max()) - low + 1 if persons.size else 0
        if width <= 8 * persons.size + 1024:
            # In its own type a column of bytes would not hold its own width.
            wide = persons if persons.dtype.itemsize == 8 else persons.astype(np.int64)
            return (wide - wide.dtype.type(low)).astype(np.int64), width
    dictionary = (
        None if plain and persons.dtype.kind != "U" else dictionary_codes(persons)
    )
    if dictionary is not None:
        return dictionary
    distinct, codes = np.unique(persons, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), distinct.size


def _few_each(persons: Column, most: int) -> bool:
    """Return whether nobody has more records, as polars' hashes of texts show.

    Texts that share a hash count as one person, who has no fewer than each of them.
    """
    texts = not isinstance(persons, np.ndarray) and "String" in str(persons.dtype)
    if not texts or find_spec("polars") is None:
        return False
    hashes = np.sort(persons.to_polars().hash().to_numpy())
    return not (hashes[most:] == hashes[:-most]).any()


def _texts(column: Column, rows: IntArray) -> Any:
    """Return some keys as the texts that a database would make of them."""
    chosen = column[rows]
    if not isinstance(chosen, np.ndarray) or chosen.dtype.kind in "iu":
        texts = text_bytes(chosen)
        if texts is not None:
            return kernels.Texts(*texts)
        chosen = chosen.astype("S")
    if chosen.dtype.kind == "U":
        chosen = np.char.encode(chosen, "utf-8", "surrogatepass")
    data = np.frombuffer(chosen.tobytes(), dtype=np.uint8)
    starts = np.arange(chosen.size, dtype=np.int64) * chosen.dtype.itemsize
    return kernels.Texts(data, starts, starts + np.char.str_len(chosen))


def _object_texts(column: Any, word: str) -> Any:
    """Return objects as texts, where all are texts or all are whole numbers."""
    values = column.tolist()
    if all(isinstance(value, str) for value in values):
        if "\0" in "".join(values):
            raise InputError(f"texts of {word} hold NUL, which arrays lose")
        return np.array(values, dtype=str) if values else np.empty(0, dtype="U1")
    whole = all(
        isinstance(value, int) and not isinstance(value, bool) for value in values
    )
    if column.dtype.kind != "O" or not whole:
        refuse_kind(word, str(column.dtype))
    return np.array([str(value) for value in values])


def refuse_kind(word: str, received: str) -> NoReturn:
    """Refuse keys that engines would write in ways of their own.

    Parameters
    ----------
    word : str
        The argument that they belong to.
    received : str
        What kind they are of.

    Raises
    ------
    InputError
        Always.
    """
    raise InputError(
        f"{word} is a column of whole numbers or text",
        received=quoted(received),
        way_out="Cast it to text first: every engine must write it the same way",
    )


def refuse_missing_key(word: str) -> NoReturn:
    """Refuse records of nobody, which would all count as one person's."""
    whose = "whose they are" if word == "person" else "which of a person's they are"
    raise CountsError(
        f"some records do not say {whose}: the column given as {word} has missing "
        "values",
        way_out="Give every record its own, or leave such records out of the table "
        "for a reason that depends on no value",
        code="missing_keys",
    )


class RecordKeys(NamedTuple):
    """Whose record each row is and which of hers: names of columns, or columns.

    Attributes
    ----------
    person : object
        Whose.
    record : object, optional
        Which of hers; None if nobody says.
    """

    person: Any
    record: Any = None

    def of(self, chunk: Any) -> tuple[Column, Column]:
        """Return both columns of a chunk of records; None for keys left out."""
        return _take(chunk, self.person, "person"), _take(chunk, self.record, "record")


def _take(chunk: Any, chosen: Any, word: str) -> Column:
    if chosen is None or not isinstance(chosen, str):
        return None if chosen is None else as_column(chosen)
    return named_column(chunk, chosen, word)


def bounded_cells(
    cells_of: Callable[[Any], Iterator[IntArray]],
    columns: Any,
    keys: RecordKeys,
    bound: Bound,
    key: str | None,
) -> tuple[IntArray, IntArray | None]:
    """Return the cells of the records that are counted, and the units of each.

    All rows are held at once.

    Parameters
    ----------
    cells_of : Callable[[object], Iterator[ndarray of int64]]
        Returns the cells of a chunk of records.
    columns : frame, mapping, array or iterator of these
        The records.
    keys : RecordKeys
        Whose record each row is, and which of hers.
    bound : Bound
        How many records of a person are counted.
    key : str or None
        Decides which; drawn anew if None.

    Returns
    -------
    cells : ndarray of int64
        The cell of each counted record.
    units : ndarray of int64 or None
        How much it counts; None where every record counts as one.

    Raises
    ------
    InputError
        If records come in chunks without a named column of persons.
    """
    salt = new_key() if key is None else key
    chunks = columns if hasattr(columns, "__next__") else iter([columns])
    cells: list[IntArray] = [np.empty(0, dtype=np.int64)]
    read: list[tuple[Column, Column]] = []
    for chunk in chunks:
        if read and not isinstance(keys.person, str):
            raise InputError("records in chunks name the column of persons")
        cells += list(cells_of(chunk))
        read.append(keys.of(chunk))
    placed = np.concatenate(cells)
    persons = key_column(
        _joined([person_column for person_column, _ in read]), "person"
    )
    records = None
    if keys.record is not None:
        records = key_column(_joined([two for _, two in read]), "record")
    for word, column in (("person", persons), ("record", records)):
        if column is not None and len(column) != placed.size:
            raise InputError(f"{word} must be a column as long as the others")
    if bound.count == "records" and _few_each(persons, bound.at_most):
        return placed, None
    codes, groups = person_codes(persons)
    chosen = choose_records(codes, groups, persons, records, bound.at_most, salt)
    units = None
    if bound.count == "persons":
        mine = codes[chosen]
        left = np.bincount(mine, minlength=groups)
        units = (bound.units // np.maximum(left, 1))[mine]
    return placed[chosen], units


def records_per_person(chunks: Iterable[Any], keys: RecordKeys) -> IntArray:
    """Count the records of each person who has any, over all chunks; private.

    Parameters
    ----------
    chunks : Iterable[object]
        The records.
    keys : RecordKeys
        Whose record each row is.

    Returns
    -------
    ndarray of int64
        The numbers of records.
    """
    persons = key_column(_joined([keys.of(chunk)[0] for chunk in chunks]), "person")
    codes, _ = person_codes(persons)
    held = np.bincount(codes)
    return held[held > 0]


def _joined(columns: list[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    if columns and not any(isinstance(column, np.ndarray) for column in columns):
        import narwhals as nw

        # Libraries join what they hold; categories of one chunk are not another's.
        texts = {column.dtype == nw.String for column in columns} == {True}
        if texts and len({column.implementation for column in columns}) == 1:
            return nw.concat([column.alias("key").to_frame() for column in columns])[
                "key"
            ]
    plain = [np.asarray(column) for column in columns]
    if len({column.dtype.kind for column in plain if column.size}) > 1:
        plain = [column.astype(object) for column in plain]
    return np.concatenate(plain) if plain else np.empty(0, dtype=np.int64)
