"""What `bf.recommend` gains over always taking DAWA: a table of the accuracy page.

    python examples/recommend_gain.py DATA [--cells 1024] [--trials 2]

DATA is a folder with ``1d/*.npy``. Every histogram is drawn again with 10^3, 10^5 and
10^7 records; the mean error per query of what is recommended is divided by that of
`Dawa`. Prints geometric means over sets and sizes, with the standard error of the mean
logarithm; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf

RECORDS = (10**3, 10**5, 10**7)
EPSILON = 0.1


def policies(line: bf.Domain) -> dict[str, Any]:
    """Return one policy of every family over a line."""
    cells = line.size
    return {
        "AddRemove": bf.policies.AddRemove(line),
        "Full": bf.policies.Full(line),
        "Threshold, 1/64 of the line": bf.policies.Threshold(line, theta=cells // 64),
        "Blocks of 1/64": bf.policies.Blocks(line, np.arange(cells) * 64 // cells),
        "Line": bf.policies.Line(line),
    }


def mean_error(mechanism: Any, counts: Any, trials: int, name: str) -> float:
    """Return the mean absolute error per query over seeded releases."""
    asked = mechanism.workload
    truth = asked.answer(counts)
    seeds = [zlib.crc32(f"{name} {trial}".encode()) for trial in range(trials)]
    errors = [
        np.abs(mechanism.release(counts, rng=seed).answer(asked) - truth).mean()
        for seed in seeds
    ]
    return max(float(np.mean(errors)), 1e-3)


def main() -> None:
    """Print a line per policy and kind of question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=2)
    given = parser.parse_args()
    line = bf.Domain(given.cells)
    questions = {
        "cells": bf.workloads.Identity(line),
        "ranges": bf.workloads.Ranges.random(line, 500, rng=5),
        "prefixes": bf.workloads.Prefixes(line),
    }
    print("policy, questions, recommended, error over that of Dawa (standard error)")
    for policy_name, policy in policies(line).items():
        for kind, asked in questions.items():
            best = bf.recommend(policy, asked, epsilon=EPSILON).best.mechanism
            logs = [0.0]
            if best is not None and not isinstance(best, bf.Dawa):
                dawa = bf.Dawa(policy, asked, epsilon=EPSILON)
                logs = []
                for path in sorted((given.data / "1d").glob("*.npy")):
                    whole = np.load(path)
                    starts = np.arange(given.cells) * whole.size // given.cells
                    shape = np.add.reduceat(whole, starts)
                    for records in RECORDS:
                        name = f"{path.stem} {records}"
                        generator = np.random.default_rng(zlib.crc32(name.encode()))
                        counts = generator.multinomial(records, shape / shape.sum())
                        errors = [
                            mean_error(one, counts, given.trials, name)
                            for one in (best, dawa)
                        ]
                        logs.append(float(np.log(errors[0] / errors[1])))
            spread = np.std(logs) / np.sqrt(len(logs))
            print(
                f"{policy_name}, {kind}, {best.name if best else '-'}, "
                f"{np.exp(np.mean(logs)):.3g} ({np.exp(spread):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
