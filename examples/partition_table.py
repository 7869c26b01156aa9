"""The table that decided which partition `Dawa` uses by default.

    python examples/partition_table.py DATA [--trials 3] [--workloads 5]

DATA is a folder of one-dimensional histograms (``*.npy``). Prints the
mean error per query over uniform ranges, seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import blowfish_fast as bf
from blowfish_fast.partitions import LeastCost

PARTITIONS = {
    "DyadicTree (default)": "best",
    "LeastCost": LeastCost(),
    "LeastCost, pinball": LeastCost(cost="pinball"),
    "none": None,
}


def mean_error(
    counts: np.ndarray, partition: object, epsilon: float, workloads: int, trials: int
) -> float:
    """Return the mean absolute error per query over workloads and trials."""
    line = bf.Domain(counts.size)
    errors = []
    for workload in range(workloads):
        ranges = bf.workloads.Ranges.random(line, 2000, rng=workload)
        truth = ranges.answer(counts)
        dawa = bf.Dawa(
            bf.policies.AddRemove(line), ranges, epsilon=epsilon, partition=partition
        )
        for trial in range(trials):
            release = dawa.release(counts, rng=1000 * workload + trial)
            errors.append(np.abs(release.answer(ranges) - truth).mean())
    return float(np.mean(errors))


def main() -> None:
    """Print one line per epsilon and partition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--workloads", type=int, default=5)
    arguments = parser.parse_args()
    sets = {path.stem: np.load(path) for path in sorted(arguments.data.glob("*.npy"))}
    print("epsilon  partition             " + " ".join(f"{name:>10}" for name in sets))
    for epsilon in (0.01, 0.05, 0.1, 0.5):
        for name, partition in PARTITIONS.items():
            found = [
                mean_error(
                    counts, partition, epsilon, arguments.workloads, arguments.trials
                )
                for counts in sets.values()
            ]
            line = " ".join(f"{error:10.1f}" for error in found)
            print(f"{epsilon:<8} {name:<21} {line}")


if __name__ == "__main__":
    main()
