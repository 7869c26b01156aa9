"""What `ChosenTables` publishes where the data chose: measured tables and a model.

Measured tables have intervals of the truth, at the merged cells at which they were
measured. All other tables come from the model alone, and have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.axes import as_array
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Attributes, Domain, WideDomain
from blowfish_fast.data.frames import Table
from blowfish_fast.data.tables.merged_tables import MergedTable
from blowfish_fast.errors import IntervalError, ReleaseFileError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies.cells import Cells
from blowfish_fast.measure.strategies.prefix_sums import PrefixSums
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.release.entropy.entropy_model import CellNumbers, EntropyModel
from blowfish_fast.workloads import Tables, Workload
from blowfish_fast.workloads.tables import table_names

from .file import narrowed, read_archive, read_scales, write_archive
from .grants import Scope
from .guarantee import Guarantee
from .release import HistogramRelease
from .synthetic import FittedTables, coins_of, record_count
from .table_errors import TableErrors
from .tables_certificate import TablesCertificate, check_certificate
from .tables_release import MEMBER, Kinds, TablesRelease, rebuild_planned

KIND = "chosen"
"""Tells the file of such a release from that of a `TablesRelease`."""


class MeasuredTable(NamedTuple):
    """One table of one measurement; public.

    Attributes
    ----------
    step : str
        "records", "single", "always", "screen" or "chosen".
    number : int
        Which measurement of the release it belongs to, from 0.
    table : MergedTable
        Its attributes and merged cells.
    noisy : int64 of ``table.shape``
        The noisy counts, or running totals.
    scales : Scales
        Law of the noise of every merged cell, or of every total.
    running : bool, default False
        Whether `noisy` are running totals along one attribute, the last of them exact.
    """

    step: str
    number: int
    table: MergedTable
    noisy: IntArray
    scales: Scales
    running: bool = False

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in a merged cell; 0 where it is exact.

        Of running totals, in a cell between two of them; that of two cells alone lies
        between a total and an exact number.
        """
        totals = 2.0 if self.running and self.table.cells > 2 else 1.0
        return math.sqrt(totals * float(self.scales.variances[0]))


class ModelTables(FittedTables):
    """Tables and records of a model, as `FittedTables` gives them of linear tables.

    Parameters
    ----------
    domain : Attributes
        All attributes.
    model : EntropyModel
        What is expected in every table, and how many records there are.
    """

    def __init__(self, domain: Attributes, model: EntropyModel) -> None:
        self.domain = domain
        self.sizes = domain.shape
        self.total = model.total
        self.model = model
        self._fitted = {}

    def table(self, axes: AxisSet) -> FloatArray:
        """Return the model's table of some attributes."""
        if axes not in self._fitted:
            self._fitted[axes] = self.model.table(axes)
        return self._fitted[axes]

    def cells(self, count: Any, generator: np.random.Generator) -> CellNumbers:
        """Return synthetic records as cell numbers, shape (attributes, records).

        Parameters
        ----------
        count : int, optional
            How many records; as many as the model holds by default.
        generator : numpy.random.Generator
            The source of the draws, which cost no privacy.

        Returns
        -------
        CellNumbers
            The cell of each record, shape (attributes, records).
        """
        records = record_count(self.total, count)
        return self.model.cells(records, generator)


