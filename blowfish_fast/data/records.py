"""From the values of records to cell numbers; nothing is ever dropped.

    refuse   an error that says that there are some, never how many
    clamp    the nearest edge cell, or the nearest district of a point; the first cell
             for missing values
    cell     a public cell of its own, which the domain gains

Dropping stray records would make a private number look public: the total of what is
left depends on how many there were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.errors import CountsError, DomainError, InputError

from .axes import (
    MICROSECONDS,
    MISSING,
    OUTSIDE,
    Axis,
    as_moments,
    is_blank,
)
from .columns import Column, encoded_values, level_codes, record_blocks
from .domain import Attributes
from .level_numbers import NumberedLevels, numbered_levels
from .rules.steps import (
    EXACT_IN_FLOATS,
    PlacedTicks,
    Steps,
    place_moments,
    place_ticks,
)

EXACT_BYTES = 8
"""Bytes of a double: shorter numbers fit into one."""

Treatment = Literal["refuse", "clamp", "cell"]
TREATMENTS = ("refuse", "clamp", "cell")
UNDATED = "undated"
"""How `missing` treats a record without an arrival: refused, in words of its own."""
Treatments = Treatment | Mapping[Any, Treatment] | None

AnyDomain = TypeVar("AnyDomain", bound=Attributes)


class Rule(NamedTuple):
    """What happens to stray values of one attribute.

    Attributes
    ----------
    outside : str
        "refuse", "clamp" or "cell" for values outside.
    missing : str
        The same for missing values.
    """

    outside: str
    missing: str


def domain_with_rules(
    domain: AnyDomain, outside: Treatments, missing: Treatments
) -> tuple[AnyDomain, list[Rule]]:
    """Return the domain with the cells asked for, and a rule for each attribute.

    Parameters
    ----------
    domain : AnyDomain
        The attributes.
    outside : Treatments
        What happens to values outside; one word, or words by attribute.
    missing : Treatments
        What happens to missing values, in the same way.

    Returns
    -------
    domain : Domain or WideDomain
        The domain with its extra cells.
    rules : list[Rule]
        A rule for each attribute.

    Raises
    ------
    InputError
        If a word is none of the three, or levels or words are to be clamped: by name,
        or because no attribute has numbers, dates or districts with borders. One
        "clamp" for all attributes leaves levels and words as they are without it.
    """
    beyond = _treatments(domain, outside, "outside", OUTSIDE)
    rules = list(map(Rule, beyond, _treatments(domain, missing, "missing", MISSING)))
    for attribute, rule in zip(domain.attributes, rules, strict=True):
        if attribute.keys is not None and "clamp" in rule:
            raise InputError(
                "words have no nearest cell",
                received='"clamp"',
                way_out=f'Ask for "cell" or "refuse" for {called(attribute)}',
            )
        if attribute.borders is not None and rule.outside == "clamp":
            rule = rule._replace(outside="refuse")
        if attribute.levels is not None and "clamp" in rule:
            raise InputError(
                "levels have no nearest cell; list an 'other' level in the domain, or "
                f'ask for "cell" instead of "clamp" for {called(attribute)}'
            )
    gaining = {
        kind: [axis for axis, treatment in enumerate(along) if treatment == "cell"]
        or False
        for kind, along in zip(Rule._fields, zip(*rules, strict=True), strict=True)
    }
    return domain.with_extra_cells(**gaining), rules


def _treatments(
    domain: Attributes, asked: Treatments, word: str, kind: str
) -> list[str]:
    default = [
        "refuse" if attribute.extra_cell(kind) is None else "cell"
        for attribute in domain.attributes
    ]
    if asked is None:
        return default
    by_axis: dict[int, Any] = (
        {domain.axis(name): treatment for name, treatment in asked.items()}
        if isinstance(asked, Mapping)
        else dict.fromkeys(range(domain.ndim), asked)
    )
    if isinstance(asked, str) and asked == "clamp":
        # One word for all columns is about those that have a nearest cell; where none
        # has one, it is refused as a mistake.
        ordered = [axis for axis in by_axis if has_nearest(domain.attributes[axis])]
        by_axis = dict.fromkeys(ordered or by_axis, asked)
    for treatment in by_axis.values():
        if not isinstance(treatment, str) or treatment not in TREATMENTS:
            raise InputError(
                f'{word} must be "refuse", "clamp" or "cell", or a mapping from '
                "attributes to these",
                received=repr(treatment),
                code="unknown_treatment",
                data={"option": word},
            )
    return [by_axis.get(axis, treatment) for axis, treatment in enumerate(default)]


def has_nearest(attribute: Axis) -> bool:
    """Return whether values outside have a nearest cell.

    Numbers and dates have one, and points have a nearest district (Lemma DI4).
    """
    plain = attribute.levels is None and attribute.keys is None
    return plain or attribute.borders is not None


def rule_of_levels(rule: Rule) -> Rule:
    """Return the rule for spelled levels: points have a nearest district, ids none."""
    return rule._replace(outside="refuse") if rule.outside == "clamp" else rule


def _clamping(domain: Attributes, rules: list[Rule]) -> Attributes:
    """Return the domain whose borders take points outside to the nearest district."""
    clamped = [
        attribute.borders is not None and rule.outside == "clamp"
        for attribute, rule in zip(domain.attributes, rules, strict=True)
    ]
    if not any(clamped):
        return domain
    return domain._of(
        replace(attribute, borders=attribute.borders.clamping())
        if nearest and attribute.borders is not None
        else attribute
        for attribute, nearest in zip(domain.attributes, clamped, strict=True)
    )


def cell_blocks(
    domain: Attributes, rules: list[Rule], records: Any
) -> Iterator[IntArray]:
    """Yield the cell number of every record, block by block.

    Parameters
    ----------
    domain : Attributes
        The cells.
    rules : list[Rule]
        What happens to stray values.
    records : frame, mapping, array or iterator of these
        The records.

    Yields
    ------
    ndarray of int64
        The cells of a block of records.

    Raises
    ------
    InputError
        If there are stray values that were to be refused.
    """
    for columns in place_blocks(domain, rules, records):
        cells = columns[0]
        for size, column in zip(domain.shape[1:], columns[1:], strict=True):
            cells = cells * size
            cells += column
        yield cells


def place_blocks(
    domain: Attributes, rules: list[Rule], records: Any
) -> Iterator[list[IntArray]]:
    """Yield the cells of records along each attribute, and refuse strays at the end.

    Parameters
    ----------
    domain : Attributes
        The cells.
    rules : list[Rule]
        What happens to stray values.
    records : frame, mapping, array or iterator of these
        The records.

    Yields
    ------
    list of ndarrays of int64
        The cells of a block along each attribute.

    Raises
    ------
    InputError
        If there are stray values that were to be refused.
    """
    placers = [
        _placer(attribute, rule)
        for attribute, rule in zip(domain.attributes, rules, strict=True)
    ]
    problems: list[InputError] = []
    for columns in record_blocks(records, _clamping(domain, rules)):
        placed = []
        for place, column in zip(placers, columns, strict=True):
            try:
                placed.append(place(column))
            except InputError as problem:
                several: Any = problem.data.get("problems", [problem])
                problems += several
        if not problems:
            yield placed
    raise_together(problems)


def raise_together(problems: Iterable[InputError]) -> None:
    """Raise what is wrong with the data as one error; each problem is told once."""
    different = list({str(problem): problem for problem in problems}.values())
    if len(different) == 1:
        raise different[0]
    if different:
        raise CountsError(
            "\n  ".join([f"{len(different)} problems:", *map(str, different)]),
            code="several_problems",
            data={"problems": different},
        )


def _placer(attribute: Axis, rule: Rule) -> Callable[[Column], IntArray]:
    """Return the function from a column to cells, with its tables built once."""
    if attribute.levels is not None:
        return _by_level(attribute, rule_of_levels(rule))
    if attribute.cuts is not None:
        return _by_edges(attribute, rule)
    if attribute.by_rule:
        return _by_steps(attribute, rule)
    return _by_number(attribute, rule)


def _targets(attribute: Axis, rule: Rule) -> kernels.Targets:
    """Return the cells of values below, above and missing; -1 where refused."""
    outside: Any = attribute.extra_cell(OUTSIDE)
    missing: Any = attribute.extra_cell(MISSING)
    below = {"refuse": -1, "clamp": 0, "cell": outside}[rule.outside]
    above = {"refuse": -1, "clamp": attribute.regular - 1, "cell": outside}
    refused = dict.fromkeys(("refuse", UNDATED), -1)
    lacking = {**refused, "clamp": 0, "cell": missing}[rule.missing]
    return kernels.Targets(below, above[rule.outside], lacking)


def _by_edges(attribute: Axis, rule: Rule) -> Callable[[Column], IntArray]:
    guide = kernels.edge_guide(np.array(attribute.cuts, dtype=np.float64))
    targets = _targets(attribute, rule)
    closed = attribute.unit is None

    def place(column: Column) -> IntArray:
        values = (_numbers if closed else _dates)(attribute, column)
        cells, strays = kernels.cells_between_edges(
            values, guide, targets, closed=closed
        )
        refuse_strays(attribute, rule, *strays)
        return cells

    return place


def _by_number(attribute: Axis, rule: Rule) -> Callable[[Column], IntArray]:
    below, above, missing = _targets(attribute, rule)

    def place(column: Column) -> IntArray:
        plain = column if isinstance(column, np.ndarray) else column.to_numpy()
        whole = plain.dtype.kind in "iu" and plain.size > 0
        if whole and plain.min() >= 0 and plain.max() < attribute.regular:
            # The usual case, without a detour over floats.
            return plain.astype(np.int64)
        values = _numbers(attribute, plain)
        blank = np.isnan(values)
        low, high = values < 0, values >= attribute.regular
        refuse_strays(attribute, rule, (low | high).any(), blank.any())
        inside = ~(blank | low | high)
        cells = np.where(inside, values, 0.0).astype(np.int64)
        if (inside & (cells != values)).any():
            refuse_fractions()
        return np.select([low, high, blank], [below, above, missing], cells)

    return place


def _by_steps(attribute: Axis, rule: Rule) -> Callable[[Column], IntArray]:
    """Return the cells of an axis by a rule, or of one with very many numbers."""
    steps, cells = attribute.rule, attribute.regular
    below, above, missing = _targets(attribute, rule)

    def place(column: Column) -> IntArray:
        if steps.unit is None:
            values, blank = _whole_numbers(attribute, column)
            placed = place_ticks(steps, cells, values)
        else:
            placed, blank = _placed_moments(attribute, steps, column)
        low, high = placed.below & ~blank, placed.above & ~blank
        refuse_strays(attribute, rule, (low | high).any(), blank.any())
        if not (low.any() or high.any() or blank.any()):
            return placed.cells
        return np.select([low, high, blank], [below, above, missing], placed.cells)

    return place


def _whole_numbers(attribute: Axis, column: Column) -> tuple[AnyArray, BoolArray]:
    """Return the whole number that each value begins with, and which are missing.

    Nothing goes through doubles that they would not hold: a column of floats is
    refused, whatever its values, where the axis reaches beyond 2^53.
    """
    column, blank = _as_plain(column)
    if column.dtype.kind == "O":
        column, blank = _from_whole_objects(column)
    if blank is None:
        blank = np.zeros(column.shape, dtype=np.bool_)
    if column.dtype.kind in "biu":
        return (column if column.dtype.kind == "u" else column.astype(np.int64)), blank
    values = _numbers(attribute, column)
    steps = attribute.rule
    farthest = max(abs(steps.start), abs(steps.end(attribute.regular)))
    if farthest > EXACT_IN_FLOATS and values.size:
        raise InputError(
            f"values of {called(attribute)} are whole numbers beyond 2^53, which "
            "doubles do not tell apart",
            received=f"dtype {column.dtype}",
            way_out="Hand over a column of 64-bit integers, which may have missing "
            "values in pandas (Int64), polars and arrow",
            code="floats_beyond_integers",
        )
    blank = np.isnan(values)
    if attribute.steps is None and (~blank & (np.floor(values) != values)).any():
        refuse_fractions()
    # Beyond the axis in any case, and within 64 bits.
    limit = float(2 * EXACT_IN_FLOATS)
    clipped = np.clip(np.where(blank, 0.0, np.floor(values)), -limit, limit)
    return clipped.astype(np.int64), blank


def _as_plain(column: Column) -> tuple[AnyArray, BoolArray | None]:
    """Return a column as numpy holds it, and which whole numbers are missing.

    Whole numbers with gaps would become doubles, which merge them beyond 2^53: gaps
    are 0, and told apart. None where there are none.
    """
    if isinstance(column, np.ndarray):
        return column, None
    if not (column.dtype.is_integer() and column.null_count()):
        return column.to_numpy(), None
    blank = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
    return column.fill_null(0).to_numpy(), blank


def _from_whole_objects(array: AnyArray) -> tuple[AnyArray, BoolArray | None]:
    """Return whole numbers in 64 bits and which are missing; others as they are."""
    values = array.tolist()
    blank = np.array([is_blank(value) for value in values], dtype=np.bool_)
    whole = [0 if lacks else value for value, lacks in zip(values, blank, strict=True)]
    if not all(isinstance(number, int) for number in whole):
        return array, None
    # Farther numbers lie outside of every axis, on the same side.
    limits = np.iinfo(np.int64)
    within = [min(max(int(number), limits.min), limits.max) for number in whole]
    return np.array(within, dtype=np.int64), blank


def _placed_moments(
    attribute: Axis, steps: Steps, column: Column
) -> tuple[PlacedTicks, BoolArray]:
    """Return the cells of times, to the nanosecond, and which are missing."""
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.size == 0:
        array = np.empty(0, dtype="M8[ns]")
    if array.dtype.kind != "M":
        try:
            moments = as_moments(array)
        except DomainError as problem:
            raise InputError(f"values of {called(attribute)}: {problem}") from None
        if steps.unit == "ns" and array.dtype.kind == "U":
            moments = _finer(array, moments)
        array = moments
    return place_moments(steps, attribute.regular, array), np.isnat(array)


def _finer(texts: AnyArray, moments: AnyArray) -> AnyArray:
    """Return times of texts to the nanosecond; far ones to the microsecond, cut off."""
    limit = np.int64(2**63 // 1000 - 1)
    numbers = moments.astype(np.int64)
    near = ~np.isnat(moments) & (np.abs(numbers) < limit)
    whole = np.clip(numbers, -limit, limit) * 1000
    finer = np.where(np.isnat(moments), np.datetime64("NaT"), whole.astype("M8[ns]"))
    finer[near] = texts[near].astype("M8[ns]")
    return finer


def _by_level(attribute: Axis, rule: Rule) -> Callable[[Column], IntArray]:
    assert attribute.levels is not None
    _, unknown, missing = _targets(attribute, rule)
    plain = attribute.levels[: attribute.regular]
    number = {level: cell for cell, level in enumerate(plain)}
    numbered = numbered_levels(plain)
    # Codes: a cell, -1 for an unknown value, -2 for a missing one.
    table = np.array([*range(len(plain)), missing, unknown], dtype=np.int64)

    def place(column: Column) -> IntArray:
        codes = _codes(number, numbered, column)
        if codes.min(initial=0) == 0:
            return codes.astype(np.int64)
        refuse_strays(attribute, rule, (codes == -1).any(), (codes == -2).any())
        return table[codes]

    return place


def _codes(
    number: dict[Any, int], numbered: NumberedLevels | None, column: Column
) -> IntArray:
    if numbered is not None:
        return _number_codes(numbered, column)
    if all(isinstance(level, str) for level in number):
        codes = level_codes(list(number), column)
        if codes is not None:
            return codes
    plain, blank = _as_plain(column)
    kinds = {str: "U", bool: "biuf", int: "biuf", float: "biuf"}
    if all(plain.dtype.kind in kinds[type(level)] for level in number):
        return _sorted_codes(number, plain, blank)
    return _object_codes(lambda level: number.get(level, -1), plain, blank)


def _number_codes(levels: NumberedLevels, column: Column) -> IntArray:
    """Return places among levels that are numbers, of numbers and of texts."""
    encoded = encoded_values(column)
    if encoded is not None:
        codes, values = encoded
        # Missing ones have number -1: the last.
        return np.array([*map(levels.cell, values), -2])[codes]
    plain, blank = _as_plain(column)
    if plain.dtype.kind in "biuf":
        return _sorted_codes(levels.by_number, plain, blank)
    return _object_codes(levels.cell, plain, blank)


def _sorted_codes(
    number: dict[Any, int], column: AnyArray, blank: BoolArray | None
) -> IntArray:
    """Return cells by bisection, in the column's own type: never rounded to doubles."""
    if column.dtype.kind == "b":
        column = column.view(np.uint8)
    elif column.dtype.kind == "f" and column.itemsize < EXACT_BYTES:
        column = column.astype(np.float64)
    fitting = [level for level in number if _is_held(level, column.dtype)]
    codes = np.full(column.shape, -1, dtype=np.int64)
    if fitting:
        kind = None if column.dtype.kind == "U" else column.dtype
        levels = np.array(fitting, dtype=kind)
        order = np.argsort(levels)
        levels = levels[order]
        cells = np.array([number[level] for level in fitting], dtype=np.int64)[order]
        place = np.minimum(np.searchsorted(levels, column), levels.size - 1)
        codes = np.where(levels[place] == column, cells[place], -1)
    if column.dtype.kind == "f":
        codes[np.isnan(column)] = -2
    if blank is not None:
        codes[blank] = -2
    return codes


