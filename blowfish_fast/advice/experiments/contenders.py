"""Mechanisms that compete in an experiment: by registry name, measured alike.

    Contender("P-HP", "php")  --on counts, at epsilon, seeded-->  {"error": 23.5, ...}
                                                                  {"skipped": reason}

One that refuses on public grounds (a domain too large for a quadratic method) is shown
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import as_epsilon
from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import find_mechanism
from blowfish_fast.policies import Policy
from blowfish_fast.release.release import Release
from blowfish_fast.workloads import Workload

from .experiment import Row

Measure = Literal["absolute", "squared"]


@dataclass(frozen=True)
class Contender:
    """A mechanism under the name that a table gives it.

    `options` are keyword arguments of the mechanism; `divisor` is what epsilon is
    divided by, 2 where a method for added or removed records meets a policy with moves.
    """

    label: str
    mechanism: str
    options: Mapping[str, Any] = field(default_factory=dict)
    divisor: int = 1

    def build(self, policy: Policy, workload: Workload, epsilon: Any) -> Mechanism:
        """Return the mechanism, ready to release."""
        return find_mechanism(self.mechanism)(
            policy,
            workload,
            epsilon=as_epsilon(epsilon) / self.divisor,
            **self.options,
        )


def seeded_release(mechanism: Mechanism, data: Any, seed: int) -> Release:
    """Release with seeded noise, which the release itself calls an experiment."""
    release = mechanism.release(data, rng=seed)
    assert not release.private, "a seeded release is never private"
    return release


def release_errors(
    contender: Contender,
    policy: Policy,
    workload: Workload,
    epsilon: Any,
    counts: AnyArray,
    seeds: Iterable[int],
    *,
    measure: Measure = "absolute",
) -> list[Row]:
    """Release once per seed and return the mean error per query of each release."""
    truth = workload.answer(counts)
    rows: list[Row] = []
    try:
        mechanism = contender.build(policy, workload, epsilon)
        for trial, seed in enumerate(seeds):
            answers = seeded_release(mechanism, counts, seed).answer(workload)
            rows.append(
                {
                    "method": contender.label,
                    "trial": trial,
                    "error": mean_error(answers, truth, measure),
                    "skipped": None,
                }
            )
    except BlowfishError as refusal:
        return [
            {
                "method": contender.label,
                "trial": None,
                "error": None,
                "skipped": str(refusal),
            }
        ]
    return rows


def mean_error(answers: AnyArray, truth: AnyArray, measure: Measure) -> float:
    """Return the mean absolute or squared difference."""
    difference: FloatArray = np.asarray(answers - truth, dtype=np.float64)
    if measure == "squared":
        return float(np.mean(difference**2))
    return float(np.mean(np.abs(difference)))
