"""What the free fits of the defaults gain: the table of the accuracy page.

    python examples/default_gains.py DATA [--trials 3]

DATA is a folder of histograms (``*.npy``) of one or two dimensions. Prints the mean
error per query with the default fit over that of the linear estimate of the same
release, in geometric mean and at worst over sets and epsilons, with the standard error
of the mean of the logarithms; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf

EPSILONS = (0.01, 0.1, 1.0)
Make = Callable[[bf.Domain, Any, float], Any]

MECHANISMS: dict[int, dict[str, Make]] = {
    1: {
        "Dawa": lambda domain, asked, epsilon: bf.Dawa(
            bf.policies.AddRemove(domain), asked, epsilon=epsilon
        ),
        "Hierarchy": lambda domain, asked, epsilon: bf.Hierarchy(
            bf.policies.AddRemove(domain), asked, epsilon=epsilon
        ),
        "Privelet": lambda domain, asked, epsilon: bf.mechanisms.Privelet(
            bf.policies.AddRemove(domain), asked, epsilon=epsilon
        ),
        "OrderedHierarchical, theta 50": lambda domain, asked, epsilon: (
            bf.mechanisms.OrderedHierarchical(
                bf.policies.Threshold(domain, theta=50), asked, epsilon=epsilon
            )
        ),
    },
    2: {
        "AdaptiveGrid": lambda domain, asked, epsilon: bf.AdaptiveGrid(
            bf.policies.AddRemove(domain), asked, epsilon=epsilon
        ),
    },
}


def ratios(counts: np.ndarray, make: Make, name: str, trials: int) -> Iterator[float]:
    """Yield fitted over linear error, one number per epsilon."""
    domain = bf.Domain(counts.shape)
    asked: Any = (
        bf.workloads.Ranges.random(domain, 2000, rng=5)
        if domain.ndim == 1
        else bf.workloads.Rectangles.random(domain, 1000, rng=3)
    )
    truth = asked.answer(counts)
    for epsilon in EPSILONS:
        mechanism = make(domain, asked, epsilon)
        errors = []
        for trial in range(trials):
            seed = zlib.crc32(repr((name, epsilon, trial)).encode())
            release = mechanism.release(counts, rng=seed)
            errors.append(
                [
                    np.abs(asked.answer(one) - truth).mean()
                    for one in (release.estimate, release.unfitted)
                ]
            )
        fitted, linear = np.mean(errors, axis=0)
        yield float(fitted / linear)


def main() -> None:
    """Print one line per mechanism for the sets of each dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    arguments = parser.parse_args()
    sets = {path.stem: np.load(path) for path in sorted(arguments.data.glob("*.npy"))}
    for dimensions, mechanisms in MECHANISMS.items():
        these = {name: one for name, one in sets.items() if one.ndim == dimensions}
        for kind, make in mechanisms.items() if these else ():
            found = np.log(
                [
                    ratio
                    for name, counts in these.items()
                    for ratio in ratios(counts, make, name, arguments.trials)
                ]
            )
            off = found.std(ddof=1) / np.sqrt(found.size)
            print(
                f"{kind:<30} {np.exp(found.mean()):.3f} (x/ {np.exp(off):.2f})  "
                f"worst {np.exp(found.max()):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
