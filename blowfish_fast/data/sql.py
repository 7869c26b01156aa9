"""Records of a table counted by cell where the table is: one GROUP BY.

A query is a single statement, so its counts belong to one state of the table. Negative
cells are kinds of values that were to be refused. Records of persons are chosen first
(`bounded_table`), the same ones as at hand: rows that are equal in the order count each
other, so records with equal keys are kept or dropped together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import BlowfishError, EngineError, InputError

from .arrivals import ARRIVALS, FirstEpochs
from .axes import Axis
from .domain import Attributes
from .persons import Bound, RecordKeys, new_key, refuse_kind, refuse_missing_key
from .records import (
    Rule,
    raise_together,
    refuse_fractions,
    refuse_strays,
    refuse_weights,
)
from .sql_cells import Bins, cell_of, ibis_module, is_missing, type_problem

ROWS_AT_ONCE = 2**20
"""Counted cells that travel in one batch."""

PIECE_ROWS = 2**23
"""Counted cells that are asked of Spark at a time."""

SMALL_CELLS = 2**15
"""Attributes of at most so many cells travel as two bytes."""

MOST_GROUPED = 2
"""Attributes whose values are grouped as they are, before their cells are found."""

KINDS = ("missing", "outside", "fraction")
"""What may be refused, in the order in which it is noticed."""

WEIGHT = "blowfish_units"
"""The column that says how many units of a person a row stands for."""

LARGEST_SUM = 2.0**53
"""Sums of a column of counts are exact below it."""


class CellCounts(NamedTuple):
    """Cells that hold records, and how many each holds.

    Attributes
    ----------
    cells : ndarray of int64
        The cells.
    records : ndarray of int64
        How many records each holds.
    """

    cells: IntArray
    records: IntArray


class CellColumn(NamedTuple):
    """A column of a table, its public cells, and which of them are counted together.

    Attributes
    ----------
    name : str
        The name of the column.
    attribute : Axis
        Its cells.
    rule : Rule
        What happens to stray values.
    bins : Bins, optional
        Which cells are counted together; None for each by itself.
    """

    name: str
    attribute: Axis
    rule: Rule
    bins: Bins | None = None

    @property
    def size(self) -> int:
        """Number of cells, or of bins where they are merged."""
        if self.bins is None:
            return self.attribute.size
        return int(self.bins.labels.max()) + 1

    def cell(self, table: Any, axis: int) -> tuple[Any, list[tuple[Any, int]]]:
        """Return cells of records, and conditions with codes below 0 for refusals.

        Parameters
        ----------
        table : ibis Table
            The table.
        axis : int
            The number of the column among those that are counted.

        Returns
        -------
        cell : ibis expression
            The cell of each record.
        strays : list of (ibis expression, int)
            Conditions, and the code of each.
        """
        cell_and_strays = cell_of(
            table[self.name], self.attribute, self.rule, self.bins
        )
        first, strays = -1 - len(KINDS) * axis, cell_and_strays[1].items()
        return cell_and_strays[0], [
            (condition, first - KINDS.index(kind)) for kind, condition in strays
        ]


@dataclass(eq=False)
class CellQuery:
    """Counts of the records of an ibis table by cell, in C order of the columns.

    Attributes
    ----------
    table : object
        The ibis table.
    columns : Sequence[CellColumn]
        The columns that are counted.
    weight : str, optional
        A column that says how many records a row stands for.
    keys : Sequence[str], default ()
        Columns of persons and records, in which missing values are refused.
    arrivals : CellColumn, optional
        The column of arrivals, cut into epochs; None where all records weigh the same.
    arrival_weights : Sequence[int], default ()
        What a record counts by the cell of its arrival.
    first : FirstEpochs, optional
        Which records of a person count, by their arrival; None where all do.
    """

    table: Any
    columns: Sequence[CellColumn]
    weight: str | None = None
    keys: Sequence[str] = ()
    arrivals: CellColumn | None = None
    arrival_weights: Sequence[int] = ()
    """What a record counts by the cell of its arrival; see `weighed`."""
    first: FirstEpochs | None = None

    @property
    def size(self) -> int:
        """Number of cells in all."""
        return math.prod(column.size for column in self.columns)

    @classmethod
    def over(
        cls,
        domain: Attributes,
        rules: Sequence[Rule],
        table: Any,
        names: Mapping[Any, str] | None = None,
        weight: str | None = None,
        keys: Sequence[str] = (),
    ) -> CellQuery:
        """Return the query over all cells of a domain; it reads the schema and no row.

        Parameters
        ----------
        domain : Attributes
            The cells.
        rules : Sequence[Rule]
            What happens to stray values, by attribute.
        table : ibis Table
            The table.
        names : Mapping[object, str], optional
            Names of columns by attribute, where they differ.
        weight : str, optional
            A column that says how many records a row stands for.
        keys : Sequence[str], default ()
            Columns of persons and records.

        Returns
        -------
        CellQuery
            The query.

        Raises
        ------
        InputError
            If a column is missing, or of the wrong type.
        """
        if not isinstance(table, ibis_module().expr.types.Table):
            raise InputError(
                "a table of a database is an ibis table, such as "
                'ibis.duckdb.connect("visits.duckdb").table("visits")',
                received=type(table).__name__,
                way_out="Frames and arrays go to from_records",
            )
        stated: Any = {} if names is None else names
        if not isinstance(stated, Mapping):
            raise InputError(
                "columns is a mapping from attributes to columns of the table; "
                f"received {stated!r}"
            )
        by_axis = {domain.axis(attribute): name for attribute, name in stated.items()}
        columns = []
        for axis, (attribute, rule) in enumerate(
            zip(domain.attributes, rules, strict=True)
        ):
            name = by_axis.get(axis, attribute.name)
            if not isinstance(name, str) or name not in table.columns:
                raise InputError(
                    f"the table has no column {name!r} for attribute {axis}; its "
                    f"columns are {list(table.columns)}. Say which with "
                    'columns={"attribute": "column"}'
                )
            problem = type_problem(attribute, table[name].type())
            if problem is not None:
                raise InputError(f"{problem}; cast it first: table.mutate({name}=...)")
            columns.append(CellColumn(name, attribute, rule))
        return cls(table, columns, weight, keys)

    def weighed(
        self, attribute: Axis, weights: IntArray, first: FirstEpochs | None = None
    ) -> CellQuery:
        """Return the query in which a record counts by the epoch of its arrival.

        Parameters
        ----------
        attribute : Axis
            The column of arrivals, cut into epochs, its last cell for all other days.
        weights : int64 (cells of the attribute,)
            What a record of each of these cells counts.
        first : FirstEpochs, optional
            Which records of a person count; None where all do.

        Returns
        -------
        CellQuery
            Of one pass over the table: the weights travel as a list in the statement.
        """
        name = str(attribute.name)
        if name not in self.table.columns:
            raise InputError(
                f"the table has no column {name!r} of arrivals; its columns are "
                f"{list(self.table.columns)}"
            )
        problem = type_problem(attribute, self.table[name].type())
        if problem is not None:
            raise InputError(f"{problem}; cast it first: table.mutate({name}=...)")
        if first is not None and first.person not in self.table.columns:
            raise InputError(
                f"the table has no column {first.person!r}, person; its columns are "
                f"{list(self.table.columns)}"
            )
        return replace(
            self,
            arrivals=CellColumn(name, attribute, ARRIVALS),
            arrival_weights=weights.tolist(),
            first=first,
            keys=() if first is None else (first.person,),
        )

    @property
    def _placed(self) -> list[CellColumn]:
        """The columns whose values are placed into cells, that of arrivals last."""
        return [*self.columns, *([] if self.arrivals is None else [self.arrivals])]

    @cached_property
    def expression(self) -> Any:
        """Cells and records as an expression that has not run yet."""
        table = self.table if self.first is None else self._ranked(self.first)
        records = table.count()
        lacking = [is_missing(table[name]) for name in self.keys]
        unusable = None
        if self.weight is not None:
            stands_for = table[self.weight].cast("float64")
            unusable = is_missing(table[self.weight]) | (stands_for < 0)
            unusable |= (stands_for.floor() != stands_for) | (stands_for > LARGEST_SUM)
            records = stands_for.sum()
        if self._groups_values():
            # The engine's own GROUP BY first: cells are then found per value, not per
            # record.
            flags = {
                f"blowfish_lacks{at}": flag.any() for at, flag in enumerate(lacking)
            }
            if unusable is not None:
                flags["blowfish_unusable"] = unusable.any()
            names = list(dict.fromkeys(column.name for column in self.columns))
            table = table.group_by(names).aggregate(blowfish_rows=records, **flags)
            lacking = [table[name] for name in flags if "lacks" in name]
            unusable = None if unusable is None else table.blowfish_unusable
            kind = "int64" if self.weight is None else "float64"
            records = table.blowfish_rows.sum().cast(kind)
        number, refused = self.columns[0].cell(table, 0)
        for axis, column in enumerate(self.columns[1:], start=1):
            along, strays = column.cell(table, axis)
            number = number * column.size + along
            refused += strays
        if self.arrivals is not None:
            epoch, strays = self.arrivals.cell(table, len(self.columns))
            refused += strays
            weights = ibis_module().array(list(self.arrival_weights))
            # Rows that are refused have no epoch, and no engine may stumble over them.
            # Spark takes places in a list as 32-bit integers alone.
            counted = weights[epoch.fill_null(0).cast("int32")]
            if self.first is not None:
                # Others are seen, so that what is refused of them is refused.
                counted = table.blowfish_counts.ifelse(counted, 0)
            records = counted.sum().cast("int64")
        last = -1 - len(KINDS) * len(self._placed)
        if unusable is not None:
            refused.append((unusable, last))
        for place, missing in enumerate(lacking, start=1):
            refused.insert(0, (missing, last - place))
        if refused:
            number = ibis_module().cases(*refused, else_=number)
        return table.group_by(cell=number.cast("int64")).aggregate(records=records)

    def _ranked(self, first: FirstEpochs) -> Any:
        """Return the table with a mark on the records of a person that count.

        ::

            person  epoch  arrived  cell    number of the epoch   place in it
            ann     W45    Mon      2       0                     0
            ann     W45    Tue      0       0                     1
            ann     W47    Mon      1       1                     0

        Arrivals outside of the epochs have the last cell, so they come behind all
        others and use up none of a person's first epochs.
        """
        assert self.arrivals is not None
        table, ibis = self.table, ibis_module()
        places = {
            f"blowfish_cell{axis}": column.cell(table, axis)[0]
            for axis, column in enumerate(self.columns)
        }
        epoch = self.arrivals.cell(table, len(self.columns))[0]
        table = table.mutate(blowfish_epoch=epoch, **places)
        person = table[first.person]
        in_epoch = ibis.window(
            group_by=[person, table.blowfish_epoch],
            order_by=[table[self.arrivals.name], *(table[name] for name in places)],
        )
        counts = ibis.row_number().over(in_epoch) < first.at_most
        if first.epochs_at_most is not None:
            epochs = ibis.window(group_by=person, order_by=table.blowfish_epoch)
            counts &= ibis.dense_rank().over(epochs) < first.epochs_at_most
        return table.mutate(blowfish_counts=counts)

    def _groups_values(self) -> bool:
        """Return whether DuckDB groups such values at a tenth of the price of cells."""
        if len(self.columns) > MOST_GROUPED or _backend(self.table) != "duckdb":
            return False
        if self.arrivals is not None:
            return False
        kinds = [self.table[column.name].type() for column in self.columns]
        return all(
            kind.is_integer() or kind.is_boolean() or kind.is_date() or kind.is_string()
            for kind in kinds
        )

    def counts(self) -> IntArray:
        """Return the number of records in every cell."""
        counts = np.zeros(self.size, dtype=np.int64)
        for batch in self.batches():
            counts[batch.cells] = batch.records
        return counts

    def batches(self) -> Iterator[CellCounts]:
        """Yield the cells that hold records, each once; refused strays raise first."""
        with without_quotes():
            problems: list[InputError] = []
            for cells, records in self._arrow():
                problems += self._problems(cells)
                if problems:
                    continue
                sums = np.asarray(records)
                if self.weight is not None and not (sums < LARGEST_SUM).all():
                    refuse_weights(self.weight)
                yield CellCounts(cells, sums.astype(np.int64, copy=False))
            raise_together(problems)

    def places(self) -> Iterator[list[IntArray]]:
        """Yield the cells of every record along each attribute, from one statement."""
        expressions, table = {}, self.table
        for axis, rule in enumerate(self.columns):
            number, strays = rule.cell(table, axis)
            if strays:
                number = ibis_module().cases(*strays, else_=number)
            small = rule.attribute.size <= SMALL_CELLS
            expressions[f"cell{axis}"] = number.cast("int16" if small else "int32")
        lacking = {f"lacks{at}": table[k].isnull() for at, k in enumerate(self.keys)}
        problems: list[InputError] = []
        with without_quotes():
            selected = table.select(**expressions, **lacking)
            for batch in selected.to_pyarrow_batches(chunk_size=ROWS_AT_ONCE):
                for at, column in enumerate(lacking):
                    if np.asarray(batch.column(column)).any():
                        refuse_missing_key(("person", "record")[at])
                columns = [np.asarray(batch.column(name)) for name in expressions]
                for cells in columns:
                    problems += self._problems(cells)
                if not problems:
                    yield columns
            raise_together(problems)

    def _arrow(self) -> Iterator[tuple[IntArray, Any]]:
        # Spark collects an answer whole, so a large one is asked for in pieces.
        if _backend(self.table) == "pyspark" and self.size > PIECE_ROWS:
            batches = _pieces(self.expression)
        else:
            batches = self.expression.to_pyarrow_batches(chunk_size=ROWS_AT_ONCE)
        for batch in batches:
            cells = np.asarray(batch.column("cell")).astype(np.int64, copy=False)
            yield cells, batch.column("records")

    def refuse(self, cells: IntArray) -> None:
        """Raise what records at hand would, for all attributes that have strays."""
        raise_together(self._problems(cells))

    def _problems(self, cells: IntArray) -> Iterator[InputError]:
        if cells.size == 0 or cells.min() >= 0:
            return
        for code in np.unique(cells[cells < 0])[::-1].tolist():
            axis, kind = divmod(-1 - code, len(KINDS))
            try:
                if axis < len(self._placed) and KINDS[kind] == "fraction":
                    refuse_fractions()
                elif axis < len(self._placed):
                    _, attribute, rule, _ = self._placed[axis]
                    strays = {word: word == KINDS[kind] for word in KINDS[:2]}
                    refuse_strays(attribute, rule, **strays)
                elif kind > 0:
                    refuse_missing_key(("person", "record")[kind - 1])
                else:
                    refuse_weights(self.weight)
            except InputError as problem:
                yield problem


@contextmanager
def without_quotes() -> Iterator[None]:
    """Say that a database failed without its own words, which could quote records."""
    try:
        yield
    except BlowfishError:
        raise
    except Exception as problem:
        raise EngineError(
            f"the database could not count the table ({type(problem).__name__}); "
            "nothing was charged"
        ) from None


def _backend(table: Any) -> str:
    return str(table.get_backend().name)


def _pieces(counted: Any) -> Iterator[Any]:
    """Keep the counted cells on the cluster and fetch them piece by piece."""
    cached = counted.cache()
    try:
        rows = int(cached.count().execute())
        pieces = max(1, math.ceil(rows / PIECE_ROWS))
        for piece in range(pieces):
            # Negative numbers have a negative remainder.
            mine = cached.cell.abs() % pieces == piece
            yield (cached if pieces == 1 else cached.filter(mine)).to_pyarrow()
    finally:
        cached.release()


class BoundedTable(NamedTuple):
    """The rows of a table that are counted, and what CellQuery must know of them.

    Attributes
    ----------
    table : object
        The ibis table.
    keys : tuple[str, ...]
        Columns of persons and records.
    weight : str or None
        A column that says how many records a row stands for.
    """

    table: Any
    keys: tuple[str, ...]
    weight: str | None


@cache
def _md5() -> Any:
    """Return md5 as a function that the engine has built in."""
    scalar = ibis_module().udf.scalar

    @scalar.builtin(name="md5", signature=(("string",), "string"))
    def md5(text):  # type: ignore[no-untyped-def]
        """Hash a text into 32 hexadecimal digits."""

    return md5


def same_bytes(text: Any) -> Any:
    """Return what is equal for texts that are equal byte by byte, and for no others."""
    # SQLite has no md5, and compares bytes as they are.
    if _backend(text) == "sqlite":
        return text.cast("binary")
    return _md5()(text)


def bounded_table(
    table: Any,
    keys: RecordKeys,
    bound: Bound,
    key: str | None = None,
    attributes: Mapping[Any, str] | None = None,
) -> BoundedTable:
    """Return the rows of at most ``bound.at_most`` records of each person, unevaluated.

    Whoever counts it more than once materialises it first (``table.cache()``): rows
    without record keys are drawn anew each time. Missing keys stay, for CellQuery to
    refuse.

    Parameters
    ----------
    table : ibis Table
        The table.
    keys : RecordKeys
        Whose record each row is, and which of hers.
    bound : Bound
        How many records of a person are counted.
    key : str, optional
        Decides which; drawn anew if None.
    attributes : Mapping[object, str], optional
        Names of columns by attribute, where they differ.

    Returns
    -------
    BoundedTable
        The rows.

    Raises
    ------
    InputError
        If a column is missing, or of the wrong type.
    """
    names = tuple(name for name in (keys.person, keys.record) if name is not None)
    _check_columns(table, names, dict(attributes or {}).values())
    held = table.group_by(blowfish_person=table[keys.person]).aggregate(
        blowfish_held=table.count()
    )
    # Only who has more records than are kept has any to choose from.
    many = held.filter(held.blowfish_held > bound.at_most).select("blowfish_person")
    person = [(keys.person, "blowfish_person")]
    few = table.anti_join(many, person)
    ranked_rows = _ranked(table.semi_join(many, person), keys, bound.at_most, key)
    if bound.count != "persons":
        return BoundedTable(few.union(ranked_rows), names, None)
    own = few.left_join(held, person).drop("blowfish_person")
    left = ranked_rows.count().over(
        ibis_module().window(group_by=ranked_rows[keys.person])
    )
    both = own.union(ranked_rows.mutate(blowfish_held=left))
    whole = ibis_module().literal(bound.units, type="int64")
    units = (whole / both.blowfish_held.fill_null(1)).floor()
    table = both.mutate(**{WEIGHT: units}).drop("blowfish_held")
    return BoundedTable(table, names, WEIGHT)


def _ranked(table: Any, keys: RecordKeys, at_most: int, key: str | None) -> Any:
    """Return the rows of each person that come first by keyed hash, or by chance."""
    ibis = ibis_module()
    if keys.record is None:
        drawn = table.mutate(blowfish_order=ibis.random())
        order = ibis.window(group_by=drawn[keys.person], order_by=drawn.blowfish_order)
        ranked = drawn.mutate(blowfish_place=ibis.row_number().over(order))
        inside = ranked.blowfish_place < at_most
        return ranked.filter(inside).drop("blowfish_place", "blowfish_order")
    person, record = table[keys.person], table[keys.record]
    text = ibis.literal(new_key() if key is None else key)
    text = text + "|" + person.cast("string") + "|" + record.cast("string")
    upto = ibis.range_window(
        preceding=None, following=0, group_by=person, order_by=_md5()(text)
    )
    ranked = table.mutate(blowfish_place=table.count().over(upto))
    inside = (ranked.blowfish_place <= at_most) | ranked[keys.record].isnull()
    return ranked.filter(inside).drop("blowfish_place")


def _check_columns(
    table: Any, names: tuple[str, ...], attributes: Collection[str]
) -> None:
    for name in names:
        if not isinstance(name, str) or name not in table.columns:
            raise InputError(
                f"the table has no column {name!r} for persons or records; its columns "
                f"are {list(table.columns)}"
            )
        if name in attributes:
            raise InputError(
                "person and record are columns beside the attributes", received=name
            )
        kind = table[name].type()
        if not (kind.is_integer() or kind.is_string()):
            refuse_kind(name, str(kind))
