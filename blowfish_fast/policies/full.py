"""Bounded differential privacy: everybody's value is the secret, their number is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import IntArray
from ..buckets import Buckets
from ..domain import Domain
from .base import Components, Policy, one_component


class Full(Policy):
    """Every two cells are joined: any record may have any value; the total is public.

    The edges are never stored: a domain of 2^20 cells has 5 * 10^11 of them.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Full(Domain(8)).components().private
    array([False])
    """

    kind = "full"

    @property
    def has_bottom(self) -> bool:
        """Presence is no secret: the number of records is public."""
        return False

    @property
    def has_moves(self) -> bool:
        """Any two cells are joined, as soon as there are two."""
        return self.domain.size > 1

    def components(self) -> Components:
        """Return the single component, whose total is public."""
        return one_component(private=False)

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield every pair of cells, n (n - 1) / 2 in all: for small domains."""
        for low in range(self.domain.size - 1):
            for start in range(low + 1, self.domain.size, chunk):
                cells = np.arange(start, min(start + chunk, self.domain.size))
                yield np.column_stack([np.full(cells.size, low), cells])

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return Full(domain)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "nobody can tell, beyond a factor e^eps, which of any two values a person "
            "has; the number of people is public (bounded differential privacy)"
        )

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return "one record changes its value to any other"
