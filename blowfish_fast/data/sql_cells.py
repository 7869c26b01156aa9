"""The cell of a column's values as an expression of a database.

    value      12.7                      dates: seconds since 1970, rounded down
    near       floor((12.7 - 0) / 5)     equal widths: corrected by the edges beside it,
                                         where values need not be whole
    cell       ((v < e2) ? (v < e1) ? 0 : 1 : ...)       other edges: log2 comparisons

No value may make a query fail: that it fails would tell, free of charge, that some
record holds the value. Engines round divisions their own way; edges are the same
doubles.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError, SizeError

from .axes import MICROSECONDS, MISSING, OUTSIDE, Axis
from .level_numbers import NUMERAL, NumberedLevels, numbered_levels
from .records import UNDATED, Rule, called, rule_of_levels
from .rules.steps import EXACT_IN_FLOATS
from .rules.steps import NANOSECONDS as NANOSECONDS_IN

WITHOUT_NAN = ("sqlite", "mysql")
MOST_COMPARED = 2**12
"""Edges of unequal cells, or levels, that are written into a query."""

SECOND = MICROSECONDS["s"]
"""Dates are compared to the second, in microseconds."""

MOST_DIGITS = 300
"""Digits before and behind the point of a decimal that fits into a double."""

EPOCH = datetime(1970, 1, 1)

MOST_SECONDS = 2**40
"""Whole seconds up to here, some 35,000 years, have 12 bits to spare in a double."""

NANOSECONDS = 9
"""Digits of a second that the finest timestamps carry."""

REACH = timedelta(days=2)
"""How far beyond the edges dates are told apart; no time zone is further off."""


class Stretch(NamedTuple):
    """Consecutive cells that are counted in bins of one width.

    Attributes
    ----------
    first : int
        The first cell.
    end : int
        The cell after the last.
    width : int
        Cells to a bin.
    rest : int
        The bin of all other cells.
    """

    first: int
    end: int
    width: int
    rest: int


class Bins(NamedTuple):
    """The bin of each cell of an attribute; in closed form for cells between edges.

    Attributes
    ----------
    labels : ndarray of int64, shape (cells,)
        The bins.
    stretch : Stretch
        The closed form.
    """

    labels: IntArray
    stretch: Stretch


Cell = tuple[Any, dict[str, Any]]
"""The cell (or bin) of each record; by kind of stray, which records have none."""


def cell_of(column: Any, attribute: Axis, rule: Rule, bins: Bins | None = None) -> Cell:
    """Return the cell of each value of a column, strays treated by `rule`.

    Parameters
    ----------
    column : ibis expression
        The values.
    attribute : Axis
        The cells.
    rule : Rule
        What happens to stray values.
    bins : Bins, optional
        Which cells are counted together.

    Returns
    -------
    tuple of (ibis expression, dict)
        The cell, and the condition of each kind of refused values.
    """
    if attribute.levels is not None:
        return _cell_of_level(column, attribute, rule, bins)
    if attribute.by_rule:
        return _cell_by_rule(column, attribute, rule)
    return _cell_between_edges(column, attribute, rule, bins)


def type_problem(attribute: Axis, kind: Any) -> str | None:
    """Say why a column cannot hold the attribute.

    Parameters
    ----------
    attribute : Axis
        The cells.
    kind : ibis DataType
        The type of the column.

    Returns
    -------
    str or None
        The reason; None if it can.
    """
    if attribute.levels is not None:
        stated = "category"
        texts = {isinstance(level, str) for level in compared_levels(attribute)}
        numbers = kind.is_numeric() or kind.is_boolean()
        if _numbered(attribute) is not None:
            fits = numbers or kind.is_string()
        else:
            fits = kind.is_string() if texts == {True} else numbers and texts == {False}
    elif attribute.keys is not None:
        stated, fits = "word", kind.is_string()
    elif attribute.by_rule:
        stated, fits = _fits_rule(attribute, kind)
    elif attribute.unit is not None:
        stated, fits = "date", kind.is_date() or kind.is_timestamp()
    else:
        stated = "number" if attribute.cuts is not None else "whole cell number"
        fits = kind.is_numeric() or kind.is_boolean()
    if fits:
        return None
    return (
        f"{attribute.name or 'the attribute'!r} is stated as a {stated}, and its "
        f"column is of type {kind}. {_way_to_fit(attribute, kind)}"
    )


def _way_to_fit(attribute: Axis, kind: Any) -> str:
    """Say how cells, or a column of some type, can be stated to fit together."""
    if attribute.levels is not None and kind.is_boolean():
        return "State the categories 0 and 1, for false and true"
    if kind.is_date() or kind.is_timestamp():
        return "State cells of dates, or offer a view in which the column is text"
    if kind.is_numeric() and attribute.levels is not None:
        return (
            "State categories that are different numbers, or edges, or offer a view "
            "in which the column is text"
        )
    return "State cells of that kind, or offer a view in which the column is cast"


def _fits_rule(attribute: Axis, kind: Any) -> tuple[str, bool]:
    """Say what an axis by a rule takes, and whether a type of ibis holds it."""
    rule = attribute.rule
    if rule.unit is not None:
        return "date", kind.is_date() or kind.is_timestamp()
    farthest = max(abs(rule.start), abs(rule.end(attribute.regular)))
    if farthest > EXACT_IN_FLOATS or attribute.steps is None:
        return "whole number", kind.is_integer()
    return "number", kind.is_integer() or kind.is_floating()


def ibis_module() -> Any:
    """Return ibis, or say which extra brings it."""
    return require("ibis", extra="sql", purpose="asking a database")


def double(number: float) -> Any:
    """Return a literal that no engine takes for a decimal, which would be slow."""
    return ibis_module().literal(float(number), "float64")


def is_missing(column: Any) -> Any:
    """Return whether each value is NULL or NaN."""
    absent = column.isnull()
    # SQLite and MySQL keep no NaN, and ibis has no word for it there.
    if column.type().is_floating() and _engine(column) not in WITHOUT_NAN:
        return absent | column.isnan()
    return absent


def as_number(column: Any, attribute: Axis) -> Any:
    """Return each value as a double; dates in whole seconds since 1970, in UTC.

    Parameters
    ----------
    column : ibis expression
        The values.
    attribute : Axis
        The cells.

    Returns
    -------
    ibis expression
        The numbers.
    """
    kind = column.type()
    if attribute.unit is None:
        if kind.is_boolean():
            return column.ifelse(double(1.0), double(0.0))
        if kind.is_decimal() and (kind.precision or MOST_DIGITS + 1) > MOST_DIGITS:
            return _long_decimal(column)
        return column.cast("float64")
    column = _within_reach(column, attribute)
    if kind.is_timestamp() and kind.timezone and _engine(column) == "duckdb":
        # ibis would cast to local time first; DuckDB's own function takes the instant.
        return _instant_in_seconds()(column).floor().cast("float64")
    if kind.is_date():
        return column.cast("timestamp").epoch_seconds().cast("float64")
    moment = column if kind.is_timestamp() else column.cast("timestamp")
    # Truncated first: engines round a part of a second up, down, or not at all.
    return moment.truncate("s").epoch_seconds().cast("float64")


def comparable_edges(attribute: Axis) -> FloatArray:
    """Return the edges in the unit of `as_number`."""
    cuts: FloatArray = np.asarray(attribute.cuts, dtype=np.float64)
    if attribute.unit is None:
        return cuts
    length = MICROSECONDS[attribute.unit]
    if length < SECOND:
        raise InputError(
            f"dates are compared to the second in a database, and the edges of "
            f"{called(attribute)} lie between seconds; use edges in whole seconds"
        )
    return cuts * (length // SECOND)


def _long_decimal(column: Any) -> Any:
    """Return decimals as doubles, also PostgreSQL's that no double comes near to."""
    ibis = ibis_module()
    most, least = (ibis.literal(f"1e{sign}{MOST_DIGITS}") for sign in ("", "-"))
    large, small = most.cast("decimal"), least.cast("decimal")
    return ibis.cases(
        (column > large, double(10.0**MOST_DIGITS)),
        (column < -large, double(-(10.0**MOST_DIGITS))),
        (column.abs() < small, double(0.0)),
        else_=column.cast("float64"),
    )


