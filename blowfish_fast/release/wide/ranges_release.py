"""What `Dawa` publishes of a wide domain: totals of buckets, which answer any range.

    cells      0 .................................................. 2^60
    buckets    |        b0        |b1|b2|   b3   |        b4        |
    a range                 [----------------)
    inner                      |b1|b2|                 certainly inside
    outer      |        b0        |b1|b2|   b3   |     certainly holds it

The answer takes records as even inside the buckets that a range cuts. The truth lies
between that of inner and that of outer, since no count is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.data.frames import Table
from blowfish_fast.data.persons import MOST_COUNTED_ONCE, units_per_person
from blowfish_fast.data.predicates import whole_cover
from blowfish_fast.errors import InputError, ReleaseFileError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.release.file import (
    Release,
    pack_measurement,
    read_archive,
    read_measurement,
    write_archive,
)
from blowfish_fast.release.grants import (
    Scope,
    Tabular,
    Truthful,
    check_scope,
    with_answers,
)
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.workloads import Ranges, Workload

MEMBER = "ranges.json"
"""The part of the file that says what it holds."""


class RangesRelease(Tabular, Truthful, Release):
    """Private totals of the buckets of a wide domain, and answers to any range.

    Parameters
    ----------
    domain : WideDomain
        Of one attribute.
    measurement : Measurement
        The noisy tree over the buckets.
    mechanism : str
        The name of the mechanism that made it.
    guarantee : Guarantee
        What is promised.
    details : mapping
        Public by-products of the mechanism.
    version : str
        The version of the package that made it.
    units : int
        Where each person counts once: parts of a person that were measured.
    identity : str, default ''
        Drawn with secure noise: the same noise has the same one.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> time = bf.WideDomain(2**40, names="time")
    >>> asked = bf.workloads.Ranges(time, [0, 2**30], [2**20, 2**39])
    >>> dawa = bf.Dawa(bf.policies.AddRemove(time), asked, epsilon=1)
    >>> moments = np.arange(20_000) * 31
    >>> data = bf.SparseHistogram.from_records(time, {"time": moments})
    >>> release = dawa.release(data, rng=1)
    >>> bool(abs(release.answer(asked)[0] - 20_000) < 60)
    True
    >>> low, high = release.intervals(asked, of="truth")[0]
    >>> bool(low <= 20_000 <= high)
    True
    >>> early = release.where(time=slice(0, 310_000))
    >>> low, high = early.interval()
    >>> bool(low <= early.count() <= high), bool(low <= 10_000 <= high)
    (True, True)
    >>> list(release.buckets()), len(release.buckets()) == release.details["buckets"]
    (['time_from', 'time_to', 'count', 'low', 'high'], True)
    """

    def __init__(
        self,
        *,
        domain: WideDomain,
        measurement: Measurement,
        mechanism: str,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
        units: int = 1,
        identity: str = "",
    ) -> None:
        measurement.noisy.flags.writeable = False
        self._fill(
            {
                "domain": domain,
                "mechanism": mechanism,
                "guarantee": guarantee,
                "measurements": (measurement,),
                "details": MappingProxyType(dict(details)),
                "version": version,
                "units": units,
                "identity": identity,
                "interval_scope": "noise",
            }
        )

    measurements: tuple[Measurement, ...]
    units: int
    lacks = (
        "this release holds totals of buckets of a wide domain, and no estimate of "
        "every cell"
    )
    instead = (
        "Ask release.answer(ranges), release.where(name=slice(...)), or "
        "release.buckets()"
    )

    @property
    def edges(self) -> IntArray:
        """Where buckets begin, and the end of the last one."""
        return self.measurements[0].buckets.edges

    def __len__(self) -> int:
        return int(self.edges.size) - 1

    @cached_property
    def totals(self) -> FloatArray:
        """The estimated count of each bucket."""
        measurement = self.measurements[0]
        found = measurement.strategy.infer(measurement.noisy, measurement.scales)
        return found / self.units

    def buckets(self, confidence: float = 0.95) -> Table:
        """Return the buckets in the order of the domain: bounds, count and interval.

        The intervals hold the true count of each bucket: `count` carries noise alone.
        """
        ranges = self._ranges(self.edges[:-1], self.edges[1:])
        low, high = self.intervals(ranges, confidence, of="truth").T
        columns = {
            **self._bucket_columns(),
            "count": self.totals,
            "low": low,
            "high": high,
        }
        return Table(columns, experiment=not self.private)

    def _bucket_columns(self) -> dict[str, AnyArray]:
        """Return where buckets begin and end, in values of the attribute."""
        (name,), (attribute,) = self.domain.column_names, self.domain.attributes
        rule = attribute.rule
        # Cells for stray values lie behind all others, and have no values.
        edges = rule.values(np.minimum(self.edges, attribute.regular))
        return {f"{name}_from": edges[:-1], f"{name}_to": edges[1:]}

    def to_table(self, confidence: float | None = 0.95) -> Table:
        """Return `buckets`; without intervals if `confidence` is None."""
        if confidence is not None:
            return self.buckets(confidence)
        columns = {**self._bucket_columns(), "count": self.totals}
        return Table(columns, experiment=not self.private)

    def answer(self, workload: Workload) -> FloatArray:
        """Return one estimated answer per range; parts of a bucket in proportion."""
        asked = self._check_ranges(workload)
        return self._below(asked.ends) - self._below(asked.starts)

    def _below(self, places: IntArray) -> FloatArray:
        """Return how many records lie below places, as if even inside buckets."""
        edges = self.edges
        at = np.minimum(
            np.searchsorted(edges, places, side="right") - 1, edges.size - 2
        )
        part = (places - edges[at]) / (edges[at + 1] - edges[at])
        below: FloatArray = self._running[at] + part * self.totals[at]
        return below

    @cached_property
    def _running(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.totals)])

    def intervals(
        self,
        workload: Workload,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        together: bool = False,
    ) -> FloatArray:
        """Return an interval of each range, shape (queries, 2): Lemma DS6.

        Parameters
        ----------
        workload : Ranges
            Over the domain of the release.
        confidence : float
            Of each interval; with `together`, of all of them at once.
        of : {"truth", "noise"}, optional
            "truth", the default: the interval holds the true answer. "noise": it holds
            what the answer would be without noise, buckets taken as even.
        together : bool
            Whether all intervals hold at once.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            Lower and upper ends; the answers lie between them.
        """
        check_scope(of)
        asked = self._check_ranges(workload)
        miss = 1.0 - as_confidence(confidence)
        miss = miss / max(asked.queries, 1) if together else miss
        answers = self.answer(asked)
        if of == "noise":
            half = self._noise(asked.starts, asked.ends, miss)
            return with_answers(np.stack([answers - half, answers + half], 1), answers)
        edges = self.edges
        low = self._bound(
            edges[np.searchsorted(edges, asked.starts)],
            edges[np.searchsorted(edges, asked.ends, side="right") - 1],
            -1,
            miss,
        )
        high = self._bound(
            edges[np.searchsorted(edges, asked.starts, side="right") - 1],
            edges[np.searchsorted(edges, asked.ends)],
            1,
            miss,
        )
        ends = np.stack([np.maximum(low, 0.0), np.maximum(high, 0.0)], axis=1)
        return with_answers(ends, answers)

    def _bound(
        self, starts: IntArray, ends: IntArray, sign: int, miss: float
    ) -> FloatArray:
        """Return one end of the interval of ranges of whole buckets; 0 of none."""
        held = np.flatnonzero(starts < ends)
        bound = np.zeros(starts.size)
        if held.size:
            starts, ends = starts[held], ends[held]
            answers = self._below(ends) - self._below(starts)
            bound[held] = answers + sign * self._noise(starts, ends, miss)
        return bound

    def _noise(self, starts: IntArray, ends: IntArray, miss: float) -> FloatArray:
        """Return how far noise moves answers to ranges, but for a chance of `miss`."""
        measurement = self.measurements[0]
        form = self._ranges(starts, ends).explicit_form(measurement.buckets)
        return measurement.law.half_widths(form, miss) / self.units

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the ranges whose intervals hold the true answer: all of them."""
        return np.ones(self._check_ranges(workload).queries, dtype=np.bool_)

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the exact standard deviation of the noise in each answer."""
        asked, measurement = self._check_ranges(workload), self.measurements[0]
        form = asked.explicit_form(measurement.buckets)
        return np.sqrt(measurement.law.spread(form).variance) / self.units

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Any:
        """Select records by values: ``where(time=slice("2024-03-01", "2024-03-02"))``.

        Parameters
        ----------
        conditions : mapping, optional
            By attribute, of which there is one: a half-open slice of values, a value,
            or a list of these, of which any is meant. Ends lie where cells begin.
        **named : value, slice or list of these
            The same, by the attribute's name.

        Returns
        -------
        RangeSelection
            It has a `count` and an `interval`.

        Raises
        ------
        InputError
            If nothing is selected, or a range cuts a cell.
        """
        given = {**(conditions or {}), **named}
        (attribute,) = self.domain.attributes
        for name in given:
            self.domain.axis(name)
        if len(given) > 1:
            raise InputError(
                "the one attribute of this release is stated once",
                received=repr(given),
                way_out="Write where(time=[slice(...), slice(...)])",
            )
        runs = [(0, self.domain.size)]
        for condition in given.values():
            runs = whole_cover(attribute, condition)
        starts, ends = zip(*runs, strict=True)
        return RangeSelection(self, self._ranges(starts, ends))

    def _ranges(self, starts: Any, ends: Any) -> Ranges:
        domain: Any = self.domain
        return Ranges(domain, starts, ends)

    def _check_ranges(self, workload: Any) -> Ranges:
        self._check(workload)
        if not isinstance(workload, Ranges):
            raise InputError(
                "a release of a wide domain answers ranges",
                received=repr(workload),
                way_out="Write workloads.Ranges(release.domain, starts, ends)",
            )
        return workload

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: domain, edges and totals of buckets, guarantee."""
        return {
            **self._facts(),
            "edges": self.edges.tolist(),
            "totals": self.totals.tolist(),
        }

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        content = {
            "format": 1,
            "version": self.version,
            "identity": self.identity,
            "mechanism": self.mechanism,
            "domain": self.domain.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "units": self.units,
            # The edges stand in the measurement already.
            "details": {k: v for k, v in self.details.items() if k != "edges"},
            "measurement": pack_measurement(self.measurements[0]),
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(**read_archive(content, MEMBER, _rebuild))

    def __repr__(self) -> str:
        return f"RangesRelease({self.totals.size:,} buckets, {self._in_short()})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        rows = [
            ("cells of the domain", f"{self.domain.size:,}"),
            ("buckets", f"{self.totals.size:,}"),
            ("intervals", "hold the true answers"),
        ]
        seeded = "" if self.private else "Seeded: an experiment that protects nobody."
        return panel(repr(self), rows, sentence=str(self.guarantee), warning=seeded)


