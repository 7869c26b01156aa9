"""Rectangles of several ordered attributes; fractions of a cell are allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray
from blowfish_fast._support.validation import as_integers, malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Pieces, RandomLike, Workload, query_count
from .ranges import Ranges, rectangle_pieces


class Rectangles(Workload):
    """Half-open boxes [low, high) with one interval per attribute.

    Parameters
    ----------
    domain : Domain
        Any number of attributes.
    lows, highs : (m, d) array_like
        0 <= low < high <= cells on each axis. A fraction of a cell counts in
        proportion, as if its records were spread evenly.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Rectangles(Domain((2, 2)), [[0, 0]], [[1, 2]]).answer([[1, 2], [3, 4]])
    array([3])
    >>> Rectangles(Domain((2, 2)), [[0, 0]], [[1.5, 2]]).answer([[1, 2], [3, 4]])
    array([6.5])
    """

    def __init__(self, domain: Domain, lows: Any, highs: Any) -> None:
        super().__init__(domain)
        self.lows = _corners(lows, domain, "lows")
        self.highs = _corners(highs, domain, "highs")
        if self.lows.shape != self.highs.shape:
            raise WorkloadError(
                "lows and highs must have the same shape",
                received=f"{self.lows.shape} and {self.highs.shape}",
            )
        outside = (self.lows < 0) | (self.highs > np.array(domain.shape))
        self._refuse(outside, f"rectangles must lie in the domain of {domain.shape}")
        empty = self.lows >= self.highs
        self._refuse(empty, "a rectangle must start before it ends on each axis")

    def _refuse(self, wrong: BoolArray, rule: str) -> None:
        if wrong.any():
            first = int(np.flatnonzero(wrong.any(axis=1))[0])
            ends = f"from {self.lows[first]} to {self.highs[first]}"
            raise WorkloadError(rule, received=f"query {first}, which goes {ends}")

    @property
    def queries(self) -> int:
        """As listed."""
        return len(self.lows)

    @property
    def whole_cells(self) -> bool:
        """Whether every corner lies between cells."""
        return bool(
            (np.floor(self.lows) == self.lows).all()
            and (np.floor(self.highs) == self.highs).all()
        )

    def mean_cells(self) -> float:
        """Return the mean volume of the boxes, at least 1."""
        volumes = np.prod(self.highs - self.lows, axis=1)
        return max(1.0, float(volumes.mean())) if self.queries else 1.0

    def _answer(self, counts: AnyArray) -> AnyArray:
        return self._inside(kernels.summed_area_table(counts))

    def answer_again(self, counts: FloatArray, sums: dict[str, AnyArray]) -> AnyArray:
        """Read the table of running sums, which is kept in `sums`."""
        if "table" not in sums:
            sums["table"] = kernels.summed_area_table(counts)
        return self._inside(sums["table"])

    def _inside(self, table: AnyArray) -> AnyArray:
        if self.whole_cells:
            lows, highs = self.lows.astype(np.int64), self.highs.astype(np.int64)
            return kernels.rectangle_sums(table, lows, highs)
        return kernels.fractional_rectangle_sums(
            table.astype(np.float64), self.lows, self.highs
        )

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Cut the rectangles into runs of buckets."""
        self._check_buckets(buckets)
        return rectangle_pieces(self.domain, self.lows, self.highs, buckets)

    @classmethod
    def random(cls, domain: Domain, count: int, *, rng: RandomLike) -> Self:
        """Draw rectangles between two uniform cells per axis, both inclusive."""
        generator = np.random.default_rng(rng)
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
        """Place rectangles of a given shape uniformly in the domain."""
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
        generator = np.random.default_rng(rng)
        lows = generator.integers(0, room + 1, size=(query_count(count), domain.ndim))
        return cls(domain, lows, lows + sides)._as_sample()


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

    Examples
    --------
    >>> random_boxes(Domain((8, 8)), 100, rng=1)
    Rectangles(Domain(8 cells x 8 cells), 100 queries)
    """
    kind = Ranges if domain.ndim == 1 else Rectangles
    return kind.random(domain, queries, rng=rng)
