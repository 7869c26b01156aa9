"""One weighted sum over the cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import WorkloadError

from .base import Pieces, Workload
from .linear import Linear, check_coefficients


class Sum(Workload):
    """The single query that adds up a weight for every record, by its cell.

    Parameters
    ----------
    domain : Domain
        Any number of attributes.
    weights : array_like
        Finite weight of each cell, of the domain's shape or flat in C order; weights
        may be negative.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Sum(Domain(3), [0, 1, 2]).answer([4, 0, 2])
    array([4.])
    """

    def __init__(self, domain: Domain, weights: Any) -> None:
        super().__init__(domain)
        with malformed_as(WorkloadError, "weights must be numbers, one per cell"):
            array = np.array(weights, dtype=np.float64)
        if array.shape not in (domain.shape, (domain.size,)):
            raise WorkloadError(
                f"weights must have the domain's shape {domain.shape}, or "
                f"({domain.size},) in C order",
                received=array.shape,
            )
        check_coefficients(array, "weights")
        self.weights = array.reshape(-1)
        self.weights.flags.writeable = False

    @property
    def queries(self) -> int:
        """One."""
        return 1

    def _answer(self, counts: AnyArray) -> AnyArray:
        return np.array([self.weights @ counts.reshape(-1)])

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Average the weights over the buckets; merge equal neighbours into runs."""
        return Linear(self.domain, self.weights[None]).explicit_form(buckets)