def _within_reach(column: Any, attribute: Axis) -> Any:
    """Return dates, far ones and infinity, which has no seconds, just beyond edges."""
    edges = comparable_edges(attribute)
    try:
        first, last = (EPOCH + timedelta(seconds=float(edges[at])) for at in (0, -1))
    except OverflowError:
        return column
    low = first - REACH if first - datetime.min > REACH else datetime.min
    high = last + REACH if datetime.max - last > REACH else datetime.max
    kind = column.type()
    if kind.is_timestamp() and not kind.timezone and kind.scale == NANOSECONDS:
        # They reach three centuries only, and the edges may lie beyond.
        column = column.cast("timestamp(6)")
    least, most = (_as_literal(limit, kind) for limit in (low, high))
    return ibis_module().cases(
        (column < least, least), (column > most, most), else_=column
    )


def _as_literal(moment: datetime, kind: Any) -> Any:
    if kind.is_date():
        return ibis_module().literal(moment.date(), "date")
    if kind.timezone:
        return ibis_module().literal(moment.replace(tzinfo=UTC), "timestamp('UTC')")
    return ibis_module().literal(moment, "timestamp")


def clamped_cell(
    value: Any, cuts: FloatArray, name: str | None, *, whole: bool = False
) -> Any:
    """Return the cell of each number, values outside in the cells at the ends.

    Parameters
    ----------
    value : ibis expression
        The numbers.
    cuts : ndarray of float64, shape (cells + 1,)
        The edges.
    name : str or None
        The name of the attribute, for the message.
    whole : bool, default False
        Whether all values are whole numbers, as the seconds of dates are.

    Returns
    -------
    ibis expression
        The cells.

    Raises
    ------
    SizeError
        If there are too many cells of unequal width.
    """
    ibis = ibis_module()
    cells = cuts.size - 1
    width = float(cuts[1] - cuts[0])
    start = float(cuts[0])
    if (start + np.arange(cuts.size) * width == cuts).all():
        # Clamped before it becomes an integer: values may be infinite.
        offset = value - double(start)
        if whole and width.is_integer() and np.abs(cuts).max() < MOST_SECONDS:
            # Half a second later no value lies within 1 / (2 width) of an edge, more
            # than any engine's rounding of this quotient: nothing is to be corrected.
            quotient = (offset + double(0.5)) / double(width)
            least, most = double(0.0), double(cells - 1)
            return (
                ibis.least(ibis.greatest(quotient, least), most).floor().cast("int64")
            )
        scaled = offset / double(width)
        near = ibis.least(ibis.greatest(scaled, double(-1.0)), double(cells))
        near = near.floor().cast("float64")
        late = value >= (near + double(1.0)) * double(width) + double(start)
        early = value < near * double(width) + double(start)
        step, none = double(1.0), double(0.0)
        exact = near + late.ifelse(step, none) - early.ifelse(step, none)
        within = ibis.least(ibis.greatest(exact, double(0.0)), double(cells - 1))
        return within.cast("int64")
    if cells > MOST_COMPARED:
        raise SizeError(
            f"{name or 'the domain'!r} has {cells:,} cells of unequal width; at most "
            f"2^12 = {MOST_COMPARED:,} are compared in the database. Use cells of one "
            "width"
        )
    return _bisected(value, cuts, 0, cells)


