"""What the private choice between rectangles and an adaptive grid gains on maps.

    python examples/map_choice.py DATA [--trials 3] [--policy AddRemove]

DATA is a folder of maps (``*.npy``). Each is taken as it is and thinned to 1/20; prints
mean errors per query of the default, of rectangles and of the adaptive grid, and their
geometric means; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import numpy as np

import blowfish_fast as bf

EPSILONS = (0.01, 0.1, 1.0)


def errors(
    counts: np.ndarray, policy: str, epsilon: float, trials: int, name: str
) -> np.ndarray:
    """Return the mean errors of the default, the rectangles and the grid."""
    domain = bf.Domain(counts.shape)
    over = getattr(bf.policies, policy)(domain)
    found = []
    for trial in range(trials):
        asked = bf.workloads.Rectangles.random(domain, 1000, rng=50 + trial % 3)
        truth = asked.answer(counts)
        rectangles = bf.partitions.DyadicRectangles(query_cells=asked.mean_cells())
        mechanisms = (
            bf.Dawa(over, asked, epsilon=epsilon),
            bf.Dawa(over, asked, epsilon=epsilon, partition=rectangles),
            bf.AdaptiveGrid(over, asked, epsilon=epsilon),
        )
        seed = zlib.crc32(repr((name, epsilon, trial)).encode())
        found.append(
            [
                np.abs(one.release(counts, rng=seed + place).answer(asked) - truth)
                .mean()
                .item()
                for place, one in enumerate(mechanisms)
            ]
        )
    return np.mean(found, axis=0)


def main() -> None:
    """Print one line per map and epsilon, then the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--policy", default="AddRemove")
    arguments = parser.parse_args()
    over, better = [], []
    for path in sorted(arguments.data.glob("*.npy")):
        whole = np.load(path).astype(np.int64)
        thin = np.random.default_rng(11).binomial(whole, 1 / 20)
        for name, counts in ((path.stem, whole), (f"{path.stem} / 20", thin)):
            for epsilon in EPSILONS:
                mean = errors(counts, arguments.policy, epsilon, arguments.trials, name)
                over.append(np.log(mean[0] / mean[1]))
                better.append(np.log(mean[0] / mean[1:].min()))
                line = " ".join(f"{one:10.1f}" for one in mean)
                print(f"{name:<26} {epsilon:<5} {line}", flush=True)
    for words, logs in (("over rectangles", over), ("over the better", better)):
        off = np.std(logs, ddof=1) / np.sqrt(len(logs))
        print(
            f"{words}: {np.exp(np.mean(logs)):.3f} (x/ {np.exp(off):.2f}), worst "
            f"{np.exp(np.max(logs)):.2f}"
        )


if __name__ == "__main__":
    main()
