"""A table of a database: one GROUP BY, records stay where they are.

    "people.duckdb", "people.sqlite"     a file
    "duckdb://...", "postgres://..."     the same, PostgreSQL
    "sqlite://...", "mysql://...", ...   whatever ibis connects to

Each record gets the number of its cell inside the database (``bin_expressions``, as
for the explorer's questions); only counts come back. Stray values are counted apart
there, and refused, clamped or kept here, as the person stated.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.apps.cli.parsing.words import nearest
from blowfish_fast.data.axes import MISSING, OUTSIDE, Attribute, as_dates
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.records import Rule
from blowfish_fast.errors import (
    BlowfishError,
    CatalogError,
    CountsError,
    EngineError,
    InputError,
)

from .csv_chunks import Part
from .parquet_chunks import truth_levels

DATABASES = (".duckdb", ".ddb", ".db")
SQLITE = (".sqlite", ".sqlite3")
OWN = ("duckdb", "postgres", "postgresql")
"""Schemes that the explorer's engines open, read only."""


def names_a_database(words: str) -> bool:
    """Return whether words are an address or a database file."""
    return "://" in words or Path(words).suffix.lower() in DATABASES + SQLITE


class DatabaseTable:
    """A table of a database, by an address that ibis understands.

    Parameters
    ----------
    address : str
        A file or an address; its password is never printed.
    table : str, optional
        The table; may be left out where there is only one.
    count_column : str, optional
        A column that says how many records a row stands for.
    """

    def __init__(
        self, address: str, table: str | None = None, count_column: str | None = None
    ) -> None:
        for module in ("ibis", "pydantic"):
            require(module, extra="sql", purpose="reading a database")
        self.engine = _connected(address)
        self.count_column = count_column
        self.table = self._chosen(table)

    @property
    def description(self) -> str:
        """What messages call it."""
        return f"table {self.table} ({self.engine.name})"

    def check(self, domain: Domain) -> None:
        """Refuse a table whose columns are not as stated; reads its schema only."""
        self._axes(domain, [Rule("refuse", "refuse")] * domain.ndim)

    def histogram(self, domain: Domain, rules: list[Rule], done: Part) -> Histogram:
        """Count the records of every cell of `domain`, extra cells included."""
        axes = self._axes(domain, rules)
        cells, records = self._grouped(axes)
        if cells.size == 0:
            raise CountsError(
                f"{self.description} holds no record; is it the right table?"
            )
        shape = tuple(one.bins.bins for one in axes)
        places = np.unravel_index(cells, shape)
        number: IntArray = np.zeros(cells.size, dtype=np.int64)
        for axis, place in zip(axes, places, strict=True):
            along = axis.targets[place]
            _refuse_strays(along, axis)
            number = number * axis.attribute.size + along
        counts = np.zeros(domain.size, dtype=np.int64)
        np.add.at(counts, number, records)
        done(1.0)
        return Histogram(domain, counts.reshape(domain.shape))

    def _chosen(self, table: str | None) -> str:
        tables: list[str] = self.engine.tables()
        if table is not None and table in tables:
            return table
        if table is None and len(tables) == 1:
            return tables[0]
        listed = ", ".join(tables[:20]) or "none"
        if table is None:
            raise InputError(
                f"{self.engine.name} has several tables, {listed}; name one with "
                "--data-table"
            )
        raise InputError(
            f"{self.engine.name} has no table {table!r}{nearest(table, tables)}; it "
            f"has {listed}"
        )

    def _axes(self, domain: Domain, rules: list[Rule]) -> list[_Axis]:
        columns: dict[str, str] = self.engine.columns(self.table)
        needed = [one.name for one in domain.attributes]
        for name in [*needed, self.count_column]:
            if name is not None and name not in columns:
                raise InputError(
                    f"{self.description} has no column {name!r}"
                    f"{nearest(name, columns)}; its columns are {', '.join(columns)}"
                )
        if None in needed:
            raise InputError(
                "a table has columns with names, and the domain names none; state it "
                "as age=0:101:1, for instance"
            )
        axes = [
            _axis(one, rule, columns[str(one.name)])
            for one, rule in zip(domain.attributes, rules, strict=True)
        ]
        from blowfish_fast.apps.explorer.catalog import TableSpec

        spec = TableSpec(
            name=self.table,
            source=self.table,
            attributes=[one.bins.spec for one in axes],
        )
        try:
            self.engine.check(spec)
        except CatalogError as problem:
            raise InputError(
                f"{problem}; state cells of that kind, name a view that converts the "
                "column, or export the table as CSV"
            ) from None
        return axes

    def _grouped(self, axes: list[_Axis]) -> tuple[IntArray, IntArray]:
        """Return the cells that hold records, and how many each holds."""
        from blowfish_fast.apps.explorer.bin_expressions import bin_number

        try:
            table = self.engine.backend.table(self.table)
            cell = None
            for one in axes:
                along = bin_number(table[one.attribute.name], one.bins)
                cell = along if cell is None else cell * one.bins.bins + along
            if self.count_column is None:
                asked = {"records": table.count()}
            else:
                weight = table[self.count_column]
                asked = {"records": weight.sum(), "unknown": weight.isnull().sum()}
            with warnings.catch_warnings():
                # Of drivers about themselves: nothing that a curator could act on.
                warnings.simplefilter("ignore")
                grouped = table.group_by(cell=cell).aggregate(**asked).to_pyarrow()
        except BlowfishError:
            raise
        except Exception as problem:
            # The words of a database could quote records.
            raise EngineError(
                f"{self.description} could not be counted ({type(problem).__name__}); "
                "nothing was charged"
            ) from None
        if self.count_column is not None and np.asarray(grouped["unknown"]).any():
            raise CountsError(f"the column {self.count_column!r} lacks some counts")
        cells = np.asarray(grouped["cell"]).astype(np.int64)
        return cells, _whole(np.asarray(grouped["records"]), self.count_column)


