"""Ranges of one ordered attribute, listed or all of a kind; rectangles of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_generator, as_integers, malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.wide.map_curve import MapBuckets
from blowfish_fast.errors import DomainError, WorkloadError

from .base import (
    Fractions,
    Pieces,
    RandomLike,
    Union,
    Workload,
    joined_pieces,
    on_a_line,
    prefix_sums,
    query_count,
)


class Ranges(Workload):
    """Half-open ranges [start, end) of cells.

    0 <= start < end <= cells holds for each.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    starts : array-like of int, shape (queries,)
        The first cell of each range.
    ends : array-like of int, shape (queries,)
        The cell after its last.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Ranges(Domain(5), [0, 2], [3, 5]).answer([1, 2, 3, 4, 5])
    array([ 6, 12])
    """

    takes_wide = True

    def __init__(self, domain: Domain, starts: Any, ends: Any) -> None:
        super().__init__(domain)
        on_a_line(domain, type(self).__name__)
        self.starts = np.atleast_1d(as_integers(starts, "starts", WorkloadError))
        self.ends = np.atleast_1d(as_integers(ends, "ends", WorkloadError))
        if self.starts.ndim != 1 or self.starts.shape != self.ends.shape:
            raise WorkloadError(
                "starts and ends must be two lists of the same length",
                received=f"shapes {self.starts.shape} and {self.ends.shape}",
            )
        outside = (self.starts < 0) | (self.ends > domain.size)
        self._refuse(outside, f"ranges must lie in [0, {domain.size})")
        self._refuse(self.starts >= self.ends, "a range must start before it ends")

    @classmethod
    def between(cls, domain: Any, starts: Any, ends: Any) -> Self:
        """Return ranges of values instead of cells: dates, addresses, metres.

        Parameters
        ----------
        domain : Domain or WideDomain
            One attribute by a rule (`WideDomain.from_steps`), or of numbers.
        starts : sequence of values
            Where each range begins: where one of the cells does.
        ends : sequence of values
            The value behind its end.

        Returns
        -------
        Self
            The ranges.

        Raises
        ------
        WorkloadError
            If the attribute has levels or listed edges, or a list is longer.

        Examples
        --------
        >>> from blowfish_fast import WideDomain
        >>> time = WideDomain.from_steps(start="2024-01-01", step="1s", cells=2**40)
        >>> Ranges.between(time, ["2024-01-02"], ["2024-01-03"]).starts
        array([86400])
        """
        on_a_line(domain, cls.__name__)
        (attribute,) = domain.attributes
        listed = [list(bounds) for bounds in (starts, ends)]
        if (
            not attribute.cuts is attribute.levels is None
            or len(set(map(len, listed))) > 1
        ):
            raise WorkloadError(
                "ranges between values are those of an attribute by a rule, as many "
                "starts as ends",
                received=f"{attribute.describe()}; {len(listed[0])} starts and "
                f"{len(listed[1])} ends",
                way_out="Give the numbers of cells: Ranges(domain, starts, ends)",
            )
        rule = attribute.rule
        with malformed_as(WorkloadError, "ranges lie between values of the attribute"):
            places = [
                [rule.place(value, attribute.regular) for value in end]
                for end in listed
            ]
        return cls(domain, *places)

    def _refuse(self, wrong: BoolArray, rule: str) -> None:
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise WorkloadError(
                f"{rule}; query {first} is [{self.starts[first]}, {self.ends[first]})",
                way_out="Ranges are half-open: cell 3 alone is [3, 4)",
            )

    @property
    def queries(self) -> int:
        """As listed."""
        return self.starts.size

    def mean_cells(self) -> float:
        """Return the mean length of the ranges."""
        return float((self.ends - self.starts).mean()) if self.queries else 1.0

    def _answer(self, counts: AnyArray) -> AnyArray:
        return self._between(prefix_sums(counts))

    def answer_again(self, counts: FloatArray, sums: dict[str, AnyArray]) -> AnyArray:
        """Subtract running totals, which are kept in `sums`.

        Parameters
        ----------
        counts : ndarray of float64
            Counts, in the domain's shape.
        sums : dict[str, ndarray]
            Where running sums of these counts are held from one call to the next.

        Returns
        -------
        ndarray, shape (queries,)
            The answers.
        """
        if "totals" not in sums:
            sums["totals"] = prefix_sums(counts)
        return self._between(sums["totals"])

    def _between(self, totals: AnyArray) -> AnyArray:
        answers: AnyArray = totals[self.ends] - totals[self.starts]
        return answers

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """Cut the ranges at the buckets' edges."""
        self._check_buckets(buckets)
        if buckets.order is None and buckets.count == buckets.cells:
            whole = np.ones(self.starts.size)
            return Fractions(self.starts, whole, self.ends - 1, whole)
        if buckets.order is None:
            ends = (self.starts, self.ends, buckets.edges, buckets.landmarks)
            return Fractions(*kernels.end_buckets(*ends))
        lows, highs = self.starts[:, None], self.ends[:, None]
        return rectangle_pieces(
            self.domain, lows.astype(np.float64), highs.astype(np.float64), buckets
        )

    @classmethod
    def random(cls, domain: Domain, count: int, *, rng: RandomLike) -> Self:
        """Draw ranges between two uniform cells, both inclusive.

        Parameters
        ----------
        domain : Domain
            One ordered attribute.
        count : int
            How many.
        rng : RandomLike
            A seed or a generator.

        Returns
        -------
        Self
            The ranges.
        """
        generator = as_generator(rng)
        ends = generator.integers(0, domain.size, size=(2, query_count(count)))
        ends.sort(axis=0)
        return cls(domain, ends[0], ends[1] + 1)._as_sample()

    @classmethod
    def clustered(
        cls, domain: Domain, count: int, *, rng: RandomLike, large: bool = False
    ) -> Self:
        """Draw ranges that crowd around five random centres, as DAWA was evaluated.

        A query reaches out to both sides of its centre by the absolute values of two
        normal numbers. Ranges are cut at the domain's ends.

        Parameters
        ----------
        domain : Domain
            One ordered attribute.
        count : int
            How many.
        rng : RandomLike
            A seed or a generator.
        large : bool, default False
            The standard deviation is 256 on 4096 cells, 1024 if large, and in
            proportion on other domains.

        Returns
        -------
        Self
            The ranges.
        """
        generator = as_generator(rng)
        cells, queries = domain.size, query_count(count)
        centres = generator.integers(0, cells, size=5)
        centre = centres[np.arange(queries) * 5 // queries]
        width = (1024.0 if large else 256.0) * cells / 4096.0
        reach = np.abs(generator.normal(scale=width, size=(2, queries)))
        starts = np.clip(np.floor(centre - reach[0]), 0, cells - 1)
        ends = np.clip(np.ceil(centre + reach[1]), starts + 1, cells)
        return cls(domain, starts, ends)._as_sample()


class Prefixes(Workload):
    """The n ranges [0, i + 1): a cumulative histogram.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Prefixes(Domain(3)).answer([4, 0, 2])
    array([4, 4, 6])
    """

    closed_form = "prefixes"

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        on_a_line(domain, "Prefixes")

    @property
    def queries(self) -> int:
        """One per cell."""
        return self.domain.size

    def mean_cells(self) -> float:
        """Return the mean length of a prefix."""
        return (self.domain.size + 1) / 2

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.cumsum(counts)

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List every prefix as a range."""
        ends = np.arange(1, self.domain.size + 1)
        return Ranges(self.domain, np.zeros_like(ends), ends).explicit_form(buckets)


class AllRanges(Workload):
    """Every range [start, end), by start, then by end.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> AllRanges(Domain(3)).answer([4, 0, 2])
    array([4, 4, 6, 0, 2, 2])
    """

    closed_form = "all_ranges"

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        on_a_line(domain, "AllRanges")

    @property
    def queries(self) -> int:
        """Cells times cells plus one, halved."""
        return self.domain.size * (self.domain.size + 1) // 2

    def _bounds(self) -> tuple[IntArray, IntArray]:
        self._refuse_too_many()
        starts, ends = np.triu_indices(self.domain.size)
        return starts.astype(np.int64), ends.astype(np.int64) + 1

    def mean_cells(self) -> float:
        """Return the mean length of a range."""
        return (self.domain.size + 2) / 3

    def _answer(self, counts: AnyArray) -> AnyArray:
        return Ranges(self.domain, *self._bounds())._answer(counts)

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List every range; refused above 2^26 of them."""
        return Ranges(self.domain, *self._bounds()).explicit_form(buckets)


class Rectangles(Workload):
    """Half-open boxes [low, high) with one interval per attribute.

    Each row has 0 <= low < high <= cells on each axis. A fraction of a cell counts in
    proportion, as if its records were spread evenly.

    Parameters
    ----------
    domain : Domain
        The grid.
    starts : array-like, shape (queries, axes)
        Lower corners, in cells.
    ends : array-like, shape (queries, axes)
        Upper corners, in cells.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Rectangles(Domain((2, 2)), [[0, 0]], [[1, 2]]).answer([[1, 2], [3, 4]])
    array([3])
    >>> Rectangles(Domain((2, 2)), [[0, 0]], [[1.5, 2]]).answer([[1, 2], [3, 4]])
    array([6.5])
    """

    takes_wide = True

    def __init__(self, domain: Domain, starts: Any, ends: Any) -> None:
        super().__init__(domain)
        self.starts = _corners(starts, domain, "starts")
        self.ends = _corners(ends, domain, "ends")
        if self.starts.shape != self.ends.shape:
            raise WorkloadError(
                "starts and ends must have the same shape",
                received=f"{self.starts.shape} and {self.ends.shape}",
            )
        outside = (self.starts < 0) | (self.ends > np.array(domain.shape))
        self._refuse(outside, f"rectangles must lie in the domain of {domain.shape}")
        empty = self.starts >= self.ends
        self._refuse(empty, "a rectangle must start before it ends on each axis")

    @classmethod
    def between(cls, domain: Any, starts: Any, ends: Any) -> Self:
        """Return rectangles of values instead of cells: metres, dates, addresses.

        Parameters
        ----------
        domain : Domain or WideDomain
            Attributes by a rule (`WideDomain.from_steps`), or of numbers.
        starts : sequence of sequences, shape (queries, axes)
            Lower corners: on each axis, where a cell begins.
        ends : sequence of sequences, shape (queries, axes)
            Upper corners, the values behind the end.

        Returns
        -------
        Self
            The rectangles.

        Raises
        ------
        WorkloadError
            If a corner has too few values, or an attribute has levels or listed edges.

        Examples
        --------
        >>> from blowfish_fast import WideDomain
        >>> east = WideDomain.from_steps(start=2_000_000, cells=2**20, name="east")
        >>> north = WideDomain.from_steps(start=1_000_000, cells=2**20, name="north")
        >>> town = WideDomain.product(east, north)
        >>> corners = [[2_600_000, 1_200_000]], [[2_601_000, 1_201_000]]
        >>> Rectangles.between(town, *corners).starts
        array([[600000., 200000.]])
        """
        if any(
            not attribute.cuts is attribute.levels is None
            for attribute in domain.attributes
        ):
            raise WorkloadError(
                "rectangles between values are those of attributes by a rule",
                received=repr(domain),
                way_out="Give the numbers of cells: Rectangles(domain, starts, ends)",
            )
        with malformed_as(WorkloadError, "corners are values of every attribute"):
            places = [
                [
                    [
                        axis.rule.place(value, axis.regular)
                        for axis, value in zip(domain.attributes, corner, strict=True)
                    ]
                    for corner in listed
                ]
                for listed in (starts, ends)
            ]
        return cls(domain, *places)

    def _refuse(self, wrong: BoolArray, rule: str) -> None:
        if wrong.any():
            first = int(np.flatnonzero(wrong.any(axis=1))[0])
            corners = f"from {self.starts[first]} to {self.ends[first]}"
            raise WorkloadError(rule, received=f"query {first}, which goes {corners}")

    @property
    def queries(self) -> int:
        """As listed."""
        return len(self.starts)

    def first_pieces(self, buckets: Buckets, most: int) -> Pieces:
        """Cut the first boxes into runs of buckets, as many as surely fit.

        A box cuts at most as many runs as there are buckets. Boxes are taken while room
        is left for all of these, so that the memory is bounded whatever the buckets.

        Parameters
        ----------
        buckets : Buckets
            The buckets.
        most : int
            How many runs there may be; at least the number of buckets.

        Returns
        -------
        Pieces
            The runs of the first boxes, of all where they fit.
        """
        parts: list[Pieces] = []
        used = first = 0
        while first < self.queries and used + buckets.count <= most:
            last = first + (most - used) // buckets.count
            some = Rectangles(
                self.domain, self.starts[first:last], self.ends[first:last]
            )
            parts.append(some.explicit_form(buckets))
            used, first = used + parts[-1].starts.size, last
        return joined_pieces(parts)

    def _pieces(self) -> int:
        # A curve enters a box at most as often as half its surface has cells.
        sides = np.maximum(np.ceil(self.ends - self.starts), 1.0)
        return int((sides.prod(axis=1) * (1.0 / sides).sum(axis=1)).sum())

    @property
    def whole_cells(self) -> bool:
        """Whether every corner lies between cells."""
        return bool(
            (np.floor(self.starts) == self.starts).all()
            and (np.floor(self.ends) == self.ends).all()
        )

    def mean_cells(self) -> float:
        """Return the mean volume of the boxes, at least 1."""
        volumes = np.prod(self.ends - self.starts, axis=1)
        return max(1.0, float(volumes.mean())) if self.queries else 1.0

    def _answer(self, counts: AnyArray) -> AnyArray:
        return self._inside(kernels.summed_area_table(counts))

    def answer_again(self, counts: FloatArray, sums: dict[str, AnyArray]) -> AnyArray:
        """Read the table of running sums, which is kept in `sums`.

        Parameters
        ----------
        counts : ndarray of float64
            Counts, in the domain's shape.
        sums : dict[str, ndarray]
            Where running sums of these counts are held from one call to the next.

        Returns
        -------
        ndarray, shape (queries,)
            The answers.
        """
        if "table" not in sums:
            sums["table"] = kernels.summed_area_table(counts)
        return self._inside(sums["table"])

    def _inside(self, table: AnyArray) -> AnyArray:
        if self.whole_cells:
            starts, ends = self.starts.astype(np.int64), self.ends.astype(np.int64)
            return kernels.rectangle_sums(table, starts, ends)
        return kernels.fractional_rectangle_sums(
            table.astype(np.float64), self.starts, self.ends
        )

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Cut the rectangles into runs of buckets."""
        if isinstance(buckets, MapBuckets):
            if tuple(buckets.map_curve) != self.domain.shape:
                raise DomainError(
                    "buckets of another map", received=tuple(buckets.map_curve)
                )
            return Pieces(
                *kernels.boxes_to_pieces(self.starts, self.ends, buckets.boxes)
            )
        self._check_buckets(buckets)
        return rectangle_pieces(self.domain, self.starts, self.ends, buckets)

    @classmethod
    def random(cls, domain: Domain, count: int, *, rng: RandomLike) -> Self:
        """Draw rectangles between two uniform cells per axis, both inclusive.

        Parameters
        ----------
        domain : Domain
            The grid.
        count : int
            How many.
        rng : RandomLike
            A seed or a generator.

        Returns
        -------
        Self
            The rectangles.
        """
        generator = as_generator(rng)
        corners = np.stack(
            [
                generator.integers(0, size, size=(2, query_count(count)))
                for size in domain.shape
            ],
            axis=-1,
        )
        corners.sort(axis=0)
        return cls(domain, corners[0], corners[1] + 1)._as_sample()

    @classmethod
    def of_shape(
        cls, domain: Domain, shape: Sequence[int], count: int, *, rng: RandomLike
    ) -> Self:
        """Place rectangles of a given shape uniformly in the domain.

        Parameters
        ----------
        domain : Domain
            The grid.
        shape : Sequence[int]
            Cells of each side.
        count : int
            How many.
        rng : RandomLike
            A seed or a generator.

        Returns
        -------
        Self
            The rectangles.

        Raises
        ------
        WorkloadError
            If the shape does not fit the domain.
        """
        sides = np.atleast_1d(as_integers(shape, "shape"))
        if sides.shape != (domain.ndim,) or (sides < 1).any():
            raise WorkloadError(
                "give one side of at least 1 cell per attribute",
                received=f"{shape!r} for a domain of shape {domain.shape}",
            )
        room = np.array(domain.shape) - sides
        if (room < 0).any():
            raise WorkloadError(
                f"rectangles of shape {tuple(sides.tolist())} do not fit a domain of "
                f"shape {domain.shape}"
            )
        generator = as_generator(rng)
        starts = generator.integers(0, room + 1, size=(query_count(count), domain.ndim))
        return cls(domain, starts, starts + sides)._as_sample()


def rectangle_pieces(
    domain: Domain, lows: FloatArray, highs: FloatArray, buckets: Buckets
) -> Pieces:
    """Cut boxes into runs of buckets; along a curve only their outlines are visited.

    Parameters
    ----------
    domain : Domain
        The grid.
    lows : ndarray of float64, shape (queries, axes)
        Lower corners, in cells.
    highs : ndarray of float64, shape (queries, axes)
        Upper corners, in cells.
    buckets : Buckets
        The buckets.

    Returns
    -------
    Pieces
        The runs.
    """
    if buckets.order is not None and not buckets.curve:
        # The kernel that a release needs for its corners: one is compiled, not two.
        corners = kernels.bucket_corners(buckets.order, buckets.edges, domain.shape)
        if corners is not None:
            boxes = corners.astype(np.int64)
            return Pieces(*kernels.boxes_to_pieces(lows, highs, boxes))

    order = buckets.position if buckets.order is None else buckets.order
    intervals = kernels.rectangle_intervals(
        order, buckets.position, domain.shape, lows, highs
    )
    if buckets.are_single_cells:
        return Pieces(*intervals)
    return Pieces(*kernels.intervals_to_pieces(*intervals, buckets.edges))


def _corners(corners: Any, domain: Domain, name: str) -> FloatArray:
    with malformed_as(WorkloadError, f"{name} must be numbers"):
        array = np.asarray(corners, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != domain.ndim:
        raise WorkloadError(
            f"{name} must have shape (queries, {domain.ndim})", received=array.shape
        )
    if not np.isfinite(array).all():
        raise WorkloadError(f"{name} must be finite numbers; found NaN or infinity")
    return np.ascontiguousarray(array)


def random_boxes(domain: Domain, queries: int, rng: RandomLike) -> Workload:
    """Return random ranges of one attribute, or random rectangles of several.

    Parameters
    ----------
    domain : Domain
        The cells.
    queries : int
        How many.
    rng : RandomLike
        A seed or a generator.

    Returns
    -------
    Workload
        The workload.

    Examples
    --------
    >>> random_boxes(Domain((8, 8)), 100, rng=1)
    Rectangles(Domain(8 cells x 8 cells), 100 queries)
    """
    kind = Ranges if domain.ndim == 1 else Rectangles
    return kind.random(domain, queries, rng=rng)


def asks_ranges(workload: Workload) -> bool:
    """Return whether cells or ranges of a line are asked, for which a fit is best."""
    if workload.domain.ndim != 1:
        return False
    if isinstance(workload, Union):
        return all(asks_ranges(part) for part in workload.parts)
    if isinstance(workload, Ranges):
        return bool((workload.starts > 0).any())
    return workload.closed_form in ("all_ranges", "identity")
