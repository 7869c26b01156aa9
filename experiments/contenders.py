"""Mechanisms under the names that the tables of papers give them, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.advice.experiments.experiment import Row
from blowfish_fast.advice.experiments.mechanism_grid import read_budget, release_errors
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import find_mechanism
from blowfish_fast.policies import Policy
from blowfish_fast.release.file import Release
from blowfish_fast.workloads import Workload

Measure = Literal["absolute", "squared"]


@dataclass(frozen=True)
class Contender:
    """A mechanism with its `options`, under the name that a table gives it.

    Epsilon is divided by `divisor`: 2 where a method for added or removed records meets
    a policy with moves.
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
            epsilon=read_budget(epsilon).over(self.divisor),
            **self.options,
        )


def seeded_release(mechanism: Mechanism, data: Any, seed: int) -> Release:
    """Release with seeded noise, which the release itself calls an experiment."""
    release = mechanism.release(data, rng=seed)
    assert not release.private, "a seeded release is never private"
    return release


def contender_errors(
    contender: Contender,
    policy: Policy,
    workload: Workload,
    epsilon: Any,
    counts: AnyArray,
    seeds: Iterable[int],
    *,
    measure: Measure = "absolute",
) -> list[Row]:
    """Return mean errors per query, a release per seed, or one row with a refusal."""
    build = partial(contender.build, policy, workload, epsilon)
    lost: Any = np.square if measure == "squared" else np.abs
    return release_errors(contender.label, build, workload, counts, seeds, lost=lost)
