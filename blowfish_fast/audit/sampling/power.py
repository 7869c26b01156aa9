"""How strong the audit is: a planted excess, and how often it is seen.

An audit that finds nothing says little unless it would have found something. So noise
is calibrated to more epsilon than is promised, and the share of audits that notice is
counted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from blowfish_fast.measure.handle import Measurement
from blowfish_fast.policies import Policy

from .noise_batches import audit_noise

EXCESS = Fraction(5, 100)
"""What is planted: five hundredths of epsilon too much."""


class Power(NamedTuple):
    """How many of the planted excesses were seen."""

    seen: int
    planted: int
    samples: int
    excess: Fraction

    @property
    def share(self) -> float:
        """Part of the plants that were seen."""
        return self.seen / self.planted

    def __str__(self) -> str:
        return (
            f"an excess of {float(100 * self.excess):g} % was seen {self.seen} times "
            f"out of {self.planted} ({self.samples:,} samples per side)"
        )


def detection_power(
    measurement: Measurement,
    policy: Policy,
    edge: tuple[int, int],
    *,
    samples: int,
    trials: int,
    epsilon: Fraction = Fraction(1),
    excess: Fraction = EXCESS,
    confidence: float = 0.999,
) -> Power:
    """Calibrate a measurement to epsilon (1 + excess) and hold it against epsilon.

    Parameters
    ----------
    measurement : Measurement
        The strategy and the buckets on which it is laid; its scales are replaced.
    policy : Policy
        The policy over those buckets.
    edge : (int, int)
        Cells at whose two ends the record is put: the worst edge.
    samples, trials : int
        Draws per side of one audit, and the number of audits.
    """
    scales = measurement.strategy.scales(policy, epsilon * (1 + excess))
    planted = measurement._replace(scales=scales)
    seen = sum(
        not audit_noise(
            "planted",
            planted,
            edge,
            budget=epsilon,
            samples=samples,
            seed=2 * trial,
            confidence=confidence,
        ).passed
        for trial in range(trials)
    )
    return Power(seen, trials, samples, excess)
