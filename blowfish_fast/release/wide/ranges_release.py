"""What `Dawa` publishes of a wide domain: totals of buckets, which answer any range.

    cells      0 .................................................. 2^60
    buckets    |        b0        |b1|b2|   b3   |        b4        |
    a range                 [----------------)
    inner                      |b1|b2|                 certainly inside
    outer      |        b0        |b1|b2|   b3   |     certainly holds it

The answer takes records as even inside the buckets that a range cuts. The truth lies
between that of inner and that of outer, since no count is negative. Of a map of two
attributes buckets are boxes, and rectangles are asked: the same holds of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.data.frames import Table
from blowfish_fast.data.persons import MOST_UNITS
from blowfish_fast.data.predicates import whole_cover
from blowfish_fast.data.wide.map_curve import MapBuckets, MapCurve
from blowfish_fast.errors import DomainError, InputError, ReleaseFileError
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
    from_zero,
    with_answers,
)
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.workloads import Ranges, Rectangles, Workload
from blowfish_fast.workloads.base import Fractions, Pieces

MEMBER = "ranges.json"
"""The part of the file that says what it holds."""

PIECES_AT_ONCE = 2**24
"""Runs of buckets that rectangles of a map are cut into at a time, at most."""


class RangesRelease(Tabular, Truthful, Release):
    """Private totals of the buckets of a wide domain, and answers to any range.

    Of a map buckets are boxes, and any rectangle is answered.

    Parameters
    ----------
    domain : WideDomain
        Of one attribute, or of two.
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
        totals = measurement.strategy.infer(measurement.noisy, measurement.scales)
        return totals / self.units

    def buckets(self, confidence: float = 0.95) -> Table:
        """Return the buckets in the order of the domain: bounds, count and interval.

        The intervals hold the true count of each bucket: `count` carries noise alone.
        """
        miss = 1.0 - as_confidence(confidence)
        each, whole = np.arange(len(self)), np.ones(len(self))
        single = Fractions(each, whole, each, whole)
        half = self._half_widths(single, miss)
        ends = np.stack([self.totals - half, self.totals + half], axis=1)
        low, high = with_answers(from_zero(ends), self.totals).T
        columns = {
            **self._bucket_columns(),
            "count": self.totals,
            "low": low,
            "high": high,
        }
        return Table(columns, experiment=not self.private)

    def _bucket_columns(self) -> dict[str, AnyArray]:
        """Return where buckets begin and end, in values of the attributes."""
        boxes, columns = self.boxes, dict[str, AnyArray]()
        named = zip(self.domain.column_names, self.domain.attributes, strict=True)
        for axis, (name, attribute) in enumerate(named):
            for at, word in enumerate(("from", "to")):
                # Cells for stray values lie behind all others, and have no values.
                places = np.minimum(boxes[:, at, axis], attribute.regular)
                columns[f"{name}_{word}"] = attribute.rule.values(places)
        return columns

    @property
    def boxes(self) -> IntArray:
        """Lower and upper corner of each bucket, in cells: shape (buckets, 2, axes)."""
        buckets = self.measurements[0].buckets
        if isinstance(buckets, MapBuckets):
            return buckets.boxes
        return np.stack([self.edges[:-1], self.edges[1:]], axis=1)[:, :, None]

    def to_table(self, confidence: float | None = 0.95) -> Table:
        """Return `buckets`; without intervals if `confidence` is None."""
        if confidence is not None:
            return self.buckets(confidence)
        columns = {**self._bucket_columns(), "count": self.totals}
        return Table(columns, experiment=not self.private)

    def answer(self, workload: Workload) -> FloatArray:
        """Return one estimated answer per range; parts of a bucket in proportion."""
        asked = self._check_ranges(workload)
        if isinstance(asked, Ranges):
            return self._below(asked.ends) - self._below(asked.starts)
        parts = [self._sums(part) for part in self._boxes_cut(asked)]
        return np.concatenate([np.zeros(0), *parts])

    def _boxes_cut(self, asked: Rectangles) -> Iterator[Pieces]:
        """Yield the runs of buckets of some rectangles at a time; memory is bounded."""
        buckets = self.measurements[0].buckets
        most = max(PIECES_AT_ONCE // len(self), 1)
        for first in range(0, asked.queries, most):
            chosen = slice(first, first + most)
            domain: Any = self.domain
            some = Rectangles(domain, asked.starts[chosen], asked.ends[chosen])
            yield some.explicit_form(buckets)

    def _sums(self, pieces: Pieces) -> FloatArray:
        """Return the estimate of each row of runs of buckets; 0 of a row without."""
        running = self._running
        each = pieces.values * (running[pieces.ends] - running[pieces.starts])
        totals = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(np.diff(totals[pieces.pointers]))

    def _map_intervals(
        self, asked: Rectangles, miss: float, of: Scope | None
    ) -> Iterator[FloatArray]:
        """Yield intervals of some rectangles at a time, by inner and outer boxes."""
        for pieces in self._boxes_cut(asked):
            answers = self._sums(pieces)
            if of == "noise":
                half = self._half_widths(pieces, miss)
                yield np.stack([answers - half, answers + half], axis=1)
                continue
            inner = kept_pieces(pieces, pieces.values == 1.0)
            outer = pieces._replace(values=np.ones_like(pieces.values))
            high = self._sums(outer) + self._half_widths(outer, miss)
            low, held = np.zeros(answers.size), np.diff(inner.pointers) > 0
            if held.any():
                # Rows that hold no whole bucket have no noise, and none is asked for.
                rows = inner._replace(pointers=inner.pointers[np.append(True, held)])
                low[held] = self._sums(rows) - self._half_widths(rows, miss)
            yield from_zero(np.stack([low, high], axis=1))

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
        if not isinstance(asked, Ranges):
            parts = list(self._map_intervals(asked, miss, of))
            return with_answers(np.concatenate([np.zeros((0, 2)), *parts]), answers)
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
        ends = from_zero(np.stack([low, high], axis=1))
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
        buckets = self.measurements[0].buckets
        asked = self._ranges(starts, ends)
        return self._half_widths(asked.explicit_form(buckets), miss)

    def _half_widths(self, form: Fractions | Pieces, miss: float) -> FloatArray:
        half: FloatArray = self.measurements[0].law.half_widths(form, miss)
        return half / self.units

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the ranges whose intervals hold the true answer: all of them."""
        return np.ones(self._check_ranges(workload).queries, dtype=np.bool_)

    def standard_errors(self, workload: Workload) -> FloatArray:
        """Return the exact standard deviation of the noise in each answer."""
        asked, measurement = self._check_ranges(workload), self.measurements[0]
        forms: Iterable[Fractions | Pieces] = (
            [asked.explicit_form(measurement.buckets)]
            if isinstance(asked, Ranges)
            else self._boxes_cut(asked)
        )
        law = measurement.law
        variances = [law.spread(form).variance for form in forms]
        deviations: FloatArray = np.sqrt(np.concatenate([np.zeros(0), *variances]))
        return deviations / self.units

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Any:
        """Select records by values: ``where(time=slice("2024-03-01", "2024-03-02"))``.

        Parameters
        ----------
        conditions : mapping, optional
            By attribute: a half-open slice of values, a value, or a list of these, of
            which any is meant. Ends lie where cells begin.
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
        stated = {**(conditions or {}), **named}
        axes = [self.domain.axis(name) for name in stated]
        if len(set(axes)) < len(axes):
            raise InputError(
                "each attribute of this release is stated once",
                received=repr(stated),
                way_out="Write where(time=[slice(...), slice(...)])",
            )
        runs = [[(0, size)] for size in self.domain.shape]
        for axis, condition in zip(axes, stated.values(), strict=True):
            runs[axis] = whole_cover(self.domain.attributes[axis], condition)
        if len(runs) == 1:
            starts, ends = zip(*runs[0], strict=True)
            return RangeSelection(self, self._ranges(starts, ends))
        # Every run of rows crosses every run of columns.
        boxes = np.array(list(product(*runs)), dtype=np.int64)
        domain: Any = self.domain
        asked = Rectangles(domain, boxes[:, :, 0], boxes[:, :, 1])
        return RangeSelection(self, asked)

    def _ranges(self, starts: Any, ends: Any) -> Ranges:
        domain: Any = self.domain
        return Ranges(domain, starts, ends)

    def _check_ranges(self, workload: Any) -> Ranges | Rectangles:
        self._check(workload)
        kind = Ranges if self.domain.ndim == 1 else Rectangles
        name = kind.__name__
        if not isinstance(workload, kind):
            raise InputError(
                f"a release of a wide domain answers {name.lower()}",
                received=repr(workload),
                way_out=f"Write workloads.{name}(release.domain, starts, ends)",
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


def kept_pieces(pieces: Pieces, chosen: BoolArray) -> Pieces:
    """Return some of the runs of every row.

    Parameters
    ----------
    pieces : Pieces
        Rows of runs.
    chosen : ndarray of bool, shape (pieces,)
        Which runs stay.

    Returns
    -------
    Pieces
        As many rows; one may have no run.
    """
    before = np.concatenate([[0], np.cumsum(chosen)])
    _, starts, ends, values = pieces
    return Pieces(before[pieces.pointers], starts[chosen], ends[chosen], values[chosen])


class RangeSelection:
    """The records of one range of a wide release, or of several that are disjoint.

    Parameters
    ----------
    release : RangesRelease
        What is asked.
    asked : Ranges or Rectangles
        Disjoint ranges, or boxes of a map.
    """

    def __init__(self, release: RangesRelease, asked: Ranges | Rectangles) -> None:
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
        lows, highs = (
            np.atleast_1d(corners[0])
            for corners in (self._asked.starts, self._asked.ends)
        )
        sides = " x ".join(
            f"[{int(low):,}, {int(high):,})"
            for low, high in zip(lows, highs, strict=True)
        )
        more = (
            "" if self._asked.queries == 1 else f" and {self._asked.queries - 1} more"
        )
        return f"RangeSelection({sides}{more} of {self._release!r})"


def _rebuild(content: dict[str, Any]) -> dict[str, Any]:
    domain = WideDomain.from_dict(content["domain"])
    curve = MapCurve(*domain.shape) if domain.ndim == 2 else None
    cells = domain.size if curve is None else curve.cells
    if domain.ndim > 2 or max(cells, *domain.shape) > 2**62:
        raise ReleaseFileError(
            "buckets lie along one attribute of at most 2^62 cells, or on a map of two"
        )
    measurement = read_measurement(content["measurement"], cells)
    if measurement.buckets.order is not None:
        raise ReleaseFileError("buckets of a wide domain lie in its own order")
    if curve is not None:
        try:
            boxes = MapBuckets(measurement.buckets.edges, curve)
        except DomainError as problem:
            raise ReleaseFileError(str(problem)) from None
        measurement = measurement._replace(buckets=boxes)
    units = int(content["units"])
    if not 1 <= units <= MOST_UNITS:
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