class ChosenTablesRelease(TablesRelease):
    """Private tables that the data chose, and a model of all others.

    Parameters
    ----------
    domain : Domain or WideDomain
        All attributes.
    asked : tuple of tuples of int
        The asked tables, each by the numbers of its attributes.
    measurements : sequence of Measurement
        What was measured, in this order: ``details["steps"]`` says what each was for.
    model : EntropyModel
        What answers tables that were not measured.
    guarantee : Guarantee
        What is promised.
    details : mapping
        Public by-products of the mechanism.
    version : str
        The version of the package that made it.
    identity : str, default ''
        Drawn with secure noise: the same noise has the same one.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((4, 3, 5), names=["age", "sex", "region"])
    >>> asked = bf.workloads.Tables(survey, ways=2)
    >>> policy = bf.policies.AddRemove(survey)
    >>> mech = bf.ChosenTables(policy, asked, choose="data", epsilon=1)
    >>> counts = np.zeros((4, 3, 5), dtype=int)
    >>> counts[0, 0], counts[1, 1], counts[2, 2], counts[3, 0] = 300, 200, 100, 200
    >>> out = mech.release(bf.Histogram(survey, counts), rng=1)
    >>> out.measured["table"].tolist()[:4]
    ['age', 'sex', 'region', 'age x sex']
    >>> out.measured_cells()[0, 1][0], out.asked_axes[3]
    (12, (0, 1))
    >>> pair = out.table("age", "sex")
    >>> bool(pair.holds_truth(bf.workloads.Identity(pair.domain)).all())
    True
    >>> bool(out.fitted("age", "sex").estimate.min() >= 0)
    True
    """

    def __init__(
        self,
        domain: Domain | WideDomain,
        asked: tuple[AxisSet, ...],
        measurements: Sequence[Measurement],
        model: EntropyModel,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
        identity: str = "",
    ) -> None:
        for measurement in measurements:
            measurement.noisy.flags.writeable = False
        for name, value in {
            "domain": domain,
            "mechanism": "chosen_tables",
            "guarantee": guarantee,
            "measurements": tuple(measurements),
            "details": MappingProxyType(dict(details)),
            "version": version,
            "identity": identity,
            "fresh": True,
            "asked": tuple(table_names(domain, axes) for axes in asked),
            "_asked": asked,
            "model": model,
        }.items():
            object.__setattr__(self, name, value)

    model: EntropyModel

    @cached_property
    def _measured(self) -> list[MeasuredTable]:
        """Every table that carries noise or is exact, in the order of measurement."""
        measured = []
        steps = self.details["steps"]
        for number, measurement in enumerate(self.measurements):
            strategy = measurement.strategy
            assert isinstance(strategy, MergedTables)
            tables = zip(
                strategy.tables,
                strategy.split(measurement.noisy),
                strategy.starts,
                strict=False,
            )
            for place, (table, noisy, start) in enumerate(tables):
                own = slice(int(start), int(start) + table.cells)
                scales = measurement.scales._replace(
                    rates=measurement.scales.rates[own],
                    exact=measurement.scales.exact[own],
                )
                if scales.exact[0] or scales.measured[0]:
                    own_table = MeasuredTable(
                        steps[number], number, table, noisy, scales
                    )
                    if place in strategy.running and not scales.exact[0]:
                        own_table = _with_exact_end(own_table, measurement)
                    measured.append(own_table)
        return measured

    @property
    def measured(self) -> Table:
        """A row for each measured table: attributes, merged cells, noise, step.

        Only these have intervals; the number of records is left out.
        """
        shown = [measured for measured in self._measured if measured.table.axes]
        names = [table_names(self.domain, measured.table.axes) for measured in shown]
        return Table(
            {
                "table": as_array(
                    tuple(" x ".join(map(str, attributes)) for attributes in names)
                ),
                "cells": as_array(
                    tuple(
                        " x ".join(map(str, measured.table.shape)) for measured in shown
                    )
                ),
                "noise": np.array([measured.deviation for measured in shown]),
                "step": as_array(tuple(measured.step for measured in shown)),
                "measurement": np.array(
                    [measured.number for measured in shown], dtype=np.int64
                ),
            }
        )

    @property
    def asked_axes(self) -> tuple[AxisSet, ...]:
        """The asked tables, by numbers of their attributes."""
        return self._asked

    def measured_cells(self) -> dict[AxisSet, tuple[int, int]]:
        """Return, by attributes, the merged cells of a table, and how often measured.

        Cells are those of the measurement that `table` returns; of tables that were
        screened alone, those of the screen.
        """
        times: dict[AxisSet, int] = {}
        for measured in self._measured:
            times[measured.table.axes] = times.get(measured.table.axes, 0) + 1
        shown = {**self._screens, **self._firsts}
        return {
            axes: (measured.table.cells, times[axes])
            for axes, measured in shown.items()
            if axes
        }

    @cached_property
    def _firsts(self) -> dict[AxisSet, MeasuredTable]:
        """The first measurement of each table that was chosen, single or exact.

        Which later one is the last depends on earlier noise; the first was named
        before its own noise was drawn, so its intervals are those of fresh noise.
        """
        firsts: dict[AxisSet, MeasuredTable] = {}
        for measured in self._measured:
            if measured.step not in ("screen", "records"):
                firsts.setdefault(measured.table.axes, measured)
        return firsts

    @cached_property
    def _screens(self) -> dict[AxisSet, MeasuredTable]:
        shown = (measured for measured in self._measured if measured.step == "screen")
        return {measured.table.axes: measured for measured in shown}

    def table(self, *names: Any) -> HistogramRelease:
        """Return one measured table as a release of its own, with intervals.

        Its estimate spreads each merged cell evenly; intervals hold the truth of all
        queries that cut no merged cell.

        Raises
        ------
        IntervalError
            If the table was not measured; `measured` lists those that were.
        """
        axes = self._axes(names)
        if axes not in self._firsts:
            raise IntervalError(
                self._no_intervals(axes),
                way_out="Take release.fitted(...) for the model's table",
            )
        return self._measured_release(self._firsts[axes], None)

    def screen(self, *names: Any) -> HistogramRelease:
        """Return a pair as it was screened, where all pairs were: a few cells a side.

        Raises
        ------
        IntervalError
            If no pair was screened, or not this one.
        """
        axes = self._axes(names)
        if axes not in self._screens:
            raise IntervalError(
                f"{_title(self.domain, axes)} was not screened",
                way_out="release.measured lists what was measured, and in which step",
            )
        return self._measured_release(self._screens[axes], None)

    def _no_intervals(self, axes: AxisSet) -> str:
        return (
            f"{_title(self.domain, axes)} was not measured, so no interval of the "
            "truth is known for it; release.measured lists the tables that have one"
        )

    def fitted(self, *names: Any, whole: bool = False) -> HistogramRelease:
        """Return one table of the model: without negative counts, and biased.

        Where the table was measured it has that measurement's intervals; elsewhere
        intervals are refused, naming `measured`. With `whole`, the table of one set of
        synthetic records, so that all such tables agree exactly.

        Parameters
        ----------
        *names : str or int
            The attributes of the table.
        whole : bool, default False
            Whether the counts are those of one set of synthetic records.

        Returns
        -------
        HistogramRelease
            The table.
        """
        axes = self._axes(names)
        return self._release_of(axes, self._table_of(axes, whole=whole))

    def _table_of(self, axes: AxisSet, *, whole: bool = False) -> FloatArray:
        if whole:
            return self._fitted.count(self._whole_cells, axes)
        return self._fitted.table(axes)

    def _release_of(
        self, axes: AxisSet, fitted: FloatArray | None = None
    ) -> HistogramRelease:
        """Return the model's table, with intervals where it was measured."""
        estimate = self._fitted.table(axes) if fitted is None else fitted
        if axes in self._firsts:
            return self._measured_release(self._firsts[axes], estimate)
        return HistogramRelease(
            domain=self._domain_of(axes),
            estimate=estimate.copy(),
            mechanism=self.mechanism,
            guarantee=self.guarantee,
            measurements=(),
            details={
                "table": list(table_names(self.domain, axes)),
                "no_intervals": self._no_intervals(axes),
            },
            interval_scope="nothing",
            version=self.version,
            identity=self.identity,
        )

    def _domain_of(self, axes: AxisSet) -> Domain:
        return Domain._of(self.domain.attributes[axis] for axis in axes)

    def _measured_release(
        self, measured: MeasuredTable, fitted: FloatArray | None
    ) -> HistogramRelease:
        domain, table = self._domain_of(measured.table.axes), measured.table
        measurement = _own_measurement(measured)
        linear = measurement.estimate().reshape(domain.shape)
        return HistogramRelease(
            domain=domain,
            estimate=linear if fitted is None else fitted.copy(),
            mechanism=self.mechanism,
            guarantee=self.guarantee,
            measurements=(measurement,),
            details={
                "table": list(table_names(self.domain, table.axes)),
                "cells": list(table.shape),
                "step": measured.step,
            },
            unfitted=None if fitted is None else linear,
            version=self.version,
            fresh=True,
            identity=self.identity,
        )

    @cached_property
    def _fitted(self) -> ModelTables:
        return ModelTables(self.domain, self.model)

    @cached_property
    def _whole_cells(self) -> AnyArray:
        drawn = np.concatenate([measurement.noisy for measurement in self.measurements])
        return self._fitted.cells(None, coins_of(drawn))

    def errors(self) -> TableErrors:
        """Return the errors of asked tables that were measured cell by cell.

        They are those of `table`. How far tables of the model are off depends on the
        data, and of merged cells the noise is known, not that of the cells inside.

        Returns
        -------
        TableErrors
            Its `tables` are those of which the error is known, in the order asked.

        Raises
        ------
        IntervalError
            If there is none; `measured` lists the noise of all measured tables.
        """
        by_cell = {
            axes: measured
            for axes in self._asked
            if (measured := self._firsts.get(axes)) is not None
            and all(grouping.is_single_cells for grouping in measured.table.groupings)
        }
        if not by_cell:
            raise IntervalError(
                "no asked table was measured cell by cell, and how far tables of the "
                "model are off depends on the data",
                way_out="release.measured lists the noise of measured tables, and "
                "their intervals hold the truth",
            )
        return TableErrors(
            kind="chosen",
            domain=self.domain,
            tables=tuple(by_cell),
            measured=tuple(by_cell),
            variances=np.array([each.deviation**2 for each in by_cell.values()]),
            budget=self.guarantee.spent,
            records=round(self.model.total),
        )

    @property
    def has_certificate(self) -> bool:
        """Whether a certificate was bought with the release."""
        return "certificate" in self.details

    def certificate(self, confidence: float = 0.95) -> TablesCertificate:
        """Return how many records the fitted tables misplace, at most.

        It was bought with the release, ``ChosenTables(..., certify=0.05)``; asking it
        costs nothing. It is about `fitted`, at single cells, and not about records
        that are drawn with `sample`.

        Parameters
        ----------
        confidence : float
            The probability with which both bounds hold.

        Returns
        -------
        TablesCertificate
            A bound for the mean over the tables, and one for any of them.

        Raises
        ------
        IntervalError
            If no certificate was bought.
        """
        if not self.has_certificate:
            raise IntervalError(
                "no certificate was bought with this release",
                way_out="State certify=0.05, a part of the budget, before it is drawn",
            )
        sure = as_confidence(confidence)
        return TablesCertificate.read(
            self.details["certificate"], self.model.total, sure
        )

    def accuracy(self) -> Table:
        """Return, for each asked table, whether it was measured, and how finely.

        `noise` is the standard deviation in a merged cell, not a number where the
        table comes from the model alone.
        """
        firsts = [self._firsts.get(axes) for axes in self._asked]
        cells = [
            "" if measured is None else " x ".join(map(str, measured.table.shape))
            for measured in firsts
        ]
        noise = [
            math.nan if measured is None else measured.deviation for measured in firsts
        ]
        titles = tuple(_title(self.domain, axes) for axes in self._asked)
        sizes = self.domain.shape
        return Table(
            {
                "table": as_array(titles),
                "cells": np.array(
                    [math.prod(sizes[axis] for axis in axes) for axes in self._asked]
                ),
                "measured": as_array(tuple(cells)),
                "noise": np.array(noise),
            }
        )

    def _promise(self, sure: float, kinds: Kinds) -> str:
        whole = " Counts under whole are those of one set of made-up records."
        return (
            f"{self.guarantee}\n"
            "All tables were published together, once, under this promise. They are "
            "those of one model, and agree: a table summed over an attribute is the "
            f"table without it. The model is not the truth{self._how_far(sure)}.\n"
            "Tables that were measured have intervals. Low and high hold the true "
            f"count with a probability of at least {100 * sure:g} %; noise_low and "
            "noise_high hold the noise alone, where a cell was measured with others."
            f"{whole if 'whole' in kinds else ''}"
        )

    def _how_far(self, sure: float) -> str:
        if not self.has_certificate:
            return ", and how far it is off is not known"
        return f". {self.certificate(sure)}"

    def lines_of(
        self, table: tuple[Any, ...], kinds: Kinds, confidence: float
    ) -> Table:
        """Return a line per cell of a table of the model, with intervals if measured.

        The lines are cells of the domain. Where several of them were measured as one
        merged cell, their intervals hold the noise alone.

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
        shown = self.fitted(*table)
        columns = dict(shown.to_table(confidence))
        if "whole" in kinds:
            columns["whole"] = self.fitted(*table, whole=True).estimate.reshape(-1)
        return Table(columns, experiment=not self.private)

    def answer(self, workload: Workload) -> AnyArray:
        """Return one answer of the model per query, of tables or of one marginal."""
        if isinstance(workload, Tables):
            parts = map(self._table_of, self._asked_of(workload))
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
        """Return intervals for queries over measured tables; others are refused.

        Parameters
        ----------
        workload : Workload
            Tables, or queries over the attributes of one measured table.
        confidence : float, default 0.95
            How surely each interval holds, over the noise.
        of : {"truth", "noise"}, optional
            What they have to hold; the truth by default.
        together : bool, default False
            Whether all intervals hold at once.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            The lower and the upper end of each.
        """
        if isinstance(workload, Tables):
            self._refuse_unmeasured_tables(workload)
        return super().intervals(workload, confidence, of=of, together=together)

    def _refuse_unmeasured_tables(self, workload: Tables) -> None:
        for axes in self._asked_of(workload):
            if axes not in self._firsts:
                raise IntervalError(self._no_intervals(axes))

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the queries whose intervals hold the true answer."""
        if isinstance(workload, Tables):
            self._refuse_unmeasured_tables(workload)
            parts = map(self._release_of, self._asked_of(workload))
            return np.concatenate([_truth_of_cells(part) for part in parts])
        return self._over(workload).holds_truth(workload)

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the standard deviation of the noise in each linear answer."""
        if isinstance(workload, Tables):
            self._refuse_unmeasured_tables(workload)
            parts = map(self._release_of, self._asked_of(workload))
            return np.concatenate([_errors_of_cells(part) for part in parts])
        return self._over(workload).standard_errors(workload)

    def _answering_table(self, names: tuple[Any, ...]) -> HistogramRelease:
        """Return the model's table: not every table of attributes was measured."""
        return self.fitted(*names)

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        content = {
            "format": 1,
            "kind": KIND,
            "version": self.version,
            "identity": self.identity,
            "domain": self.domain.to_dict(),
            "wide": isinstance(self.domain, WideDomain),
            "guarantee": self.guarantee.to_dict(),
            "asked": [list(axes) for axes in self._asked],
            "details": self.details,
            "measurements": [_pack(measurement) for measurement in self.measurements],
            "model": self.model.pack(),
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(*read_archive(content, MEMBER, rebuild_chosen))

    def __repr__(self) -> str:
        chosen = len(
            {
                measured.table.axes
                for measured in self._measured
                # Single tables, and the number of records, are measured anyway.
                if measured.step == "chosen" and len(measured.table.axes) > 1
            }
        )
        return (
            f"ChosenTablesRelease({len(self.asked):,} tables, {chosen} chosen, "
            f"{self._in_short()})"
        )


def _title(domain: Any, axes: AxisSet) -> str:
    return " x ".join(map(str, table_names(domain, axes)))


def _buckets(table: MergedTable) -> Buckets:
    """Return the single cells of a table as buckets: one for each merged cell."""
    if all(grouping.is_single_cells for grouping in table.groupings):
        return Buckets.single_cells(table.cells)
    labels = np.zeros((), dtype=np.int64)
    for grouping in table.groupings:
        labels = np.add.outer(labels * grouping.count, grouping.labels)
    flat = labels.reshape(-1)
    order = np.argsort(flat, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(flat))])
    return Buckets(edges, order)


