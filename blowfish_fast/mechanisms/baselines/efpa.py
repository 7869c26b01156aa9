"""EFPA: how many low frequencies to keep, then noise on these."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Unpack

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_share
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.measure.budgets import BudgetTerms, equal_noise_epsilon
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.selections import KeptFrequencies
from blowfish_fast.measure.strategies import Fourier
from blowfish_fast.measure.strategies.transforms.fourier import typical_reach
from blowfish_fast.mechanisms.base import Example, Mechanism, Outcome
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload


class Efpa(Mechanism):
    """Release a histogram by the lowest frequencies of its Fourier transform.

    Takes one ordered attribute; the workload changes nothing. The number of frequencies
    that are kept is chosen with `share` of epsilon.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the choice and the coefficients share
        epsilon (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: of the choice, 1 when a record is added or removed and the root of 2
        when it moves (L2); of the coefficients, the largest sum of absolute values of
        the kept cosines and sines over cells, counted exactly, or what a move of the
        longest edge turns them by. The total is exact where it is public.
    Error: the noise of the kept coefficients, known once their number is, plus the
        coefficients that were dropped, which depend on the data.
    Complexity: O(n log n) for the choice, O(n k) for k frequencies; at most 2^29
        products, which bounds k on more than 2^15 cells.
    Source: the paper of `Php`, section 4, with a real transform of unit length and
        noise on all that is published; public code released phases exactly. Proof in
        ``docs/proofs/efpa.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> efpa = bf.mechanisms.Efpa(bf.policies.AddRemove(line), ranges, epsilon=2)
    >>> wave = (100 + 80 * np.cos(np.arange(64) * np.pi / 32)).round()
    >>> efpa.release(wave, rng=1).details["frequencies"] >= 1
    True
    """

    name = "efpa"
    cell_bytes = 128
    example_case = Example(lambda domain: _wave(domain))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        share: Any = Fraction(1, 2),
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self._require_one_attribute("transforms")
        self.share = as_share(share, "share")

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        # Constraints make all noise larger by the group size.
        left = (self.budget - share).over(self.policy.group_size)
        # About the L2 norm of the noise, for each number of frequencies.
        reach = _reach(self.domain.size, private.policy)
        rows = 2.0 * np.arange(reach.size) + private.policy.has_bottom
        noise = reach / equal_noise_epsilon(left) * np.sqrt(2.0 * rows)
        kept = private.select(KeptFrequencies(noise), budget=share)
        strategy = Fourier(self.domain.size, kept)
        measurement = private.measure(strategy, budget=private.remaining)
        return Outcome.of(measurement, {"frequencies": kept})


@lru_cache(maxsize=16)
def _reach(cells: int, policy: Policy) -> FloatArray:
    """Return `typical_reach`, which is the larger part of a release, once."""
    return typical_reach(cells, policy)


def _wave(domain: Domain) -> Histogram:
    angles = 2.0 * np.pi * np.arange(domain.size) / max(domain.size, 1)
    counts = np.rint(20 + 18 * np.cos(angles)).astype(np.int64)
    return Histogram(domain, counts.reshape(domain.shape))
