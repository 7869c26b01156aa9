"""What runs with outliers gain where spikes stand between zeros, beside public code.

    python examples/spike_gain.py [DATA] [--trials 8] [--cells 4096]

DATA, optional, is a folder with ``1d/*.npy``. The spikes and the generated shapes
served to choose the shares of outliers; the sets of the folder played no part. Prints
the mean error per query of DAWA before, now and with the first stage of public code,
which is not private; seeded: an experiment, not a release.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast import kernels
from blowfish_fast.advice.typical_error import reference_shapes
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.selectors.partitions import DyadicTree, Partition

EPSILON = 0.01
RECORDS = (20_000, 100_000, 1_000_000)


class WithoutRuns(DyadicTree):
    """The sampled partition as it was before it knew runs."""

    def _choose(self, counts: Any, policy: Any, epsilon: Fraction, rng: Any) -> Buckets:
        edges = kernels.sample_dyadic_partition(
            counts,
            rng.stream(),
            rate=self.rate(counts.size, epsilon),
            penalty=self.price * self.bucket_cost,
            length_weights=self.length_weights(counts.size),
        )
        return Buckets(edges)


class PublicCode(Partition):
    """The first stage of the public code: half of the noise, none on single cells."""

    name = "public_code"
    default_share = Fraction(1, 4)

    def __init__(self, counts: Any) -> None:
        self.apart = {1: np.zeros(counts.size)}
        length = 2
        while length <= counts.size:
            windows = np.lib.stride_tricks.sliding_window_view(counts, length)
            means = windows.mean(axis=1, keepdims=True)
            self.apart[length] = np.abs(windows - means).sum(axis=1)
            length *= 2

    def _choose(self, counts: Any, policy: Any, epsilon: Fraction, rng: Any) -> Buckets:
        first = float(epsilon)
        price = 1 / (3 * first)
        generator = np.random.default_rng(int(rng.stream()(0, 1)[0]))
        costs = {}
        for length, apart in self.apart.items():
            scale = (2 - 1 / length - 1 / counts.size) / first if length > 1 else 0.0
            noisy = apart + generator.laplace(scale=scale, size=apart.size)
            costs[length] = np.maximum(noisy, 0.0).tolist()
        best, begins = [0.0], [0]
        for end in range(1, counts.size + 1):
            offers = [
                (best[end - one] + cost[end - one] + price, end - one)
                for one, cost in costs.items()
                if one <= end
            ]
            least, begin = min(offers)
            best.append(least)
            begins.append(begin)
        edges = [counts.size]
        while edges[-1]:
            edges.append(begins[edges[-1]])
        return Buckets(np.array(edges[::-1]))


def spikes(cells: int, records: int) -> Iterator[tuple[str, Any]]:
    """Yield histograms of 1 to 160 spikes, of equal or very different heights."""
    for number in (1, 8, 40, 160):
        for law in ("equal", "pareto")[: 1 if number == 1 else 2]:
            generator = np.random.default_rng([number, records])
            heights = np.zeros(cells)
            where = generator.choice(cells, min(number, cells), replace=False)
            drawn = generator.pareto(1.2, where.size) + 0.1
            heights[where] = drawn if law == "pareto" else 1.0
            counts = generator.multinomial(records, heights / heights.sum())
            yield f"{number} {law}", counts


def given(folder: Path, records: int) -> Iterator[tuple[str, Any]]:
    """Yield the histograms of a folder, each drawn again with so many records."""
    for path in sorted((folder / "1d").glob("*.npy")):
        counts = np.load(path)
        generator = np.random.default_rng(zlib.crc32(path.stem.encode()))
        yield path.stem, generator.multinomial(records, counts / counts.sum())


def errors(counts: Any, kind: str, trials: int) -> list[float]:
    """Return the mean errors before, now and of public code."""
    line = bf.Domain(counts.size)
    asked: Any = bf.workloads.Identity(line)
    if kind == "ranges":
        asked = bf.workloads.Ranges.random(line, 400, rng=3)
    policy, truth = bf.policies.AddRemove(line), asked.answer(counts)
    before = WithoutRuns(query_cells=asked.mean_cells())
    plain = {"partition": PublicCode(counts), "fit": None, "sweeps": False, "floor": 0}
    found = []
    for settings in ({"partition": before}, {}, plain):
        dawa = bf.Dawa(policy, asked, epsilon=EPSILON, **settings)
        answers = [
            asked.answer(dawa.release(counts, rng=one).estimate)
            for one in range(trials)
        ]
        found.append(float(np.mean([np.abs(one - truth) for one in answers])))
    return found


def main() -> None:
    """Print a line per histogram, and geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--cells", type=int, default=4096)
    options = parser.parse_args()
    origins: dict[str, Callable[[int], Any]] = {
        "spikes": lambda n: spikes(options.cells, n),
        "generated": lambda n: reference_shapes(bf.Domain(options.cells), n).items(),
    }
    if options.data is not None:
        origins["given"] = lambda n: given(options.data, n)
    for origin, histograms in origins.items():
        for kind in ("cells", "ranges"):
            rows = []
            for records in RECORDS:
                for name, counts in histograms(records):
                    rows.append(errors(counts, kind, options.trials))
                    values = " ".join(f"{one:.3g}" for one in rows[-1])
                    print(f"{origin}, {kind}, {records} records, {name}: {values}")
            before, now, public = np.log(rows).T
            for label, apart in (
                ("now over before", now - before),
                ("before over public code", before - public),
                ("now over public code", now - public),
            ):
                print(
                    f"{origin}, {kind}, {label}: {np.exp(apart.mean()):.3f} "
                    f"({np.exp(apart.std() / np.sqrt(apart.size)):.2f}), worst "
                    f"{np.exp(apart.max()):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