def _with_exact_end(measured: MeasuredTable, within: Measurement) -> MeasuredTable:
    """Return running totals with the number of records, which is exact, at the end.

    It stands in the same measurement, and was published with it.
    """
    totals, scales = measured.noisy.copy(), measured.scales
    totals[-1] = within.noisy[0]
    is_last = np.arange(totals.size) == totals.size - 1
    own = scales._replace(rates=np.where(is_last, 0, scales.rates), exact=is_last)
    return measured._replace(noisy=totals, scales=own, running=True)


def _own_measurement(measured: MeasuredTable) -> Measurement:
    """Return one table's measurement by itself: of its cells, or of its totals."""
    table, scales = measured.table, measured.scales
    buckets, flat = _buckets(table), measured.noisy.reshape(-1)
    if measured.running:
        totals = PrefixSums(table.cells)
        return Measurement(totals.with_noise(scales), flat, buckets)
    # `Cells` have a row more, their total, which is not measured here.
    own = scales._replace(
        rates=np.append(scales.rates, 0), exact=np.append(scales.exact, False)
    )
    return Measurement(Cells(table.cells).with_noise(own), np.append(flat, 0), buckets)


def _truth_of_cells(release: HistogramRelease) -> BoolArray:
    from blowfish_fast.workloads import Identity

    return release.holds_truth(Identity(release.domain))