def compared_levels(attribute: Axis) -> tuple[Any, ...]:
    """Return the levels that are no extra cells, truth values as 0 and 1."""
    assert attribute.levels is not None
    levels = attribute.levels[: attribute.regular]
    if len(levels) > MOST_COMPARED:
        raise SizeError(
            f"{called(attribute)} has {len(levels):,} levels; at most 2^12 = "
            f"{MOST_COMPARED:,} are compared in the database"
        )
    return tuple(int(level) if isinstance(level, bool) else level for level in levels)


def _numbered(attribute: Axis) -> NumberedLevels | None:
    """Return the levels by number, where all are numbers."""
    assert attribute.levels is not None
    return numbered_levels(attribute.levels[: attribute.regular])


def as_level(column: Any, attribute: Axis) -> tuple[Any, tuple[Any, ...]]:
    """Return values of a column, and the levels as they are compared with these.

    Where all levels are numbers, a column of texts is compared by the shortest way to
    write a number, as `level_numbers.numeral` does it here.

    Parameters
    ----------
    column : ibis expression
        The values.
    attribute : Axis
        The levels.

    Returns
    -------
    values : ibis expression
        The values, ready to be compared.
    levels : tuple
        The levels.
    """
    ibis = ibis_module()
    levels, numbered = compared_levels(attribute), _numbered(attribute)
    kind = column.type()
    if kind.is_boolean():
        # Neither for NULL: "if true, else" would call what is missing false.
        column = ibis.cases(
            (column, ibis.literal(1, "int64")), (~column, ibis.literal(0, "int64"))
        )
    if numbered is None:
        return column, levels
    if not kind.is_string():
        return column, tuple(numbered.by_number)
    # The pattern ends before a line break in some engines, so none may be there.
    plain = ~column.re_search("[^0-9.-]") & column.re_search(f"^{NUMERAL}$")
    short = column.re_replace("0+$", "").re_replace("[.]$", "")
    fraction = plain & column.contains(".")
    value = ibis.cases((fraction, short), else_=column)
    return ibis.cases((value == "-0", "0"), else_=value), tuple(numbered.by_text)