def _is_held(level: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a column of this type can hold a level, to its last digit."""
    if dtype.kind == "U" or (dtype.kind == "f" and isinstance(level, float)):
        return True
    if dtype.kind == "f":
        try:
            return bool(int(dtype.type(level)) == level)
        except OverflowError:
            return False
    limits = np.iinfo(dtype)
    return bool(level // 1 == level and limits.min <= level <= limits.max)


def _object_codes(
    cell: Callable[[Any], int], column: AnyArray, blank: BoolArray | None
) -> IntArray:
    values = column.tolist()
    try:
        codes = np.array([cell(value) for value in values], dtype=np.int64)
    except TypeError:
        raise InputError(
            "records hold values that no level can be, such as lists; levels are "
            "texts, numbers or truth values"
        ) from None
    for at in np.flatnonzero(codes == -1).tolist():
        if is_blank(values[at]):
            codes[at] = -2
    if blank is not None:
        codes[blank] = -2
    return codes


def _numbers(attribute: Axis, column: Column) -> AnyArray:
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "biuf" and array.size:
        raise InputError(
            f"values of {called(attribute)} must be numbers",
            received=f"dtype {array.dtype}",
            way_out="Categories need Domain.from_levels, dates Domain.from_dates",
            code="values_not_numbers",
        )
    return array.astype(np.float64)


def _from_objects(array: AnyArray) -> AnyArray:
    """Return numbers, with NaN for None and the like; unchanged if some are none."""
    values = array.tolist()
    if any(isinstance(value, str | bytes) for value in values):
        return array
    try:
        numbers = [np.nan if is_blank(value) else float(value) for value in values]
    except (TypeError, ValueError):
        return array
    return np.array(numbers, dtype=np.float64)


def _dates(attribute: Axis, column: Column) -> AnyArray:
    """Return whole units since 1970, rounded down: edges are whole units too."""
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.size == 0:
        return np.empty(0)
    try:
        moments = as_moments(array)
    except DomainError as problem:
        raise InputError(f"values of {called(attribute)}: {problem}") from None
    assert attribute.unit is not None
    whole = moments.astype(np.int64) // MICROSECONDS[attribute.unit]
    return np.where(np.isnat(moments), np.nan, whole.astype(np.float64))


def refuse_fractions() -> NoReturn:
    """Refuse values between cell numbers."""
    raise InputError(
        "an attribute without edges expects cell numbers",
        way_out="Give the domain edges with Domain.from_edges to bin real values",
        code="fractions_of_cells",
    )


def refuse_weights(name: str | None) -> NoReturn:
    """Refuse a column that does not say how many records each row stands for."""
    raise CountsError(
        f"the column {name!r} must say how many records a row stands for, a whole "
        "number from 0; it holds something else"
    )


def as_weights(column: AnyArray, name: str) -> IntArray:
    """Return how many records each row stands for; refuse what is no such number.

    Parameters
    ----------
    column : ndarray
        The numbers.
    name : str
        The name of the column, for the message.

    Returns
    -------
    ndarray of int64
        The numbers.

    Raises
    ------
    InputError
        If one is negative, a fraction, or too large.
    """
    with np.errstate(invalid="ignore"):
        fits = (column >= 0) & (column == np.floor(column)) & (column < 2**53)
    if not fits.all():
        refuse_weights(name)
    return column.astype(np.int64)


def refuse_strays(attribute: Axis, rule: Rule, outside: Any, missing: Any) -> None:
    """Refuse stray values where that was asked, without saying how many there are.

    Parameters
    ----------
    attribute : Axis
        The attribute.
    rule : Rule
        What happens to its stray values.
    outside : bool
        Whether some values lie outside.
    missing : bool
        Whether some are missing.

    Raises
    ------
    CountsError
        If there are some that were to be refused.
    """
    name, problems = called(attribute), []
    if attribute.levels is not None:
        rule = rule_of_levels(rule)
    if missing and rule.missing == UNDATED:
        problems.append(
            CountsError(
                f"some records do not say when they arrived: {name!r} has missing "
                "values, and a record must lie in exactly one epoch",
                code="missing_arrivals",
            )
        )
    if missing and rule.missing == "refuse":
        problems.append(
            CountsError(
                f"records hold missing values of {name}, which have no cell",
                way_out='Pass missing="cell" to give them one that the policy covers',
                code="missing_values",
            )
        )
    if outside and rule.outside == "refuse" and attribute.levels is not None:
        problems.append(
            CountsError(
                f"records hold values that are no level of {name}",
                way_out="Spell levels as records do, with capitals, blanks, leading "
                "zeros and a .0 behind whole numbers; add those that are lacking, or "
                'pass outside="cell" to give other values a cell',
                code="unknown_levels",
                data={"column": name},
            )
        )
    elif outside and rule.outside == "refuse" and attribute.keys is not None:
        problems.append(
            CountsError(
                f"records hold values of {name} that are none of its words",
                way_out='State more symbols or longer words, or pass outside="cell" to '
                "give all others a cell",
                code="values_outside",
            )
        )
    elif outside and rule.outside == "refuse":
        problems.append(
            CountsError(
                f"records lie outside {name}",
                way_out='Widen its edges, or pass outside="clamp" to put them into the '
                'edge cells, or outside="cell" to give them one of their own',
                code="values_outside",
            )
        )
    raise_together(problems)


def called(attribute: Axis) -> str:
    """Return what messages call an attribute."""
    return attribute.name or "the domain"
