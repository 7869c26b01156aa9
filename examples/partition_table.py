"""The tables that decided which partition `Dawa` uses by default.

    python examples/partition_table.py DATA [--trials 3] [--workloads 5]

DATA is a folder of histograms (``*.npy``) of one or two dimensions. Prints the mean
error per query over uniform ranges, or over uniform rectangles, seeded: an
experiment, not a release.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import blowfish_fast as bf
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost
from blowfish_fast.workloads import Ranges, Rectangles, Workload

RANGES = 2000
RECTANGLES = 1000
EPSILONS = {1: (0.01, 0.05, 0.1, 0.5), 2: (0.01, 0.1, 0.5)}

# Partition by dimensions and name, given the workload.
PARTITIONS: dict[int, dict[str, Callable[[Workload], object]]] = {
    1: {
        "DyadicTree (default)": lambda asked: "best",
        "LeastCost": lambda asked: LeastCost(),
        "LeastCost, pinball": lambda asked: LeastCost(cost="pinball"),
        "none": lambda asked: None,
    },
    2: {
        "DyadicRectangles (default)": lambda asked: "best",
        "DyadicTree, Hilbert": lambda asked: DyadicTree(
            query_cells=asked.mean_cells(), dimensions=2
        ),
        "LeastCost, Hilbert": lambda asked: LeastCost(),
    },
}


def mean_error(
    counts: np.ndarray,
    partition: Callable[[Workload], object],
    epsilon: float,
    workloads: int,
    trials: int,
) -> float:
    """Return the mean absolute error per query over workloads and trials."""
    domain = bf.Domain(counts.shape)
    errors = []
    for number in range(workloads):
        asked: Workload = (
            Ranges.random(domain, RANGES, rng=number)
            if domain.ndim == 1
            else Rectangles.random(domain, RECTANGLES, rng=number)
        )
        truth = asked.answer(counts)
        dawa = bf.Dawa(
            bf.policies.AddRemove(domain),
            asked,
            epsilon=epsilon,
            partition=partition(asked),
        )
        for trial in range(trials):
            release = dawa.release(counts, rng=1000 * number + trial)
            errors.append(np.abs(release.answer(asked) - truth).mean())
    return float(np.mean(errors))


def print_table(sets: dict[str, np.ndarray], workloads: int, trials: int) -> None:
    """Print one line per epsilon and partition for sets of one dimension."""
    dimensions = next(iter(sets.values())).ndim
    print(
        "epsilon  partition                   "
        + " ".join(f"{name:>20}" for name in sets)
    )
    for epsilon in EPSILONS[dimensions]:
        for name, partition in PARTITIONS[dimensions].items():
            found = [
                mean_error(counts, partition, epsilon, workloads, trials)
                for counts in sets.values()
            ]
            line = " ".join(f"{error:20.1f}" for error in found)
            print(f"{epsilon:<8} {name:<27} {line}", flush=True)


def main() -> None:
    """Print the table of each dimension that DATA has sets of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=5)
    arguments = parser.parse_args()
    sets = {path.stem: np.load(path) for path in sorted(arguments.data.glob("*.npy"))}
    for dimensions in PARTITIONS:
        these = {name: one for name, one in sets.items() if one.ndim == dimensions}
        if these:
            print_table(these, arguments.workloads, arguments.trials)


if __name__ == "__main__":
    main()