def _bisected(value: Any, cuts: FloatArray, low: int, high: int) -> Any:
    """Return the cell in [low, high) by nested comparisons: log2 of them per record."""
    if high - low == 1:
        return ibis_module().literal(low, "int64")
    middle = (low + high) // 2
    return (value < double(cuts[middle])).ifelse(
        _bisected(value, cuts, low, middle), _bisected(value, cuts, middle, high)
    )


def _cell_of_level(column: Any, attribute: Axis, rule: Rule, bins: Bins | None) -> Cell:
    rule = rule_of_levels(rule)
    absent = is_missing(column)
    value, levels = as_level(column, attribute)
    # Levels of one bin share a branch.
    members: dict[int, list[Any]] = {}
    held = [
        (cell, level) for cell, level in enumerate(levels) if _is_held(value, level)
    ]
    for cell, level in held:
        members.setdefault(_bin_number(bins, cell), []).append(level)
    branches = [(absent, _bin_number(bins, attribute.extra_cell(MISSING)))]
    branches += [(value.isin(group), at) for at, group in members.items()]
    others = _bin_number(bins, attribute.extra_cell(OUTSIDE))
    number = ibis_module().cases(*branches, else_=others).cast("int64")
    stated = value.isin([level for _, level in held])
    return number, _refused(rule, absent, ~(absent | stated))


def _is_held(value: Any, level: Any) -> bool:
    """Return whether a value can be a level; engines compare both as doubles."""
    if not value.type().is_floating() or not isinstance(level, int):
        return True
    return abs(level) <= EXACT_IN_FLOATS or int(float(level)) == level


def _refused(rule: Rule, missing: Any, outside: Any) -> dict[str, Any]:
    """Return which records the rule refuses, by kind of stray."""
    strays = {"missing": missing, "outside": outside}.items()
    return {
        kind: which
        for kind, which in strays
        if getattr(rule, kind) in ("refuse", UNDATED)
    }


