"""Black-box audit: release two neighbours many times and compare.

A lower bound on the log-likelihood ratio of some event above epsilon is a proof, at
the stated confidence, that the promise is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.release.release import Release

from .confidence import Evidence, strongest_evidence


class Finding(NamedTuple):
    """The result of one audit, with the statement it was held against.

    Examples
    --------
    >>> evidence = Evidence(0.7, "cut", 3)
    >>> Finding("a choice", Fraction(1, 2), evidence, samples=1000).passed
    False
    """

    subject: str
    epsilon: Fraction
    evidence: Evidence
    samples: int
    pairs: int = 1
    """Neighbouring pairs that were tried, of which the most telling was sampled."""

    @property
    def passed(self) -> bool:
        """Whether the evidence stays within epsilon."""
        return self.evidence.log_ratio <= float(self.epsilon)

    def __str__(self) -> str:
        verdict = "within" if self.passed else "ABOVE"
        seen = f" (observed {self.evidence.observed:.3f})" if self.samples else ""
        return (
            f"{self.subject}: log-ratio at least {self.evidence.log_ratio:.3f}{seen}, "
            f"{verdict} eps = {float(self.epsilon):g} "
            f"({self.samples:,} samples per side, {self.evidence.events} events, "
            f"{self.pairs} pairs tried)"
        )


def audit_release(
    mechanism: Mechanism,
    pair: tuple[Any, Any],
    *,
    event: Callable[[Release], Hashable],
    samples: int,
    seed: int = 0,
    confidence: float = 0.999,
) -> Finding:
    """Compare an `event` of whole releases on two neighbouring data sets.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(2)
    >>> mechanism, _ = bf.Laplace.example(line, bf.policies.AddRemove(line), 1)
    >>> found = audit_release(
    ...     mechanism,
    ...     (np.array([3, 0]), np.array([2, 0])),
    ...     event=lambda release: bool(release.estimate[0] > 2),
    ...     samples=200,
    ... )
    >>> found.passed
    True
    """
    # Both sides from different seeds, so that they are independent.
    sides = [
        [
            event(mechanism.release(counts, rng=seed + side * samples + number))
            for number in range(samples)
        ]
        for side, counts in enumerate(pair)
    ]
    evidence = strongest_evidence(*sides, confidence=confidence)
    return Finding(mechanism.name, mechanism.epsilon, evidence, samples)
