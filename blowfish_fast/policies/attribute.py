"""Each attribute by itself is the secret: one coordinate may be anything else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain

from .base import Policy
from .full import Full
from .grid_steps import step_edges
from .projection import Projection, clique_bins, only_axis
from .protocol import Bandwidth, Change, PolicyGraph


class Attribute(Policy):
    """Cells that differ in exactly one coordinate are joined.

    Records that differ in d attributes are d edges apart, so this is weaker than
    `Full` on several attributes: a factor e^(eps * d) instead of e^eps.

    Parameters
    ----------
    domain : Domain
        Any number of attributes; with one, the edges are those of `Full`.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Attribute(Domain((3, 4))).edge_count, Full(Domain((3, 4))).edge_count
    (30, 66)
    """

    kind = "attribute"

    neighbours = "one record changes the value of one attribute"

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield the edges axis by axis, shortest first."""
        steps = self._axis_steps(self.domain.shape)
        return step_edges(self.domain.shape, steps, chunk)

    @staticmethod
    def _axis_steps(shape: tuple[int, ...]) -> IntArray:
        along = np.eye(len(shape), dtype=np.int64)
        lengths = [np.arange(1, side)[:, None] for side in shape]
        return np.concatenate(
            [one * axis for one, axis in zip(lengths, along, strict=True)]
        )

    def grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return every step along one axis."""
        if sum(shape) - len(shape) > most:
            return None
        return self._axis_steps(shape)

    @property
    def edge_count(self) -> int:
        """Summed over axes, the pairs of cells on each line along it."""
        cells = self.domain.size
        return sum(cells * (side - 1) // 2 for side in self.domain.shape)

    @property
    def max_degree(self) -> int:
        """Every other value of every attribute; all cells alike."""
        return sum(side - 1 for side in self.domain.shape)

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return that every cell reaches the last, with one attribute; else None."""
        if max(self.domain.shape) < self.domain.size:
            return None
        return Full(self.domain).bandwidth(order)

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        ones, others = (
            np.stack(np.unravel_index(cells, self.domain.shape), axis=-1)
            for cells in (first, second)
        )
        steps: FloatArray = (ones != others).sum(axis=-1).astype(np.float64)
        return steps

    def largest_change(self, lines: FloatArray) -> Change:
        """Return the largest range of the values along one axis."""
        grid = lines.reshape(-1, *self.domain.shape)
        changes = (np.ptp(grid, axis=axis + 1) for axis in range(self.domain.ndim))
        return Change(max(float(one.max()) for one in changes), True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        if isinstance(other, Full):
            return max(self.domain.shape) == self.domain.size
        return None

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy | None:
        if not isinstance(domain, Domain):
            return None
        return Attribute(domain).derive_from(self)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        if only_axis(buckets.labels, self.domain.shape) is not None:
            return Full(domain)
        return Projection(self, buckets)

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        grid = labels.reshape(self.domain.shape)
        for axis, side in enumerate(self.domain.shape):
            lines = np.moveaxis(grid, axis, -1).reshape(-1)
            yield from clique_bins(np.arange(lines.size) // side, lines, bins)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        names = [name for name in self.domain.names if name is not None]
        listed = f" ({', '.join(names)})" if names else ""
        return (
            f"two people who differ in a single attribute{listed} cannot be told apart "
            "beyond e^eps, whatever its two values; in d attributes, e^(eps*d); the "
            "number of people is public"
        )
