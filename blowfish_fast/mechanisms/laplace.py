"""Laplace mechanism: independent noise on every cell.

Pieces: strategy ``strategies.cells``, noise from ``kernels.discrete_laplace``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..domain import Domain
from ..errors import InputError
from ..handle import Handle
from ..histogram import Histogram
from ..policies import Policy
from ..strategies import Cells
from ..workloads import Identity, Workload
from .base import Mechanism, Outcome


class Laplace(Mechanism):
    """Release every cell with discrete Laplace noise.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. The workload does not change the noise.
    on : {"cells"}
        Where the noise goes: on the cells of the histogram.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: 1 when a record is added or removed, 2 when it moves; the total is
        exact where the policy makes it public.
    Error: the variance of the noise, times the number of cells of a range; less the
        part that the public total removes.
    Complexity: O(n) time and memory.
    Source: [1]_, with noise on the integers; proof in ``docs/proofs/laplace.md``.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim, A. Smith. Calibrating noise to
       sensitivity in private data analysis. TCC 2006.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> laplace = bf.Laplace(
    ...     bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1
    ... )
    >>> laplace.expected_error().round(4)
    array([1.8413, 1.8413, 1.8413, 1.8413])
    >>> laplace.release([3, 0, 2, 5], rng=7).estimate.shape
    (4,)
    """

    name = "laplace"

    def __init__(
        self, policy: Policy, workload: Workload, *, epsilon: Any, on: str = "cells"
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon)
        if on != "cells":
            raise InputError(f'on must be "cells"; received {on!r}')
        self.on = on

    def _run(self, private: Handle) -> Outcome:
        cells = private.measure(Cells(self.domain.size), epsilon=private.remaining)
        return Outcome(cells.estimate(), [cells])

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return the mechanism for all cells, with small counts."""
        counts = np.arange(domain.size).reshape(domain.shape) % 7
        mechanism = cls(policy, Identity(domain), epsilon=epsilon)
        return mechanism, Histogram(domain, counts)