class RangeSelection:
    """The records of one range of a wide release, or of several that are disjoint.

    Parameters
    ----------
    release : RangesRelease
        What is asked.
    asked : Ranges
        Disjoint ranges.
    """

    def __init__(self, release: RangesRelease, asked: Ranges) -> None:
        self._release, self._asked = release, asked

    def count(self) -> float:
        """Return the estimated number of records."""
        return float(self._release.answer(self._asked).sum())

    def interval(
        self, confidence: float = 0.95, *, of: Scope | None = None
    ) -> tuple[float, float]:
        """Return an interval of the number of records; by default of the true one.

        The intervals of several ranges hold at once, and are added up.

        Parameters
        ----------
        confidence : float
            With which it holds.
        of : {"truth", "noise"}, optional
            As for `RangesRelease.intervals`.

        Returns
        -------
        tuple of two float
            Lower and upper end.
        """
        low, high = self._release.intervals(
            self._asked, confidence, of=of, together=True
        ).sum(axis=0)
        return float(low), float(high)

    def __repr__(self) -> str:
        start, end = int(self._asked.starts[0]), int(self._asked.ends[0])
        more = (
            "" if self._asked.queries == 1 else f" and {self._asked.queries - 1} more"
        )
        return f"RangeSelection([{start:,}, {end:,}){more} of {self._release!r})"


def _rebuild(content: dict[str, Any]) -> dict[str, Any]:
    domain = WideDomain.from_dict(content["domain"])
    if domain.ndim != 1 or domain.size > 2**62:
        raise ReleaseFileError("buckets lie along one attribute of at most 2^62 cells")
    measurement = read_measurement(content["measurement"], domain.size)
    if measurement.buckets.order is not None or not isinstance(
        measurement.buckets, Buckets
    ):
        raise ReleaseFileError("buckets of a wide domain lie in its own order")
    units = int(content["units"])
    if not 1 <= units <= units_per_person(MOST_COUNTED_ONCE):
        raise ReleaseFileError("a release counts in whole parts of a person")
    if not isinstance(content["details"], dict):
        raise ReleaseFileError("the details have no names")
    return {
        "domain": domain,
        "measurement": measurement,
        "mechanism": str(content["mechanism"]),
        "guarantee": Guarantee.from_dict(content["guarantee"]),
        "details": {**content["details"], "edges": measurement.buckets.edges},
        "version": str(content["version"]),
        "units": units,
        "identity": str(content["identity"]),
    }