def _errors_of_cells(release: HistogramRelease) -> FloatArray:
    from blowfish_fast.workloads import Identity

    return release.standard_errors(Identity(release.domain))


def _pack(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as plain data; its buckets are all counted cells."""
    strategy, scales = measurement.strategy, measurement.scales
    assert isinstance(strategy, MergedTables)
    firsts = strategy.starts[:-1]
    return {
        "strategy": strategy.pack(),
        "rates": scales.rates[firsts],
        "unit": scales.unit,
        "exact": scales.exact[firsts],
        "power": scales.power,
        "noisy": narrowed(measurement.noisy),
    }


def _unpack(data: dict[str, Any], sizes: tuple[int, ...]) -> Measurement:
    strategy = MergedTables.unpack(data["strategy"])
    firsts = read_scales(data)
    noisy = np.asarray(data["noisy"], dtype=np.int64)
    if strategy.sizes != sizes or firsts.rates.shape != strategy.cells.shape:
        raise ReleaseFileError("a measurement does not fit its strategy or domain")
    if firsts.exact.shape != strategy.cells.shape or firsts.unit < 1:
        raise ReleaseFileError("a measurement does not fit its strategy")
    if (firsts.rates < 0).any() or firsts.power not in (1, 2):
        raise ReleaseFileError("the noise of a measurement has impossible scales")
    if noisy.shape != (int(strategy.starts[-1]),):
        raise ReleaseFileError("a measurement does not fit its strategy")
    if strategy.running and (strategy.tables[0].axes or not firsts.exact[0]):
        raise ReleaseFileError("running totals end at an exact number of records")
    scales = firsts._replace(
        rates=np.repeat(firsts.rates, strategy.cells),
        exact=np.repeat(firsts.exact, strategy.cells),
    )
    buckets = Buckets.single_cells(strategy.counted.size)
    return Measurement(strategy.with_noise(scales), noisy, buckets)


def read_tables(content: bytes) -> TablesRelease:
    """Read the bytes of a release of tables, planned or chosen."""

    def either(plain: dict[str, Any]) -> TablesRelease:
        if plain.get("kind") == KIND:
            return ChosenTablesRelease(*rebuild_chosen(plain))
        return TablesRelease(*rebuild_planned(plain))

    return read_archive(content, MEMBER, either)


def rebuild_chosen(content: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a release from the plain data of its file."""
    if content.get("kind") != KIND:
        raise ReleaseFileError("the file holds tables that were planned, not chosen")
    kind: Any = WideDomain if content["wide"] else Domain
    domain = kind.from_dict(content["domain"])
    asked = tuple(tuple(int(axis) for axis in axes) for axes in content["asked"])
    is_inside = all(0 <= axis < domain.ndim for axes in asked for axis in axes)
    if not is_inside or not asked or () in asked:
        raise ReleaseFileError("the tables do not fit the domain")
    details, measured = content["details"], content["measurements"]
    if not isinstance(details, dict) or len(details["steps"]) != len(measured):
        raise ReleaseFileError("the details do not fit the measurements")
    if "certificate" in details:
        check_certificate(details["certificate"])
    return (
        domain,
        asked,
        [_unpack(packed, domain.shape) for packed in measured],
        EntropyModel.unpack(content["model"], domain.shape),
        Guarantee.from_dict(content["guarantee"]),
        details,
        str(content["version"]),
        str(content["identity"]),
    )
