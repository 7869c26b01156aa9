"""At most k records of each person, chosen where the table is.

    rank() OVER (PARTITION BY person ORDER BY md5("key|person|record"))
      + count(*) OVER (PARTITION BY person, record)  <=  k

The rank starts at 0, so records with equal keys are kept or dropped together and the
order of rows on disk does not matter. The same records are kept as at hand
(``persons``): every engine's md5 of the same text is the same. No guarantee rests on
md5 being hard to invert.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from blowfish_fast.errors import InputError

from .domain import Attributes
from .persons import Bound, RecordKeys, new_key
from .records import Rule
from .sql import CellQuery
from .sql_cells import ibis_module

WEIGHT = "blowfish_units"
"""The column that says how many units of a person a row stands for."""


class BoundedTable(NamedTuple):
    """The rows of a table that are kept, and what CellQuery must know of them."""

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


def bounded_table(
    table: Any,
    keys: RecordKeys,
    bound: Bound,
    key: str | None = None,
    attributes: Mapping[Any, str] | None = None,
) -> BoundedTable:
    """Return the rows of at most ``bound.at_most`` records of each person.

    An expression that has not run. Whoever counts it more than once materialises it
    first (``table.cache()``): the rows without record keys are drawn anew each time.
    Rows whose person or record is missing stay, for CellQuery to refuse.
    """
    ibis = ibis_module()
    names = tuple(name for name in (keys.person, keys.record) if name is not None)
    _check_columns(table, names, dict(attributes or {}).values())
    person = table[keys.person]
    if keys.record is None:
        drawn = table.mutate(blowfish_order=ibis.random())
        order = ibis.window(group_by=drawn[keys.person], order_by=drawn.blowfish_order)
        place = ibis.row_number().over(order)
        ranked = drawn.mutate(blowfish_place=place).drop("blowfish_order")
        inside = ranked.blowfish_place < bound.at_most
    else:
        record = table[keys.record]
        text = ibis.literal(new_key() if key is None else key)
        text = text + "|" + person.cast("string") + "|" + record.cast("string")
        order = ibis.window(group_by=person, order_by=_md5()(text))
        alike = ibis.window(group_by=[person, record])
        place = ibis.rank().over(order) + table.count().over(alike)
        ranked = table.mutate(blowfish_place=place)
        inside = ranked.blowfish_place <= bound.at_most
    for name in names:
        inside = inside | ranked[name].isnull()
    kept = ranked.filter(inside).drop("blowfish_place")
    if bound.count != "persons":
        return BoundedTable(kept, names, None)
    held = kept.count().over(ibis.window(group_by=kept[keys.person]))
    units = (ibis.literal(bound.units, type="int64") / held).floor()
    return BoundedTable(kept.mutate(**{WEIGHT: units}), names, WEIGHT)


def query_cells(
    domain: Attributes,
    rules: Sequence[Rule],
    table: Any,
    names: Mapping[Any, str] | None,
    keys: RecordKeys,
    bound: Bound | None,
    key: str | None = None,
) -> CellQuery:
    """Return the query that counts a table by cell, its persons bounded first."""
    # The types of the attributes' columns are checked before anything else.
    query = CellQuery.over(domain, rules, table, names)
    if bound is None:
        return query
    kept = bounded_table(table, keys, bound, key, names)
    return CellQuery.over(domain, rules, kept.table, names, kept.weight, kept.keys)


def _check_columns(
    table: Any, names: tuple[str, ...], attributes: Collection[str]
) -> None:
    for name in names:
        if name in attributes:
            raise InputError(
                "person and record are columns beside the attributes", received=name
            )
        if not isinstance(name, str) or name not in table.columns:
            raise InputError(
                f"the table has no column {name!r} for persons or records; its columns "
                f"are {list(table.columns)}"
            )
        kind = table[name].type()
        if not (kind.is_integer() or kind.is_string()):
            raise InputError(
                f"{name} is a column of whole numbers or text",
                received=str(kind),
                way_out="Cast it to text: every engine must write it the same way",
            )