class _Axis(NamedTuple):
    """One attribute in the database, and where each of its bins goes.

    `targets` holds a cell of `attribute` for each bin: -1 and -2 where values outside
    and missing ones are refused.
    """

    attribute: Attribute
    bins: Any
    targets: IntArray


def _axis(attribute: Attribute, rule: Rule, kind: str) -> _Axis:
    from blowfish_fast.apps.explorer.layout import AxisBins, Stretch

    spec = _spec(attribute, rule, kind)
    (seen,) = spec.domain().attributes
    targets = np.arange(seen.size)
    regular = attribute.regular
    if attribute.cuts is None and attribute.levels is None:
        # One more cell than there are takes numbers beyond the last.
        targets[regular] = _outside(attribute, rule, above=True)
    outside, missing = seen.extra_cell(OUTSIDE), seen.extra_cell(MISSING)
    if outside is not None:
        targets[outside] = _outside(attribute, rule, above=False)
    assert missing is not None
    targets[missing] = _missing(attribute, rule)
    size = seen.size
    bins = AxisBins(
        spec,
        np.arange(size),
        size,
        size,
        np.zeros(size, dtype=np.bool_),
        (),
        Stretch(0, seen.regular, 1, 0),
    )
    return _Axis(attribute, bins, targets)


def _outside(attribute: Attribute, rule: Rule, *, above: bool) -> int:
    if rule.outside == "cell":
        cell = attribute.extra_cell(OUTSIDE)
        assert cell is not None
        return cell
    if rule.outside == "clamp":
        return attribute.regular - 1 if above else 0
    return -1


def _missing(attribute: Attribute, rule: Rule) -> int:
    if rule.missing == "refuse":
        return -2
    cell = attribute.extra_cell(MISSING)
    return 0 if rule.missing == "clamp" or cell is None else cell


def _spec(attribute: Attribute, rule: Rule, kind: str) -> Any:
    """Describe a column as the explorer does, stray values in cells of their own."""
    from pydantic import ValidationError

    from blowfish_fast.apps.explorer.attributes import AttributeSpec, EqualCells
    from blowfish_fast.apps.explorer.questions import plain_errors

    stated: dict[str, Any] = {"name": attribute.name, "missing": "cell"}
    if attribute.levels is not None:
        levels = attribute.levels[: attribute.regular]
        texts = kind.lstrip("!").startswith("string")
        stated["levels"] = [str(one) if texts else one for one in levels]
        truths = truth_levels(attribute)
        if kind.lstrip("!").startswith("bool") and truths is not None:
            stated["levels"] = [int(one == truths[0]) for one in levels]
    else:
        stated["outside"] = "clamp" if rule.outside == "clamp" else "cell"
        if attribute.unit is not None and attribute.cuts is not None:
            stated["dates"] = as_dates(attribute.cuts, attribute.unit).tolist()
        elif attribute.cuts is not None:
            stated["edges"] = list(attribute.cuts)
        else:
            if "int" not in kind:
                raise InputError(
                    f"{attribute.name!r} is stated by a number of cells, so its column "
                    f"must hold whole cell numbers; it is of type {kind}. State edges, "
                    f"{attribute.name}=LOW:HIGH:WIDTH"
                )
            stated["cells"] = EqualCells(start=0, stop=attribute.regular + 1, width=1)
    try:
        return AttributeSpec(**stated)
    except ValidationError as problem:
        raise InputError(plain_errors(problem)) from None


def _refuse_strays(cells: IntArray, axis: _Axis) -> None:
    """Refuse stray values, without saying how many there are."""
    name = axis.attribute.name
    if (cells == -2).any():
        raise CountsError(
            f"records hold missing values of {name}, which have no cell; state "
            "--missing cell to give them one that the policy covers"
        )
    if (cells == -1).any():
        levels = axis.attribute.levels is not None
        raise CountsError(
            f"records hold values that are no category of {name}, letter by letter; "
            "list them, too, or state --outside cell to give them a cell"
            if levels
            else f"records lie outside {name}; widen the domain, or state --outside "
            "clamp or --outside cell"
        )


def _whole(numbers: AnyArray, name: str | None) -> IntArray:
    floats = numbers.astype(np.float64)
    if not ((floats >= 0) & (floats == np.floor(floats))).all():
        raise CountsError(
            f"the column {name!r} must hold how many records a row stands for, whole "
            "numbers from 0; it holds something else"
        )
    return floats.astype(np.int64)


def _connected(address: str) -> Any:
    from blowfish_fast.apps.explorer.engines import Engine

    if "://" not in address and Path(address).suffix.lower() in SQLITE:
        address = f"sqlite://{Path(address).absolute()}"
    scheme, apart, rest = address.partition("://")
    if not apart or scheme in OWN:
        return Engine.connect(address)
    if scheme == "sqlite" and not Path(rest.partition("?")[0]).is_file():
        # ibis would make a new, empty one.
        raise EngineError(f"there is no SQLite file {rest!r}; check the path")
    ibis = require("ibis", extra="sql", purpose="reading a database")
    host = urlparse(address).hostname
    called = "SQLite" if scheme == "sqlite" else scheme
    name = called if host is None else f"{called} on {host}"
    try:
        return Engine(ibis.connect(address), name)
    except ImportError:
        raise EngineError(
            f"ibis lacks what it needs for {scheme}://; install it with: pip install "
            f"'ibis-framework[{scheme}]'"
        ) from None
    except Exception as problem:
        raise EngineError(
            f"{name} could not be reached ({type(problem).__name__}); check the "
            "address, the user and the network"
        ) from None
