"""What `Contingency` publishes: tables that agree with each other.

Several measured tables say something about the same numbers, each with noise of its
own: sex x age and age x region both hold the counts by age. To agree, tables are made
of *residuals*. The residual of a set of attributes is what their table says beyond the
tables of fewer of them:

    measured          residuals                          published
    sex  3 5          none   8        all records        sex  3 5   =  8/2 + (-1 1)
                      sex   -1 1      beyond an even split

Every residual is estimated once, by least squares over all measured tables that hold
it, and every published table is a sum of residuals. So a table summed over an attribute
is exactly the table without it (``docs/proofs/contingency.md``).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast._support.validation import as_confidence, as_generator
from blowfish_fast.data.axes import as_array
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain, WideDomain
from blowfish_fast.data.frames import LONGEST_TITLE, Table, write_csv, write_workbook
from blowfish_fast.errors import InputError, IntervalError, ReleaseFileError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales, without_rounding
from blowfish_fast.measure.strategies.tables.residuals import (
    AxisSet,
    ResidualFit,
    TableNoise,
    cell_count,
    closure,
)
from blowfish_fast.measure.strategies.tables.table_strategy import TableStrategy
from blowfish_fast.release.file import (
    Release,
    pack_measurement,
    read_archive,
    read_measurement,
    write_archive,
)
from blowfish_fast.release.grants import Scope, Truthful
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.synthetic import FittedTables, coins_of
from blowfish_fast.workloads import Identity, Tables, Workload
from blowfish_fast.workloads.tables import places_of, table_names

from .table_errors import TableErrors

if TYPE_CHECKING:
    import os

    from blowfish_fast.release.olap import Groups, Selection

MEMBER = "tables.json"
"""The part of the file that says what it holds."""

EXPORTED = re.compile(r"[0-9]{3,}_[A-Za-z0-9_-]*\.csv")
"""Names that `save_tables` gives."""
Kinds = dict[str, bool]
"""Columns of fitted counts beside the estimates, by name: whether they are whole."""


class TablesRelease(Truthful, Release):
    """Private contingency tables that agree with each other.

    Tables beyond the asked ones are answered where a measured table holds their
    attributes.

    Parameters
    ----------
    domain : Domain or WideDomain
        All attributes.
    asked : tuple[AxisSet, ...]
        The asked tables.
    measurement : Measurement
        What was measured.
    guarantee : Guarantee
        What is promised.
    details : Mapping[str, object]
        Public by-products of the mechanism.
    version : str
        The version of the package that made it.
    identity : str, default ''
        A random name of the draw. A copy of a release has the same one, so that the
        same noise is never averaged with itself.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.WideDomain.product(
    ...     bf.Domain.from_levels(["F", "M"], name="sex"),
    ...     bf.Domain.from_edges(range(0, 101, 10), name="age"),
    ...     bf.Domain.from_levels(["north", "south"], name="region"),
    ... )
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> mech = bf.Contingency(bf.policies.AddRemove(survey), asked, epsilon=1)
    >>> people = {"sex": ["F", "M"] * 400, "age": [30, 41] * 400}
    >>> people["region"] = ["north"] * 500 + ["south"] * 300
    >>> out = mech.release(bf.TableCounts.from_records(mech, people), rng=1)
    >>> out.table("sex", "region")
    HistogramRelease(contingency, Domain(sex: 2 cells x region: 2 cells), eps = 1,
    seeded: an experiment)
    >>> sex = out.table("sex").estimate
    >>> bool(np.allclose(out.table("sex", "age").estimate.sum(axis=1), sex))
    True
    >>> out.fitted("sex", "age").estimate.min() >= 0, len(out.sample(rng=1)) > 700
    (np.True_, True)
    """

    asked: tuple[tuple[Any, ...], ...]
    """The asked tables, each by the names of its attributes."""

    def __init__(
        self,
        domain: Domain | WideDomain,
        asked: tuple[AxisSet, ...],
        measurement: Measurement,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
        identity: str = "",
    ) -> None:
        measurement.noisy.flags.writeable = False
        self._fill(
            {
                "domain": domain,
                "mechanism": "contingency",
                "guarantee": guarantee,
                "measurements": (measurement,),
                "details": MappingProxyType(dict(details)),
                "version": version,
                "identity": identity,
                "asked": tuple(table_names(domain, table) for table in asked),
                "_asked": asked,
            }
        )

    _asked: tuple[AxisSet, ...]
    interval_scope = "noise"
    lacks = "this release holds many tables and no single estimate"
    """Why members of a histogram's release are missing here; an error shows it."""
    instead = 'Take one table: release.table("age", "sex"); release.asked lists them'
    """What the same message advises."""

    @cached_property
    def _fit(self) -> ResidualFit:
        """Estimates of the residuals of every asked table, from all measured ones."""
        (measurement,) = self.measurements
        strategy = measurement.strategy
        assert isinstance(strategy, TableStrategy)
        fit = strategy.fit(measurement.noisy, measurement.scales)
        fit.prepare(closure(self._asked))
        return fit

    @cached_property
    def _gaussian_draws(self) -> int:
        """How many numbers carry Gaussian noise; 0 where the noise is Laplace."""
        scales = self.measurements[0].scales
        return int(np.count_nonzero(scales.measured)) if scales.power == 2 else 0

    def _axes(self, names: tuple[Any, ...]) -> AxisSet:
        """Read ``table("age", "sex")`` and ``table(("age", "sex"))`` alike."""
        is_one_list = len(names) == 1 and not isinstance(names[0], str)
        return tuple(sorted(self.domain.axes(names[0] if is_one_list else names)))

    @property
    def measured(self) -> Table:
        """A row for each measured table: attributes, cells, noise, step.

        The columns are those of a release whose tables the data chose. Here a plan
        from public sizes chose them, so every table inside one of these has intervals.
        """
        measured = self._fit.measured
        shown = [at for at, axes in enumerate(measured.tables) if axes]
        tables = [measured.tables[at] for at in shown]
        names = [table_names(self.domain, axes) for axes in tables]
        sizes = [[measured.sizes[axis] for axis in axes] for axes in tables]
        return Table(
            {
                "table": as_array(tuple(" x ".join(map(str, name)) for name in names)),
                "cells": as_array(tuple(" x ".join(map(str, size)) for size in sizes)),
                "noise": np.sqrt(measured.variances[shown]),
                "step": as_array(("plan",) * len(shown)),
                "measurement": np.zeros(len(shown), dtype=np.int64),
            }
        )

    def table(self, *names: Any) -> HistogramRelease:
        """Return one table as a release of its own, with axes in the domain's order."""
        return self._release_of(self._axes(names))

    def _release_of(
        self, axes: AxisSet, fitted: FloatArray | None = None
    ) -> HistogramRelease:
        """Return a table as a release: linear estimates, or fitted ones beside them."""
        self._refuse_unanswered(axes)
        linear = self._linear_table(axes)
        noise = TableNoise.of(self._fit.measured, axes, self._gaussian_draws)
        domain = Domain._of(self.domain.attributes[axis] for axis in axes)
        # The table was not measured itself: its noise follows from the residuals, so
        # there are no noisy rows of its own, and no scales.
        no_rows = np.zeros(0, dtype=np.int64)
        measurement = Measurement(
            noise.with_noise(Scales(no_rows, 1, no_rows.astype(np.bool_))),
            no_rows,
            Buckets.single_cells(domain.size),
        )
        return HistogramRelease(
            domain=domain,
            estimate=linear if fitted is None else fitted,
            mechanism=self.mechanism,
            guarantee=self.guarantee,
            measurements=(measurement,),
            details={"table": list(table_names(self.domain, axes))},
            unfitted=None if fitted is None else linear,
            version=self.version,
            fresh=True,
            identity=self.identity,
        )

    def _refuse_unanswered(self, axes: AxisSet) -> None:
        """Refuse a table that no measured table holds; the error names it."""
        if self._fit.information(axes) > 0:
            return
        raise IntervalError(
            "a table is answered where a measured one holds all its attributes",
            received=f"{' x '.join(map(str, table_names(self.domain, axes)))}, which "
            "were measured apart",
            way_out=f"Ask for it before the release: workloads.Tables(domain, "
            f"ways={len(axes)}) holds all tables of {len(axes)} attributes",
            code="table_measured_apart",
            data={"ways": len(axes)},
        )

    def _linear_table(self, axes: AxisSet) -> FloatArray:
        """Return the unbiased counts of a table; whole where they are public."""
        estimate = self._fit.table(axes)
        # Information is one over the variance: infinite where nothing is noisy.
        if math.isinf(self._fit.information(axes)):
            no_noise = np.zeros(estimate.shape)
            return without_rounding(estimate, no_noise, estimate)
        return estimate

    def fitted(self, *names: Any, whole: bool = False) -> HistogramRelease:
        """Return one table without negative counts; biased, with the same intervals.

        Parameters
        ----------
        *names : str or int
            The attributes of the table.
        whole : bool, default False
            Whether the counts are those of one set of synthetic records, so that all
            tables agree exactly. The measurement decides these records, so a release
            that was saved and loaded has the same ones.

        Returns
        -------
        HistogramRelease
            The table.
        """
        axes = self._axes(names)
        if not whole:
            return self._release_of(axes, self._fitted.table(axes))
        counts = self._fitted.count(self._whole_cells, axes)
        return self._release_of(axes, counts)

    @cached_property
    def _fitted(self) -> FittedTables:
        return FittedTables(
            self.domain,
            tuple(axes for axes in closure(self._asked) if axes),
            max(float(self._fit.table(()).reshape(-1)[0]), 0.0),
            self._linear_table,
            self._fit.information,
            self._deviation,
        )

    def _deviation(self, axes: AxisSet) -> float:
        """Return the standard deviation of the noise in one cell of a table."""
        return math.sqrt(TableNoise.of(self._fit.measured, axes).cell_variance())

    def sample(
        self, n: int | None = None, rng: int | np.random.Generator | None = None
    ) -> Table:
        """Draw synthetic records whose tables follow the fitted ones; free.

        One- and two-way tables are followed closely, and what is asked nowhere is kept
        only as far as it follows from them: attributes that no table holds are drawn
        evenly from their cells. `misplaced` measures how closely the asked tables are
        followed; ``examples/survey_tables.py`` what is lost of others, on public data.

        Parameters
        ----------
        n : int, optional
            How many; the fitted number of records by default.
        rng : int or numpy.random.Generator, optional
            A seed or a generator.

        Returns
        -------
        Table
            The records.
        """
        return self._fitted.records(n, as_generator(rng))

    @cached_property
    def _whole_cells(self) -> AnyArray:
        """The cells of the records that tables of whole counts are made of."""
        return self._fitted.cells(None, coins_of(self.measurements[0].noisy))

    def misplaced(self, records: Any) -> Table:
        """Return, per asked table, the share of records that its fit puts elsewhere."""
        shares = self._fitted.misplaced(self._asked, self._fitted.place(records))
        names = as_array(tuple(" x ".join(map(str, table)) for table in self.asked))
        return Table({"table": names, "misplaced": np.array(shares)})

    def errors(self) -> TableErrors:
        """Return the error of every asked table beside its mean count."""
        strategy: Any = self.measurements[0].strategy
        return TableErrors(
            kind=str(self.details.get("plan", "")),
            domain=self.domain,
            tables=self._asked,
            measured=strategy.tables,
            variances=np.array([self._deviation(table) ** 2 for table in self._asked]),
            budget=self.guarantee.spent,
            records=round(self._fitted.total),
        )

    def accuracy(self) -> Table:
        """Return cells, typical error and mean count of each asked table."""
        return self.errors().to_table()

    def save_tables(
        self,
        path: str | os.PathLike[str],
        *,
        fitted: bool = False,
        whole: bool = False,
        confidence: float = 0.95,
        overwrite: bool = False,
    ) -> None:
        """Write every asked table: a folder of CSV files, or one ``.xlsx``.

        Workbooks need the extra "excel".

        Parameters
        ----------
        path : str or os.PathLike[str]
            Where to; a name that ends with ``.xlsx`` is a workbook.
        fitted : bool, default False
            Whether a column holds the fitted counts, none of them negative, beside the
            linear estimates.
        whole : bool, default False
            Whether a column holds the counts of one set of synthetic records. The list
            of contents then says which share of the records these counts put into
            another cell than the fitted counts do.
        confidence : float, default 0.95
            The probability with which each interval holds.
        overwrite : bool, default False
            Whether a workbook, or a folder that an earlier export wrote, is replaced.
            Other files are never replaced.

        Raises
        ------
        InputError
            If something is there that must not be replaced.
        """
        target, confidence = Path(path), as_confidence(confidence)
        is_workbook = target.suffix.lower() == ".xlsx"
        refuse_former(target, "table", folder=not is_workbook, overwrite=overwrite)
        kinds = {"fitted": False} if fitted else {}
        kinds |= {"whole": True} if whole else {}
        titles = [_title(number, table) for number, table in enumerate(self.asked, 1)]
        if is_workbook:
            names = ["contents", *(title[:LONGEST_TITLE] for title in titles)]
            sheets = _contents(self, kinds, "sheet", names[1:], confidence)
            named_sheets = dict(zip(names, sheets, strict=True))
            about = self._promise(confidence, kinds)
            write_workbook(target, named_sheets, about=about)
            return
        target.mkdir(parents=True, exist_ok=True)
        for file in former_files(target):
            file.unlink(missing_ok=True)
        promise = self._promise(confidence, kinds) + "\n"
        (target / "promise.txt").write_text(promise, encoding="utf-8")
        names = ["contents.csv", *(f"{title}.csv" for title in titles)]
        tables = _contents(self, kinds, "file", names[1:], confidence)
        for name, table in zip(names, tables, strict=True):
            write_csv(table, target / name)

    def _promise(self, confidence: float, kinds: Kinds) -> str:
        """Say what is promised of all tables, and what the columns there are hold."""
        fits = ""
        if "fitted" in kinds:
            fits += (
                "\nCounts under fitted are not negative, and agree: a table summed "
                "over an attribute is the table without it."
            )
        if "whole" in kinds:
            fits += (
                "\nCounts under whole are those of one set of made-up records, so that "
                "they agree to the last one."
            )
        return (
            f"{self.guarantee}\n"
            "All tables were published together, once, under this promise.\n"
            "Counts under estimate carry noise and are fractions. Those below 0 are "
            "shown as 0, so that they add up to more than the tables that "
            "they are parts of. Low and high hold "
            f"the true count{self.guarantee.counted_records()} with a probability of "
            f"at least {100 * confidence:g} %.{fits}"
        )

    def lines_of(
        self, table: tuple[Any, ...], kinds: Kinds, confidence: float
    ) -> Table:
        """Return a line per cell of a table.

        Parameters
        ----------
        table : tuple[object, ...]
            The attributes.
        kinds : Kinds
            Columns of fitted counts beside the estimates, by name: whether they are
            whole numbers.
        confidence : float
            The probability with which each interval holds.

        Returns
        -------
        Table
            The lines.
        """
        lines = self.table(*table).to_table(confidence)
        columns = dict(lines)
        for name, whole in kinds.items():
            columns[name] = self.fitted(*table, whole=whole).estimate.reshape(-1)
        return Table(columns, experiment=lines.experiment)

    def answer(self, workload: Workload) -> AnyArray:
        """Return one estimated answer per query, of tables or of one marginal."""
        if isinstance(workload, Tables):
            parts = map(self._linear_table, self._asked_of(workload))
            return np.concatenate([part.reshape(-1) for part in parts])
        return self._over(workload).answer(workload)

    def intervals(
        self,
        workload: Workload,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        together: bool = False,
    ) -> FloatArray:
        """Return intervals for all cells of tables, or queries over one table.

        Parameters
        ----------
        workload : Workload
            Tables, or queries over the attributes of one table.
        confidence : float, default 0.95
            The probability with which each interval holds, over the noise.
        of : {"truth", "noise"}, optional
            What the intervals have to hold; the truth by default.
        together : bool, default False
            Whether all intervals hold at once.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            The lower and the upper end of each.
        """
        if isinstance(workload, Tables):
            for_each = as_confidence(confidence)
            if together:
                # Chances of a miss add up over all cells; rounded to the safe side.
                miss = (1.0 - for_each) / workload.queries
                for_each = math.nextafter(1.0 - miss, 1.0)
            parts = map(self._release_of, self._asked_of(workload))
            return np.concatenate(
                [
                    part.intervals(Identity(part.domain), for_each, of=of)
                    for part in parts
                ]
            )
        return self._over(workload).intervals(
            workload, confidence, of=of, together=together
        )

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the queries whose intervals hold the true answer: all of them."""
        if isinstance(workload, Tables):
            return np.ones(workload.queries, dtype=np.bool_)
        return self._over(workload).holds_truth(workload)

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the exact standard deviation of the noise in each answer."""
        if isinstance(workload, Tables):
            tables = self._asked_of(workload)
            cells = [cell_count(self.domain.shape, table) for table in tables]
            return np.repeat([self._deviation(table) for table in tables], cells)
        return self._over(workload).standard_errors(workload)

    def _over(self, workload: Workload) -> HistogramRelease:
        """Return the table of the attributes that a workload is stated over."""
        return self._release_of(places_of(workload, self.domain))

    def _asked_of(self, workload: Tables) -> list[AxisSet]:
        """Return the attributes of its tables, numbered as in this domain.

        A workload may be stated over some attributes only, in an order of its own.
        """
        places = places_of(workload, self.domain)
        return [tuple(places[axis] for axis in axes) for axes in workload.tables]

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select records by conditions, in the table of the attributes named.

        Parameters
        ----------
        conditions : Mapping[object, object], optional
            Conditions by attribute name or number.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Selection
            The selection, as `HistogramRelease.where` returns it.
        """
        names = (*(conditions or {}), *named)
        return self._answering_table(names).where(conditions, **named)

    def group_by(self, *names: Any, **bins: Any) -> Groups:
        """Break all records down by attributes, in the table of these attributes.

        Parameters
        ----------
        *names : str, int or sequence of these
            Attributes that are broken down cell by cell.
        **bins : object
            Attributes with edges, levels, or a mapping from names to conditions.

        Returns
        -------
        Groups
            The groups.
        """
        return self._answering_table((*names, *bins)).group_by(*names, **bins)

    def _answering_table(self, names: tuple[Any, ...]) -> HistogramRelease:
        """Return the table of attributes that selections and groups are read from."""
        return self.table(*names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: domain, tables asked, guarantee, accuracy."""
        return {
            **self._facts(),
            "tables": [list(table) for table in self._asked],
            "details": dict(self.details),
        }

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        (measurement,) = self.measurements
        content = {
            "format": 1,
            "version": self.version,
            "identity": self.identity,
            "domain": self.domain.to_dict(),
            "wide": isinstance(self.domain, WideDomain),
            "guarantee": self.guarantee.to_dict(),
            "asked": [list(axes) for axes in self._asked],
            "details": self.details,
            "measurement": pack_measurement(measurement),
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(*read_archive(content, MEMBER, rebuild_planned))

    def __repr__(self) -> str:
        return f"TablesRelease({len(self.asked):,} tables, {self._in_short()})"


def rebuild_planned(content: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a release from the plain data of its file."""
    # Only files of `ChosenTablesRelease` state a kind.
    if "kind" in content:
        raise ReleaseFileError(
            "the data chose the tables of this file. Read it with "
            "ChosenTablesRelease.load"
        )
    kind: Any = WideDomain if content["wide"] else Domain
    domain = kind.from_dict(content["domain"])
    data = content["measurement"]
    if data["kind"] != TableStrategy.kind:
        raise ReleaseFileError(f"tables are not measured by {data['kind']!r}")
    size = TableStrategy.unpack(data["strategy"]).size
    measurement = read_measurement(data, size)
    strategy: Any = measurement.strategy
    asked = tuple(tuple(int(axis) for axis in axes) for axes in content["asked"])
    is_inside = all(0 <= axis < domain.ndim for axes in asked for axis in axes)
    if strategy.sizes != domain.shape or not is_inside or not asked or () in asked:
        raise ReleaseFileError("the tables do not fit the domain")
    if not isinstance(content["details"], dict):
        raise ReleaseFileError("the details have no names")
    return (
        domain,
        asked,
        measurement,
        Guarantee.from_dict(content["guarantee"]),
        content["details"],
        str(content["version"]),
        str(content["identity"]),
    )


def _contents(
    release: TablesRelease,
    kinds: Kinds,
    heading: str,
    names: list[str],
    confidence: float,
) -> Iterator[Table]:
    """Yield the list of all tables, with their names, and then each of them."""
    columns = dict(release.accuracy())
    if "whole" in kinds:
        shares = release._fitted.misplaced(release._asked, release._whole_cells)
        columns["whole_misplaced"] = np.array(shares)
    yield Table({**columns, heading: as_array(tuple(names))})
    for table in release.asked:
        yield release.lines_of(table, kinds, confidence)


def refuse_former(path: Path, kind: str, *, folder: bool, overwrite: bool) -> None:
    """Refuse to write over what is there, unless that is allowed.

    Parameters
    ----------
    path : Path
        The file or folder that will be written.
    kind : str
        What it will hold, for the message: "table", for instance.
    folder : bool
        Whether a folder will be written rather than a file.
    overwrite : bool
        Whether a former export may be replaced.

    Raises
    ------
    InputError
        If something is there that must not be replaced.
    """
    if path.exists() and (path.is_dir() != folder or not overwrite):
        raise InputError(
            f"{path} exists already; choose another name for the {kind}, or allow "
            "overwrite. Nothing was changed"
        )
    if path.is_dir():
        former_files(path)


def former_files(folder: Path) -> list[Path]:
    """Return what a former export wrote into a folder; refuse a folder of others."""
    contents, held = folder / "contents.csv", {path.name for path in folder.iterdir()}
    text = contents.read_text("utf-8", "replace") if contents.is_file() else ""
    names = [row.get("file") or "" for row in csv.DictReader(text.splitlines())]
    # Somebody else's contents.csv may name any file. Only files whose names are those
    # of an export are ever removed, and only if contents.csv lists exactly these.
    tables = {name for name in (*held, *names) if EXPORTED.fullmatch(name)}
    if held and not (names and tables == set(names) and "promise.txt" in held):
        raise InputError(
            "tables replace only tables that were written before, as contents.csv and "
            "promise.txt of their folder say",
            received=f"{folder}, which holds other files",
            way_out="Name a new or an empty folder. Nothing was changed",
        )
    return [folder / name for name in (*names, "contents.csv", "promise.txt")]


def _title(number: int, table: tuple[Any, ...]) -> str:
    """Return the name of a table's file or sheet, such as ``001_age_sex``."""
    names = "_".join(re.sub(r"[^A-Za-z0-9-]+", "-", str(name)) for name in table)
    return f"{number:03d}_{names}"[:100]