def _cell_between_edges(
    column: Any, attribute: Axis, rule: Rule, bins: Bins | None
) -> Cell:
    ibis = ibis_module()
    absent, value = is_missing(column), as_number(column, attribute)
    numbered = attribute.cuts is None
    edges = (
        np.array([0.0, attribute.regular]) if numbered else comparable_edges(attribute)
    )
    first, last = double(edges[0]), double(edges[-1])
    # The last edge belongs to the last cell, of numbers between edges.
    closed = not numbered and attribute.unit is None
    beyond = (value < first) | (value > last if closed else value >= last)
    # What is no number has no cell: it counts as the start, or is told apart below.
    safe = absent.ifelse(first, value)
    if numbered:
        top = double(attribute.regular - 1)
        number = ibis.least(ibis.greatest(safe, first), top).floor().cast("int64")
    else:
        dates = attribute.unit is not None
        number = clamped_cell(safe, edges, attribute.name, whole=dates)
    if bins is not None:
        number = _merge_cells(number, bins.stretch, attribute.regular)
    branches = []
    if rule.missing == "cell":
        branches.append((absent, _bin_number(bins, attribute.extra_cell(MISSING))))
    if rule.outside == "cell":
        branches.append((beyond, _bin_number(bins, attribute.extra_cell(OUTSIDE))))
    if branches:
        number = ibis.cases(*branches, else_=number).cast("int64")
    refused = _refused(rule, absent, ~absent & beyond)
    if numbered and not column.type().is_integer():
        refused["fraction"] = ~absent & ~beyond & (value.floor() != value)
    return number, refused


def _cell_by_rule(column: Any, attribute: Axis, rule: Rule) -> Cell:
    """Return cells by whole numbers throughout; values are clamped before all else."""
    ibis = ibis_module()
    steps, cells = attribute.rule, attribute.regular
    absent, ticks = is_missing(column), column
    first, last, length = steps.start, steps.end(cells), steps.step
    if steps.unit is not None:
        if NANOSECONDS_IN[steps.unit] < NANOSECONDS_IN["s"]:
            raise InputError(
                f"dates are compared to the second in a database, and the steps of "
                f"{called(attribute)} are shorter; use steps of whole seconds, or "
                "count with from_records"
            )
        seconds = NANOSECONDS_IN[steps.unit] // NANOSECONDS_IN["s"]
        first, last, length = (
            steps_of_unit * seconds for steps_of_unit in (first, last, length)
        )
        ends = Axis(1, attribute.name, (float(first), float(last)), unit="s")
        ticks = as_number(column, ends)
    low, high = (_whole(ticks, limit) for limit in (first, last - 1))
    if ticks.type().is_floating():
        # Doubles that are no numbers have no cell: they are told apart above.
        ticks = absent.ifelse(low, ticks.floor())
    below, above = ticks < low, ticks > high
    within = ibis.cases((absent, low), (below, low), (above, high), else_=ticks).cast(
        "int64"
    )
    offset = within - ibis.literal(first, "int64")
    number = offset if length == 1 else offset // ibis.literal(length, "int64")
    branches = []
    if rule.missing == "cell":
        branches.append((absent, attribute.extra_cell(MISSING)))
    if rule.outside == "cell":
        branches.append((below | above, attribute.extra_cell(OUTSIDE)))
    if branches:
        number = ibis.cases(
            *((which, ibis.literal(cell, "int64")) for which, cell in branches),
            else_=number.cast("int64"),
        )
    return number.cast("int64"), _refused(rule, absent, ~absent & (below | above))


def _whole(column: Any, number: int) -> Any:
    """Return a literal of the kind of a column."""
    if column.type().is_floating():
        return double(float(number))
    return ibis_module().literal(number, "int64")


def _bin_number(bins: Bins | None, cell: int | None) -> int:
    """Return the bin of a cell; 0 where no record can have it."""
    if cell is None:
        return 0
    return cell if bins is None else int(bins.labels[cell])


def _merge_cells(cell: Any, stretch: Stretch, cells: int) -> Any:
    first, end, width, rest = stretch
    number = ((cell - first) / width).floor() if width > 1 else cell - first
    if first == 0 and end == cells:
        return number.cast("int64")
    beyond = (cell < first) | (cell >= end)
    return ibis_module().cases((beyond, rest), else_=number.cast("int64"))


def _engine(column: Any) -> str:
    return str(column.get_backend().name)


@cache
def _instant_in_seconds() -> Any:
    ibis = ibis_module()
    types = ibis.expr.datatypes
    signature = ((types.Timestamp(timezone="UTC"),), types.float64)

    def epoch(moment: Any) -> Any:
        """Stand for the function of that name in DuckDB."""

    return ibis.udf.scalar.builtin(epoch, signature=signature)
