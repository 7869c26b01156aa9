"""How much of epsilon DAWA's partition should have: a table of the accuracy page.

    python examples/partition_share.py DATA [--trials 3] [--share 1/5] [--over 3/20]

DATA is a folder with ``1d/*.npy``, on which the default was chosen; the generated
shapes beside it played no part. Prints the mean error per query with one share over
that with the other, as a geometric mean over sets, for four products of records and
epsilon; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast.advice.typical_error import reference_shapes

SIZES = ((100, 20_000), (2_000, 20_000), (20_000, 200_000), (10**6, 10**6))


def given_sets(folder: Path, records: int) -> dict[str, Any]:
    """Return the histograms of a folder, each drawn again with so many records."""
    found = {}
    for path in sorted((folder / "1d").glob("*.npy")):
        counts = np.load(path)
        generator = np.random.default_rng(zlib.crc32(path.stem.encode()))
        found[path.stem] = generator.multinomial(records, counts / counts.sum())
    return found


def ratios(sets: dict[str, Any], kind: str, epsilon: float, given: Any) -> list[float]:
    """Return one ratio of mean errors per set."""
    found = []
    for name, counts in sets.items():
        line = bf.Domain(counts.size)
        asked: Any = bf.workloads.Identity(line)
        if kind == "ranges":
            asked = bf.workloads.Ranges.random(line, 2000, rng=5)
        truth, errors = asked.answer(counts), []
        for share in (given.share, given.over):
            dawa = bf.Dawa(
                bf.policies.AddRemove(line), asked, epsilon=epsilon, share=share
            )
            seeds = [
                zlib.crc32(f"{name} {one}".encode()) for one in range(given.trials)
            ]
            answers = [dawa.release(counts, rng=one).estimate for one in seeds]
            errors.append(np.mean([np.abs(asked.answer(x) - truth) for x in answers]))
        found.append(float(errors[0] / errors[1]))
    return found


def main() -> None:
    """Print a line per size, kind of question and origin of the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--share", default="1/5")
    parser.add_argument("--over", default="3/20")
    given = parser.parse_args()
    for mass, records in SIZES:
        read = given_sets(given.data, records)
        cells = next(iter(read.values())).size
        made = reference_shapes(bf.Domain(cells), records)
        for kind in ("cells", "ranges"):
            for origin, sets in (("given", read), ("generated", made)):
                found = np.log(ratios(sets, kind, mass / records, given))
                print(
                    f"records x epsilon {mass}, {kind}, {origin}: "
                    f"{np.exp(found.mean()):.2f} "
                    f"({np.exp(found.std() / np.sqrt(found.size)):.2f}), from "
                    f"{np.exp(found.min()):.2f} to {np.exp(found.max()):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
