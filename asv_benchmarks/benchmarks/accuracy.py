"""Mean absolute error on generated data: a speed-up that costs accuracy must show.

    spikes    .  |  . |    a few full cells in an empty domain
    steps     --__--==     long stretches of one level
    smooth    .:|!|:.      a mixture of bells

Data, queries and noise have fixed seeds, so a figure changes only with the code (or
with a new version of numpy's generators). Smaller is better; records per answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import Dawa, Domain, policies
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.mechanisms.registry import MECHANISMS
from blowfish_fast.workloads import Workload

from .common import EPSILON, SMALL, grid, ranges, rectangles

CELLS = 4096
SEEDS = 1 if SMALL else 5
SHAPES = ["steps"] if SMALL else ["spikes", "steps", "smooth"]
RECORDS = 200_000

Recipe = Callable[[policies.Policy, Workload], Mechanism]
VARIANTS: dict[str, Recipe] = {
    "dawa without partition": lambda policy, asked: Dawa(
        policy, asked, epsilon=EPSILON, partition=None
    ),
    "dawa, dyadic tree": lambda policy, asked: Dawa(
        policy, asked, epsilon=EPSILON, partition=DyadicTree()
    ),
    "dawa, least cost": lambda policy, asked: Dawa(
        policy, asked, epsilon=EPSILON, partition=LeastCost()
    ),
}


def histogram(shape: str) -> np.ndarray:
    """Return about `RECORDS` records of one shape over `CELLS` cells."""
    generator = np.random.default_rng(11)
    place = np.arange(CELLS)
    if shape == "spikes":
        density = np.zeros(CELLS)
        full = generator.choice(CELLS, size=80, replace=False)
        density[full] = generator.pareto(1.2, size=full.size) + 0.1
    elif shape == "steps":
        cuts = np.sort(generator.choice(CELLS, size=23, replace=False))
        levels = generator.exponential(size=24) * (generator.random(24) < 0.7)
        density = levels[np.searchsorted(cuts, place, side="right")]
    elif shape == "smooth":
        centres = generator.uniform(0, CELLS, size=6)
        widths = generator.uniform(0.01, 0.1, size=6) * CELLS
        bells = np.exp(-0.5 * ((place[:, None] - centres) / widths) ** 2) / widths
        density = bells.sum(axis=1)
    else:
        raise ValueError(f"no histogram of shape {shape!r}")
    return generator.poisson(RECORDS * density / density.sum())


def build(name: str, policy: policies.Policy, asked: Workload) -> Mechanism:
    """Return a mechanism for the workload, unless it is made for something else."""
    try:
        if name in VARIANTS:
            return VARIANTS[name](policy, asked)
        return MECHANISMS[name](policy, asked, epsilon=EPSILON)
    except (BlowfishError, TypeError) as refusal:
        # Another policy, a line and not a map, clusters and not ranges.
        raise NotImplementedError(f"{name}: {refusal}") from refusal


def mean_error(mechanism: Mechanism, counts: np.ndarray, asked: Workload) -> float:
    """Return the mean absolute error over all queries and a few seeded releases."""
    truth = asked.answer(counts)
    errors = [
        np.abs(mechanism.release(counts, rng=seed).answer(asked) - truth).mean()
        for seed in range(SEEDS)
    ]
    return float(np.mean(errors))


class RangeError:
    """2000 uniform ranges of a line at epsilon 0.1."""

    timeout = 600
    unit = "records"
    params: ClassVar[list[Any]] = [
        sorted([*MECHANISMS, *VARIANTS]),
        SHAPES,
        ["add_remove", "line"],
    ]
    param_names: ClassVar[list[str]] = ["mechanism", "data", "policy"]

    def setup(self, mechanism: str, data: str, policy: str) -> None:
        domain = Domain(CELLS)
        self.counts = histogram(data)
        self.asked = ranges(domain, 2000)
        stated = policies.POLICIES[policy](domain)
        self.mechanism = build(mechanism, stated, self.asked)

    def track_error(self, mechanism: str, data: str, policy: str) -> float:
        return mean_error(self.mechanism, self.counts, self.asked)


class RectangleError:
    """2000 uniform rectangles of a 64 x 64 map at epsilon 0.1."""

    timeout = 600
    unit = "records"
    params: ClassVar[list[Any]] = [sorted([*MECHANISMS, *VARIANTS])]
    param_names: ClassVar[list[str]] = ["mechanism"]

    def setup(self, mechanism: str) -> None:
        domain, data = grid(64 * 64)
        self.counts = data.counts
        self.asked = rectangles(domain, 2000)
        self.mechanism = build(mechanism, policies.AddRemove(domain), self.asked)

    def track_error(self, mechanism: str) -> float:
        return mean_error(self.mechanism, self.counts, self.asked)
