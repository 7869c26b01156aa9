"""Unbounded differential privacy: someone's presence is the secret."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import IntArray
from ..buckets import Buckets
from ..domain import Domain
from .base import ABSENT, Components, Policy, one_component


class AddRemove(Policy):
    """Every cell is joined to "absent": adding or removing one record stays hidden.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> AddRemove(Domain(8)).has_bottom
    True
    """

    kind = "add_remove"

    @property
    def has_bottom(self) -> bool:
        """Presence is the secret, so every total is private."""
        return True

    @property
    def has_moves(self) -> bool:
        """No edge joins two cells; a move is a removal and an addition."""
        return False

    def components(self) -> Components:
        """Return the single component, which holds "absent"."""
        return one_component(private=True)

    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield (cell, -1) for every cell."""
        for start in range(0, self.domain.size, chunk):
            cells = np.arange(start, min(start + chunk, self.domain.size))
            yield np.column_stack([cells, np.full(cells.size, ABSENT)])

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return AddRemove(domain)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "nobody can tell, beyond a factor e^eps, whether any one person is in the "
            "data at all (unbounded differential privacy)"
        )

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return "one record is added or removed"
